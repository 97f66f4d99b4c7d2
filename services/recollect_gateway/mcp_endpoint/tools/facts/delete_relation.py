"""The tool `delete_relation`."""

from typing import Annotated

from msgspec import Meta

from recollect.errors import NotFound
from recollect.memory import relating
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Reply
from recollect_gateway.mcp_endpoint.tools.facts.errors import facts_tool
from recollect_gateway.mcp_endpoint.tools.facts.shapes import NodeId, OwnedArguments, Succeeded, graph_of, node_id
from recollect_http.requests.argument_types import EMPTY_IS_A_VALUE, SoughtName


class DeleteRelation(OwnedArguments, frozen=True, rename=None):
    """Arguments of `delete_relation`."""

    from_id: NodeId
    to_id: NodeId
    relation_type: (
        Annotated[SoughtName, Meta(description="Only relations of this type", extra={EMPTY_IS_A_VALUE: True})] | None
    ) = None


async def delete_relation(call: Call, arguments: DeleteRelation) -> Reply:
    """Delete relations between two nodes; succeeds where there are none."""
    graph = graph_of(arguments)
    try:
        ends = node_id(arguments.from_id), node_id(arguments.to_id)
    except NotFound:
        return Reply(Succeeded(True))
    async with call.writing(graph) as (tx, revision):
        await relating.unrelate(tx, revision, *ends, arguments.relation_type)
    return Reply(Succeeded(True))


DELETE_RELATION = facts_tool(
    description="Delete the relations from one node to another, of one type or of all types.",
    result=Succeeded,
    handler=delete_relation,
    destructive=True,
    idempotent=True,
)
