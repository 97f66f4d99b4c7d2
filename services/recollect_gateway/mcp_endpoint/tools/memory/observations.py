"""Observations of entities: add and delete them."""

from collections.abc import Container, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from recollect.graph.nodes.model import unique
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.listed import listed
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_BATCH, bare, done
from recollect_http.requests.argument_types import Name, SoughtName, SoughtText, Text


class Addition(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """Observations for one entity."""

    entity_name: Annotated[Name, Meta(description="The name of the entity to add the observations to")]
    contents: Annotated[list[Text], Meta(max_length=MAX_BATCH, description="An array of observation contents to add")]


class AddObservations(Arguments, frozen=True):
    """Arguments of `add_observations`."""

    observations: Annotated[list[Addition], Meta(max_length=MAX_BATCH)]


class Deletion(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """Observations to take from one entity."""

    entity_name: Annotated[SoughtName, Meta(description="The name of the entity containing the observations")]
    observations: Annotated[
        list[SoughtText], Meta(max_length=MAX_BATCH, description="An array of observations to delete")
    ]


class DeleteObservations(Arguments, frozen=True):
    """Arguments of `delete_observations`."""

    deletions: Annotated[list[Deletion], Meta(max_length=MAX_BATCH)]


class Added(Struct, rename="camel", frozen=True):
    """What one entity did not have yet."""

    entity_name: str
    added_observations: list[str]


class Results(Struct, frozen=True):
    """Result of `add_observations`."""

    results: list[Added]


async def add_observations(call: Call, arguments: AddObservations) -> Reply:
    """Add observations; answer, for each entry, those that are new."""
    new = [NewObservation(a.entity_name, content) for a in arguments.observations for content in a.contents]
    names = unique(a.entity_name for a in arguments.observations)
    prepared = await call.prepare((a.entity_name, content) for a in arguments.observations for content in a.contents)
    async with call.writing(arguments.graph, prepared=prepared) as (tx, revision):
        observed = await observations.add_observations(tx, revision, new, named=names)
    added = {(o.entity, o.content) for o in observed}
    return bare(Results([_take_added(addition, added) for addition in arguments.observations]))


async def delete_observations(call: Call, arguments: DeleteObservations) -> Reply:
    """Delete observations; answer which were not there."""
    pairs = [(d.entity_name, content) for d in arguments.deletions for content in d.observations]
    async with call.writing(arguments.graph) as (tx, revision):
        found = await observations.remove_observations(tx, revision, pairs)
    unknown = [pair for pair in pairs if pair not in found.removed]
    if not unknown:
        return done("Observations deleted successfully")
    return done(_deleted_some(len(pairs), unknown, found.entities))


def _deleted_some(total: int, unknown: Sequence[tuple[str, str]], known_entities: Container[str]) -> str:
    """How many observations were deleted, and why the others were not, as the official server begins it."""
    entities = unique(entity for entity, _ in unknown if entity not in known_entities)
    texts = [f"{entity}: {content}" for entity, content in unknown if entity in known_entities]
    reasons = [f"Entities not found: {listed(entities)}"] if entities else []
    reasons += [f"Observations not found: {listed(texts)}"] if texts else []
    return f"Deleted {total - len(unknown)} of {total} observations. {'. '.join(reasons)}"


def _take_added(addition: Addition, added: set[tuple[str, str]]) -> Added:
    """The observations of an entry that were added; they are removed from `added`, so that no later entry has them."""
    contents = [content for content in unique(addition.contents) if (addition.entity_name, content) in added]
    added.difference_update((addition.entity_name, content) for content in contents)
    return Added(addition.entity_name, contents)
