"""Completion: names of graphs, nodes and tools that begin with what a person has typed."""

from collections.abc import Iterable, Mapping

from mcp_types import (
    CompleteRequestParams,
    CompleteResult,
    Completion,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

from recollect.errors import Forbidden, InvalidInput
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import graph_name
from recollect.retrieval.search import service as search
from recollect_gateway.calls import Call, Services, read_by_replica
from recollect_gateway.mcp_endpoint.errors import as_protocol_errors
from recollect_gateway.mcp_endpoint.prompts_and_resources.prompts import GRAPH, PromptSpec
from recollect_gateway.mcp_endpoint.prompts_and_resources.resource_uris import (
    GRAPH_TEMPLATE,
    NODE_TEMPLATE,
    TOOL_TEMPLATE,
)
from recollect_gateway.mcp_endpoint.prompts_and_resources.resources import may_read_graphs
from recollect_gateway.mcp_endpoint.request import Context, request_of
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_http.requests.parsing import check_text

TOOL = "tool"
"""The argument of a resource template that names a tool."""

MAX_VALUES = 100
"""The maximum number of values of one answer, as MCP requires."""

MAX_TYPED = 512
"""The maximum length of the typed prefix, in characters: no name is longer."""

NOTHING = Completion(values=[], total=0, has_more=False)


class CompletionHandlers:
    """The handler of `completion/complete`."""

    def __init__(self, services: Services, prompts: Mapping[str, PromptSpec], tools: Mapping[str, ToolSpec]) -> None:
        self._services, self._prompts, self._tools = services, prompts, tools

    async def complete(self, context: Context, params: CompleteRequestParams) -> CompleteResult:
        """Names with the typed prefix; raises MCPError for an unknown template or prompt, or too long a prefix."""
        with as_protocol_errors():
            request, prefix = request_of(context), params.argument.value
            caller = request.caller
            self._require_known(params.ref, params.argument.name)
            if len(prefix) > MAX_TYPED:
                raise InvalidInput(f"A name has at most {MAX_TYPED} characters", path="argument.value")
            check_text(prefix, "argument.value")
            if params.argument.name == TOOL:
                names = (name for name, tool in self._tools.items() if request.offers(tool))
                return CompleteResult(completion=_with_prefix(names, prefix))
            if not may_read_graphs(caller):
                return CompleteResult(completion=NOTHING)
            call = Call(caller, self._services, "completion/complete", read_only=True)
            if params.argument.name == GRAPH:
                return CompleteResult(completion=await _complete_graph(call, prefix))
            graph = _graph_of(params.context)
            completion = await read_by_replica(call, lambda attempt: _complete_node(attempt, graph, prefix))
            return CompleteResult(completion=completion)

    def _require_known(self, ref: ResourceTemplateReference | PromptReference, argument: str) -> None:
        if isinstance(ref, PromptReference):
            prompt = self._prompts.get(ref.name)
            is_known = prompt is not None and argument in {known.name for known in prompt.arguments}
        else:
            is_known = ref.uri in (GRAPH_TEMPLATE, NODE_TEMPLATE, TOOL_TEMPLATE) and f"{{{argument}}}" in ref.uri
        if not is_known:
            raise InvalidInput("No prompt or resource template has such an argument to complete", path="ref")


def _graph_of(context: CompletionContext | None) -> str | None:
    """The graph that was filled in before, if any; raises InvalidInput for a name that no graph can have."""
    name = ((context and context.arguments) or {}).get(GRAPH)
    return graph_name(name) if name else None


async def _complete_graph(call: Call, prefix: str) -> Completion:
    async with call.transaction() as tx:
        found = await graphs.list_graphs(tx, limit=graphs.MAX_GRAPHS)
    return _with_prefix((graph.name for graph in found), prefix)


def _with_prefix(names: Iterable[str], prefix: str) -> Completion:
    found = [name for name in names if name.lower().startswith(prefix.lower())]
    return Completion(values=found[:MAX_VALUES], total=len(found), has_more=len(found) > MAX_VALUES)


async def _complete_node(call: Call, graph: str | None, prefix: str) -> Completion:
    """The names of nodes; none for a graph that the credential does not reach, as for one that does not exist."""
    try:
        async with call.searching(graph) as view:
            names, more = await search.complete_names(view, prefix, limit=MAX_VALUES)
    except Forbidden:
        return NOTHING
    return Completion(values=names, total=None if more else len(names), has_more=more)
