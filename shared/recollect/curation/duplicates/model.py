"""The configuration, the steps and the results of finding, proposing and merging similar entities."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta


@dataclass(frozen=True, slots=True)
class DuplicateGroups:
    """Groups of names of similar entities; each group begins with its oldest. `more`: further groups follow."""

    groups: list[list[str]]
    more: bool = False


@dataclass(frozen=True, slots=True)
class CompressionResult:
    """What a compression merged: for each group the name that stays, and those that were merged into it.

    `known_observations`: observations of the merged entities that the remaining one had already.
    """

    merged: list[list[str]]
    known_observations: int = 0
    redirected_relations: int = 0
    more: bool = False


@dataclass(frozen=True, slots=True)
class Proposal:
    """Two entities that a pass found similar and did not merge, with their names and creation times."""

    node_id: UUID
    other_id: UUID
    likeness: float
    name: str
    other: str
    created_at: datetime
    other_created_at: datetime


@dataclass(frozen=True, slots=True)
class ConfiguredGraph:
    """A graph with `dedup` in its metadata, and when the last pass over all its entities ended."""

    id: UUID
    metadata: dict[str, Any]
    finished_at: datetime | None


MIN_THRESHOLD = 0.3
"""The lowest threshold of a pass."""

Mode = Literal["off", "propose", "merge"]
"""What a pass does with similar entities."""


@dataclass(frozen=True, slots=True)
class Deduplication:
    """How duplicates of a graph are handled: `dedup` in its metadata.

    `mode`: off, propose or merge. `threshold`: the least similarity, 0.3 to 1. `every_hours`: how often a pass is due.
    `similar_to`: also relate similar entities that are not merged by SIMILAR_TO.
    """

    mode: Mode = "off"
    threshold: Annotated[float, Meta(ge=MIN_THRESHOLD, le=1)] = 0.9
    every_hours: Annotated[float, Meta(ge=1, le=8760)] = 24
    similar_to: bool = False


@dataclass(frozen=True, slots=True)
class RequestedPass:
    """A pass that a call asks for, whatever the graph's metadata says. It compares every entity at this threshold."""

    mode: Mode
    threshold: float


@dataclass(frozen=True, slots=True)
class ScanPosition:
    """How far a pass over all entities is: the type (as a number, since a cursor holds no text) and the id."""

    type_hash: int
    node_id: UUID


@dataclass(frozen=True, slots=True)
class ScanCursor:
    """When a pass began, the highest threshold that it used so far and, if it covers all entities, its position."""

    until: datetime
    after: ScanPosition | None = None
    threshold: float = 0.0


@dataclass(frozen=True, slots=True)
class DedupStep:
    """The result of one step of a pass, and the cursor of the next step, None once the pass has ended."""

    compared: int
    proposed: int
    merged: int
    cursor: ScanCursor | None
