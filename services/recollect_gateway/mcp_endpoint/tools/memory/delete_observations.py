"""The tool `delete_observations`."""

from collections.abc import Container, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.nodes.model import unique
from recollect.graph.observations import service as observations
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.short_lists import list_briefly
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_BATCH, Done, done, require_few
from recollect_gateway.mcp_endpoint.tools.organize.shapes import organize_tool
from recollect_http.requests.argument_types import SoughtName, SoughtText


class Deletion(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """Observations to take from one entity."""

    entity_name: Annotated[SoughtName, Meta(description="The name of the entity containing the observations")]
    observations: Annotated[
        list[SoughtText], Meta(max_length=MAX_BATCH, description="An array of observations to delete")
    ]


class DeleteObservations(Arguments, frozen=True):
    """Arguments of `delete_observations`."""

    deletions: Annotated[list[Deletion], Meta(max_length=MAX_BATCH)]


async def delete_observations(call: Call, arguments: DeleteObservations) -> Reply:
    """Delete observations; answer which were not there."""
    require_few((deletion.observations for deletion in arguments.deletions), "deletions")
    pairs = [(d.entity_name, content) for d in arguments.deletions for content in d.observations]
    async with call.writing(arguments.graph) as (tx, revision):
        found = await observations.remove_observations(tx, revision, pairs)
    unknown = [pair for pair in pairs if pair not in found.removed]
    if not unknown:
        return done("Observations deleted successfully")
    return done(_deleted_some(len(pairs), unknown, found.entities))


DELETE_OBSERVATIONS_IN_ORGANIZE = organize_tool(
    description="Delete observations from entities.",
    result=Done,
    handler=delete_observations,
    destructive=True,
    idempotent=True,
)

DELETE_OBSERVATIONS = ToolSpec(
    description="Delete specific observations from entities in the knowledge graph.",
    toolsets=frozenset({"memory", "organize"}),
    result=Done,
    handler=delete_observations,
    destructive=True,
    idempotent=True,
    dialects=(DELETE_OBSERVATIONS_IN_ORGANIZE,),
)


def _deleted_some(total: int, unknown: Sequence[tuple[str, str]], known_entities: Container[str]) -> str:
    """How many observations were deleted, and why the others were not, as the official server begins it."""
    entities = unique(entity for entity, _ in unknown if entity not in known_entities)
    texts = [f"{entity}: {content}" for entity, content in unknown if entity in known_entities]
    reasons = [f"Entities not found: {list_briefly(entities)}"] if entities else []
    reasons += [f"Observations not found: {list_briefly(texts)}"] if texts else []
    return f"Deleted {total - len(unknown)} of {total} observations. {'. '.join(reasons)}"
