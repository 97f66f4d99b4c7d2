"""A graph, its head, and the revision that one call writes."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Any
from uuid import UUID

from recollect.accounts.quotas.model import Quotas
from recollect.errors import ErrorCode, InvalidInput
from recollect.graph.json_values import same_json
from recollect.postgres.transactions import ExpectedGraph
from recollect.times import (
    from_milliseconds,
    in_zone,
    inclusive_upper_bound,
    lacks_offset,
    offset_minutes,
    parse_moment,
    zone_of,
)

GRAPH_NAME = re.compile(r"[A-Za-z0-9_@-]{1,128}")

GRAPH_ID = re.compile(r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}")
"""The written form of an id: a UUID with its hyphens."""

ARCHIVE_EXPIRED = "archive_expired"
"""The operation, by its name in the log, that archives what has expired. No user made that change."""


NIL_GRAPH_ID = UUID(int=0)
_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Graph:
    """One graph's configuration. `kind_whitelist` None allows every kind; `time_zone` None is that of the tenant."""

    id: UUID
    name: str
    conflict_policy: str
    kind_whitelist: tuple[str, ...] | None
    metadata: dict[str, Any]
    created_at: datetime
    created_by: str
    time_zone: str | None = None

    @classmethod
    def absent(cls, name: str) -> "Graph":
        """A stand-in for a graph that does not exist, in which nothing is found."""
        return cls(NIL_GRAPH_ID, name, "lww", None, {}, _BEFORE_ALL, "")

    @property
    def is_there(self) -> bool:
        """Whether this graph exists."""
        return self.id != NIL_GRAPH_ID

    def is_same_as(self, other: "Graph") -> bool:
        """Whether both configurations are the same, so that nothing need be written."""
        return self == other and same_json(self.metadata, other.metadata)

    def require_kind(self, kind: str | None, path: str | None) -> None:
        """Raise InvalidInput where a whitelist leaves this kind out; `path` is the caller's own argument."""
        if self.kind_whitelist is not None and kind not in self.kind_whitelist:
            allowed = ", ".join(self.kind_whitelist) or "none"
            raise InvalidInput(
                f"{'A node without a kind' if kind is None else f'Kind {kind!r}'} is not allowed in graph "
                f"{self.name!r}; allowed: {allowed}",
                code=ErrorCode.KIND_NOT_ALLOWED,
                path=path,
            )


@dataclass(frozen=True, slots=True)
class KnownGraph:
    """A graph as it was read, and its fingerprint, by which a later transaction confirms that it is unchanged."""

    graph: Graph
    expected: ExpectedGraph


@dataclass(frozen=True, slots=True)
class NewGraph:
    """The configuration of a new graph."""

    name: str
    conflict_policy: str = "lww"
    kind_whitelist: tuple[str, ...] | None = None
    metadata: dict[str, Any] | None = None
    time_zone: str | None = None


@dataclass(frozen=True, slots=True)
class GraphPatch:
    """Changes to a graph's configuration. None leaves a field; an empty whitelist allows every kind.

    An empty `time_zone` is that of the tenant.
    """

    name: str | None = None
    conflict_policy: str | None = None
    kind_whitelist: tuple[str, ...] | None = None
    metadata: dict[str, Any] | None = None
    time_zone: str | None = None

    def applied_to(self, graph: Graph) -> Graph:
        """The graph with the changes."""
        whitelist = graph.kind_whitelist if self.kind_whitelist is None else self.kind_whitelist or None
        return replace(
            graph,
            name=self.name or graph.name,
            conflict_policy=self.conflict_policy or graph.conflict_policy,
            kind_whitelist=whitelist,
            metadata=graph.metadata if self.metadata is None else self.metadata,
            time_zone=graph.time_zone if self.time_zone is None else self.time_zone or None,
        )


@dataclass(frozen=True, slots=True)
class GraphHead:
    """The newest revision of a graph, its time, and exact counts of live items."""

    revision: int
    at: datetime
    entities: int
    facts: int
    placeholders: int
    observations: int
    relations: int

    @classmethod
    def absent(cls) -> "GraphHead":
        """The head of a graph that does not exist."""
        return cls(0, _BEFORE_ALL, 0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class GraphPosition:
    """How far one server is with a graph (its newest revision, and its time) and with the log, in bytes.

    `is_replayed`: the server follows another one. `compacted`: the revision before which the past was compacted away.
    `tied`: a digest of the revisions of all graphs, for a tenant with symlinks between its graphs; else None.
    """

    revision: int
    at: datetime
    compacted: int
    tied: str | None
    log: int
    is_replayed: bool

    @property
    def written(self) -> tuple[int, datetime, int, str | None]:
        """The state of the graph: two servers with the same value have the same writes, and as much of the past.

        The past is part of it because the primary's horizon has decided whether `as_of` can be read.
        """
        return self.revision, self.at, self.compacted, self.tied


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of a graph's log: operation, actor, ids that it touched (`cut`: not all of them), and counts."""

    revision: int
    at: datetime
    actor: str
    operation: str
    counts: dict[str, int]
    ids: tuple[UUID, ...]
    cut: bool


@dataclass(frozen=True, slots=True)
class Moment:
    """A past state of a graph: its newest revision then, 0 before the first, and the time by which items expire."""

    revision: int
    at: datetime

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of a query of the past."""
        return {"as_of_revision": self.revision, "as_of_time": self.at}


def as_of_parameters(at: Moment | None) -> dict[str, Any]:
    """The parameters of a query that reads the past where they are set, else the present."""
    return at.parameters if at else {"as_of_revision": None, "as_of_time": None}


@dataclass(frozen=True, slots=True)
class WrittenHead:
    """The size of a graph after the revision that was just written, and the quotas of its tenant's plan."""

    nodes: int
    stored_bytes: int
    quotas: Quotas


@dataclass(slots=True)
class Revision:
    """The revision that one call is writing, under the graph's lock. Use cases record in it what they touched.

    `stored_bytes` is the size of the graph before it. `time_zone`: the graph's, or that of its tenant. `has_derived`:
    the graph may have facts that were derived from others, which go with these.
    """

    graph: Graph
    number: int
    at: datetime
    actor: str
    operation: str
    stored_bytes: int = 0
    ids: list[UUID] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    deltas: Counter[str] = field(default_factory=Counter)
    time_zone: str | None = None
    has_derived: bool = False

    def offset_at(self, moment: datetime) -> int | None:
        """The minutes by which clocks in the graph's zone are ahead of UTC then; None: by none, or no zone is set."""
        if self.time_zone is None:
            return None
        return offset_minutes(in_zone(moment, zone_of(self.time_zone)))

    def touch(self, verb: str, ids: Iterable[UUID], **deltas: int) -> None:
        """Record that these ids were touched, and by how much the head's counters change.

        `verb` names the operation (`nodes_added`), which the change log counts.
        """
        touched = list(ids)
        self.ids.extend(touched)
        if touched:
            self.counts[verb] += len(touched)
        self.deltas.update(deltas)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of a query that writes this revision."""
        return {"graph_id": self.graph.id, "revision": self.number, "revision_time": self.at}

    @property
    def nodes_added(self) -> int:
        """How many nodes the revision adds, net: entities, facts and placeholders."""
        return sum(self.deltas[counter] for counter in ("entities", "facts", "placeholders"))

    @property
    def removes(self) -> bool:
        """Whether fewer items are live after it: what it stores is then history, which no quota may prevent."""
        return self.nodes_added + self.deltas["observations"] + self.deltas["relations"] < 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written, so that no revision is due."""
        return not self.ids


MIN_MILLISECONDS = 10**11
"""A number of at least this is no revision but a time in milliseconds, in 1973 or later."""


def local_as_of(as_of: str, zone: tzinfo) -> str:
    """The text of a moment; a day, or a time without an offset, gets that of a zone."""
    if not lacks_offset(as_of):
        return as_of
    try:
        return parse_moment(as_of, last=True, zone=zone).isoformat()
    except (ValueError, OverflowError):
        return as_of


def parse_as_of(as_of: str) -> int | datetime:
    """A revision or a time, from text; raises InvalidInput.

    A time may also be a number of milliseconds since 1970, as in the graph-memory contract. A time without microseconds
    means the end of its millisecond, and a day its end; both are in UTC where they name no offset.
    """
    try:
        if re.fullmatch(r"[0-9]{1,15}", as_of):
            number = int(as_of)
            return number if number < MIN_MILLISECONDS else inclusive_upper_bound(from_milliseconds(number))
        return parse_moment(as_of, last=True)
    except (ValueError, OverflowError):
        pass
    raise InvalidInput("Must be a revision such as 42, or a time such as 2027-01-31T12:00:00Z", path="as_of")


def graph_name(name: str) -> str:
    """The name, if it is a valid name of a graph; raises InvalidInput."""
    if not GRAPH_NAME.fullmatch(name):
        raise InvalidInput("A graph's name has 1 to 128 of the characters A-Z a-z 0-9 _ @ -", path="graph")
    return name


def spelled_id(name: str) -> UUID | None:
    """The id that this text spells, or None. A graph can be addressed by its id as well as by its name."""
    return UUID(name) if GRAPH_ID.fullmatch(name) else None


def new_graph_name(name: str, *, path: str = "graph") -> str:
    """The name, if a new graph may have it; raises InvalidInput.

    A name that looks like an id is refused: a mistyped id would make a graph, and one graph could pass for another.
    """
    if spelled_id(graph_name(name)) is not None:
        raise InvalidInput(f"{name!r} looks like the id of a graph: choose a name of another form", path=path)
    return name
