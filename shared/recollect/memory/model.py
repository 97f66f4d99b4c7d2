"""What an agent remembers."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from recollect.errors import InvalidInput, RecollectError
from recollect.lineages.model import Draft, Put, Version
from recollect.recall.model import Close, Question, RecallFilter
from recollect.relations.model import Edge
from recollect.search.fusion import Fused

UNBOUNDED = 1_000_000
"""A budget of tokens for a search that answers with nodes rather than texts: as many as recall finds."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to remember. With `about`, an observation on each named entity, made if new; without, a fact.

    `kind`, `tags`, `importance`, `source` and `metadata` describe the fact, or the entities that are new.
    """

    text: str
    about: tuple[str, ...] = ()
    thread: str | None = None
    at: datetime | None = None
    kind: str | None = None
    tags: tuple[str, ...] = ()
    importance: float | None = None
    ttl_days: float | None = None
    source: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of an item: its memory's id (the first, with several `about`), its node, and what is close to it."""

    id: UUID
    node_id: UUID
    known: bool
    close: list[Close]


@dataclass(frozen=True, slots=True)
class Target:
    """A memory or node, by its id or, for an entity, by its name."""

    id: UUID | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Amendment:
    """What to change of a memory or node; None leaves as it is. `based_on`: the version that its writer had read."""

    text: str | None = None
    tags: tuple[str, ...] | None = None
    importance: float | None = None
    status: str | None = None
    reason: str | None = None
    based_on: int | None = None


@dataclass(frozen=True, slots=True)
class Revised:
    """What a revision left: the memory's id (new for an observation), its node, and the node's version.

    `conflict` are the texts of the other heads, where the version was recorded beside them.
    """

    id: UUID
    node_id: UUID
    version: int | None
    text: str | None
    conflict: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A node that an exploration met."""

    id: UUID
    name: str | None
    kind: str | None
    content: str | None
    observations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explored:
    """What an exploration met, nearest first; `cut` says why it ended early, None where nothing was left out.

    `labels` are the names of all that was met, placeholders too, by which edges and paths are told.
    """

    nodes: list[Neighbour]
    labels: dict[UUID, str]
    edges: list[Edge]
    paths: list[list[UUID]]
    cut: str | None


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node of a subgraph to write; `ref` is how edges of the same call name it."""

    draft: Draft
    ref: str | None = None


@dataclass(frozen=True, slots=True)
class EdgeSpec:
    """An edge to write. Each end is a lineage (the target's id) or a node of the same call (its ref as the name).

    `to_graph` names the graph that the target lives in; None: the one that is written.
    """

    source: Target
    target: Target
    type: str
    to_graph: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    ordinal: int | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Subnet:
    """What became of a subgraph's nodes and edges, each in the order given."""

    nodes: list[Put | RecollectError]
    edges: list[Edge | RecollectError]


@dataclass(frozen=True, slots=True)
class Link:
    """An edge with the names of its graphs (None: gone, or not the caller's), and whether its target is gone."""

    edge: Edge
    graph: str | None
    to_graph: str | None
    dangling: bool


@dataclass(frozen=True, slots=True)
class Edges:
    """A page of edges, and whether there are more."""

    links: list[Link]
    more: bool


@dataclass(frozen=True, slots=True)
class Walked:
    """Nodes with their distance, nearest first, the edges among them, their graphs' names, and which bound cut it."""

    nodes: list[tuple[Version, int]]
    links: list[Link]
    graphs: dict[UUID, str]
    cut: str | None


@dataclass(frozen=True, slots=True)
class Ranked:
    """Nodes with their scores, best first; `waiting` passages are found by their words only, for now."""

    nodes: list[tuple[Version, float]]
    more: bool
    waiting: int


@dataclass(frozen=True, slots=True)
class NodeSearch:
    """One of several questions: what it is asked of, and how many nodes it may find."""

    question: Question
    only: RecallFilter
    limit: int


@dataclass(frozen=True, slots=True)
class Fusion:
    """What several questions found together: nodes with their fused scores and the questions (from 0) that found them.

    `unique`: nodes before the cut; `per_query`: how many each question found.
    """

    nodes: list[tuple[Version, Fused[UUID]]]
    unique: int
    per_query: list[int]
    waiting: int


def expiry(now: datetime, ttl_days: float | None, expires_at: datetime | None = None) -> datetime | None:
    """When a memory expires: at `expires_at`, else so many days from now, else never.

    Raises InvalidInput where that lies in the past.
    """
    if expires_at is not None and expires_at <= now:
        raise InvalidInput("Lies in the past", path="expires_at")
    return now + timedelta(days=ttl_days) if expires_at is None and ttl_days is not None else expires_at
