"""`revise` and `forget`."""

from recollect.memory.model import Forgotten, Revised
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.listed import listed, told_forms
from recollect_gateway.mcp_endpoint.tool import Reply
from recollect_gateway.mcp_endpoint.tools.agent.lines import under_its_line
from recollect_gateway.operations.changes import (
    ForgetBody,
    ReviseBody,
    forget,
    forgotten_body,
    revise,
    revised_body,
)
from recollect_http.requests.argument_types import GraphChoice


class Revise(ReviseBody, frozen=True):
    """Arguments of `revise`."""

    graph: GraphChoice | None = None


class Forget(ForgetBody, frozen=True):
    """Arguments of `forget`."""

    graph: GraphChoice | None = None


async def revise_memory(call: Call, arguments: Revise) -> Reply:
    """Change one memory or node; in a conflict, answer both texts."""
    revised = await revise(call, arguments.graph, arguments)
    result = revised_body(revised)
    return Reply(result, _revised_text(revised, result.status))


async def forget_memories(call: Call, arguments: Forget) -> Reply:
    """Mark memories or nodes outdated, or delete them."""
    forgotten = await forget(call, arguments.graph, arguments)
    result = forgotten_body(forgotten)
    return Reply(result, _forgotten_text(forgotten, len(arguments.targets), result.not_found))


def _revised_text(revised: Revised, status: str) -> str:
    label = "not written" if revised.refused else "beside"
    others = "".join(f"\n  {label}: {under_its_line(text)}" for text in revised.conflict)
    newest = f" (version {revised.version} is the newest; revise that)" if revised.refused else ""
    return f"{status} {revised.id}{newest}: {under_its_line(revised.text or '')}{others}"


def _forgotten_text(forgotten: Forgotten, asked: int, unknown: list[str]) -> str:
    text = f"forgotten: {asked - len(unknown)} of {asked}"
    text = f"{text}; not found: {listed(unknown)}" if unknown else text
    return f"{text}{told_forms(forgotten.forms)}"
