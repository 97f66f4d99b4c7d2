"""Whole subgraphs written at once, and the vocabulary that a graph uses."""

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta, Struct

from recollect.errors import InvalidInput, RecollectError
from recollect.graphs import service as graphs
from recollect.lineages import service as lineages
from recollect.lineages.model import Put, TagUse
from recollect.memory import subgraphs
from recollect.memory.model import EdgeSpec, NodeSpec, Subnet, Target
from recollect.relations.model import Edge
from recollect_gateway.mcp_endpoint.tool import Arguments, Call, Reading, Reply
from recollect_gateway.mcp_endpoint.toolsets.lineage.edges import EdgeKind, Metadata, Ordinal, ToGraph
from recollect_gateway.mcp_endpoint.toolsets.lineage.nodes import (
    MANUAL_CONFLICT,
    BasedOn,
    Content,
    Freshness,
    Lineage,
    NodeTags,
    SaidAt,
    Summary,
    Thread,
    draft_of,
)
from recollect_gateway.mcp_endpoint.toolsets.lineage.shapes import CreatedBy, Kind, require_small

MAX_NODES = 50
MAX_EDGES = 100
"""Those of the memgraph package."""

Ref = Annotated[str, Meta(min_length=1, max_length=128)]
NodeRef = Annotated[Ref, Meta(description="A name of your own, by which edges of this call mean the node")]
EndRef = Annotated[Ref, Meta(description="The end, by the ref of a node of this call; or give its lineage")]
EndLineage = Annotated[UUID, Meta(description="The end, by its lineage's id; or give a ref")]


class NodeIn(Struct, forbid_unknown_fields=True, frozen=True):
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
    metadata: Metadata = {}
    ordinal: Ordinal | None = None
    created_by: CreatedBy | None = None


class PutSubgraph(Arguments, frozen=True, rename=None):
    """Arguments of `put_subgraph`."""

    nodes: Annotated[list[NodeIn], Meta(max_length=MAX_NODES, description="Nodes to write, in order")] = []
    edges: Annotated[list[EdgeIn], Meta(max_length=MAX_EDGES, description="Edges to write after the nodes")] = []


class DescribeSchema(Reading, frozen=True, rename=None):
    """Arguments of `describe_schema`."""


class ListTags(Reading, frozen=True, rename=None):
    """Arguments of `list_tags`."""

    prefix: Annotated[str, Meta(max_length=128, description="Only tags that begin so, whatever their case")] = ""
    limit: Annotated[int, Meta(ge=1, le=100, description="Tags at most")] = 100


class NodeResult(Struct, frozen=True, omit_defaults=True):
    """What became of one node: a version, or an error with its code. `manual_conflict` is a version all the same."""

    created: bool
    ref: str | None = None
    lineage_id: str | None = None
    version: int | None = None
    error: str | None = None
    code: str | None = None


class EdgeResult(Struct, frozen=True, omit_defaults=True):
    """What became of one edge: its id, or an error with its code."""

    edge_id: str | None = None
    error: str | None = None
    code: str | None = None


class SubgraphResult(Struct, frozen=True):
    """Result of `put_subgraph`, one entry an item, in order."""

    nodes: list[NodeResult]
    edges: list[EdgeResult]


class KindFreq(Struct, frozen=True):
    """A kind, how many nodes have it, and short texts of some."""

    kind: str
    count: int
    examples: list[str]


class TagPrefixFreq(Struct, frozen=True):
    """The prefix of tags `prefix:value`, how often it is used, and values of it."""

    prefix: str
    count: int
    values: list[str]


class TagFreq(Struct, frozen=True):
    """A tag, and how many nodes have it."""

    tag: str
    count: int


class SchemaDescription(Struct, frozen=True):
    """Result of `describe_schema`, most used first. `more`: a list was cut."""

    graph: str
    graph_id: str
    node_count: int
    kinds: list[KindFreq]
    tag_prefixes: list[TagPrefixFreq]
    tags: list[TagFreq]
    more: bool


class TagList(Struct, frozen=True):
    """Result of `list_tags`, most used first."""

    tags: list[TagFreq]
    more: bool


async def put_subgraph(call: Call, arguments: PutSubgraph) -> Reply:
    """Write nodes and edges, each as far as it can be, in one revision."""
    if not arguments.nodes and not arguments.edges:
        raise InvalidInput("Give nodes or edges", path="nodes")
    specs = [_node_spec(call, node, f"nodes.{place}") for place, node in enumerate(arguments.nodes)]
    edges = [_edge_spec(call, edge, f"edges.{place}") for place, edge in enumerate(arguments.edges)]
    async with call.writing(arguments.graph) as (tx, revision):
        written = await subgraphs.put_subgraph(tx, revision, specs, edges)
    return Reply(_written(arguments, written))


async def describe_schema(call: Call, arguments: DescribeSchema) -> Reply:
    """Show which kinds and tags a graph uses."""
    async with call.transaction() as tx:
        graph = await graphs.open_graph(tx, arguments.graph)
        if graph is None:
            name = call.graph_name(arguments.graph)
            return Reply(SchemaDescription(name, "", 0, [], [], [], more=False))
        found = await lineages.describe_schema(tx, graph, at=await graphs.moment(tx, graph, arguments.as_of))
    return Reply(
        SchemaDescription(
            graph.name,
            str(graph.id),
            found.node_count,
            [KindFreq(use.kind, use.count, list(use.examples)) for use in found.kinds],
            [TagPrefixFreq(use.prefix, use.count, list(use.values)) for use in found.tag_prefixes],
            _tags(found.tags),
            found.more,
        )
    )


async def list_tags(call: Call, arguments: ListTags) -> Reply:
    """List the tags in use."""
    async with call.transaction() as tx:
        graph = await graphs.open_graph(tx, arguments.graph)
        if graph is None:
            return Reply(TagList([], more=False))
        at = await graphs.moment(tx, graph, arguments.as_of)
        found, more = await lineages.list_tags(tx, graph, arguments.prefix, limit=arguments.limit, at=at)
    return Reply(TagList(_tags(found), more))


def _node_spec(call: Call, node: NodeIn, path: str) -> NodeSpec:
    require_small(call, node.metadata, f"{path}.metadata")
    return NodeSpec(draft_of(node, node.lineage_id, path=f"{path}."), node.ref)


def _edge_spec(call: Call, edge: EdgeIn, path: str) -> EdgeSpec:
    require_small(call, edge.metadata, f"{path}.metadata")
    return EdgeSpec(
        Target(edge.from_lineage, edge.from_ref),
        Target(edge.to_lineage, edge.to_ref),
        edge.kind,
        edge.to_graph,
        edge.metadata,
        edge.ordinal,
        edge.created_by,
    )


def _written(arguments: PutSubgraph, written: Subnet) -> SubgraphResult:
    nodes = [_node_result(node.ref, put) for node, put in zip(arguments.nodes, written.nodes, strict=True)]
    return SubgraphResult(nodes, [_edge_result(edge) for edge in written.edges])


def _node_result(ref: str | None, put: Put | RecollectError) -> NodeResult:
    if isinstance(put, RecollectError):
        return NodeResult(created=False, ref=ref, error=str(put), code=put.code)
    code = MANUAL_CONFLICT if put.conflict else None
    return NodeResult(put.created, ref, str(put.node_id), put.version, code=code)


def _edge_result(edge: Edge | RecollectError) -> EdgeResult:
    if isinstance(edge, RecollectError):
        return EdgeResult(error=str(edge), code=edge.code)
    return EdgeResult(str(edge.id))


def _tags(found: Any) -> list[TagFreq]:
    uses: list[TagUse] = list(found)
    return [TagFreq(use.tag, use.count) for use in uses]
