"""Answers of the six verbs, and what two of them take."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import Struct


class Memory(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One thing to remember. What it leaves out, the arguments of `remember` say for all."""

    text: str
    about: Sequence[str] = ()
    thread: str | None = None
    at: datetime | None = None
    kind: str | None = None
    tags: Sequence[str] = ()
    importance: float | None = None
    ttl_days: float | None = None
    source: str | None = None
    metadata: Mapping[str, Any] = {}
    supersedes: Sequence[str | UUID] = ()


Item = str | Memory | Mapping[str, Any]
"""One thing to remember: its text, a Memory, or the fields of one."""


class Triple(Struct, frozen=True, omit_defaults=True):
    """How two entities relate, in active voice: `Triple("Ada", "works at", "Acme")`."""

    subject: str
    predicate: str
    object: str
    metadata: Mapping[str, Any] | None = None


class CloseMemory(Struct, frozen=True):
    """An older memory that says nearly the same. `superseded`: the new one probably replaces it."""

    id: str
    text: str
    score: float
    superseded: bool = False


class RememberedMemory(Struct, frozen=True):
    """What became of one item: `status` is new, updated or known."""

    id: str
    node: str
    status: str
    close: list[CloseMemory] = []


class Remembered(Struct, frozen=True):
    """What became of each item, in their order."""

    memories: list[RememberedMemory]

    def __iter__(self) -> Iterator[RememberedMemory]:
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)


class Message(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One message of a conversation. `name` tells who, where the role does not."""

    content: str
    role: str | None = None
    name: str | None = None
    at: datetime | None = None


class RememberedTurn(Struct, frozen=True):
    """A memory of a conversation; `message`: the number of its message, from 0; `status`: new, updated or known."""

    id: str
    message: int
    status: str


class RememberedConversation(Struct, frozen=True):
    """What became of a conversation; `left_out`: the numbers of messages in which nobody says anything."""

    thread: str
    memories: list[RememberedTurn]
    left_out: list[int] = []


class RecalledMemory(Struct, frozen=True):
    """One memory that was found.

    `part`: the memory is longer, and `text` the part of it that was found. `outdated`: it no longer holds. `version`:
    on which to base a revision. `conflicts`: other versions, unsettled. `why`: the terms of its score, if asked for.
    """

    id: str
    node: str
    text: str
    score: float
    part: bool = False
    name: str | None = None
    at: datetime | None = None
    outdated: bool = False
    version: int | None = None
    version_id: str | None = None
    conflicts: list[str] = []
    why: dict[str, float] | None = None
    kind: str | None = None
    tags: list[str] = []
    importance: float | None = None
    source: str | None = None
    metadata: dict[str, Any] = {}
    reason: str | None = None


class Recalled(Struct, frozen=True):
    """The memories that were found, best first, or a page of those that are listed.

    `more`: others were left out. `waiting`: passages that are found by words only, not embedded yet. `note`: where
    nothing was found, what the graph holds. `searched_for`: what was searched for instead of mistyped queries.
    """

    memories: list[RecalledMemory]
    more: bool = False
    waiting: int = 0
    searched_for: list[str] = []
    next_cursor: str | None = None
    note: str | None = None

    @property
    def items(self) -> list[RecalledMemory]:
        """The memories, as the items of a page."""
        return self.memories

    def __iter__(self) -> Iterator[RecalledMemory]:
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)


class RelatedTriple(Struct, frozen=True):
    """What became of one triple: `status` is new, updated (it had other metadata) or known."""

    subject: str
    predicate: str
    object: str
    status: str


class Related(Struct, frozen=True):
    """What became of each triple, in their order."""

    relations: list[RelatedTriple]

    def __iter__(self) -> Iterator[RelatedTriple]:
        return iter(self.relations)

    def __len__(self) -> int:
        return len(self.relations)


class Revised(Struct, frozen=True):
    """The newest version. `status`: revised, unchanged (nothing was written) or conflict.

    `conflict`: the text that was not written, because there was a newer version; in a graph whose policy is `manual`,
    those of the versions that stand beside it.
    """

    id: str
    node: str
    status: str
    version: int
    text: str | None = None
    conflict: list[str] = []


class Forgotten(Struct, frozen=True):
    """The ids of what was there and is let go, and the ids and names that are unknown."""

    forgotten: list[str]
    not_found: list[str] = []


class ExploredNode(Struct, frozen=True):
    """A node that was reached. `status`: outdated or archived, where it no longer holds."""

    id: str
    version: int
    name: str | None = None
    kind: str | None = None
    text: str | None = None
    status: str | None = None


class ExploredRelation(Struct, frozen=True):
    """A relation that was followed."""

    subject: str
    predicate: str
    object: str
    created_at: datetime


class Explored(Struct, frozen=True):
    """What surrounds a node, or the paths between two. `cut`: the limit that was reached, if any."""

    nodes: list[ExploredNode]
    relations: list[ExploredRelation]
    paths: list[list[str]] = []
    cut: str | None = None
