"""The MCP server: lists and calls the catalogue's tools on behalf of the request's caller."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mcp.server.apps import EXTENSION_ID
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    Tool,
    ToolAnnotations,
)
from opentelemetry.trace import get_current_span

from recollect import __version__
from recollect.accounts.usage.model import Counts, Kind, count_duration
from recollect.caller import Caller
from recollect.errors import Unavailable
from recollect.telemetry.metrics import record_tool
from recollect_gateway.calls import Call, Progress, Services, read_by_replica
from recollect_gateway.mcp_endpoint.apps import may_show_apps
from recollect_gateway.mcp_endpoint.errors import as_protocol_errors, error_code
from recollect_gateway.mcp_endpoint.message_telemetry import measure_message
from recollect_gateway.mcp_endpoint.prompts_and_resources import subscriptions
from recollect_gateway.mcp_endpoint.prompts_and_resources.completion import CompletionHandlers
from recollect_gateway.mcp_endpoint.prompts_and_resources.prompts import PromptHandlers
from recollect_gateway.mcp_endpoint.prompts_and_resources.resources import ResourceHandlers
from recollect_gateway.mcp_endpoint.request import Context, McpRequest, request_of
from recollect_gateway.mcp_endpoint.request_state import sealed_state
from recollect_gateway.mcp_endpoint.results import Answer, render_result
from recollect_gateway.mcp_endpoint.rounds import ElicitationRound, round_of
from recollect_gateway.mcp_endpoint.schema import listed_schema, outline
from recollect_gateway.mcp_endpoint.server_catalogue import ServerCatalogue
from recollect_gateway.mcp_endpoint.tasks.handlers import TaskHandlers
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.mcp_endpoint.unknown_arguments import ignored_arguments, name_ignored
from recollect_gateway.requests.lenient_parsing import parse_leniently, parse_to_store
from recollect_gateway.requests.local_times import zone_of_call
from recollect_http.access_log import note_tool
from recollect_http.requests.bodies import LARGE
from recollect_http.requests.parsing import parse_in_thread
from recollect_http.server.tracing import forget_tool_name

INSTRUCTIONS = (
    "Recollect is a lasting memory shared by this organisation's agents. Search it before you answer, and store what "
    "will matter later: one fact at a time, with the names of the entities it is about. "
    "Arguments with the same meaning in every tool: graph (owner_id): name or id of the graph to use, default: the "
    "credential's; as_of: read the graph as of a revision or a time like 2027-01-31T12:00:00Z; time_zone: IANA zone "
    "of days and times without offset, and of words like yesterday, default: the graph's; limit, offset: maximum "
    "number of results (default: what fits 4,000 tokens) and number to skip; cursor: next_cursor of the previous page. "
    "recollect://tools/{tool} has a tool's complete schema."
)
LIST_TTL_MS = 60_000

RESULT_SIZE, MAX_RESULT_CHARACTERS = "anthropic/maxResultSizeChars", 500_000
"""The key in `_meta` for the characters of an answer that Claude Code passes on, and the maximum that it supports. By
default it writes an answer to a file from 25,000 tokens on: https://code.claude.com/docs/en/mcp."""

OUTLINED_TOOLSETS = frozenset({"agent", "openai"})
"""Toolsets whose tools are listed with what they answer."""

_LIST_HINT = CacheHint(ttl_ms=LIST_TTL_MS, scope="private")
CACHE_HINTS: dict[CacheableMethod, CacheHint] = {
    "tools/list": _LIST_HINT,
    "prompts/list": _LIST_HINT,
    "resources/list": _LIST_HINT,
    "resources/templates/list": _LIST_HINT,
    "resources/read": CacheHint(ttl_ms=0, scope="private"),
}


@dataclass(frozen=True, slots=True)
class McpHandlers:
    """The handlers of the protocol's requests, one method each.

    `tools`: by name. `definitions`: how each tool is listed, in each of its dialects.
    """

    services: Services
    tools: Mapping[str, ToolSpec]
    definitions: Mapping[ToolSpec, Tool]

    async def list_tools(self, context: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
        """The tools that the request is offered."""
        request = request_of(context)
        with as_protocol_errors():
            tools = [request.dialect_of(tool) for tool in self.tools.values() if request.offers(tool)]
            definitions = {tool: self.definitions[tool] for tool in tools}
            if not may_show_apps(context):
                definitions |= {
                    tool: definitions[tool].model_copy(update={"meta": _meta(replace(tool, view=None))})
                    for tool in tools
                    if tool.view
                }
            return ListToolsResult(tools=list(definitions.values()))

    async def call_tool(
        self, context: Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult | dict[str, Any]:
        """Call a tool: return its result, its question to the client, the handle of a task, or its error.

        Raises MCPError for a tool that the request is not offered.
        """
        request, tool = request_of(context), self.tools.get(params.name)
        if tool is None or not request.answers(tool):
            forget_tool_name()
            raise MCPError(INVALID_PARAMS, _unknown_tool_message(request, params.name, tool))
        tool = request.dialect_of(tool)
        started = time.perf_counter()
        code: str | None = "cancelled"
        try:
            given = params.arguments or {}
            ignored = ignored_arguments(tool, given)
            arguments = await self._parse_arguments(request, tool, _without(given, ignored))
            progress = context.session.report_progress
            answer = await self._answer(request, tool, arguments, progress, round_of(context, params))
            max_bytes = self.services.settings.max_reply_bytes if tool.read_only else None
            task = self.tasks.task_for(context, answer)
            result = await render_result(request, tool, answer, max_bytes) if task is None else task
            name_ignored(result, ignored)
            code = None
            return result
        except MCPError:
            code = "refused"
            raise
        except Exception as error:
            code = error_code(error)
            return tool.render_error(error)
        finally:
            note_tool(context.request.scope if context.request else {}, tool.name, code)
            if code is not None:
                get_current_span().set_attribute("recollect.error.code", code)
            seconds = time.perf_counter() - started
            record_tool(tool.name, seconds, code)
            self._count_use(request, "tool", tool.name, failed=code is not None, seconds=seconds)

    async def _parse_arguments(self, request: McpRequest, tool: ToolSpec, arguments: dict[str, Any]) -> Any:
        """Parse the arguments into the tool's struct; those of a large body are parsed beside the event loop."""
        parser = parse_leniently if tool.read_only else partial(parse_to_store, destructive=tool.destructive)
        if isinstance(request.sender, Unavailable):
            return parser(tool.arguments, arguments)
        call = Call(request.caller, self.services, tool.name, read_only=True)
        zone = await zone_of_call(call, arguments.get("graph"), tool.arguments, arguments)
        if request.body.bytes_received < LARGE:
            return parser(tool.arguments, arguments, zone=zone)
        return await parse_in_thread(request.caller.tenant_id, tool.arguments, arguments, partial(parser, zone=zone))

    async def _answer(
        self, request: McpRequest, tool: ToolSpec, arguments: Any, progress: Progress, round_: ElicitationRound | None
    ) -> Answer:
        if isinstance(request.sender, Unavailable) and tool.substitute is not None:
            return await tool.substitute(self.services)
        call = Call(request.caller, self.services, tool.name, tool.read_only, progress)
        question = await tool.ask(call, arguments, round_) if tool.ask is not None and round_ is not None else None
        if question is not None:
            return question
        if not tool.read_only:
            return await tool.handler(call, arguments)
        return await read_by_replica(call, lambda attempt: tool.handler(attempt, arguments))

    @property
    def tasks(self) -> TaskHandlers:
        """The handlers of requests about tasks."""
        return TaskHandlers(self.services, self.tools.values(), self.count)

    def count(self, request: McpRequest, method: str, failed: bool) -> None:
        """Count a request that calls no tool."""
        self._count_use(request, "resource", method, failed=failed)

    async def listen(self, context: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """Notify the client of written resources until the stream ends; raises MCPError."""
        self.count(request_of(context), subscriptions.METHOD, False)
        return await subscriptions.listen(self.services, self.tasks, self.tools.values(), context, params)

    def _count_use(
        self, request: McpRequest, kind: Kind, name: str, *, failed: bool, seconds: float | None = None
    ) -> None:
        """Count a call for its tenant, if that is known. It is counted in memory, so that the call does not wait.

        `seconds`: how long it took, where it was timed.
        """
        if self.services.tally is not None and isinstance(request.sender, Caller):
            durations = () if seconds is None else count_duration(seconds)
            counts = Counts(1, int(failed), bytes_received=request.body.bytes_received, durations=durations)
            self.services.tally.count(request.sender.tenant_id, kind, name, counts)


def _unknown_tool_message(request: McpRequest, name: str, tool: ToolSpec | None) -> str:
    """The message for a tool that the request is not offered; it names the scope where only that is missing."""
    sender = request.sender
    if tool is not None and isinstance(sender, Caller) and request.selection.may_offer(tool, sender):
        return f"Unknown tool: {name}. It is for credentials that have the scope {tool.scope}"
    return f"Unknown tool: {name}"


def _without(arguments: dict[str, Any], names: list[str]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in names} if names else arguments


def create_server(services: Services, catalogue: ServerCatalogue) -> Server[Any]:
    """Make the SDK's server with handlers for all that is offered."""
    tools = catalogue.tools
    definitions = {dialect: definition(dialect) for tool in tools.values() for dialect in (tool, *tool.dialects)}
    handlers = McpHandlers(services, tools, definitions)
    resources = ResourceHandlers(services, tools, catalogue.resources, handlers.count)
    prompts = PromptHandlers(catalogue.prompts, tools)
    completions = CompletionHandlers(services, catalogue.prompts, tools)
    server: Server[Any] = Server(
        "recollect",
        version=__version__,
        title="Recollect",
        instructions=INSTRUCTIONS,
        cache_hints=CACHE_HINTS,
        get_tool_input_schema=lambda name: definitions[tools[name]].input_schema if name in tools else None,
        on_list_tools=handlers.list_tools,
        on_list_resources=resources.list_resources,
        on_list_resource_templates=resources.list_resource_templates,
        on_read_resource=resources.read_resource,
        on_list_prompts=prompts.list_prompts,
        on_get_prompt=prompts.get_prompt,
        on_completion=completions.complete,
        on_subscriptions_listen=handlers.listen,
    )
    server.add_request_handler("tools/call", CallToolRequestParams, handlers.call_tool)
    handlers.tasks.add_to(server)
    server.extensions[EXTENSION_ID] = {}
    server.middleware.append(sealed_state(services.settings))
    server.middleware.append(measure_message)
    return server


def definition(tool: ToolSpec) -> Tool:
    """A tool as MCP lists it: briefly, since its tokens are paid for in every conversation."""
    if tool.listed is not None:
        return tool.listed
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=listed_schema(tool.arguments),
        output_schema=outline(tool.result) if tool.toolsets <= OUTLINED_TOOLSETS else {"type": "object"},
        annotations=_hints(tool),
        _meta=_meta(tool),
    )


def _meta(tool: ToolSpec) -> dict[str, Any] | None:
    """The `_meta` of a tool, which some clients read: the page that shows its answer, and its size; None if empty."""
    page = {"ui": {"resourceUri": tool.view}} if tool.view is not None else {}
    return page | ({RESULT_SIZE: MAX_RESULT_CHARACTERS} if tool.large else {}) or None


def _hints(tool: ToolSpec) -> ToolAnnotations:
    """The tool's annotations, without those that equal MCP's defaults."""
    if tool.read_only:
        return ToolAnnotations(read_only_hint=True, open_world_hint=False)
    return ToolAnnotations(
        destructive_hint=None if tool.destructive else False,
        idempotent_hint=True if tool.idempotent else None,
        open_world_hint=False,
    )
