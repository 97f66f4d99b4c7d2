"""The tools `get_node_by_id` and `get_node_by_lineage`."""

from typing import Annotated
from uuid import UUID

from msgspec import Meta, Struct

from recollect.errors import InvalidInput
from recollect.graph.entities import service as entities
from recollect.graph.lineages import service as lineages
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import LineageId, NodeVersionOut, node_out
from recollect_http.requests.argument_types import ObservationsOffset, Until
from recollect_http.requests.parsing import utc_through


class GetNodeById(Arguments, frozen=True, rename=None):
    """Arguments of `get_node_by_id`."""

    id: Annotated[UUID, Meta(description="A version's own id")]


class GetNodeByLineage(Arguments, frozen=True, rename=None):
    """Arguments of `get_node_by_lineage`."""

    lineage_id: LineageId
    at_version: Annotated[int, Meta(ge=1, le=2**31 - 1, description="The version with this number")] | None = None
    at_time: Annotated[Until, Meta(description="The newest version at this time")] | None = None
    observations_offset: ObservationsOffset = 0


class OneNodeVersion(Struct, frozen=True):
    """Result of `get_node_by_id` and `get_node_by_lineage`."""

    node: NodeVersionOut


async def get_node_by_id(call: Call, arguments: GetNodeById) -> Reply:
    """Show one version, exactly as written."""
    async with call.reading(arguments.graph) as view:
        node = await lineages.get_version(view.tx, view.graph, arguments.id)
        observations = await entities.observations_of(view, [node.node_id])
    return Reply(OneNodeVersion(node_out(node, view.graph.name, listed=observations.get(node.node_id))))


GET_NODE_BY_ID = ToolSpec(
    title="Get a version by its id",
    description="Get one version of a node, exactly as it was written.",
    toolsets=frozenset({"lineage"}),
    result=OneNodeVersion,
    handler=get_node_by_id,
    read_only=True,
)


async def get_node_by_lineage(call: Call, arguments: GetNodeByLineage) -> Reply:
    """Show a node as it is, or at a version or a time."""
    if arguments.at_version is not None and arguments.at_time is not None:
        raise InvalidInput("Give at_version or at_time, not both", path="at_version")
    at_time = utc_through(arguments.at_time, "at_time")
    skipped = arguments.observations_offset
    async with call.reading(arguments.graph, at_time) as view:
        if arguments.at_version is not None:
            node = await lineages.get_numbered(view.tx, view.graph, arguments.lineage_id, arguments.at_version)
        elif view.at is not None:
            node = await lineages.get_past_version(view, arguments.lineage_id)
        else:
            node = await lineages.get_node(view, arguments.lineage_id)
        observations = await entities.observations_of(view, [node.node_id], skipped=skipped)
    listed = observations.get(node.node_id)
    return Reply(OneNodeVersion(node_out(node, view.graph.name, listed=listed, skipped=skipped)))


GET_NODE_BY_LINEAGE = ToolSpec(
    title="Get a node by its lineage",
    description="Get the current version of a node, or its version by number or time.",
    toolsets=frozenset({"lineage"}),
    result=OneNodeVersion,
    handler=get_node_by_lineage,
    read_only=True,
)
