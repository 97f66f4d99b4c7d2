"""The tool `add_observations`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.nodes.model import unique
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_BATCH, bare, require_few
from recollect_gateway.mcp_endpoint.tools.organize.shapes import organize_tool
from recollect_http.requests.argument_types import Name, Text


class Addition(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """Observations for one entity."""

    entity_name: Annotated[Name, Meta(description="The name of the entity to add the observations to")]
    contents: Annotated[list[Text], Meta(max_length=MAX_BATCH, description="An array of observation contents to add")]


class AddObservations(Arguments, frozen=True):
    """Arguments of `add_observations`."""

    observations: Annotated[list[Addition], Meta(max_length=MAX_BATCH)]


class Added(Struct, rename="camel", frozen=True):
    """The observations that one entity did not have yet."""

    entity_name: str
    added_observations: list[str]


class Results(Struct, frozen=True):
    """Result of `add_observations`."""

    results: list[Added]


async def add_observations(call: Call, arguments: AddObservations) -> Reply:
    """Add observations; answer, for each entry, those that are new."""
    require_few((addition.contents for addition in arguments.observations), "observations")
    new = [NewObservation(a.entity_name, content) for a in arguments.observations for content in a.contents]
    names = unique(a.entity_name for a in arguments.observations)
    prepared = await call.prepare((a.entity_name, content) for a in arguments.observations for content in a.contents)
    async with call.writing(arguments.graph, prepared=prepared) as (tx, revision):
        observed = await observations.add_observations(tx, revision, new, named=names)
    added = {(o.entity, o.content) for o in observed}
    return bare(Results([_take_added(addition, added) for addition in arguments.observations]))


ADD_OBSERVATIONS_IN_ORGANIZE = organize_tool(
    description="Add observations to existing entities. Existing observations are skipped.",
    result=Results,
    handler=add_observations,
    idempotent=True,
)

ADD_OBSERVATIONS = ToolSpec(
    description="Add new observations to existing entities in the knowledge graph. Existing ones are skipped.",
    toolsets=frozenset({"memory", "organize"}),
    result=Results,
    handler=add_observations,
    idempotent=True,
    dialects=(ADD_OBSERVATIONS_IN_ORGANIZE,),
)


def _take_added(addition: Addition, added: set[tuple[str, str]]) -> Added:
    """Remove an entry's observations from `added`, and return them, so that no later entry reports them again."""
    contents = [content for content in unique(addition.contents) if (addition.entity_name, content) in added]
    added.difference_update((addition.entity_name, content) for content in contents)
    return Added(addition.entity_name, contents)
