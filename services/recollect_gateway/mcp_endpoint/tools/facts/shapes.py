"""Arguments and answers that the tools of the graph-memory contract share: graphs, nodes and edges.

Times are integer milliseconds since 1970; vectors are not part of answers.
"""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta, Struct

from recollect.errors import ErrorCode, InvalidInput, NotFound, require_none
from recollect.graph.graphs import service as graphs
from recollect.graph.lineages.model import Version
from recollect.graph.relations.model import Edge
from recollect.postgres.transactions import Transaction
from recollect.settings import Settings
from recollect.times import from_milliseconds, milliseconds
from recollect_gateway.mcp_endpoint.tool import Arguments, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_OFFSET
from recollect_http.requests.argument_types import END, GraphName, check_metadata

DEFAULT_SOURCE = "mcp"

OwnerId = Annotated[
    GraphName, Meta(description="Graph to use, by name or id; default: the credential's, else `default`")
]
NodeId = Annotated[str, Meta(max_length=256)]
Status = Literal["active", "outdated", "archived"]
NodeType = Literal["Fact", "Entity"]
Threshold = Annotated[float, Meta(ge=0, le=1, description="Minimum cosine similarity")]
ContractType = Annotated[str, Meta(min_length=1, max_length=256, pattern=f"^[A-Za-z0-9_]+{END}")]
Offset = Annotated[int, Meta(ge=0, le=MAX_OFFSET)]

REPLACES = "Replaces the properties of an existing relation; omitted: they stay"

MAX_FOUND = 100
"""The maximum number of nodes on all pages of a search together."""

Passed = Annotated[int, Meta(ge=0, le=MAX_FOUND, description="Number of results to skip")]


class OwnedArguments(Arguments, kw_only=True, frozen=True, rename=None):
    """Arguments of a tool on the graph of one owner."""

    owner_id: OwnerId | None = None


class OwnedReadArguments(ReadArguments, kw_only=True, frozen=True, rename=None):
    """Arguments of a tool that can read the past of such a graph."""

    owner_id: OwnerId | None = None


class NodeOut(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A fact, or an entity, whose text is its name. Unset fields are left out, and `at` if it equals `created_at`.

    `content`: the text that an entity has of its own, beside its name. `reason`: why it is outdated, or was last
    changed, where that was stated.
    """

    id: str
    node_type: str
    owner_id: str
    text: str
    metadata: dict[str, Any]
    created_at: int
    source: str
    status: str
    type: str | None = None
    ttl_days: float | None = None
    expires_at: int | None = None
    last_dedup_at: int | None = None
    version: int | None = None
    content: str | None = None
    thread: str | None = None
    at: int | None = None
    reason: str | None = None


class EdgeOut(Struct, frozen=True):
    """A relation between two nodes, and when it was made."""

    id: str
    from_id: str
    to_id: str
    relation_type: str
    metadata: dict[str, Any]
    created_at: int


class Succeeded(Struct, frozen=True):
    """Result of the deletions."""

    success: bool


class OneNode(Struct, frozen=True):
    """Result of the tools that answer one node."""

    success: bool
    node: NodeOut


class TripletOut(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A relation between two entities, by their names. `fact_id`: the fact that states it, as long as that exists."""

    id: str
    owner_id: str
    subject: str
    predicate: str
    object: str
    subject_id: str
    object_id: str
    metadata: dict[str, Any]
    created_at: int
    fact_id: str | None = None


def graph_of(arguments: OwnedArguments | OwnedReadArguments) -> str | None:
    """The graph that `owner_id` or `graph` names; raises InvalidInput where they name two."""
    if None not in (arguments.owner_id, arguments.graph) and arguments.owner_id != arguments.graph:
        raise InvalidInput("owner_id and graph name two different graphs: give one of them", path="owner_id")
    return arguments.owner_id or arguments.graph


def node_id(text: str) -> UUID:
    """Parse a node's id; raises NotFound for a text that is no id, since no node has it."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(f"There is no node {text}.", code=ErrorCode.NODE_NOT_FOUND) from None


def metadata_fault(metadata: dict[str, Any] | None, path: str, settings: Settings) -> InvalidInput | None:
    """The error for metadata that is too large; None where it is not."""
    try:
        check_metadata(metadata, path, settings.max_metadata_size)
    except InvalidInput as fault:
        return fault
    return None


def checked_metadata(metadata: dict[str, Any] | None, path: str, settings: Settings) -> dict[str, Any] | None:
    """Return the metadata; raises InvalidInput where it is too large."""
    require_none([metadata_fault(metadata, path, settings)])
    return metadata


def moment_of(timestamp: int | None) -> datetime | None:
    """Convert a time of the contract, in milliseconds since 1970, to a datetime."""
    return None if timestamp is None else from_milliseconds(timestamp)


def node_out(node: Version, owner_id: str, *, versioned: bool = False) -> NodeOut:
    """A node in the contract's shape."""
    return NodeOut(**node_fields(node, owner_id), version=node.version if versioned else None)


def edge_out(e: Edge) -> EdgeOut:
    """A relation in the contract's shape."""
    return EdgeOut(str(e.id), str(e.from_node), str(e.to_node), e.type, e.metadata, milliseconds(e.created_at))


def node_fields(node: Version, owner_id: str) -> dict[str, Any]:
    """The fields of a NodeOut but `version`, for NodeOut and the structs that extend it."""
    return {
        "id": str(node.node_id),
        "node_type": "Fact" if node.name is None else "Entity",
        "owner_id": owner_id,
        "text": text_of(node),
        "metadata": node.metadata,
        "created_at": milliseconds(node.began_at),
        "source": node.source or DEFAULT_SOURCE,
        "status": node.status,
        "type": node.kind,
        "ttl_days": node.ttl_days,
        "expires_at": None if node.expires_at is None else milliseconds(node.expires_at),
        "last_dedup_at": None if node.last_dedup_at is None else milliseconds(node.last_dedup_at),
        "content": None if node.name is None else node.content or None,
        "thread": node.thread,
        "at": None if node.said_at in (None, node.began_at) else milliseconds(node.said_at),
        "reason": node.reason,
    }


def text_of(node: Version) -> str:
    """A fact's content, an entity's name."""
    return (node.content or "") if node.name is None else node.name


async def one_node(tx: Transaction, graph: str | None, node: Version, *, versioned: bool = False) -> Reply:
    """The answer of a tool that has written one node."""
    return Reply(OneNode(True, node_out(node, await graphs.name_of(tx, graph), versioned=versioned)))


def triplet_out(edge: Edge, subject: str, object_: str, owner_id: str, fact_id: str | None = None) -> TripletOut:
    """A relation between two names."""
    return TripletOut(
        id=str(edge.id),
        owner_id=owner_id,
        subject=subject,
        predicate=edge.type,
        object=object_,
        subject_id=str(edge.from_node),
        object_id=str(edge.to_node),
        metadata=edge.metadata,
        created_at=milliseconds(edge.created_at),
        fact_id=fact_id,
    )
