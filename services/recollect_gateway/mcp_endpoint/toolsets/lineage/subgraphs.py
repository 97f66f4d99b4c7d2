"""Whole subgraphs written at once, and the vocabulary that a graph uses."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, ClassVar, TypeVar
from uuid import UUID

from msgspec import Meta, Struct, structs

from recollect.errors import InvalidInput, RecollectError
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import PutOutcome, TagUse
from recollect.graph.relations.model import EdgeUpsert
from recollect.memory import writing
from recollect.memory.model import EdgeSpec, NodeSpec, Target, WrittenSubgraph
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import cut_short, paged
from recollect_gateway.mcp_endpoint.schema import items_schema
from recollect_gateway.mcp_endpoint.tool import Arguments, Listing, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.toolsets.lineage.edges import EdgeKind, EdgeMetadata, Ordinal, ToGraph
from recollect_gateway.mcp_endpoint.toolsets.lineage.nodes import (
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
from recollect_gateway.mcp_endpoint.toolsets.lineage.shapes import CreatedBy, Kind, Offset, require_small
from recollect_gateway.requests.lenient_parsing import parse_to_store
from recollect_http.requests.parsing import parse_stored

MAX_NODES = 50
MAX_EDGES = 100
MAX_TAGS = 100
"""The bounds of the memgraph package."""

Ref = Annotated[str, Meta(min_length=1, max_length=128)]
NodeRef = Annotated[Ref, Meta(description="A name of your choice, by which edges of this call refer to the node")]
EndRef = Annotated[Ref, Meta(description="The node at this end, by its ref in this call; or give a lineage")]
EndLineage = Annotated[UUID, Meta(description="The node at this end, by its lineage's id; or give a ref")]


class Named(Struct, frozen=True):
    """The ref of a node."""

    ref: Ref | None = None


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
    metadata: EdgeMetadata | None = None
    ordinal: Ordinal | None = None
    created_by: CreatedBy | None = None


ItemIn = TypeVar("ItemIn", NodeIn, EdgeIn)
Spec = TypeVar("Spec", NodeSpec, EdgeSpec)


class PutSubgraph(Arguments, frozen=True, rename=None):
    """Arguments of `put_subgraph`: items as they were sent, each to be read by itself."""

    read_one_by_one: ClassVar[frozenset[str]] = frozenset({"nodes", "edges"})

    nodes: Annotated[
        list[Any],
        Meta(max_length=MAX_NODES, description="Nodes to write, in order", extra_json_schema=items_schema(NodeIn)),
    ] = []
    edges: Annotated[
        list[Any],
        Meta(
            max_length=MAX_EDGES, description="Edges to write after the nodes", extra_json_schema=items_schema(EdgeIn)
        ),
    ] = []


class DescribeSchema(ReadArguments, frozen=True, rename=None):
    """Arguments of `describe_schema`."""


class ListTags(ReadArguments, frozen=True, rename=None):
    """Arguments of `list_tags`."""

    prefix: Annotated[str, Meta(max_length=128, description="Only tags with this prefix, ignoring case")] = ""
    limit: Annotated[int, Meta(ge=1, description="Maximum number of tags; never more than 100")] | None = None
    offset: Offset = 0


class NodeResult(Struct, frozen=True, omit_defaults=True):
    """What became of one node: a version, or an error with its code. `manual_conflict` is a version all the same.

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
    """What became of one edge: its id, or an error with its code. `updated`: it was there with other properties."""

    edge_id: str | None = None
    updated: bool = False
    error: str | None = None
    code: str | None = None


class SubgraphResult(Struct, frozen=True):
    """Result of `put_subgraph`, one entry an item, in order."""

    nodes: list[NodeResult]
    edges: list[EdgeResult]


Observations = Annotated[int, Meta(description="Observations that have it themselves; their entity need not")]


class KindFreq(Struct, frozen=True, omit_defaults=True):
    """A kind, how many nodes and observations have it, and short texts of some."""

    kind: str
    count: Annotated[int, Meta(description="Nodes that have it")]
    examples: list[str]
    observations: Observations = 0


class TagPrefixFreq(Struct, frozen=True, omit_defaults=True):
    """The prefix of tags `prefix:value`, how often nodes and observations use it, and values of it."""

    prefix: str
    count: Annotated[int, Meta(description="Uses by nodes")]
    values: list[str]
    observations: Annotated[int, Meta(description="Uses by observations")] = 0


class TagFreq(Struct, frozen=True, omit_defaults=True):
    """A tag, and how many nodes and observations have it."""

    tag: str
    count: Annotated[int, Meta(description="Nodes that have it")]
    observations: Observations = 0


class DescribedSchema(Struct, frozen=True):
    """Result of `describe_schema`, most used first. `more`: a list was cut."""

    graph: str
    graph_id: str
    node_count: int
    kinds: list[KindFreq]
    tag_prefixes: list[TagPrefixFreq]
    tags: list[TagFreq]
    more: bool


class TagList(Struct, frozen=True, omit_defaults=True):
    """Result of `list_tags`, most used first; `next_offset` where there are `more`."""

    tags: list[TagFreq]
    more: bool
    next_offset: int | None = None


async def put_subgraph(call: Call, arguments: PutSubgraph) -> Reply:
    """Write nodes and edges in one revision; an item that is at fault fails alone."""
    if not arguments.nodes and not arguments.edges:
        raise InvalidInput("Give nodes or edges", path="nodes")
    nodes = [_parse_item(item, NodeIn, partial(_node_spec, call)) for item in arguments.nodes]
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


async def describe_schema(call: Call, arguments: DescribeSchema) -> Reply | Listing:
    """Show the kinds and tags that a graph uses, as many as a page takes."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await graph_schema(view)

    def reply(page: list[int], cut: str | None) -> Reply:
        count = len(page)
        kinds, prefixes, tags = found.kinds[:count], found.tag_prefixes[:count], found.tags[:count]
        more = found.more or cut is not None
        return Reply(structs.replace(found, kinds=kinds, tag_prefixes=prefixes, tags=tags, more=more))

    return cut_short(range(max(len(found.kinds), len(found.tag_prefixes), len(found.tags))), reply, limit=None)


async def graph_schema(view: GraphView) -> DescribedSchema:
    """The kinds and tags that a graph uses; none for a graph that does not exist."""
    found = await lineages.describe_schema(view)
    return DescribedSchema(
        view.graph.name,
        str(view.graph.id) if view.is_there else "",
        found.node_count,
        [KindFreq(use.kind, use.count, list(use.examples), use.observations) for use in found.kinds],
        [TagPrefixFreq(use.prefix, use.count, list(use.values), use.observations) for use in found.tag_prefixes],
        _tags(found.tags),
        found.more,
    )


async def list_tags(call: Call, arguments: ListTags) -> Reply | Listing:
    """List the tags in use."""
    offset, limit = arguments.offset, min(arguments.limit or MAX_TAGS, MAX_TAGS)
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found, more = await lineages.list_tags(view, arguments.prefix, offset=offset, limit=limit)
    return paged(
        _tags(found),
        lambda rows, next_offset: Reply(TagList(rows, next_offset is not None, next_offset)),
        limit=arguments.limit,
        offset=offset,
        next_offset=offset + limit if more else None,
    )


def _parse_item(item: Any, type_: type[ItemIn], spec_of: Callable[[ItemIn], Spec]) -> Spec | RecollectError:
    """The specification of an item, or the error that keeps it from being parsed."""
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


def _node_spec(call: Call, node: NodeIn) -> NodeSpec:
    require_small(call, node.metadata, "metadata")
    return NodeSpec(draft_of(node, node.lineage_id, path=""), node.ref)


def _edge_spec(call: Call, edge: EdgeIn) -> EdgeSpec:
    require_small(call, edge.metadata, "metadata")
    return EdgeSpec(
        Target(edge.from_lineage, edge.from_ref),
        Target(edge.to_lineage, edge.to_ref),
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


def _tags(found: Any) -> list[TagFreq]:
    uses: list[TagUse] = list(found)
    return [TagFreq(use.tag, use.count, use.observations) for use in uses]
