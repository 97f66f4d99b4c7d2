"""The MCP server: lists and calls the catalogue's tools for whoever the request's credential stands for."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
    Tool,
    ToolAnnotations,
)

from recollect import __version__
from recollect.caller import Caller
from recollect.errors import TooLarge
from recollect_gateway.mcp_endpoint import resources
from recollect_gateway.mcp_endpoint.catalogue import CATALOGUE, TOOLS
from recollect_gateway.mcp_endpoint.schema import json_schema, outline, parse
from recollect_gateway.mcp_endpoint.tool import Call, Reply, Selection, Services, ToolSpec

INSTRUCTIONS = (
    "Recollect is a lasting memory shared by this organisation's agents. Look for what is known before you answer, "
    "and write down what will matter later: one fact at a time, named after what it is about."
)
LIST_TTL_MS = 60_000

SCOPE_KEY = "recollect.request"
"""Where the endpoint leaves its `McpRequest` in the ASGI scope."""


@dataclass(frozen=True, slots=True)
class McpRequest:
    """Who sent an HTTP request to the MCP endpoint, and what it is offered."""

    caller: Caller
    selection: Selection


Context = ServerRequestContext[Any, Any]


def create_server(services: Services) -> Server[Any]:
    """The SDK's server over the catalogue."""

    async def list_tools(context: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[definition(tool) for tool in CATALOGUE if _offered(context, tool)])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None or not _offered(context, tool):
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}")
        try:
            arguments = parse(tool.arguments, params.arguments or {})
            reply = await tool.handler(Call(_request(context).caller, services, tool), arguments)
            return _result(reply, services.settings.max_reply_bytes if tool.read_only else None)
        except Exception as error:
            return tool.render_error(error)

    async def list_resources(context: Context, _: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(
            resources=[resources.KNOWLEDGE_GRAPH] if _offered(context, TOOLS["read_graph"]) else []
        )

    async def list_resource_templates(
        context: Context, _: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        tool = TOOLS["read_graph"]
        if not _offered(context, tool):
            raise resources.unknown(str(params.uri))
        return await resources.read(Call(_request(context).caller, services, tool), str(params.uri))

    hint = CacheHint(ttl_ms=LIST_TTL_MS, scope="private")
    return Server(
        "recollect",
        version=__version__,
        title="Recollect",
        instructions=INSTRUCTIONS,
        cache_hints={"tools/list": hint, "resources/list": hint, "resources/templates/list": hint},
        get_tool_input_schema=lambda name: definition(TOOLS[name]).input_schema if name in TOOLS else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_resource_templates,
        on_read_resource=read_resource,
    )


@cache
def definition(tool: ToolSpec) -> Tool:
    """A tool as MCP lists it."""
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=json_schema(tool.arguments, terse=tool.terse),
        output_schema=outline(tool.result) if tool.terse else json_schema(tool.result),
        annotations=ToolAnnotations(
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )


def _request(context: Context) -> McpRequest:
    assert context.request is not None, "served over HTTP only"
    request: McpRequest = context.request.scope[SCOPE_KEY]
    return request


def _offered(context: Context, tool: ToolSpec) -> bool:
    request = _request(context)
    return request.selection.offers(tool, request.caller)


def _result(reply: Reply, max_bytes: int | None) -> CallToolResult:
    encoded = msgspec.json.encode(reply.structured)
    if max_bytes is not None and len(encoded) > max_bytes:
        raise TooLarge(
            f"The answer takes {len(encoded)} bytes, more than one reply may ({max_bytes}). Ask for less: limit"
        )
    text = msgspec.json.format(encoded, indent=2).decode() if reply.text is None else reply.text
    texts = [text] if reply.note is None else [text, reply.note]
    return CallToolResult(
        content=[TextContent(type="text", text=said) for said in texts],
        structured_content=msgspec.to_builtins(reply.structured),
    )
