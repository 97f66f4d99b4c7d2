"""Entities that are alike: found, proposed, merged."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta


@dataclass(frozen=True, slots=True)
class DuplicateGroups:
    """Groups of names of entities that are alike, the oldest of each first; `more`: further groups follow."""

    groups: list[list[str]]
    more: bool = False


@dataclass(frozen=True, slots=True)
class CompressionResult:
    """What a compression merged: for each group the name that stays, and those that go.

    `known_observations`: statements of those that go which the one that stays has already.
    """

    merged: list[list[str]]
    known_observations: int = 0
    redirected_relations: int = 0
    more: bool = False


@dataclass(frozen=True, slots=True)
class Proposal:
    """Two entities that a pass found alike and left as they are, with their names, and since when they are there."""

    node_id: UUID
    other_id: UUID
    likeness: float
    name: str
    other: str
    created_at: datetime
    other_created_at: datetime


@dataclass(frozen=True, slots=True)
class ConfiguredGraph:
    """A graph whose metadata speaks of duplicates, and when its entities were last compared from end to end."""

    id: UUID
    metadata: dict[str, Any]
    finished_at: datetime | None


LEAST_THRESHOLD = 0.3
"""How alike entities are at least that a pass looks for."""

Mode = Literal["off", "propose", "merge"]
"""What a pass does with what is alike."""


@dataclass(frozen=True, slots=True)
class Deduplication:
    """How a graph is kept free of duplicates: `dedup` in its metadata.

    `mode`: off, propose or merge; `threshold`: how alike, 0.3 to 1; `every_hours`: how often a pass is due;
    `similar_to`: relate what is alike by SIMILAR_TO, where it is not merged.
    """

    mode: Mode = "off"
    threshold: Annotated[float, Meta(ge=LEAST_THRESHOLD, le=1)] = 0.9
    every_hours: Annotated[float, Meta(ge=1, le=8760)] = 24
    similar_to: bool = False


@dataclass(frozen=True, slots=True)
class RequestedPass:
    """A pass that a call asks for, whatever the graph's metadata says: every entity is compared, at this threshold."""

    mode: Mode
    threshold: float


@dataclass(frozen=True, slots=True)
class PassPosition:
    """Where a pass over every entity is: type by type (as a number: a cursor holds no text), each by id."""

    kind: int
    node_id: UUID


@dataclass(frozen=True, slots=True)
class PassCursor:
    """When a pass began, its highest threshold yet and, where it goes over every entity, behind which it goes on."""

    until: datetime
    after: PassPosition | None = None
    threshold: float = 0.0


@dataclass(frozen=True, slots=True)
class DedupStep:
    """What one step of a pass did, and where the next goes on; None: the pass has come to its end."""

    compared: int
    proposed: int
    merged: int
    cursor: PassCursor | None
