"""Remembered things: lineages of versions, with a name or without."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from recollect.errors import ErrorCode, NotFound

T = TypeVar("T")


class EntityNotFound(NotFound):
    """No live entity has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Entity with name {name} not found", code=ErrorCode.ENTITY_NOT_FOUND)
        self.name = name


@dataclass(frozen=True, slots=True)
class NewFact:
    """A memory that is about no entity. `said_at` None means now."""

    content: str
    kind: str | None = None
    tags: tuple[str, ...] = ()
    importance: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    thread: str | None = None
    said_at: datetime | None = None
    ttl_days: float | None = None
    expires_at: datetime | None = None
    status: str = "active"


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A live node, as far as a write needs to know it."""

    id: UUID
    name: str
    placeholder: bool


@dataclass(frozen=True, slots=True)
class NodeFields:
    """Everything of a node that a new version may change. `reason`: why it was last changed, where that was told."""

    name: str | None = None
    kind: str | None = None
    content: str | None = None
    summary: str | None = None
    tags: tuple[str, ...] = ()
    importance: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    parent_id: UUID | None = None
    status: str = "active"
    source: str | None = None
    thread: str | None = None
    said_at: datetime | None = None
    freshness_at: datetime | None = None
    ttl_days: float | None = None
    expires_at: datetime | None = None
    last_dedup_at: datetime | None = None
    placeholder: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHead(NodeFields):
    """A live node as it is now: its newest version."""

    id: UUID
    graph_id: UUID
    version: int
    version_id: UUID
    created_at: datetime
    created_by: str
    updated_at: datetime

    @property
    def fields(self) -> NodeFields:
        """What a new version may change."""
        return NodeFields(**{name: getattr(self, name) for name in FIELD_NAMES})


FIELD_NAMES = tuple(field.name for field in dataclass_fields(NodeFields))


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A new version of a node. `beside_heads`: written beside the earlier heads, which stay (a recorded conflict)."""

    head: NodeHead
    fields: NodeFields
    based_on: int | None = None
    beside_heads: bool = False
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class RestoredNode:
    """A lineage that becomes again what it was. `lived`: what it is now; None where it was deleted.

    `siblings`: own ids of the versions that were heads below what it was, unsettled, the lowest first; they are heads
    again. `based_on`: the version that the highest of them was based on, where there are several.
    """

    id: UUID
    fields: NodeFields
    began_at: datetime
    lived: NodeFields | None
    siblings: tuple[UUID, ...] = ()
    based_on: int | None = None


@dataclass(frozen=True, slots=True)
class RememberedFact:
    """A fact that a write made, or found to be known already."""

    id: UUID
    known: bool


def unique(values: Iterable[T]) -> list[T]:
    """Each value once, in order of first appearance."""
    return list(dict.fromkeys(values))


def unique_by(key: Callable[[T], Hashable], values: Iterable[T]) -> list[T]:
    """The first value of each key, in order of first appearance: a batch that names a thing twice means it once."""
    firsts: dict[Hashable, T] = {}
    for value in values:
        firsts.setdefault(key(value), value)
    return list(firsts.values())


def occurrences(key: Callable[[T], Hashable], values: Iterable[T]) -> list[list[T]]:
    """Values in turns, each of which names a key once: what a batch names twice is done twice, in order."""
    named: Counter[Hashable] = Counter()
    found: list[list[T]] = []
    for value in values:
        turn = named[key(value)]
        named[key(value)] += 1
        if turn == len(found):
            found.append([])
        found[turn].append(value)
    return found


def any_case(tags: Iterable[str]) -> list[str]:
    """Tags as they may have been written, for a filter that compares what PostgreSQL's lower() makes of both.

    Python's small letters are not always the same (İ, a final Σ), and tags may be stored in either's.
    """
    written = (
        form
        for tag in tags
        for form in (tag, tag.lower(), tag.upper(), tag.upper().lower(), unicodedata.normalize("NFC", tag.upper()))
    )
    return unique(written)
