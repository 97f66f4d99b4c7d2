"""The tool `put_subgraph`."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, ClassVar, TypeVar
from uuid import UUID

from msgspec import Meta, Struct

from recollect.errors import InvalidInput, RecollectError
from recollect.graph.lineages.model import PutOutcome
from recollect.graph.relations.model import EdgeUpsert
from recollect.memory import writing
from recollect.memory.model import EdgeSpec, MemoryRef, NodeSpec, WrittenSubgraph
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.schema import items_schema
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.lineage.put_edge import EdgeMetadata, Ordinal, ToGraph
from recollect_gateway.mcp_endpoint.tools.lineage.put_node import (
    MANUAL_CONFLICT,
    BasedOn,
    Content,
    Freshness,
    Lineage,
    Metadata,
    NodeTags,
    SaidAt,
    Summary,
    Thread,
    draft_of,
)
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import CreatedBy, EdgeKind, Kind, require_small
from recollect_gateway.requests.lenient_parsing import parse_to_store
from recollect_http.requests.parsing import parse_stored

MAX_NODES = 50
MAX_EDGES = 100
"""The bounds of the memgraph package."""

Ref = Annotated[str, Meta(min_length=1, max_length=128)]
NodeRef = Annotated[Ref, Meta(description="A name of your choice, by which edges of this call refer to the node")]
EndRef = Annotated[Ref, Meta(description="The node at this end, by its ref in this call; or give a lineage")]
EndLineage = Annotated[UUID, Meta(description="The node at this end, by its lineage's id; or give a ref")]


class Named(Struct, frozen=True):
    """The ref of a node."""

    ref: Ref | None = None


class SubgraphNode(Struct, forbid_unknown_fields=True, frozen=True):
    """A node to write."""

    kind: Kind
    content: Content
    ref: NodeRef | None = None
    lineage_id: Lineage | None = None
    based_on_version: BasedOn | None = None
    summary: Summary = ""
    tags: NodeTags = []
    metadata: Metadata = {}
    freshness_at: Freshness | None = None
    created_by: CreatedBy | None = None
    thread: Thread | None = None
    at: SaidAt | None = None


class EdgeIn(Struct, forbid_unknown_fields=True, frozen=True):
    """An edge to write."""

    kind: EdgeKind
    from_ref: EndRef | None = None
    from_lineage: EndLineage | None = None
    to_ref: EndRef | None = None
    to_lineage: EndLineage | None = None
    to_graph: ToGraph | None = None
    metadata: EdgeMetadata | None = None
    ordinal: Ordinal | None = None
    created_by: CreatedBy | None = None


ItemIn = TypeVar("ItemIn", SubgraphNode, EdgeIn)
Spec = TypeVar("Spec", NodeSpec, EdgeSpec)


class PutSubgraph(Arguments, frozen=True, rename=None):
    """Arguments of `put_subgraph`. The handler parses each item by itself, so that a malformed item fails alone."""

    read_one_by_one: ClassVar[frozenset[str]] = frozenset({"nodes", "edges"})

    nodes: Annotated[
        list[Any],
        Meta(
            max_length=MAX_NODES, description="Nodes to write, in order", extra_json_schema=items_schema(SubgraphNode)
        ),
    ] = []
    edges: Annotated[
        list[Any],
        Meta(
            max_length=MAX_EDGES, description="Edges to write after the nodes", extra_json_schema=items_schema(EdgeIn)
        ),
    ] = []


class NodeResult(Struct, frozen=True, omit_defaults=True):
    """The outcome of one node: its version, or an error with a code. With `manual_conflict`, there is a version, too.

    `unchanged`: it says just that already, and nothing was written.
    """

    created: bool
    ref: str | None = None
    lineage_id: str | None = None
    version: int | None = None
    error: str | None = None
    code: str | None = None
    unchanged: bool = False


class EdgeResult(Struct, frozen=True, omit_defaults=True):
    """The outcome of one edge: its id, or an error with a code. `updated`: it existed with other properties."""

    edge_id: str | None = None
    updated: bool = False
    error: str | None = None
    code: str | None = None


class SubgraphResult(Struct, frozen=True):
    """Result of `put_subgraph`, one entry an item, in order."""

    nodes: list[NodeResult]
    edges: list[EdgeResult]


async def put_subgraph(call: Call, arguments: PutSubgraph) -> Reply:
    """Write nodes and edges in one revision; an item that is at fault fails alone."""
    if not arguments.nodes and not arguments.edges:
        raise InvalidInput("Give nodes or edges", path="nodes")
    nodes = [_parse_item(item, SubgraphNode, partial(_node_spec, call)) for item in arguments.nodes]
    edges = [_parse_item(item, EdgeIn, partial(_edge_spec, call)) for item in arguments.edges]
    node_specs = [node for node in nodes if isinstance(node, NodeSpec)]
    edge_specs = [edge for edge in edges if isinstance(edge, EdgeSpec)]
    written = WrittenSubgraph([], [])
    if node_specs or edge_specs:
        prepared = await call.prepare((None, spec.draft.fields.content or "") for spec in node_specs)
        async with call.writing(arguments.graph, prepared=prepared) as (tx, revision):
            written = await writing.put_subgraph(tx, revision, node_specs, edge_specs)
    puts, upserts = iter(written.nodes), iter(written.edges)
    outcomes = [next(puts) if isinstance(node, NodeSpec) else node for node in nodes]
    refs = [_ref_of(item) for item in arguments.nodes]
    return Reply(
        SubgraphResult(
            [_node_result(ref, outcome) for ref, outcome in zip(refs, outcomes, strict=True)],
            [_edge_result(next(upserts) if isinstance(edge, EdgeSpec) else edge) for edge in edges],
        )
    )


PUT_SUBGRAPH = ToolSpec(
    title="Put a subgraph",
    description="Write up to 50 nodes and 100 edges in one call, best effort. Each item gets its own result, so "
    "that you send again only those that failed. A version equal to the newest is not written; an existing edge "
    "is updated as by put_edge.",
    toolsets=frozenset({"lineage"}),
    result=SubgraphResult,
    handler=put_subgraph,
)


def _parse_item(item: Any, type_: type[ItemIn], spec_of: Callable[[ItemIn], Spec]) -> Spec | RecollectError:
    """Parse an item; return its specification, or the error if it is malformed."""
    try:
        return spec_of(parse_to_store(type_, item))
    except RecollectError as error:
        return error


def _ref_of(item: Any) -> str | None:
    """The ref of an item, even if its other fields are at fault."""
    try:
        return parse_stored(Named, {"ref": item.get("ref")}).ref if isinstance(item, dict) else None
    except RecollectError:
        return None


def _node_spec(call: Call, node: SubgraphNode) -> NodeSpec:
    require_small(call, node.metadata, "metadata")
    return NodeSpec(draft_of(node, node.lineage_id, path=""), node.ref)


def _edge_spec(call: Call, edge: EdgeIn) -> EdgeSpec:
    require_small(call, edge.metadata, "metadata")
    return EdgeSpec(
        MemoryRef(edge.from_lineage, edge.from_ref),
        MemoryRef(edge.to_lineage, edge.to_ref),
        edge.kind,
        edge.to_graph,
        edge.metadata,
        edge.ordinal,
        edge.created_by,
    )


def _node_result(ref: str | None, put: PutOutcome | RecollectError) -> NodeResult:
    if isinstance(put, RecollectError):
        return NodeResult(created=False, ref=ref, error=str(put), code=put.code)
    code = MANUAL_CONFLICT if put.conflict else None
    return NodeResult(put.created, ref, str(put.node_id), put.version, code=code, unchanged=put.unchanged)


def _edge_result(put: EdgeUpsert | RecollectError) -> EdgeResult:
    if isinstance(put, RecollectError):
        return EdgeResult(error=str(put), code=put.code)
    return EdgeResult(str(put.edge.id), put.updated)
