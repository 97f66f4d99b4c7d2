"""The tool `mark_outdated`."""

from typing import Annotated

from msgspec import Meta

from recollect.memory import revising
from recollect.memory.revising import NodePatch
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Reply
from recollect_gateway.mcp_endpoint.tools.facts.errors import facts_tool
from recollect_gateway.mcp_endpoint.tools.facts.shapes import (
    NodeId,
    OneNode,
    OwnedArguments,
    graph_of,
    node_id,
    one_node,
)


class MarkOutdated(OwnedArguments, frozen=True, rename=None):
    """Arguments of `mark_outdated`."""

    fact_id: NodeId
    reason: (
        Annotated[str, Meta(max_length=1_000, description="Why; returned with the node and kept in its history")] | None
    ) = None


async def mark_outdated(call: Call, arguments: MarkOutdated) -> Reply:
    """Mark a fact as no longer true."""
    graph = graph_of(arguments)
    patch = NodePatch(status="outdated", reason=arguments.reason)
    async with call.writing(graph) as (tx, revision):
        node = await revising.change(tx, revision, node_id(arguments.fact_id), patch)
        return await one_node(tx, graph, node)


MARK_OUTDATED = facts_tool(
    description="Mark a fact as no longer true. It is kept, and found when a search asks for outdated facts.",
    result=OneNode,
    handler=mark_outdated,
    idempotent=True,
)
