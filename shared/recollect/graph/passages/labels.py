"""What a memory says of itself beside its text: kind, tags, source and metadata, by whose words it is found, too."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

MAX_LABELS = 32
"""Labels of a memory by which it is found, at most: its kind, then its tags, then its source, then its metadata."""

MAX_LABEL = 100
"""Characters of each of these, at most."""


def memory_labels(
    kind: str | None, tags: Sequence[str] | None, source: str | None, metadata: Mapping[str, Any] | None
) -> list[str]:
    """The labels of a memory. PostgreSQL's function of that name gives the same."""
    named = (label for label in (kind, *(tags or ()), source, *_values(metadata or {})) if label)
    return [label[:MAX_LABEL] for label in islice(named, MAX_LABELS)]


def _values(metadata: Mapping[str, Any]) -> Iterator[str]:
    """The texts and whole numbers of metadata, and those in its lists; in PostgreSQL's order of keys."""
    for _, value in sorted(metadata.items(), key=lambda item: (len(item[0].encode()), item[0].encode())):
        for single in value if isinstance(value, list | tuple) else (value,):
            if isinstance(single, str):
                yield single
            elif isinstance(single, int) and not isinstance(single, bool):
                yield str(single)
