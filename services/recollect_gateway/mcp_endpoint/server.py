"""The MCP server: lists and calls the catalogue's tools for whoever the request's credential stands for."""

import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
from mcp.server.caching import CacheHint
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
from recollect.platform.metrics import record_tool
from recollect.usage.model import Counts, Kind
from recollect_gateway.mcp_endpoint import resources
from recollect_gateway.mcp_endpoint.catalogue import CATALOGUE, TOOLS
from recollect_gateway.mcp_endpoint.errors import error_code, protocol_error
from recollect_gateway.mcp_endpoint.request import Context, McpRequest, request_of
from recollect_gateway.mcp_endpoint.schema import json_schema, outline, parse
from recollect_gateway.mcp_endpoint.tool import Call, Reply, Services, ToolSpec, bounded

INSTRUCTIONS = (
    "Recollect is a lasting memory shared by this organisation's agents. Look for what is known before you answer, "
    "and write down what will matter later: one fact at a time, named after what it is about."
)
LIST_TTL_MS = 60_000


@dataclass(frozen=True, slots=True)
class Answers:
    """What the server answers, a method for each request of the protocol."""

    services: Services

    async def list_tools(self, context: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
        """The tools that the request is offered."""
        request = request_of(context)
        return ListToolsResult(tools=[definition(tool) for tool in CATALOGUE if request.offers(tool)])

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        """What a tool answers, or its error; raises MCPError for one that the request is not offered."""
        request, tool = request_of(context), TOOLS.get(params.name)
        if tool is None or not request.offers(tool):
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}")
        started = time.perf_counter()
        code: str | None = "cancelled"
        try:
            arguments = parse(tool.arguments, params.arguments or {})
            call = Call(request.caller, self.services, tool, context.session.report_progress)
            reply = await tool.handler(call, arguments)
            result = _result(reply, self.services.settings.max_reply_bytes if tool.read_only else None)
            code = None
            return result
        except Exception as error:
            code = error_code(error)
            return tool.render_error(error)
        finally:
            record_tool(tool.name, time.perf_counter() - started, code)
            self._count(request, "tool", tool.name, failed=code is not None)

    async def list_resources(self, context: Context, _: PaginatedRequestParams | None) -> ListResourcesResult:
        """The knowledge graph, where the request is offered the tool that reads it."""
        offered = request_of(context).offers(TOOLS["read_graph"])
        return ListResourcesResult(resources=[resources.KNOWLEDGE_GRAPH] if offered else [])

    async def list_resource_templates(
        self, context: Context, _: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """None: there are no templates."""
        return ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """A resource; raises MCPError for one that is not there or that the request is not offered."""
        request, tool = request_of(context), TOOLS["read_graph"]
        if not request.offers(tool):
            raise resources.unknown(str(params.uri))
        failed = True
        try:
            read = await resources.read(Call(request.caller, self.services, tool), str(params.uri))
            failed = False
            return read
        except Exception as error:
            raise protocol_error(error) from error
        finally:
            self._count(request, "resource", "resources/read", failed=failed)

    def _count(self, request: McpRequest, kind: Kind, name: str, *, failed: bool) -> None:
        """Count a call for its tenant: in memory, so that nobody waits."""
        if self.services.tally is not None:
            counts = Counts(calls=1, errors=int(failed), bytes_received=request.body.received)
            self.services.tally.count(request.caller.tenant_id, kind, name, counts)


def create_server(services: Services) -> Server[Any]:
    """The SDK's server over the catalogue."""
    answers = Answers(services)
    hint = CacheHint(ttl_ms=LIST_TTL_MS, scope="private")
    return Server(
        "recollect",
        version=__version__,
        title="Recollect",
        instructions=INSTRUCTIONS,
        cache_hints={"tools/list": hint, "resources/list": hint, "resources/templates/list": hint},
        get_tool_input_schema=lambda name: definition(TOOLS[name]).input_schema if name in TOOLS else None,
        on_list_tools=answers.list_tools,
        on_call_tool=answers.call_tool,
        on_list_resources=answers.list_resources,
        on_list_resource_templates=answers.list_resource_templates,
        on_read_resource=answers.read_resource,
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


def _result(reply: Reply, max_bytes: int | None) -> CallToolResult:
    encoded = bounded(reply.structured, max_bytes)
    text = msgspec.json.format(encoded, indent=2).decode() if reply.text is None else reply.text
    texts = [text] if reply.note is None else [text, reply.note]
    return CallToolResult(
        content=[TextContent(type="text", text=said) for said in texts],
        structured_content=msgspec.to_builtins(reply.structured),
    )
