"""Memories as agents send and receive them, and the results of this package's use cases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from recollect.errors import InvalidInput, RecollectError
from recollect.graph.lineages.model import Draft, PutOutcome, Version
from recollect.graph.nodes.model import ACTIVE
from recollect.graph.observations.model import Attributes
from recollect.graph.relations.model import Edge, EdgeUpsert
from recollect.retrieval.recall.model import Question, RecallFilter
from recollect.retrieval.search.fusion import Fused
from recollect.retrieval.similarity.model import NearDuplicate

MAX_NAME = 512
"""Characters of an entity's name, at most."""

UNBOUNDED = 1_000_000
"""A budget of tokens for a search that answers with nodes rather than texts: as many as recall finds."""

SHORTEST_LIFETIME = timedelta(seconds=1)
"""A memory with a shorter lifetime could expire before the call that stores it has read it back."""


@dataclass(frozen=True, slots=True)
class NewMemory(Attributes):
    """One thing to remember: a fact or, with `about`, an observation on each of these entities, created if new.

    Its attributes are the memory's own; `kind` is also that of entities that are new. `ttl_days` 0: it never expires.
    `supersedes`: older memories that become outdated by it.
    `said_offset`: the minutes by which the clock of who says it is ahead of UTC; None: that of the graph's time zone.
    """

    text: str
    about: tuple[str, ...] = ()
    thread: str | None = None
    at: datetime | None = None
    ttl_days: float | None = None
    supersedes: tuple[UUID, ...] = ()
    said_offset: int | None = None


class RememberOutcome(StrEnum):
    """The outcome of an item: its memory is new, or was known and updated, or was known and stays as it was."""

    NEW = "new"
    UPDATED = "updated"
    KNOWN = "known"


@dataclass(frozen=True, slots=True)
class Remembered:
    """The outcome of an item: its memory's id (the first, with several `about`), its node, and near duplicates."""

    id: UUID
    node_id: UUID
    outcome: RememberOutcome
    close: list[NearDuplicate]

    @property
    def known(self) -> bool:
        """Whether the memory existed before."""
        return self.outcome is not RememberOutcome.NEW


@dataclass(frozen=True, slots=True)
class MemoryRef:
    """A memory or node, by its id or, for an entity, by its name."""

    id: UUID | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The ids of what was forgotten, and the targets that do not exist.

    `forms`: the names that were forgotten, by the name that was asked for; several where a graph has forms of a name.
    """

    ids: list[UUID]
    unknown: list[MemoryRef]
    forms: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class MemoryPatch:
    """The changes to a memory or node; None leaves a field as it is. `based_on`: the version that the writer had read.

    `ttl_days` counts from the change; 0: it never expires. `reason`: why, kept with the version.
    """

    text: str | None = None
    tags: tuple[str, ...] | None = None
    importance: float | None = None
    status: str | None = None
    ttl_days: float | None = None
    reason: str | None = None
    based_on: int | None = None

    @property
    def reactivates(self) -> bool:
        """Whether it has a text and no status. Then the memory is active with that text, even if it was outdated."""
        return self.text is not None and self.status is None

    @property
    def hides(self) -> bool:
        """Whether it makes the memory or node outdated or archived."""
        return self.status not in (None, ACTIVE)

    def status_after(self, before: str) -> str:
        """The status after the change."""
        return self.status or (ACTIVE if self.reactivates else before)


@dataclass(frozen=True, slots=True)
class Revised:
    """The outcome of a revision: the memory's id, its node, and its newest version, with the text of that.

    `conflict` are the texts of the other heads, where the version was recorded beside them. `unchanged`: nothing
    differed, and nothing was written. `refused`: nothing was written, because the revision was based on an older
    version; `conflict` is then the text that it would have written, if it had one.
    """

    id: UUID
    node_id: UUID
    version: int
    text: str | None
    conflict: tuple[str, ...] = ()
    unchanged: bool = False
    refused: bool = False


@dataclass(frozen=True, slots=True)
class NeighbourNode:
    """A node that an exploration reached."""

    id: UUID
    name: str | None
    kind: str | None
    content: str | None
    observations: tuple[str, ...]
    status: str
    version: int


@dataclass(frozen=True, slots=True)
class Explored:
    """What an exploration reached, nearest first; `cut` says why it ended early, None where nothing was left out.

    `labels` are the names by which edges and paths refer to nodes, placeholders too: see `naming.labels_of`.
    """

    nodes: list[NeighbourNode]
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

    `to_graph` names the graph that the target lives in; None: the one that is written. An existing edge keeps its
    metadata and its ordinal where these are None.
    """

    source: MemoryRef
    target: MemoryRef
    type: str
    to_graph: str | None = None
    metadata: dict[str, Any] | None = None
    ordinal: int | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class WrittenSubgraph:
    """The outcomes of a subgraph's nodes and edges, each in the order of the call."""

    nodes: list[PutOutcome | RecollectError]
    edges: list[EdgeUpsert | RecollectError]


@dataclass(frozen=True, slots=True)
class NamedEdge:
    """An edge with the names of its graphs (None: deleted, or not the caller's), and whether its target was deleted."""

    edge: Edge
    graph: str | None
    to_graph: str | None
    dangling: bool


@dataclass(frozen=True, slots=True)
class EdgePage:
    """A page of edges, and whether there are more."""

    links: list[NamedEdge]
    more: bool


@dataclass(frozen=True, slots=True)
class TraversedSubgraph:
    """Nodes with their distance, nearest first, their edges, their graphs' names, and which bound cut the walk."""

    nodes: list[tuple[Version, int]]
    links: list[NamedEdge]
    graphs: dict[UUID, str]
    cut: str | None


@dataclass(frozen=True, slots=True)
class NodeHit:
    """A node that a search found, its score (0..1), and the text of it that matches best.

    `version_ref`: the node's id, and the version id of the sibling head that was found, None for the newest version.
    """

    version_ref: tuple[UUID, UUID | None]
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class RankedNodes:
    """Nodes with their scores and the text of each that matches best, best first.

    `waiting` passages are not embedded yet, and are found by their words only.
    """

    nodes: list[tuple[Version, float, str]]
    more: bool
    waiting: int


@dataclass(frozen=True, slots=True)
class NodeSearch:
    """One of several questions: which nodes it may find, and how many."""

    question: Question
    filters: RecallFilter
    limit: int


@dataclass(frozen=True, slots=True)
class Fusion:
    """What several questions found together: nodes with their fused scores and the questions (from 0) that found them.

    `unique`: nodes before the cut; `per_query`: how many each question found.
    """

    nodes: list[tuple[Version, Fused[tuple[UUID, UUID | None]]]]
    unique: int
    per_query: list[int]
    waiting: int


def require_lifetime(ttl_days: float | None, path: str = "ttl_days") -> None:
    """Raise InvalidInput for less than SHORTEST_LIFETIME; 0 (never expires) and None are valid."""
    if ttl_days and timedelta(days=ttl_days) < SHORTEST_LIFETIME:
        raise InvalidInput("A lifetime is at least 1 second (0.0000116 days)", path=path)


def expiry(now: datetime, ttl_days: float | None, expires_at: datetime | None = None) -> datetime | None:
    """The time at which a memory expires: `expires_at`, or `ttl_days` from now, or never (None; for 0 days, too).

    Raises InvalidInput where `expires_at` lies in the past, and where the memory would last less than
    SHORTEST_LIFETIME.
    """
    if expires_at is not None and expires_at <= now:
        raise InvalidInput("Must not be in the past", path="expires_at")
    if expires_at is not None and expires_at < now + SHORTEST_LIFETIME:
        raise InvalidInput("A memory expires 1 second from now at the earliest", path="expires_at")
    if expires_at is None:
        require_lifetime(ttl_days)
    return now + timedelta(days=ttl_days) if expires_at is None and ttl_days else expires_at


def reason_of(before: str | None, reason: str | None, *, status_changes: bool) -> str | None:
    """The reason of a new version: its own, else that of the version before, unless the status changes."""
    return reason if reason is not None or status_changes else before


def require_short_name(name: str) -> None:
    """Raise InvalidInput for a name that is too long for an entity."""
    if len(name) > MAX_NAME:
        raise InvalidInput(f"An entity's name is too long (max {MAX_NAME} chars)", path="text")
