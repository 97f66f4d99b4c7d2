"""Relations, and the subgraphs that entities and relations form."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from recollect.graph.entities.model import Entity

MENTIONS_ENTITY = "MENTIONS_ENTITY"
"""The type of a relation from a fact to an entity that it names, or that is similar to it."""


@dataclass(frozen=True, slots=True)
class NewRelation:
    """An edge between two names; a name that no node has gets a placeholder.

    `metadata` None: a new edge has none, an existing edge keeps its own.
    """

    source: str
    target: str
    type: str
    metadata: dict[str, Any] | None = None

    @property
    def triple(self) -> tuple[str, str, str]:
        """Source, target and type: two relations with the same triple are the same relation."""
        return self.source, self.target, self.type


@dataclass(frozen=True, slots=True)
class Relation:
    """A stored edge with the names of its ends. `updated_at`: when its metadata or ordinal last changed."""

    id: UUID
    source: str
    target: str
    type: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class NewEdge:
    """An edge between two nodes, by their ids. A `to_graph` other than the source's makes it a symlink.

    `metadata`, `ordinal`: None is none for a new edge; an existing edge keeps its own. `actor`: its author; None is the
    caller. `created_at`: the creation time of an edge that existed elsewhere before; None is now.
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
    """A stored edge with the ids of its ends; `graph_id` is the graph of its source.

    New metadata or a new ordinal change neither its id nor `created_at` and `created_by`.
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
        """Whether its target is in another graph."""
        return self.graph_id != self.to_graph


EdgePosition = tuple[int | None, UUID]
"""The position of an edge in pages of edges: its ordinal (None sorts last), and its id."""


@dataclass(frozen=True, slots=True)
class EdgeUpsert:
    """An edge after a write, which created it, updated its properties, or (neither) left it as it was."""

    edge: Edge
    created: bool
    updated: bool


@dataclass(frozen=True, slots=True)
class Symlink(Edge):
    """An edge into another graph. `target_lives`: whether its target still exists."""

    target_lives: bool


class Direction(StrEnum):
    """Which way edges are followed."""

    OUTGOING = "outgoing"
    INCOMING = "incoming"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Walk:
    """How edges are followed. `types`: empty is any. `symlinks`: also into other graphs that the caller may use."""

    direction: Direction = Direction.BOTH
    types: tuple[str, ...] = ()
    symlinks: bool = False


@dataclass(frozen=True, slots=True)
class RelationFilter:
    """The names of the ends and the type that a relation must have. None matches any."""

    source: str | None = None
    target: str | None = None
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Entities and relations. `next_offset`: where the next page of entities begins; None: there is none.

    `cut`: "relations", where a reply has no room for all of them, or there are very many.
    """

    entities: list[Entity]
    relations: list[Relation]
    next_offset: int | None = None
    cut: str | None = None
