"""Passages: the pieces of texts that search finds, and how a text is split into them."""

import math
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Self
from uuid import UUID

MAX_WORDS = 80
"""The maximum number of words of a passage: longer texts are better found by their best parts (docs/recall.md)."""

MAX_CHARACTERS = 2_000
"""The maximum number of characters of a passage: a longer word, such as encoded data, is cut."""

MAX_UNSPACED = 200
"""The maximum number of characters of a passage in scripts without spaces (Chinese, Japanese, Thai, …): embedders take
each of them, or two, for a token, and `minilm` reads 256 tokens of a passage."""

_CUT = 40
"""The number of characters after which a clause of such a script is cut, if it has no punctuation mark before."""

NEAR_WORDS = 20
FAR_WORDS = 80
"""How many words on either side of a passage it is also matched by: nearer ones and farther ones (measured)."""

NEIGHBOURS = 16
"""The maximum number of passages on either side from which those words are taken."""

MAX_NEIGHBOUR_LOOKUPS = 100
"""The maximum number of removed passages of one sequence whose neighbours are looked up one by one. If there are more,
only one passage of each run is."""

MAX_SMALL = 50
"""The maximum number of passages of a small write. These are embedded before all bulk, so that what an agent says does
not wait for what it imports."""

OLDEST_SHARE = 4
"""One passage in this many of a batch is one of the oldest that wait, however many newer ones arrive."""

MAX_BUSY_GRAPHS = 1_000
"""The maximum number of graphs of a tenant among which a batch is divided. Of other graphs, the oldest passages are
claimed."""

MAX_PREPARED = 16
MAX_PREPARED_CHARACTERS = 2_000
"""The maximum number of passages of a write, and of characters in them, that are embedded before it (some 20 ms of
`minilm`). They are found by their meaning at once, and others when the worker has embedded them."""

MAX_FAILURES = 3
"""The number of failures on a single text after which it is set aside, if none of them was certain to recur."""

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_CLAUSE = re.compile(rf"[^。！？、，；]{{0,{_CUT}}}(?:[。！？、，；]{{1,9}}[」』）”’]{{0,9}}|(?<=[^。！？、，；]))")
_SENTENCE_END = re.compile(r"[。！？]+[」』）”’]*$")
_SPEAKER = re.compile(r"\s*([^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,2}): ")
_TIME = re.compile(
    r"\b(yesterday|today|tonight|tomorrow|ago|last|next|recently|weekend|morning|evening|night|"
    r"(?:week|month|year|day)s?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|"
    r"august|september|october|november|december|(?:1[5-9]|20)\d\d|\d{1,2}:\d\d)\b",
    re.IGNORECASE,
)


class Source(StrEnum):
    """The kind of text that a passage is a piece of."""

    OBSERVATION = "observation"
    FACT = "fact"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class IndexedText:
    """A text to index: an observation, a fact, or an entity's name.

    `memory_id` is the observation's id, else the node's. `created_by` is the author, whoever indexes the text: a
    question in the first person is about the asker's own memories. `about` is the name of the entity, if there is one:
    a passage is matched by that name as well as by its own words. `kind`, `tags` and `importance` are an observation's
    own: where they are None, filters use those of its node. `version_id`: of the sibling head, below the highest, that
    the text is from. `said_offset`: the minutes by which the clock of who said it was ahead of UTC; None: not known.
    `name` is the node's name, with which the text is embedded; an entity's name itself needs none. `labels`: the labels
    of the memory (`labels.py`), by whose words its first passage is found, too.
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
    said_offset: int | None = None
    name: str | None = None
    labels: Sequence[str] = ()

    @property
    def attributes(self) -> dict[str, Any] | None:
        """The memory's own attributes that filters use; None if none is set."""
        own = {"kind": self.kind, "tags": self.tags, "importance": self.importance, "outdated": self.outdated or None}
        return {name: value for name, value in own.items() if value is not None} or None


@dataclass(frozen=True, slots=True)
class ClaimLimits:
    """The maximum number of passages of a claim (`all`), and how many of them may be the newest of `small` writes."""

    all: int
    small: int

    @classmethod
    def shared(cls, limit: int) -> Self:
        """Share `limit` passages: one in OLDEST_SHARE is for the oldest, where a fraction is rounded at random."""
        oldest = math.floor(limit / OLDEST_SHARE + random.random())  # noqa: S311 - shares a queue, guards nothing
        return cls(all=limit, small=limit - oldest)


@dataclass(frozen=True, slots=True)
class PendingPassage:
    """A passage that waits for its vector, or for the words and vectors of its neighbours.

    `text`: the text to embed; None where it has a vector and evidence, or was set aside. `said_at`: in UTC; None for a
    name. `said_offset`: as in IndexedText.
    """

    id: UUID
    claimed_until: datetime
    text: str | None
    said_at: datetime | None = None
    said_offset: int | None = None


@dataclass(frozen=True, slots=True)
class ClaimedPassage(PendingPassage):
    """A passage that a worker has claimed. `max_per_graph`: the most passages of one graph in the claim."""

    max_per_graph: int = 0


@dataclass(frozen=True, slots=True)
class FailedPassage:
    """A passage on which the embedder failed, while it embedded others. `certain`: it will fail again.

    `reason` is a sentence of ours without any stored text.
    """

    id: UUID
    reason: str
    certain: bool


@dataclass(frozen=True, slots=True)
class RefusedPassage:
    """A live passage that was set aside. It is found by its words, but has no vector."""

    id: UUID
    memory_id: UUID
    node_id: UUID
    source: Source
    reason: str
    refused_at: datetime


def split(text: str) -> Iterator[str]:
    """The passages of a text, in order: sentences together up to MAX_WORDS words, longer sentences cut.

    MAX_UNSPACED characters of words in scripts without spaces count as much as MAX_WORDS words. Their sentences end at
    。！？, and a longer one is cut at its clauses.
    """
    words = text.split()
    if len(words) <= MAX_WORDS and (len(text) <= MAX_UNSPACED or not _UNSPACED.search(text)):
        yield from _bounded(" ".join(words))
        return
    passage: list[_Unit] = []
    total = 0
    for sentence in _sentences(text):
        fits = total + sum(weight for _, weight in sentence) <= _FULL
        for index, unit in enumerate(sentence):
            if passage and (total + unit[1] > _FULL or (index == 0 and not fits)):
                yield from _joined(passage)
                passage, total = [], 0
            passage.append(unit)
            total += unit[1]
    yield from _joined(passage)


_FULL = MAX_WORDS * MAX_UNSPACED
"""The weight of a full passage."""

_Unit = tuple[str, int]
"""A word with a space before it, or a clause of a script without spaces, and its weight, which is below _FULL."""


def _sentences(text: str) -> Iterator[list[_Unit]]:
    for sentence in re.split(r"(?<=[.!?。！？])\s+|\n+", text):
        units: list[_Unit] = []
        for word in sentence.split():
            if not _UNSPACED.search(word):
                units.append((f" {word}", MAX_UNSPACED))
                continue
            space = " "
            for clause in filter(None, _CLAUSE.findall(word)):
                units.append((space + clause, max(len(clause) * MAX_WORDS, MAX_UNSPACED)))
                space = ""
                if _SENTENCE_END.search(clause):
                    yield units
                    units = []
        yield units


def _joined(units: Sequence[_Unit]) -> Iterator[str]:
    yield from _bounded("".join(text for text, _ in units).lstrip(" "))


def _bounded(passage: str) -> Iterator[str]:
    for start in range(0, len(passage), MAX_CHARACTERS):
        yield passage[start : start + MAX_CHARACTERS]


def text_to_embed(name: str | None, passage: str) -> str:
    """The text to embed for a passage of a node with this name. `claim_pending` returns the same to the worker."""
    return passage if not name or passage.startswith(name) else f"{name}: {passage}"


def texts_to_prepare(memories: Iterable[tuple[str | None, str]]) -> list[str]:
    """The texts to embed for new memories before they are stored. A memory is its node's name, if any, and its text.

    The first passages, as many as MAX_PREPARED and MAX_PREPARED_CHARACTERS allow.
    """
    texts: dict[str, None] = {}
    room = MAX_PREPARED_CHARACTERS
    for name, memory in memories:
        for passage in split(memory) if len(memory) <= room else ():
            text = text_to_embed(name, passage)
            room -= len(text)
            if room < 0 or len(texts) == MAX_PREPARED:
                return list(texts)
            texts[text] = None
    return list(texts)


def speaker(text: str) -> str | None:
    """The speaker, in lower case, of a text that begins as the lines of a script do ("Ada: …")."""
    found = _SPEAKER.match(text)
    return found[1].lower() if found else None


def is_dated(text: str) -> bool:
    """Whether a text has a time: a day, a month, a year, or a time relative to the day of saying (English)."""
    return _TIME.search(text) is not None
