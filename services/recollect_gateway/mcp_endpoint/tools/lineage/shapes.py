"""Arguments and answers that the tools of the toolset share: graphs, nodes and edges."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from recollect.graph.entities.model import ListedObservations
from recollect.graph.graphs.model import Graph
from recollect.graph.lineages.model import Version
from recollect.memory.model import NamedEdge
from recollect.times import MAX_ZONE
from recollect_gateway.calls import Call
from recollect_http.requests.argument_types import (
    VISIBLE,
    OmittedObservations,
    check_metadata,
    hidden_status,
    omitted_observations,
)

LineageId = Annotated[UUID, Meta(description="A lineage's id")]
Kind = Annotated[str, Meta(min_length=1, max_length=256), VISIBLE]
Tag = Annotated[str, Meta(min_length=1, max_length=128), VISIBLE]
Kinds = Annotated[list[Kind], Meta(max_length=50, description="Only these kinds; default any")]
Tags = Annotated[list[Tag], Meta(max_length=50, description="Only with one of these tags, ignoring case")]
CreatedBy = Annotated[str, Meta(max_length=256, description="Recorded as its author; default: the credential")]
Offset = Annotated[int, Meta(ge=0, le=10_000_000, description="Number of results to skip")]

EdgeKind = Annotated[str, Meta(min_length=1, max_length=256, description="The edge's kind, such as cites")]
EdgeKinds = Annotated[list[EdgeKind], Meta(max_length=50, description="Only edges of these kinds; default any")]

EdgeLimit = Annotated[int, Meta(ge=1, le=1_000, description="Maximum number of edges")]

Policy = Annotated[
    Literal["lww", "manual"],
    Meta(description="lww: the newest put wins; manual: concurrent puts stay side by side until a put settles them"),
]
Whitelist = Annotated[list[Kind], Meta(max_length=200, description="Kinds that may be written; empty: every kind")]

Zone = Annotated[
    str, Meta(max_length=MAX_ZONE, description="IANA time zone of its days without offset; default: the tenant's")
]


class GraphOut(Struct, frozen=True):
    """A graph. `kind_whitelist` empty: every kind is allowed; `time_zone` null: the tenant's."""

    id: str
    name: str
    conflict_policy: str
    kind_whitelist: list[str]
    metadata: dict[str, Any]
    created_at: datetime
    created_by: str
    time_zone: str | None


class NodeVersionOut(Struct, frozen=True, omit_defaults=True):
    """A version of a node. `id` is the version's, `lineage_id` the node's; `name` where it is an entity.

    `observations` are what is said of an entity, oldest first, in the reads that tell them: of now, or of the time that
    is read. They belong to the lineage, not to one of its versions. `omitted_observations`: where all of them would not
    fit an answer, the newest are shown.

    `conflicts`: the other heads of its lineage, where sibling versions wait to be settled. Like `is_current` and
    `superseded_by` it tells of now, whichever version is read; with `as_of`, of then. `reason`: why it was last
    changed, where that was stated. `status`: `outdated` or `archived`, where it does not hold any more.
    """

    id: str
    graph: str
    graph_id: str
    lineage_id: str
    version: int
    kind: str
    summary: str
    tags: list[str]
    created_at: datetime
    is_current: bool
    is_stale: bool
    conflicts: list[str]
    name: str | None = None
    content: str | None = None
    metadata: dict[str, Any] | None = None
    freshness_at: datetime | None = None
    created_by: str | None = None
    superseded_by: str | None = None
    based_on_version: int | None = None
    deleted: bool = False
    observations: list[str] = []
    thread: str | None = None
    at: datetime | None = None
    reason: str | None = None
    status: str | None = None
    omitted_observations: OmittedObservations | None = None


class LineageEdgeOut(Struct, frozen=True, omit_defaults=True):
    """An edge between two lineages. `symlink`: its target lies in another graph. `dangling`: nothing lives at its end.

    The name of a graph is left out where the graph is gone.
    """

    id: str
    graph_id: str
    from_lineage: str
    to_graph_id: str
    to_lineage: str
    kind: str
    metadata: dict[str, Any]
    created_at: datetime
    created_by: str
    symlink: bool
    dangling: bool
    graph: str | None = None
    to_graph: str | None = None
    ordinal: int | None = None


def graph_out(graph: Graph) -> GraphOut:
    """A graph in the toolset's shape."""
    return GraphOut(
        str(graph.id),
        graph.name,
        graph.conflict_policy,
        list(graph.kind_whitelist or ()),
        graph.metadata,
        graph.created_at,
        graph.created_by,
        graph.time_zone,
    )


def node_out(
    node: Version, graph: str, *, compact: bool = False, listed: ListedObservations | None = None, skipped: int = 0
) -> NodeVersionOut:
    """A version in the toolset's shape; `compact`: without fields that a drawing of the graph does not need.

    `listed`: its observations, of which the `skipped` newest were told before.
    """
    listed = listed or ListedObservations()
    out = NodeVersionOut(
        id=str(node.id),
        graph=graph,
        graph_id=str(node.graph_id),
        lineage_id=str(node.node_id),
        version=node.version,
        kind=node.kind or "",
        summary=node.summary or "",
        tags=list(node.tags),
        created_at=node.created_at,
        is_current=node.is_current,
        is_stale=node.is_stale(datetime.now(UTC)),
        conflicts=[str(version_id) for version_id in node.conflicts],
        name=node.name,
        deleted=node.deleted,
        observations=list(listed.texts),
        omitted_observations=omitted_observations(
            listed.omitted, skipped + len(listed.texts), "get_node_by_lineage with observations_offset"
        ),
        status=hidden_status(node.status),
    )
    return out if compact else _with_all_fields(out, node)


def _with_all_fields(out: NodeVersionOut, node: Version) -> NodeVersionOut:
    return msgspec.structs.replace(
        out,
        content=node.content or "",
        metadata=node.metadata,
        freshness_at=node.freshness_at,
        created_by=node.created_by,
        superseded_by=None if node.superseded_by is None else str(node.superseded_by),
        based_on_version=node.based_on,
        thread=node.thread,
        at=node.said_at,
        reason=node.reason,
    )


def edge_out(link: NamedEdge) -> LineageEdgeOut:
    """An edge in the toolset's shape."""
    edge = link.edge
    return LineageEdgeOut(
        id=str(edge.id),
        graph_id=str(edge.graph_id),
        from_lineage=str(edge.from_node),
        to_graph_id=str(edge.to_graph),
        to_lineage=str(edge.to_node),
        kind=edge.type,
        metadata=edge.metadata,
        created_at=edge.created_at,
        created_by=edge.created_by,
        symlink=edge.is_symlink,
        dangling=link.dangling,
        graph=link.graph,
        to_graph=link.to_graph,
        ordinal=edge.ordinal,
    )


def require_small(call: Call, metadata: dict[str, Any] | None, path: str) -> None:
    """Raise InvalidInput for metadata that is larger than the configured bound."""
    check_metadata(metadata, path, call.settings.max_metadata_size)
