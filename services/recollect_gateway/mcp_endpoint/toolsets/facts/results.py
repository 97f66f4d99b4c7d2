"""What the tools of the graph-memory contract answer.

Times are integer milliseconds since 1970; vectors stay inside.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from msgspec import Struct

from recollect.lineages.model import Version
from recollect.memory.facts import Found, Similar, Surroundings
from recollect.relations.model import Edge
from recollect_gateway.mcp_endpoint.toolsets.facts.arguments import EPOCH

DEFAULT_SOURCE = "mcp"


class NodeOut(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A fact or an entity, whose text is its name. What is not set is left out."""

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


class FoundNode(NodeOut, frozen=True, omit_defaults=True, kw_only=True):
    """A node that a search found; `matches` are the statements about an entity that answer the query."""

    score: float
    similarity: float
    matches: list[str] = []


class EdgeOut(Struct, frozen=True):
    """A relation between two nodes."""

    id: str
    from_id: str
    to_id: str
    relation_type: str
    metadata: dict[str, Any]


class SimilarNode(NodeOut, frozen=True, omit_defaults=True, kw_only=True):
    """A fact that means nearly the same; its relations, where they are asked for."""

    score: float
    relations: list[EdgeOut] = []


class VersionOut(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One version of a node: what it was, from when, and who wrote it."""

    version: int
    version_id: str
    text: str
    metadata: dict[str, Any]
    source: str
    status: str
    changed_at: int
    changed_by: str
    is_current: bool
    deleted: bool = False
    type: str | None = None
    ttl_days: float | None = None
    expires_at: int | None = None


class TripletOut(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A relation between two entities, by their names."""

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


class PathOut(Struct, frozen=True):
    """A path: its nodes from start to end, and the relations between each and the next."""

    nodes: list[NodeOut]
    edges: list[EdgeOut]
    length: int


class OneNode(Struct, frozen=True):
    """Result of the tools that answer one node."""

    success: bool
    node: NodeOut


class Succeeded(Struct, frozen=True):
    """Result of the deletions."""

    success: bool


class Versions(Struct, frozen=True, omit_defaults=True):
    """Result of `get_node_change_history`, newest first; `next_offset` where more follow."""

    success: bool
    versions: list[VersionOut]
    next_offset: int | None = None


class SearchResults(Struct, frozen=True):
    """Result of `search`: everything best first, then the same by type."""

    success: bool
    results: list[FoundNode]
    facts: list[FoundNode]
    entities: list[FoundNode]


class SimilarNodes(Struct, frozen=True):
    """Result of `find_similar`."""

    success: bool
    results: list[SimilarNode]


class OneTriplet(Struct, frozen=True):
    """Result of `create_triplet`."""

    success: bool
    triplet: TripletOut


class Triplets(Struct, frozen=True, omit_defaults=True):
    """Result of `search_triplets`; `next_offset` where more follow."""

    success: bool
    triplets: list[TripletOut]
    next_offset: int | None = None


class RelationType(Struct, frozen=True):
    """Result of `create_relation`."""

    success: bool
    relation_type: str


class Context(Struct, frozen=True, omit_defaults=True):
    """Result of `get_context`; `cut` says which bound ended it early."""

    success: bool
    nodes: list[NodeOut]
    edges: list[EdgeOut]
    cut: str | None = None


class Trace(Struct, frozen=True, omit_defaults=True):
    """Result of `get_trace`, shortest first; `cut` says which bound ended it early."""

    success: bool
    paths: list[PathOut]
    cut: str | None = None


class GraphCounts(Struct, frozen=True):
    """What a graph holds. `waiting`: texts that are not embedded yet; `revision`: how often it was written."""

    owner_id: str
    total_nodes: int
    facts: int
    entities: int
    observations: int
    relations: int
    entity_types: dict[str, int]
    relation_types: dict[str, int]
    waiting: int
    revision: int


class GraphStats(Struct, frozen=True):
    """Result of `get_stats`."""

    success: bool
    stats: GraphCounts


class Connection(Struct, frozen=True):
    """Result of `test_connection`."""

    success: bool
    message: str


class EmbeddingCache(Struct, frozen=True):
    """The cache of embeddings."""

    enabled: bool
    size: int
    maxsize: int


class SearchCache(Struct, frozen=True):
    """The cache of search results; `ttl` in seconds."""

    enabled: bool
    size: int
    maxsize: int
    ttl: int


class Caches(Struct, frozen=True):
    """Both caches."""

    embeddings: EmbeddingCache
    search: SearchCache


class Health(Struct, frozen=True):
    """Result of `health_check`. `falkordb` is the contract's name for the database."""

    success: bool
    falkordb: bool
    embeddings: bool
    vector_index: bool
    cache: Caches


def node_out(node: Version, owner_id: str, *, versioned: bool = False) -> NodeOut:
    """A node in the contract's shape."""
    return NodeOut(**_fields(node, owner_id), version=node.version if versioned else None)


def found_out(found: Found, owner_id: str) -> FoundNode:
    """A node that a search found, with why."""
    return FoundNode(
        **_fields(found.node, owner_id),
        score=round(found.score, 4),
        similarity=round(found.similarity, 4),
        matches=list(found.matches),
    )


def similar_out(similar: Similar, owner_id: str) -> SimilarNode:
    """A similar fact."""
    return SimilarNode(
        **_fields(similar.node, owner_id), score=round(similar.score, 4), relations=edges_out(similar.edges)
    )


def edges_out(edges: Iterable[Edge]) -> list[EdgeOut]:
    """Relations in the contract's shape."""
    return [EdgeOut(str(e.id), str(e.from_node), str(e.to_node), e.type, e.metadata) for e in edges]


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


def version_out(version: Version) -> VersionOut:
    """A version in the contract's shape."""
    return VersionOut(
        version=version.version,
        version_id=str(version.id),
        text=_text(version),
        metadata=version.metadata,
        source=version.source or DEFAULT_SOURCE,
        status=version.status,
        changed_at=milliseconds(version.created_at),
        changed_by=version.created_by,
        is_current=version.is_current,
        deleted=version.deleted,
        type=version.kind,
        ttl_days=version.ttl_days,
        expires_at=None if version.expires_at is None else milliseconds(version.expires_at),
    )


def paths_out(found: Surroundings, owner_id: str) -> list[PathOut]:
    """Paths, each with its own nodes and relations."""
    nodes = {node.node_id: node_out(node, owner_id) for node in found.nodes}
    paths = []
    for path in found.paths:
        steps = {frozenset(step) for step in pairwise(path)}
        taken = [edge for edge in found.edges if frozenset((edge.from_node, edge.to_node)) in steps]
        paths.append(PathOut([nodes[node] for node in path], edges_out(taken), len(path) - 1))
    return paths


def split(found: Sequence[FoundNode]) -> SearchResults:
    """What a search found, whole and by type."""
    facts = [node for node in found if node.node_type == "Fact"]
    return SearchResults(True, list(found), facts, [node for node in found if node.node_type == "Entity"])


def milliseconds(at: datetime) -> int:
    """Whole milliseconds since 1970."""
    return (at - EPOCH) // timedelta(milliseconds=1)


def _fields(node: Version, owner_id: str) -> dict[str, Any]:
    return {
        "id": str(node.node_id),
        "node_type": "Fact" if node.name is None else "Entity",
        "owner_id": owner_id,
        "text": _text(node),
        "metadata": node.metadata,
        "created_at": milliseconds(node.began_at),
        "source": node.source or DEFAULT_SOURCE,
        "status": node.status,
        "type": node.kind,
        "ttl_days": node.ttl_days,
        "expires_at": None if node.expires_at is None else milliseconds(node.expires_at),
        "last_dedup_at": None if node.last_dedup_at is None else milliseconds(node.last_dedup_at),
    }


def _text(node: Version) -> str:
    return (node.content or "") if node.name is None else node.name
