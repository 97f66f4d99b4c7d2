"""What the tools of toolset `organize` share: the shapes of entities and relations, and the rendering of errors."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from mcp_types import CallToolResult, TextContent
from msgspec import Meta, Struct, field

from recollect.errors import InvalidInput, RecollectError
from recollect.graph.entities.model import Entity
from recollect.graph.nodes.model import EntityNotFound, unique
from recollect.graph.relations.model import Relation, Subgraph
from recollect.times import parse_moment
from recollect_gateway.mcp_endpoint.errors import tool_error
from recollect_gateway.mcp_endpoint.tool import Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import graph_out, more_note
from recollect_http.requests.argument_types import Name, OmittedObservations, hidden_status, omitted_observations

_PAGED_BY = "open_nodes with observationsOffset"
"""The tool that shows the observations left out: the enhanced memory server has no tool for a single entity."""

EntityName = Annotated[Name, Meta(description="The name of the entity")]

Threshold = Annotated[
    float,
    Meta(
        ge=0, le=1, description="Minimum similarity, 0 to 1, weighted: name 0.4, type 0.3, observations 0.2, tags 0.1"
    ),
]
DryRun = Annotated[bool, Meta(description="Only report what would be done")]

STEP_BY_STEP = "let propose_duplicates compare step by step"
"""The advice for a call that would take too long to compare entities."""


class OrganizedEntity(Struct, rename="camel", omit_defaults=True, frozen=True):
    """An entity as it comes back.

    `parentId` is the parent's name, `content` a text of its own; `status` is there where it is not active,
    `omittedObservations` where all of them would not fit an answer: then the newest are shown.
    """

    name: str
    entity_type: str
    observations: list[str]
    tags: list[str]
    created_at: str
    last_modified: str
    importance: float | None = None
    parent_id: str | None = None
    content: str | None = None
    status: str | None = None
    omitted_observations: OmittedObservations | None = None


class OrganizedRelation(Struct, rename="camel", frozen=True):
    """A relation as it comes back."""

    from_: str = field(name="from")
    to: str
    relation_type: str
    created_at: str
    last_modified: str


class OrganizedEntities(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Entities; `nextOffset` is there only where more follow."""

    entities: list[OrganizedEntity]
    next_offset: int | None = None


class FoundGraph(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Entities that were found and every relation that touches them; `nextOffset` is there only where more follow.

    `cut`: there are more relations than are shown; search_relations tells all, in pages.
    """

    entities: list[OrganizedEntity]
    relations: list[OrganizedRelation]
    next_offset: int | None = None
    cut: str | None = None


def organize_error(error: Exception) -> CallToolResult:
    """An error in the words of the enhanced memory server; an error with a path is rendered as in other toolsets."""
    result = tool_error(error)
    if not isinstance(error, RecollectError) or error.path:
        return result
    message = f"Entity '{error.name}' not found" if isinstance(error, EntityNotFound) else str(error)
    return result.model_copy(update={"content": [TextContent(type="text", text=f"Error: {message}")]})


organize_tool = partial(ToolSpec, toolsets=frozenset({"organize"}), render_error=organize_error)
"""Makes the specification of a tool that only this toolset has."""


def organized(entity: Entity, skipped: int = 0) -> OrganizedEntity:
    """An entity in this toolset's shape, whose `skipped` newest observations were shown before."""
    return OrganizedEntity(
        entity.name,
        entity.kind or "",
        list(entity.observations),
        list(lowered(entity.tags)),
        iso(entity.created_at),
        iso(entity.updated_at),
        entity.importance,
        entity.parent,
        entity.content or None,
        hidden_status(entity.status),
        omitted_observations(entity.omitted, skipped + len(entity.observations), _PAGED_BY),
    )


def organized_relation(relation: Relation) -> OrganizedRelation:
    """A relation in this toolset's shape."""
    return OrganizedRelation(
        relation.source, relation.target, relation.type, iso(relation.created_at), iso(relation.updated_at)
    )


def lowered(tags: Sequence[str]) -> tuple[str, ...]:
    """Tags in lower case, without repetitions."""
    return tuple(unique(tag.lower() for tag in tags))


def iso(at: datetime) -> str:
    """A time as JavaScript's toISOString writes it."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(text: str | None, path: str, *, last: bool = False) -> datetime | None:
    """Parse a time, in UTC where it names no zone. `last`: the last moment of the day or millisecond, not the first.

    Raises InvalidInput.
    """
    if text is None:
        return None
    try:
        return parse_moment(text, last=last)
    except (ValueError, OverflowError):
        raise InvalidInput(
            "Must be a day such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z", path=path
        ) from None


async def found_graph(found: Subgraph, skipped: int = 0) -> Reply:
    """A subgraph in this toolset's shape, of whose entities the `skipped` newest observations were shown before."""
    entities, relations = await graph_out(found, lambda entity: organized(entity, skipped), organized_relation)
    note = more_note(found.next_offset, found.cut)
    return Reply(FoundGraph(entities, relations, found.next_offset, found.cut), note=note)
