"""The tool `delete_node`."""

from recollect.memory import revising
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Reply
from recollect_gateway.mcp_endpoint.tools.facts.errors import facts_tool
from recollect_gateway.mcp_endpoint.tools.facts.shapes import NodeId, OwnedArguments, Succeeded, graph_of, node_id


class DeleteNode(OwnedArguments, frozen=True, rename=None):
    """Arguments of `delete_node`."""

    node_id: NodeId


async def delete_node(call: Call, arguments: DeleteNode) -> Reply:
    """Delete a fact or an entity."""
    async with call.writing(graph_of(arguments)) as (tx, revision):
        await revising.delete(tx, revision, node_id(arguments.node_id))
    return Reply(Succeeded(True))


DELETE_NODE = facts_tool(
    description="Delete a fact or an entity with its relations.",
    result=Succeeded,
    handler=delete_node,
    destructive=True,
    idempotent=True,
)
