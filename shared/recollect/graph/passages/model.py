"""How a text becomes passages."""

import math
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Self
from uuid import UUID

MAX_WORDS = 80
"""Words of one passage at most: a longer text is better found by its best part (measured; see DESIGN of recall)."""

MAX_CHARACTERS = 2_000
"""Characters of one passage at most, for texts that hold no spaces."""

NEAR_WORDS = 20
FAR_WORDS = 80
"""Words on either side of a passage that it is matched by too, nearer and farther (measured)."""

NEIGHBOURS = 16
"""Passages on either side that those words are taken from, at most."""

MAX_NEIGHBOUR_LOOKUPS = 100
"""Passages removed from a sequence at once that are each looked beside, at most: of more, one of each run is."""

MAX_SMALL = 50
"""Passages written at once that are still embedded before all bulk: what an agent says, not what it brings along."""

OLDEST_SHARE = 4
"""One of so many places of a batch is kept for the oldest that waits, however much that is newer keeps coming."""

MAX_BUSY_GRAPHS = 1_000
"""Graphs of a tenant among which one batch is dealt out, at most. Of others, what is the oldest is taken."""

MAX_FAILURES = 3
"""Failures on a text alone after which it is set aside, where none of them was certain to come again."""

COUNTED_AT_MOST = 100_000
"""Live passages of a graph whose words are counted, about; of a larger graph, a sample."""

_SPEAKER = re.compile(r"\s*([^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,2}): ")
_TIME = re.compile(
    r"\b(yesterday|today|tonight|tomorrow|ago|last|next|recently|weekend|morning|evening|night|"
    r"(?:week|month|year|day)s?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|"
    r"august|september|october|november|december|(?:1[5-9]|20)\d\d|\d{1,2}:\d\d)\b",
    re.IGNORECASE,
)


class Source(StrEnum):
    """What a passage is a piece of."""

    OBSERVATION = "observation"
    FACT = "fact"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class IndexedText:
    """A text to be found again: an observation, a fact, or an entity's name.

    `memory_id` is the observation's id, else the node's. `created_by` is who wrote it, whoever indexes it: who asks in
    the first person means what is their own. `about` is the name of the entity, if it has one: a passage is matched by
    whom it is about as well as by its own words. `kind`, `tags` and `importance` are an observation's own: where they
    are None, filters look at its node. `version_id`: of the sibling head, below the highest, that says it.
    """

    memory_id: UUID
    node_id: UUID
    source: Source
    text: str
    created_by: str
    about: str | None = None
    thread: str | None = None
    said_at: datetime | None = None
    expires_at: datetime | None = None
    kind: str | None = None
    tags: list[str] | None = None
    importance: float | None = None
    outdated: bool = False
    version_id: UUID | None = None

    @property
    def attributes(self) -> dict[str, Any] | None:
        """What filters look at of the memory itself; None where it says nothing."""
        told = {"kind": self.kind, "tags": self.tags, "importance": self.importance, "outdated": self.outdated or None}
        return {name: value for name, value in told.items() if value is not None} or None


@dataclass(frozen=True, slots=True)
class ClaimLimits:
    """How many passages a claim takes in `all`, and how many `small` ones, the newest, come first."""

    all: int
    small: int

    @classmethod
    def shared(cls, limit: int) -> Self:
        """Places of which one in OLDEST_SHARE is the oldest's; of a part of a place, chance decides."""
        kept = math.floor(limit / OLDEST_SHARE + random.random())  # noqa: S311 - shares a queue, guards nothing
        return cls(all=limit, small=limit - kept)


@dataclass(frozen=True, slots=True)
class PendingPassage:
    """A passage that waits for its vector or for what surrounds it.

    `text`: what to embed; None where it has a vector and evidence, or was set aside for lack of one. `said_at`: in UTC;
    None of a name.
    """

    id: UUID
    claimed_until: datetime
    text: str | None
    said_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ClaimedPassage(PendingPassage):
    """A passage that a worker has claimed. `places`: how many of one graph were claimed with it, at most."""

    places: int = 0


@dataclass(frozen=True, slots=True)
class FailedPassage:
    """A passage that the embedder failed on, alone, while it answered others. `certain`: it will again.

    `reason` is a sentence of ours that holds nothing stored.
    """

    id: UUID
    reason: str
    certain: bool


@dataclass(frozen=True, slots=True)
class RefusedPassage:
    """A live passage that was set aside: found by its words, not by its meaning."""

    id: UUID
    memory_id: UUID
    node_id: UUID
    source: Source
    reason: str
    refused_at: datetime


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


def speaker(text: str) -> str | None:
    """Who is speaking, in small letters, where a text begins as a script's lines do ("Ada: …")."""
    found = _SPEAKER.match(text)
    return found[1].lower() if found else None


def is_dated(text: str) -> bool:
    """Whether a text says when: a day, a month, a year, or a time told from the day it was said (English)."""
    return _TIME.search(text) is not None
