"""What the tools of toolset `memory` share: bounds, argument types, entities and relations in answers, and replies."""

from collections.abc import Callable, Iterable, Sized
from typing import Annotated, TypeVar

from msgspec import Meta, Struct, field

from recollect.errors import ErrorCode, TooLarge
from recollect.fairness.computing import collect_yielding
from recollect.graph.entities.model import Entity
from recollect.graph.relations.model import Relation, Subgraph
from recollect_gateway.mcp_endpoint.pages import CUT
from recollect_gateway.mcp_endpoint.tool import Reply
from recollect_http.requests.argument_types import (
    VISIBLE,
    Name,
    OmittedObservations,
    RelationType,
    hidden_status,
    omitted_observations,
)

E = TypeVar("E")
R = TypeVar("R")

MAX_BATCH = 1_000
MAX_OBSERVATIONS = 20_000
MAX_OFFSET = 10_000_000
Offset = Annotated[int, Meta(ge=0, le=MAX_OFFSET, description="Number of entities to skip")]
Limit = Annotated[int, Meta(ge=1, le=MAX_BATCH, description="Maximum number of entities")]

Content = Annotated[
    str, Meta(min_length=1, max_length=100_000, description="The entity's own text, besides its observations"), VISIBLE
]


class EntityOut(Struct, rename="camel", omit_defaults=True, frozen=True):
    """An entity as it comes back. `content` is there only where it has a text of its own, as `put_node` gives it one.

    It is no observation: `delete_observations` does not take it away, and it counts as none. `status` is there only
    where the entity was forgotten (`outdated`) or archived: what it says does not hold any more. `omittedObservations`
    is there only where all observations would not fit an answer: then the newest are shown.
    """

    name: str
    entity_type: str
    observations: list[str]
    content: str | None = None
    status: str | None = None
    omitted_observations: OmittedObservations | None = None


class RelationOut(Struct, rename="camel", frozen=True):
    """A relation as it comes back."""

    from_: str = field(name="from")
    to: str
    relation_type: str


def require_few(observations: Iterable[Sized], path: str) -> None:
    """Raise TooLarge for more than MAX_OBSERVATIONS observations in one call, in the lists of `path`.

    A call is one transaction: others that write the graph wait for it, and all that it writes is in memory.
    """
    count = sum(map(len, observations))
    if count > MAX_OBSERVATIONS:
        message = (
            f"These are {count} observations; a call takes {MAX_OBSERVATIONS}. Send several calls, or import a file"
        )
        raise TooLarge(message, code=ErrorCode.REQUEST_TOO_LARGE, path=path)


class Done(Struct, frozen=True):
    """Result of the deletions."""

    success: bool
    message: str


class KnowledgeGraph(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Entities and relations; `nextOffset` is there only where more entities follow.

    `cut`: there are more relations than are shown; search_relations tells all, in pages.
    """

    entities: list[EntityOut]
    relations: list[RelationOut]
    next_offset: int | None = None
    cut: str | None = None


class RelationItem(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """A relation, as it is given and as it comes back."""

    from_: Annotated[Name, Meta(description="The name of the entity where the relation starts")] = field(name="from")
    to: Annotated[Name, Meta(description="The name of the entity where the relation ends")]
    relation_type: Annotated[RelationType, Meta(description="The type of the relation")]


def entity_out(entity: Entity, skipped: int = 0) -> EntityOut:
    """An entity in the official shape, whose `skipped` newest observations were shown before."""
    return EntityOut(
        entity.name,
        entity.kind or "",
        list(entity.observations),
        entity.content or None,
        hidden_status(entity.status),
        omitted_observations(entity.omitted, skipped + len(entity.observations), "get_entity with observationsOffset"),
    )


def relation_out(relation: Relation) -> RelationOut:
    """A relation in the official shape."""
    return RelationOut(relation.source, relation.target, relation.type)


def bare(result: Struct, note: str | None = None) -> Reply:
    """A reply whose text is the bare array of the result's first field, as the official server answers."""
    return Reply(result, note=note, bare=True)


def done(message: str) -> Reply:
    """The answer of a deletion, in the official server's words."""
    return Reply(Done(success=True, message=message), message)


def more_note(next_offset: int | None, cut: str | None = None) -> str | None:
    """How to get the rest of a list that was cut, or of the relations that belong to its rows."""
    advice = "search_relations (of the toolset memory) tells all, page by page"
    notes = [f"Not all {cut} are shown: {advice}."] if cut is not None else []
    notes += [f"More follow: offset={next_offset}."] if next_offset is not None else []
    return " ".join(notes) or None


def cut_note(cut: str | None) -> str | None:
    """The note beside an answer that a bound cut."""
    if cut == CUT:
        return "Not everything is shown: a page is full. Ask about less, or give a limit."
    return None if cut is None else f"Not everything is shown: the limit on {cut} was reached."


async def graph_out(
    found: Subgraph, entity: Callable[[Entity], E], relation: Callable[[Relation], R]
) -> tuple[list[E], list[R]]:
    """The entities and relations of a subgraph in a toolset's shape. Other calls go on while there are many."""
    return await collect_yielding(map(entity, found.entities)), await collect_yielding(map(relation, found.relations))


async def knowledge_graph(found: Subgraph, skipped: int = 0) -> Reply:
    """A subgraph in the official shape; a note says where relations were left out."""
    entities, relations = await graph_out(found, lambda entity: entity_out(entity, skipped), relation_out)
    note = None if found.cut is None else more_note(found.next_offset, found.cut)
    return Reply(KnowledgeGraph(entities, relations, found.next_offset, found.cut), note=note)
