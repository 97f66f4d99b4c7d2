"""Relate entities, by tool or by route."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from recollect.graph.relations import service as relations
from recollect.graph.relations.model import EdgeUpsert, NewRelation
from recollect_gateway.calls import Call
from recollect_http.requests.argument_types import MAX_ITEMS, Name, RelationType, check_metadata


class Triple(Struct, forbid_unknown_fields=True, frozen=True):
    """Subject, predicate and object, by name."""

    subject: Name
    predicate: RelationType
    object: Name
    metadata: dict[str, Any] | None = None


class RelateBody(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The relations to store.

    The graph is named apart: by an argument of the tool, or in the path of the route.
    """

    triples: Annotated[list[Triple], Meta(min_length=1, max_length=MAX_ITEMS)]


class RelatedTriple(Struct, frozen=True):
    """The outcome of one triple: `new`, `updated` (it had other metadata) or `known`."""

    subject: str
    predicate: str
    object: str
    status: str


class RelatedTriples(Struct, frozen=True):
    """Result of `relate`: one entry for each triple, in order."""

    relations: list[RelatedTriple]


async def relate(call: Call, graph: str | None, body: RelateBody) -> RelatedTriples:
    """Store relations; return which are new, and which got other metadata."""
    for index, triple in enumerate(body.triples):
        check_metadata(triple.metadata, f"triples.{index}.metadata", call.settings.max_metadata_size)
    new_relations = [NewRelation(t.subject, t.object, t.predicate, t.metadata) for t in body.triples]
    async with call.writing(graph) as (tx, revision):
        upserts = await relations.upsert_relations(tx, revision, new_relations)
    return RelatedTriples(
        [
            RelatedTriple(relation.source, relation.type, relation.target, status_of(upsert))
            for relation, upsert in zip(new_relations, upserts, strict=True)
        ]
    )


def status_of(upsert: EdgeUpsert) -> str:
    """The outcome of a relation, in one word."""
    if upsert.created:
        return "new"
    return "updated" if upsert.updated else "known"
