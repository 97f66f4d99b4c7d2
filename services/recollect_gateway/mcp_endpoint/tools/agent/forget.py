"""The tool `forget`."""

from recollect.memory.model import Forgotten
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.confirmation import confirm
from recollect_gateway.mcp_endpoint.short_lists import describe_forms, list_briefly
from recollect_gateway.mcp_endpoint.tool import Reply, ToolSpec
from recollect_gateway.operations.forget import ForgetBody, ForgottenMemories, forget, forgotten_body
from recollect_http.requests.argument_types import GraphChoice


class Forget(ForgetBody, frozen=True):
    """Arguments of `forget`."""

    graph: GraphChoice | None = None


async def forget_memories(call: Call, arguments: Forget) -> Reply:
    """Mark memories or nodes outdated, or delete them."""
    forgotten = await forget(call, arguments.graph, arguments)
    result = forgotten_body(forgotten)
    return Reply(result, _forgotten_text(forgotten, len(arguments.targets), result.not_found))


async def _count_forgotten(_: Call, arguments: Forget) -> int:
    """Count the memories and nodes that the call would delete; those that become outdated do not count."""
    return len(arguments.ids) + len(arguments.names) if arguments.mode == "delete" else 0


FORGET = ToolSpec(
    name="forget",
    description="Mark memories or nodes outdated (kept, recalled only with include_outdated), or delete them.",
    toolsets=frozenset({"agent"}),
    result=ForgottenMemories,
    handler=forget_memories,
    ask=confirm("deletes up to {size} memories and nodes of the graph {graph}", _count_forgotten),
    destructive=True,
    idempotent=True,
)


def _forgotten_text(forgotten: Forgotten, asked: int, unknown: list[str]) -> str:
    text = f"forgotten: {asked - len(unknown)} of {asked}"
    text = f"{text}; not found: {list_briefly(unknown)}" if unknown else text
    return f"{text}{describe_forms(forgotten.forms)}"
