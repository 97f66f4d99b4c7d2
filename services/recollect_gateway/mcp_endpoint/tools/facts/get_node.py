"""The tool `get_node`."""

from msgspec import Struct

from recollect.graph.graphs import service as graphs
from recollect.memory import reading
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Reply
from recollect_gateway.mcp_endpoint.tools.facts.errors import facts_tool
from recollect_gateway.mcp_endpoint.tools.facts.shapes import (
    NodeId,
    NodeOut,
    OneNode,
    OwnedReadArguments,
    graph_of,
    node_fields,
    node_id,
)
from recollect_http.requests.argument_types import ObservationsOffset, OmittedObservations, omitted_observations


class GetNode(OwnedReadArguments, frozen=True, rename=None):
    """Arguments of `get_node`."""

    node_id: NodeId
    observations_offset: ObservationsOffset = 0


class WholeNode(NodeOut, frozen=True, omit_defaults=True, kw_only=True):
    """A fact or an entity, with the entity's observations, oldest first.

    `omitted_observations`: where all of them would not fit an answer, the newest are shown.
    """

    observations: list[str] = []
    omitted_observations: OmittedObservations | None = None


class DescribedNode(Struct, frozen=True):
    """Result of `get_node`."""

    success: bool
    node: WholeNode


async def get_node(call: Call, arguments: GetNode) -> Reply:
    """Read a fact or an entity."""
    graph = graph_of(arguments)
    id_ = node_id(arguments.node_id)
    async with call.reading(graph, arguments.as_of) as view:
        node, listed = await reading.get_node(view, id_, skipped=arguments.observations_offset)
        owner_id = await graphs.name_of(view.tx, graph)
    listed_so_far = arguments.observations_offset + len(listed.texts)
    omitted = omitted_observations(listed.omitted, listed_so_far, "get_node with observations_offset")
    fields = node_fields(node, owner_id)
    return Reply(
        DescribedNode(True, WholeNode(**fields, observations=list(listed.texts), omitted_observations=omitted))
    )


GET_NODE = facts_tool(
    description="Get a fact or an entity by its id.",
    result=OneNode,
    handler=get_node,
    read_only=True,
)
