"""The tool `revise`."""

from recollect.memory.model import Revised
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.agent.lines import under_its_line
from recollect_gateway.operations.revise import ReviseBody, RevisedMemory, revise, revised_body
from recollect_http.requests.argument_types import GraphChoice


class Revise(ReviseBody, frozen=True):
    """Arguments of `revise`."""

    graph: GraphChoice | None = None


async def revise_memory(call: Call, arguments: Revise) -> Reply:
    """Change one memory or node; in a conflict, answer both texts."""
    revised = await revise(call, arguments.graph, arguments)
    result = revised_body(revised)
    return Reply(result, _revised_text(revised, result.status))


REVISE = ToolSpec(
    name="revise",
    description="Correct a memory or node. The earlier version stays in history.",
    toolsets=frozenset({"agent"}),
    result=RevisedMemory,
    handler=revise_memory,
)


def _revised_text(revised: Revised, status: str) -> str:
    label = "not written" if revised.refused else "beside"
    others = "".join(f"\n  {label}: {under_its_line(text)}" for text in revised.conflict)
    newest = f" (version {revised.version} is the newest; revise that)" if revised.refused else ""
    return f"{status} {revised.id}{newest}: {under_its_line(revised.text or '')}{others}"
