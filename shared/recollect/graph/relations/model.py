"""Relations and the subgraphs that they make."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from recollect.graph.entities.model import Entity


@dataclass(frozen=True, slots=True)
class NewRelation:
    """An edge between two names; a name that nothing has yet becomes a placeholder.

    `metadata` None: none where it is new, what it has where it is there.
    """

    source: str
    target: str
    type: str
    metadata: dict[str, Any] | None = None

    @property
    def triple(self) -> tuple[str, str, str]:
        """What makes it the same relation as another."""
        return self.source, self.target, self.type


@dataclass(frozen=True, slots=True)
class Relation:
    """A stored edge with the names of its ends, when it was made, and when its properties were last put."""

    id: UUID
    source: str
    target: str
    type: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class NewEdge:
    """An edge between two nodes by id. `to_graph` other than the source's makes it a symlink.

    `metadata`, `ordinal`: None where none is given; one that is there keeps its own. `created_at`: when it was made,
    where that is before now: one that was elsewhere before.
    """

    from_node: UUID
    to_node: UUID
    type: str
    to_graph: UUID | None = None
    metadata: dict[str, Any] | None = None
    ordinal: int | None = None
    actor: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """A stored edge by the ids of its ends; `graph_id` is its source's graph.

    Its id stays the same whatever is put to it; `created_at` and `created_by` are those of its making.
    """

    id: UUID
    graph_id: UUID
    from_node: UUID
    to_graph: UUID
    to_node: UUID
    type: str
    metadata: dict[str, Any]
    ordinal: int | None
    created_at: datetime
    created_by: str
    updated_at: datetime

    @property
    def is_symlink(self) -> bool:
        """Whether its target lies in another graph."""
        return self.graph_id != self.to_graph


@dataclass(frozen=True, slots=True)
class EdgeUpsert:
    """An edge as a write left it: made, given other properties, or (neither) there just so already."""

    edge: Edge
    created: bool
    updated: bool


@dataclass(frozen=True, slots=True)
class Symlink(Edge):
    """An edge into another graph, and whether its target still lives there."""

    target_lives: bool


class Direction(StrEnum):
    """Which way edges are followed."""

    OUTGOING = "outgoing"
    INCOMING = "incoming"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Walk:
    """How edges are followed. `types` empty: any; `symlinks`: into other graphs that the caller may use."""

    direction: Direction = Direction.BOTH
    types: tuple[str, ...] = ()
    symlinks: bool = False


@dataclass(frozen=True, slots=True)
class RelationFilter:
    """What a relation must be. None filters nothing."""

    source: str | None = None
    target: str | None = None
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Entities and relations; `next_offset` is where to go on where the list of entities was cut."""

    entities: list[Entity]
    relations: list[Relation]
    next_offset: int | None = None
