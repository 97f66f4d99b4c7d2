"""The labels of a memory: its kind, tags, source and metadata, by whose words it is found as by those of its text."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

MAX_LABELS = 32
"""The maximum number of labels by which a memory is found: first its kind, then tags, source and metadata."""

MAX_LABEL = 100
"""The maximum length of a label, in characters."""


def memory_labels(
    kind: str | None, tags: Sequence[str] | None, source: str | None, metadata: Mapping[str, Any] | None
) -> list[str]:
    """The labels of a memory. The function of that name in PostgreSQL returns the same."""
    named = (label for label in (kind, *(tags or ()), source, *_values(metadata or {})) if label)
    return [label[:MAX_LABEL] for label in islice(named, MAX_LABELS)]


def _values(metadata: Mapping[str, Any]) -> Iterator[str]:
    """The texts and whole numbers in metadata and in its lists, in PostgreSQL's order of keys."""
    for _, value in sorted(metadata.items(), key=lambda item: (len(item[0].encode()), item[0].encode())):
        for single in value if isinstance(value, list | tuple) else (value,):
            if isinstance(single, str):
                yield single
            elif isinstance(single, int) and not isinstance(single, bool):
                yield str(single)
