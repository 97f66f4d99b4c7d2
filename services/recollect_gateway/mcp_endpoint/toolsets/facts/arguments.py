"""What the tools of the graph-memory contract take, and the limits that settings put on it."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from recollect.errors import ErrorCode, InvalidInput, NotFound
from recollect.graphs.model import graph_name
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.tool import Arguments, Reading
from recollect_gateway.mcp_endpoint.toolsets.memory import MAX_OFFSET, Kind, Name, RelationType

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
END_OF_TIME = 253_402_300_799_999
"""The last millisecond of the year 9999."""

MAX_LINKS = 100
MAX_SUMMARIZED = 100

OwnerId = Annotated[
    str, Meta(pattern="^[A-Za-z0-9_@-]{1,128}$", description="Graph to use; default: the credential's, else `default`")
]
NodeId = Annotated[str, Meta(max_length=256)]
Text = Annotated[str, Meta(max_length=100_000)]
Status = Literal["active", "outdated", "archived"]
NodeType = Literal["Fact", "Entity"]
Source = Annotated[str, Meta(max_length=256)]
Milliseconds = Annotated[
    int, Meta(ge=0, le=END_OF_TIME, description="When it expires, in milliseconds since 1970; wins over ttl_days")
]
TtlDays = Annotated[float, Meta(description="Days until it expires")]
Threshold = Annotated[float, Meta(ge=0, le=1, description="Least cosine similarity")]
ContractType = Annotated[str, Meta(min_length=1, max_length=256, pattern="^[A-Za-z0-9_]+$")]
SoughtName = Annotated[str, Meta(max_length=512)]
Offset = Annotated[int, Meta(ge=0, le=MAX_OFFSET)]


class Owned(Arguments, kw_only=True, frozen=True, rename=None):
    """Arguments of a tool on the graph of one owner."""

    owner_id: OwnerId | None = None


class OwnedReading(Reading, kw_only=True, frozen=True, rename=None):
    """Arguments of a tool that can read the past of such a graph."""

    owner_id: OwnerId | None = None


class LinkIn(Struct, forbid_unknown_fields=True, frozen=True):
    """A relation from the new node to one that is there."""

    node_id: NodeId
    node_type: NodeType
    relation_type: ContractType


class CreateNode(Owned, frozen=True, rename=None):
    """Arguments of `create_node`."""

    text: Annotated[Text, Meta(description="The fact, or the entity's name")] | None
    node_type: NodeType = "Fact"
    entity_type: Annotated[Kind, Meta(description="Entities only")] | None = None
    source: Source = "mcp"
    metadata: dict[str, Any] | None = None
    status: Status | None = None
    ttl_days: TtlDays | None = None
    expires_at: Milliseconds | None = None
    auto_link: Annotated[bool, Meta(description="Facts only: relate it to the entities that it names")] = True
    semantic_threshold: Annotated[Threshold, Meta(description="Accepted; links by name need none")] | None = None
    links: Annotated[list[LinkIn], Meta(max_length=MAX_LINKS)] | None = None


class GetNode(OwnedReading, frozen=True, rename=None):
    """Arguments of `get_node`."""

    node_id: NodeId


class UpdateNode(Owned, frozen=True, rename=None):
    """Arguments of `update_node`."""

    node_id: NodeId
    text: Text | None = None
    source: Source | None = None
    metadata: Annotated[dict[str, Any], Meta(description="Replaces what there was")] | None = None
    status: Status | None = None
    ttl_days: TtlDays | None = None
    expires_at: Milliseconds | None = None
    entity_type: Annotated[Kind, Meta(description="Entities only")] | None = None
    versioning: Annotated[bool, Meta(description="Tell the new version's number; history is always kept")] = False


class DeleteNode(Owned, frozen=True, rename=None):
    """Arguments of `delete_node`."""

    node_id: NodeId


class GetNodeChangeHistory(Owned, frozen=True, rename=None):
    """Arguments of `get_node_change_history`."""

    node_id: NodeId
    offset: Offset = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class Search(Owned, frozen=True, rename=None):
    """Arguments of `search`."""

    query: Annotated[str, Meta(max_length=1_000)]
    limit: Annotated[int, Meta(ge=1, le=100, description="Default 10")] | None = None
    node_types: Annotated[list[NodeType], Meta(max_length=2)] | None = None
    status: Status | None = None
    similarity_threshold: Threshold | None = None
    include_outdated: bool = False


class FindSimilar(Owned, frozen=True, rename=None):
    """Arguments of `find_similar`."""

    fact_id: NodeId
    threshold: Threshold | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    include_relations: bool = True


class MarkOutdated(Owned, frozen=True, rename=None):
    """Arguments of `mark_outdated`."""

    fact_id: NodeId
    reason: Annotated[str, Meta(max_length=1_000, description="Kept in the metadata")] | None = None


class CreateTriplet(Owned, frozen=True, rename=None):
    """Arguments of `create_triplet`."""

    subject: Name
    predicate: RelationType
    object_value: Name
    metadata: dict[str, Any] | None = None
    fact_id: Annotated[NodeId, Meta(description="The fact that says so")] | None = None


class SearchTriplets(OwnedReading, frozen=True, rename=None):
    """Arguments of `search_triplets`."""

    subject: SoughtName | None = None
    predicate: SoughtName | None = None
    object_value: SoughtName | None = None
    offset: Offset = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class CreateRelation(Owned, frozen=True, rename=None):
    """Arguments of `create_relation`."""

    from_id: NodeId
    to_id: NodeId
    relation_type: ContractType
    properties: dict[str, Any] | None = None


class DeleteRelation(Owned, frozen=True, rename=None):
    """Arguments of `delete_relation`."""

    from_id: NodeId
    to_id: NodeId
    relation_type: Annotated[SoughtName, Meta(description="Only relations of this type")] | None = None


class GetContext(OwnedReading, frozen=True, rename=None):
    """Arguments of `get_context`."""

    node_id: NodeId = ""
    depth: Annotated[int, Meta(ge=0, le=6)] = 1
    max_nodes: Annotated[int, Meta(ge=1, le=200)] = 20


class GetTrace(OwnedReading, frozen=True, rename=None):
    """Arguments of `get_trace`."""

    from_id: NodeId
    to_id: NodeId
    max_paths: Annotated[int, Meta(ge=1, le=50)] = 5


class CreateSummaryFact(Owned, frozen=True, rename=None):
    """Arguments of `create_summary_fact`."""

    fact_ids: Annotated[list[NodeId], Meta(min_length=1, max_length=MAX_SUMMARIZED)]
    summary_text: Text


class GetStats(Owned, frozen=True, rename=None):
    """Arguments of `get_stats`."""


class CheckHealth(Arguments, frozen=True, rename=None):
    """Arguments of `test_connection` and `health_check`: none but the graph, which every tool takes."""


def graph_of(arguments: Owned | OwnedReading) -> str | None:
    """The graph that `owner_id` or `graph` names; raises InvalidInput where they name two."""
    graph = None if arguments.graph is None else graph_name(arguments.graph)
    if arguments.owner_id is None:
        return graph
    if graph is not None and graph != arguments.owner_id:
        raise InvalidInput("owner_id and graph name two graphs: give one of them", path="owner_id")
    try:
        return graph_name(arguments.owner_id)
    except InvalidInput as error:
        raise InvalidInput(error.message, path="owner_id") from None


def node_id(text: str) -> UUID:
    """A node's id; raises NotFound for a text that is none: no node has it."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(f"There is no node {text}.", code=ErrorCode.NODE_NOT_FOUND) from None


def required_text(text: str | None, path: str, settings: Settings) -> str:
    """A text that says something and is not too long; raises InvalidInput."""
    if text is None or not text.strip():
        raise InvalidInput("Text cannot be empty", path=path)
    if len(text) > settings.max_text_length:
        raise InvalidInput(f"Text too long (max {settings.max_text_length} chars)", path=path)
    return text


def checked_metadata(metadata: dict[str, Any] | None, path: str, settings: Settings) -> dict[str, Any]:
    """Metadata that is not too large; none is empty. Raises InvalidInput."""
    if metadata and len(msgspec.json.encode(metadata)) > settings.max_metadata_size:
        raise InvalidInput(f"Metadata too large (max {settings.max_metadata_size} bytes)", path=path)
    return metadata or {}


def checked_ttl(ttl_days: float | None, settings: Settings) -> float | None:
    """Days until something expires, within the bounds; raises InvalidInput."""
    if ttl_days is not None and not settings.min_ttl_days < ttl_days <= settings.max_ttl_days:
        raise InvalidInput(
            f"Must be more than {settings.min_ttl_days:g} and at most {settings.max_ttl_days:g}", path="ttl_days"
        )
    return ttl_days


def from_milliseconds(milliseconds: int | None) -> datetime | None:
    """The moment that many milliseconds after 1970 began."""
    return None if milliseconds is None else EPOCH + timedelta(milliseconds=milliseconds)
