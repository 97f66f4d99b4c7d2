"""Relations between entities, by the names of entities: create, delete and find them."""

from typing import Annotated

from msgspec import Meta, Struct, field

from recollect.graph.relations import service as relations
from recollect.graph.relations.model import NewRelation, RelationFilter
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.listed import listed
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import Arguments, Listing, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import (
    MAX_BATCH,
    MAX_OFFSET,
    RelationOut,
    bare,
    done,
    more_note,
    relation_out,
)
from recollect_http.requests.argument_types import Name, RelationType, SoughtName


class RelationItem(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """A relation, as it is given and as it comes back."""

    from_: Annotated[Name, Meta(description="The name of the entity where the relation starts")] = field(name="from")
    to: Annotated[Name, Meta(description="The name of the entity where the relation ends")]
    relation_type: Annotated[RelationType, Meta(description="The type of the relation")]


class CreateRelations(Arguments, frozen=True):
    """Arguments of `create_relations`."""

    relations: Annotated[list[RelationItem], Meta(max_length=MAX_BATCH)]


class DeleteRelations(Arguments, frozen=True):
    """Arguments of `delete_relations`."""

    relations: Annotated[list[RelationItem], Meta(max_length=MAX_BATCH, description="An array of relations to delete")]


class SearchRelations(ReadArguments, frozen=True):
    """Arguments of `search_relations`; what is left out or empty matches all."""

    from_: Annotated[SoughtName, Meta(description="Name of the entity where it starts")] | None = field(
        default=None, name="from"
    )
    to: Annotated[SoughtName, Meta(description="Name of the entity where it ends")] | None = None
    relation_type: Annotated[str, Meta(max_length=256, description="The type of the relation")] | None = None
    offset: Annotated[int, Meta(ge=0, le=MAX_OFFSET, description="Number of relations to skip")] = 0
    limit: Annotated[int, Meta(ge=1, le=relations.MAX_RELATIONS, description="Maximum number of relations")] | None = (
        None
    )


class Relations(Struct, frozen=True):
    """Result of `create_relations`."""

    relations: list[RelationOut]


class FoundRelations(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Result of `search_relations`; `nextOffset` is there only where more follow."""

    relations: list[RelationOut]
    next_offset: int | None = None


async def create_relations(call: Call, arguments: CreateRelations) -> Reply:
    """Create relations; answer those that are new."""
    new_relations = [NewRelation(r.from_, r.to, r.relation_type) for r in arguments.relations]
    async with call.writing(arguments.graph) as (tx, revision):
        created = await relations.create_relations(tx, revision, new_relations)
    return bare(Relations([RelationOut(r.source, r.target, r.type) for r in created]))


async def delete_relations(call: Call, arguments: DeleteRelations) -> Reply:
    """Delete relations; answer which were not there."""
    triples = [(r.from_, r.to, r.relation_type) for r in arguments.relations]
    async with call.writing(arguments.graph) as (tx, revision):
        there = await relations.delete_relations(tx, revision, triples)
    unknown = [f"{s} {type_} {t}" for s, t, type_ in triples if (s, t, type_) not in there]
    if not unknown:
        return done("Relations deleted successfully")
    deleted = len(triples) - len(unknown)
    return done(f"Deleted {deleted} of {len(triples)} relations. The rest matched nothing: {listed(unknown)}")


async def search_relations(call: Call, arguments: SearchRelations) -> Reply | Listing:
    """Find relations by their ends and type, oldest first."""
    filter_ = RelationFilter(arguments.from_ or None, arguments.to or None, arguments.relation_type or None)
    async with call.reading(arguments.graph, arguments.as_of) as view:
        limit = arguments.limit or PAGE_ROWS
        found, has_more = await relations.find_relations(view, filter_, offset=arguments.offset, limit=limit)
    return paged(
        [*map(relation_out, found)],
        lambda rows, next_offset: bare(FoundRelations(rows, next_offset), more_note(next_offset)),
        limit=arguments.limit,
        offset=arguments.offset,
        next_offset=arguments.offset + limit if has_more else None,
    )
