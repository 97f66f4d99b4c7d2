"""How a text becomes passages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

MAX_WORDS = 80
"""Words of one passage at most: a longer text is better found by its best part (measured; see DESIGN of recall)."""

MAX_CHARACTERS = 2_000
"""Characters of one passage at most, for texts that hold no spaces."""

EMBED_PASSAGES = "embed_passages"
"""The worker's job that gives passages their vectors."""


class Source(StrEnum):
    """What a passage is a piece of."""

    OBSERVATION = "observation"
    FACT = "fact"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Memory:
    """A text to be found again: an observation, a fact, or an entity's name.

    `memory_id` is the observation's id, else the node's. `about` is the name of the entity, if it has one: a passage
    is matched by whom it is about as well as by its own words.
    """

    memory_id: UUID
    node_id: UUID
    source: Source
    text: str
    about: str | None = None
    thread: str | None = None
    said_at: datetime | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PendingPassage:
    """A passage that has no vector yet; `text` is what to embed."""

    id: UUID
    text: str


def split(text: str) -> Iterator[str]:
    """The passages of a text, in order: sentences together up to MAX_WORDS words, longer sentences cut."""
    words = text.split()
    if len(words) <= MAX_WORDS:
        yield from _bounded(" ".join(words))
        return
    passage: list[str] = []
    for sentence in re.split(r"(?<=[.!?。！？])\s+|\n+", text):
        words = sentence.split()
        if passage and len(passage) + len(words) > MAX_WORDS:
            yield from _bounded(" ".join(passage))
            passage = []
        passage.extend(words)
        while len(passage) > MAX_WORDS:
            yield from _bounded(" ".join(passage[:MAX_WORDS]))
            passage = passage[MAX_WORDS:]
    yield from _bounded(" ".join(passage))


def _bounded(passage: str) -> Iterator[str]:
    for start in range(0, len(passage), MAX_CHARACTERS):
        yield passage[start : start + MAX_CHARACTERS]
