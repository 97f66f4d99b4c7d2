"""Limits of the tags and metadata of a node, where several nodes or records become one."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

MAX_TAGS, MAX_TAG_CHARACTERS = 2_000, 200_000
"""The maximum number of tags of one node or observation, and of characters in all of them: lists show every tag."""

MAX_METADATA_BYTES = 100_000
"""The maximum size, in bytes of JSON, of the metadata of a node that several nodes or records become."""


def fit_one_node(tags: Sequence[str]) -> bool:
    """Whether one node may have all of these tags."""
    return len(tags) <= MAX_TAGS and sum(map(len, tags)) <= MAX_TAG_CHARACTERS


def fitting_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """As many of these tags, from the first on, as one node may have."""
    if fit_one_node(tags):
        return tuple(tags)
    fitting, characters = list[str](), 0
    for tag in tags[:MAX_TAGS]:
        characters += len(tag)
        if characters > MAX_TAG_CHARACTERS:
            break
        fitting.append(tag)
    return tuple(fitting)


def united_metadata(own: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Metadata, completed by fields of others that it lacks: of each field the first value, and as many as fit."""
    united = {key: value for metadata in (*reversed(others), own) for key, value in metadata.items()}
    if len(msgspec.json.encode(united)) <= MAX_METADATA_BYTES:
        return united
    united, size = dict(own), len(msgspec.json.encode(own))
    for metadata in others:
        for key, value in metadata.items():
            added = len(msgspec.json.encode({key: value}))
            if key not in united and size + added <= MAX_METADATA_BYTES:
                united[key] = value
                size += added
    return united
