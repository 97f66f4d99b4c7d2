"""Resources: the graphs that the caller may read, each graph's schema, each node, and the official server's one graph.

A resource that does not exist, one of another tenant and one that the request is not offered get the same answer.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)
from msgspec import Struct

from recollect.caller import Caller, Scope
from recollect.errors import Forbidden, InvalidInput, NotFound
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, graph_name
from recollect.graph.relations.model import Direction, Walk
from recollect.memory import exploring, reading
from recollect.settings import Settings
from recollect_gateway.calls import Call, Services, read_by_replica
from recollect_gateway.mcp_endpoint.errors import as_protocol_errors
from recollect_gateway.mcp_endpoint.prompts_and_resources.resource_uris import (
    GRAPH_TEMPLATE,
    GRAPHS,
    KNOWLEDGE_GRAPH,
    NODE_TEMPLATE,
    TOOL_TEMPLATE,
    ResourceAddress,
    graph_uri,
    parse_address,
)
from recollect_gateway.mcp_endpoint.request import Context, McpRequest, request_of
from recollect_gateway.mcp_endpoint.results import render_document
from recollect_gateway.mcp_endpoint.schema import json_schema
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.mcp_endpoint.tools import TOOLS, TOOLSETS
from recollect_gateway.mcp_endpoint.tools.lineage.describe_schema import graph_schema
from recollect_gateway.mcp_endpoint.tools.lineage.list_graphs import Graphs
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import graph_out
from recollect_gateway.mcp_endpoint.tools.memory import read_graph
from recollect_gateway.operations.nodes import NodeBody, node_body
from recollect_gateway.operations.relations import RelationBody, relation_bodies_of

JSON = "application/json"
_TOOLS = TOOL_TEMPLATE.removesuffix("{tool}")

PAGE = 100
"""The number of graphs on a page of `resources/list`."""

MAX_GRAPHS = 1_000
"""The maximum number of graphs that `recollect://graphs` lists; `more` says that there are others."""

MAX_RELATIONS = 100
"""The maximum number of relations in a node's resource; `more_relations` says that there are others."""

READ_METHOD = "resources/read"

READING_TOOLSETS = TOOLSETS - {"admin"}
"""Toolsets that read memories: a credential that reaches none of them may not read a graph by its address either."""

OFFICIAL = Resource(
    uri=KNOWLEDGE_GRAPH,
    name="knowledge-graph",
    title="Knowledge Graph",
    description="The full knowledge graph with all entities and relations",
    mime_type=JSON,
)

ALL_GRAPHS = Resource(
    uri=GRAPHS,
    name="graphs",
    title="Graphs",
    description="The graphs that this credential may read, with their configuration",
    mime_type=JSON,
)

TOOL = ResourceTemplate(
    uri_template=TOOL_TEMPLATE,
    name="tool",
    title="Tool",
    description="A tool's complete schemas: every bound and default of its arguments, and its result",
    mime_type=JSON,
)

TEMPLATES = (
    ResourceTemplate(
        uri_template=GRAPH_TEMPLATE,
        name="graph",
        title="Graph",
        description="A graph's kinds and tags, how often each is used, and examples",
        mime_type=JSON,
    ),
    ResourceTemplate(
        uri_template=NODE_TEMPLATE,
        name="node",
        title="Node",
        description="One entity or fact by its name or id, with its observations and relations",
        mime_type=JSON,
    ),
)


class ReadNode(Struct, frozen=True):
    """A node as a resource: itself, and its first relations, by ordinal and age. `more_relations`: there are others."""

    graph: str
    node: NodeBody
    relations: list[RelationBody]
    more_relations: bool


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource, or a template of resources, with the same content for everybody.

    `read` reads an address; it returns None for an address of something else. `listed` None: it is in no list.
    """

    listed: Resource | ResourceTemplate | None
    read: Callable[[str], ReadResourceResult | None]


class ResourceHandlers:
    """Handlers of requests about resources.

    `shared`: the resources that belong to no tenant. `count` counts each read of any other resource, with the method
    and whether it failed.
    """

    def __init__(
        self,
        services: Services,
        tools: Mapping[str, ToolSpec],
        shared: tuple[ResourceSpec, ...],
        count: Callable[[McpRequest, str, bool], None],
    ) -> None:
        self._services, self._tools, self._shared, self._count = services, tools, shared, count

    async def list_resources(self, context: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        """The resources that the request may read: the fixed ones on the first page, then graphs by name."""
        request, after = request_of(context), (params and params.cursor) or ""
        with as_protocol_errors():
            fixed = list(self._fixed(request)) if not after else []
            if not may_read_graphs(request.caller):
                return ListResourcesResult(resources=fixed)
            call = Call(request.caller, self._services, "resources/list", read_only=True)
            async with call.transaction() as tx:
                found = await graphs.list_graphs(tx, after=graph_name(after) if after else "", limit=PAGE + 1)
        page = found[:PAGE]
        cursor = page[-1].name if len(found) > PAGE else None
        return ListResourcesResult(resources=[*fixed, *map(_graph_resource, page)], next_cursor=cursor)

    async def list_resource_templates(
        self, context: Context, _: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """The templates of the addresses of graphs, nodes and tools."""
        with as_protocol_errors():
            offered = TEMPLATES if may_read_graphs(request_of(context).caller) else ()
        shared = [spec.listed for spec in self._shared if isinstance(spec.listed, ResourceTemplate)]
        return ListResourceTemplatesResult(resource_templates=[*offered, TOOL, *shared])

    async def read_resource(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Read a resource; raises MCPError for one that does not exist, is not offered, or is too large for a reply."""
        request, uri, failed = request_of(context), str(params.uri), True
        with as_protocol_errors():
            if uri.startswith(_TOOLS):
                schemas = _schemas(request, uri, self._tools, self._services.settings)
                return _contents(uri, msgspec.json.format(schemas, indent=2).decode())
            call = Call(request.caller, self._services, READ_METHOD, read_only=True)
            for spec in self._shared:
                if (contents := spec.read(uri)) is not None:
                    return contents
            address = self._parse_offered(request, uri)
        try:
            with as_protocol_errors():
                structured = await read_by_replica(call, lambda attempt: _read(attempt, uri, address))
                contents = _contents(uri, await render_document(request, structured, call.settings.max_reply_bytes))
            failed = False
            return contents
        finally:
            self._count(request, READ_METHOD, failed)

    def _fixed(self, request: McpRequest) -> Iterator[Resource]:
        if offers_official_graph(request):
            yield OFFICIAL
        if may_read_graphs(request.caller):
            yield ALL_GRAPHS
        yield from (spec.listed for spec in self._shared if isinstance(spec.listed, Resource))

    def _parse_offered(self, request: McpRequest, uri: str) -> ResourceAddress | None:
        """Parse the address of an offered resource; None for the official graph. Raises MCPError for any other."""
        if uri == KNOWLEDGE_GRAPH and offers_official_graph(request):
            return None
        address = parse_address(uri)
        if address is None or address.is_part or not may_read_graphs(request.caller):
            raise unknown_resource(uri)
        return address


def may_read_graphs(caller: Caller) -> bool:
    """Whether this credential may read graphs by their address."""
    return caller.may(Scope.MEMORY_READ) and (caller.toolsets is None or bool(caller.toolsets & READING_TOOLSETS))


def offers_official_graph(request: McpRequest) -> bool:
    """Whether a request is offered the tool that reads the graph in the official shape."""
    tool = TOOLS["read_graph"]
    return request.offers(tool) and request.dialect_of(tool) is tool


def unknown_resource(uri: str) -> MCPError:
    """The error for a resource that does not exist or is not offered: clients cannot tell the two apart."""
    return MCPError(INVALID_PARAMS, f"Unknown resource: {uri}", {"uri": uri})


def _contents(uri: str, text: str) -> ReadResourceResult:
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=JSON, text=text)])


def _schemas(request: McpRequest, uri: str, tools: Mapping[str, ToolSpec], settings: Settings) -> bytes:
    """The schemas of a tool that the request is offered, with defaults as this service is configured."""
    tool = tools.get(uri.removeprefix(_TOOLS))
    if tool is None or not request.offers(tool):
        raise unknown_resource(uri)
    tool = request.dialect_of(tool)
    schemas = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": json_schema(tool.arguments, settings=settings),
        "outputSchema": json_schema(tool.result),
    }
    return msgspec.json.encode(schemas)


async def _read(call: Call, uri: str, address: ResourceAddress | None) -> Struct:
    if uri == KNOWLEDGE_GRAPH:
        return (await read_graph.read_graph(call, read_graph.ReadGraph())).structured
    if address is None or address.graph is None:
        return await _read_graphs(call)
    with _unknown_if_missing(uri):
        if address.node is None:
            return await _read_graph(call, address.graph)
        return await _read_node(call, address.graph, address.node)


async def _read_graphs(call: Call) -> Struct:
    async with call.transaction() as tx:
        found = await graphs.list_graphs(tx, limit=MAX_GRAPHS + 1)
    return Graphs([graph_out(graph) for graph in found[:MAX_GRAPHS]], more=len(found) > MAX_GRAPHS)


async def _read_graph(call: Call, name: str) -> Struct:
    async with call.searching(name) as view:
        graphs.require_there(view)
        return await graph_schema(view)


async def _read_node(call: Call, graph: str, name_or_id: str) -> Struct:
    async with call.searching(graph) as view:
        graphs.require_there(view)
        node_id = await reading.node_called(view, name_or_id)
        node, listed = await reading.get_node(view, node_id)
        edges = await exploring.edges_at(view, node_id, Walk(Direction.BOTH, ()), limit=MAX_RELATIONS)
        relations = await relation_bodies_of(view, node_id, edges.links)
    return ReadNode(view.graph.name, node_body(node, listed), relations, edges.more)


@contextmanager
def _unknown_if_missing(uri: str) -> Iterator[None]:
    """Answer for a graph that the credential does not reach, or an invalid name, as if there were no such graph."""
    try:
        yield
    except (NotFound, Forbidden, InvalidInput):
        raise unknown_resource(uri) from None


def _graph_resource(graph: Graph) -> Resource:
    return Resource(
        uri=graph_uri(graph.name),
        name=graph.name,
        description=f"What the graph {graph.name} holds: its kinds and tags, how often each is used",
        mime_type=JSON,
    )
