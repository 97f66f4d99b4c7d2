"""Entities, facts and observations."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NewEntity:
    """What a new entity is made of. Tags match without regard to case and are kept as given."""

    name: str
    kind: str | None = None
    observations: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    importance: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    source: str | None = None


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


@dataclass(frozen=True, slots=True)
class NewObservation:
    """One statement to attach to the entity of that name."""

    entity: str
    content: str
    thread: str | None = None
    said_at: datetime | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A live node, as far as a write needs to know it."""

    id: UUID
    name: str
    placeholder: bool


@dataclass(frozen=True, slots=True)
class Entity:
    """A live entity with its observations, oldest first."""

    id: UUID
    name: str
    kind: str | None
    observations: tuple[str, ...]
    tags: tuple[str, ...]
    importance: float | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Observation:
    """A stored observation, with the name of the entity that it is about."""

    id: UUID
    node_id: UUID
    entity: str
    content: str
    thread: str | None
    said_at: datetime
    expires_at: datetime | None


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
