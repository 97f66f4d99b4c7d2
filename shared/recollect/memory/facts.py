"""Use cases of single nodes by id: make, change and delete facts and entities, relate them, look around them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from recollect.errors import InvalidInput
from recollect.graphs import service as graphs
from recollect.graphs.model import Graph, GraphHead, Revision
from recollect.lineages import service as lineages
from recollect.lineages.model import Version, not_found
from recollect.memory import links
from recollect.memory.links import MENTIONS_ENTITY, Link
from recollect.nodes import service as nodes
from recollect.nodes.model import NewEntity, NewFact, NodeFields, Rewrite, unique
from recollect.passages import service as passages
from recollect.platform.db import Transaction
from recollect.relations import service as relations
from recollect.relations.model import Edge, NewEdge, NewRelation, Relation, RelationFilter, Walk
from recollect.search import service as search
from recollect.search.model import MIN_CLOSE, Hit, Question, RecallFilter
from recollect.traversal import service as traversal
from recollect.traversal.model import MAX_PATH_DEPTH

SUMMARIZES = "SUMMARIZES"
"""The type of a relation from a fact to one that it sums up."""

MAX_NAME = 512
"""Characters of an entity's name, at most."""

MAX_SEARCHED_TOKENS = 100_000
"""Tokens of the memories that one search looks at, at most."""

MAX_SIMILAR_EDGES = 1_000
"""Relations told beside similar facts, at most."""


@dataclass(frozen=True, slots=True)
class Change:
    """What to change of a node; None leaves it as it is. `text`: an entity's name, a fact's content.

    `expires_at` wins over `ttl_days`, which counts from the change. `reason` is kept in the metadata.
    """

    text: str | None = None
    kind: str | None = None
    metadata: dict[str, Any] | None = None
    status: str | None = None
    source: str | None = None
    ttl_days: float | None = None
    expires_at: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A node that a search found; `similarity` is a cosine, 1 where the question names it; `matches`: observations."""

    node: Version
    score: float
    similarity: float
    matches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Similar:
    """A fact that means nearly the same as a node: the cosine, and the relations at it."""

    node: Version
    score: float
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Nodes, nearest first, with the edges among them, or paths through them; `cut` says why it ended early."""

    nodes: list[Version]
    edges: list[Edge]
    paths: list[list[UUID]] = field(default_factory=list)
    cut: str | None = None


@dataclass(frozen=True, slots=True)
class Stats:
    """What a graph holds: exact counts, kinds of entities and types of relations, most first, passages that wait."""

    head: GraphHead | None
    kinds: list[tuple[str, int]]
    types: list[tuple[str, int]]
    waiting: int


async def create_fact(
    tx: Transaction, revision: Revision, fact: NewFact, given: Sequence[Link] = (), *, auto_link: bool = True
) -> Version:
    """Make a fact with its links; `auto_link` relates it to the entities that it names.

    One that is known (same content and status) comes back as it is, and gets the links that it lacks.
    Raises NotFound for a link's target, InvalidInput where the graph's whitelist allows no fact.
    """
    revision.graph.require_kind(fact.kind, "node_type")
    fact = replace(fact, expires_at=_expiry(revision.at, fact.ttl_days, fact.expires_at))
    (kept,) = await nodes.create_facts(tx, revision, [fact])
    await links.link(tx, revision, kept.id, given)
    if auto_link:
        await links.link_mentions(tx, revision, kept.id, fact.content)
    return await _newest(tx, revision.graph, kept.id)


async def create_entity(
    tx: Transaction, revision: Revision, name: str, fields: NodeFields, given: Sequence[Link] = ()
) -> Version:
    """Make an entity with its links; a placeholder of that name becomes it.

    One that is known comes back as it is, and gets the links that it lacks. Raises NotFound for a link's target,
    InvalidInput for a kind that the whitelist leaves out.
    """
    expires_at = _expiry(revision.at, fields.ttl_days, fields.expires_at)
    node_id = await _ensure_entity(tx, revision, name, replace(fields, name=name, expires_at=expires_at))
    await links.link(tx, revision, node_id, given)
    return await _newest(tx, revision.graph, node_id)


async def change(tx: Transaction, revision: Revision, node_id: UUID, wanted: Change) -> Version:
    """Change a node; what it was stays in history, and no version is made where nothing differs.

    Raises NotFound, Conflict for a name that is taken, InvalidInput for a fact's kind.
    """
    head = await lineages.require_head(tx, revision.graph, node_id)
    fields = _changed(head.fields, wanted, revision.at)
    if fields != head.fields:
        await nodes.rewrite(tx, revision, [Rewrite(head, fields)])
    return await _newest(tx, revision.graph, node_id)


async def delete(tx: Transaction, revision: Revision, node_id: UUID) -> None:
    """Delete a node with all that belongs to it; raises NotFound."""
    head = await lineages.require_head(tx, revision.graph, node_id)
    await relations.delete_nodes(tx, revision, [head.id])


async def get_node(tx: Transaction, graph_name: str | None, node_id: UUID, *, as_of: str | None = None) -> Version:
    """A live node (`as_of`: as it was); raises NotFound."""
    graph = await _graph(tx, graph_name, node_id)
    at = await graphs.moment(tx, graph, as_of)
    found = await lineages.get_nodes(tx, graph, [node_id], at=at)
    if not found:
        raise not_found(node_id)
    return found[0]


async def history(
    tx: Transaction, graph_name: str | None, node_id: UUID, *, offset: int, limit: int
) -> tuple[list[Version], bool]:
    """Versions of a node, newest first, of a deleted one too, and whether more follow; raises NotFound."""
    graph = await _graph(tx, graph_name, node_id)
    found = await lineages.history(tx, graph, node_id, offset=offset, limit=limit + 1)
    return found[:limit], len(found) > limit


async def relate(tx: Transaction, revision: Revision, edge: NewEdge) -> Edge:
    """Relate two nodes by id; a relation that is there comes back as it is. Raises NotFound for either end."""
    await require_nodes(tx, revision.graph, [edge.from_node, edge.to_node])
    (made,) = await relations.put_edges(tx, revision, [edge])
    return made


async def unrelate(tx: Transaction, revision: Revision, from_node: UUID, to_node: UUID, type_: str | None) -> int:
    """Take the relations from one node to another away, `type_` None: of every type; how many there were."""
    edges = await relations.edges_between(tx, revision.graph, from_node, to_node, type_)
    return await relations.delete_edges(tx, revision, [edge.id for edge in edges]) if edges else 0


async def create_triplet(tx: Transaction, revision: Revision, triplet: NewRelation, fact_id: UUID | None) -> Edge:
    """Relate two entities by name, made where they are new; one that is there comes back as it is.

    The fact that says so, if there is one, is related to both. Raises NotFound for that fact, InvalidInput where the
    whitelist leaves entities without a kind out.
    """
    if fact_id is not None:
        await require_nodes(tx, revision.graph, [fact_id])
    ends = unique([triplet.source, triplet.target])
    await nodes.create_entities(tx, revision, [NewEntity(name) for name in ends])
    named = await nodes.require_entities(tx, revision.graph, ends)
    source, target = named[triplet.source].id, named[triplet.target].id
    if fact_id is not None:
        await relations.put_edges(
            tx, revision, [NewEdge(fact_id, i, MENTIONS_ENTITY) for i in unique([source, target])]
        )
    (made,) = await relations.put_edges(
        tx, revision, [NewEdge(source, target, triplet.type, metadata=triplet.metadata)]
    )
    return made


async def search_triplets(
    tx: Transaction,
    graph_name: str | None,
    only: RelationFilter,
    *,
    offset: int,
    limit: int,
    as_of: str | None = None,
) -> tuple[list[tuple[Relation, Edge]], bool]:
    """Relations between names (`as_of`: as they were), oldest first, in both their shapes, and whether more follow."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return [], False
    found, more = await relations.find_relations(tx, graph_name, only, offset=offset, limit=limit, as_of=as_of)
    edges = await relations.edges_by_id(tx, graph, [relation.id for relation in found])
    return list(zip(found, edges, strict=True)), more


async def summarize(tx: Transaction, revision: Revision, fact_ids: Sequence[UUID], fact: NewFact) -> Version:
    """Make a fact that sums up others. Raises NotFound for the first of them that is not there."""
    given = [Link(fact_id, SUMMARIZES, named=False) for fact_id in unique(fact_ids)]
    return await create_fact(tx, revision, fact, given)


async def find(
    tx: Transaction,
    graph_name: str | None,
    question: Question,
    only: RecallFilter,
    *,
    limit: int,
    threshold: float | None,
) -> list[Found]:
    """Nodes that answer a question, best first: entities that it names, and what recall finds, by node.

    `threshold` is the least similarity, a cosine; what is not embedded yet has none.
    """
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return []
    named = [] if only.named is False else await search.find_mentioned(tx, graph, question.text)
    recalled = await search.recall(
        tx, graph_name, [question], only, limit=search.MAX_RECALLED, token_budget=MAX_SEARCHED_TOKENS
    )
    hits = _by_node(recalled.hits)
    ranked = unique([*named, *hits])
    found = [
        _found(node, hits.get(node.node_id, []), node.node_id in named)
        for node in await lineages.get_nodes(tx, graph, ranked)
        if _has_status(node, only)
    ]
    return [one for one in found if threshold is None or one.similarity >= threshold][:limit]


async def find_similar(
    tx: Transaction, graph_name: str | None, node_id: UUID, *, threshold: float | None, limit: int, edges: bool
) -> list[Similar]:
    """Active facts that mean nearly the same as a node, nearest first, as far as both are embedded; raises NotFound."""
    graph = await _graph(tx, graph_name, node_id)
    await require_nodes(tx, graph, [node_id])
    min_score = MIN_CLOSE if threshold is None else threshold
    scores = dict(await search.find_similar(tx, graph, node_id, min_score=min_score, limit=limit))
    found = await lineages.get_nodes(tx, graph, list(scores))
    at: list[Edge] = []
    if edges and found:
        at = await relations.edges_of(tx, graph, list(scores), Walk(), within=[graph.id], limit=MAX_SIMILAR_EDGES)
    return [Similar(n, scores[n.node_id], tuple(e for e in at if n.node_id in (e.from_node, e.to_node))) for n in found]


async def surroundings(
    tx: Transaction, graph_name: str | None, node_id: UUID, *, depth: int, max_nodes: int, as_of: str | None = None
) -> Surroundings:
    """What lies within `depth` relations of a node (`as_of`: lay), the node itself first; raises NotFound."""
    graph = await _graph(tx, graph_name, node_id)
    walk = Walk(at=await graphs.moment(tx, graph, as_of))
    await require_nodes(tx, graph, [node_id], walk)
    reached = await traversal.neighbourhood(tx, graph, [node_id], walk, depth=depth, max_nodes=max_nodes)
    met = await lineages.get_nodes(tx, graph, list(reached.depths), at=walk.at)
    return Surroundings(met, _among(list(reached.edges.values()), met), cut=reached.cut)


async def trace(
    tx: Transaction, graph_name: str | None, start: UUID, end: UUID, *, max_paths: int, as_of: str | None = None
) -> Surroundings:
    """Paths between two nodes, shortest first, whichever way their relations point; raises NotFound for either."""
    graph = await _graph(tx, graph_name, start)
    walk = Walk(at=await graphs.moment(tx, graph, as_of))
    await require_nodes(tx, graph, [start, end], walk)
    found = await traversal.all_paths(tx, graph, start, end, walk, max_depth=MAX_PATH_DEPTH, max_paths=max_paths)
    met = await lineages.get_nodes(tx, graph, unique(node for path in found.paths for node in path), at=walk.at)
    known = {node.node_id for node in met}
    # A path may lead over a placeholder, which is shown nowhere.
    paths = [path for path in found.paths if known.issuperset(path)]
    return Surroundings(met, _among(found.edges, met), paths, found.cut)


async def graph_stats(tx: Transaction, graph_name: str | None) -> Stats:
    """What a graph holds; one that is not there holds nothing."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return Stats(None, [], [], 0)
    return Stats(
        await graphs.head_of(tx, graph),
        await nodes.count_kinds(tx, graph),
        await relations.count_types(tx, graph),
        await passages.count_waiting(tx, graph.id),
    )


async def require_nodes(tx: Transaction, graph: Graph, node_ids: Sequence[UUID], walk: Walk | None = None) -> None:
    """Raise NotFound for the first of these nodes that is not there (in the past that a walk is of: was not)."""
    found = await lineages.get_nodes(tx, graph, node_ids, at=walk.at if walk else None)
    there = {node.node_id for node in found}
    for node_id in node_ids:
        if node_id not in there:
            raise not_found(node_id)


async def _graph(tx: Transaction, graph_name: str | None, node_id: UUID) -> Graph:
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        raise not_found(node_id)
    return graph


async def _newest(tx: Transaction, graph: Graph, node_id: UUID) -> Version:
    """The newest version of a node that this call writes, whether or not its time has come."""
    return (await lineages.history(tx, graph, node_id, limit=1))[0]


async def _ensure_entity(tx: Transaction, revision: Revision, name: str, fields: NodeFields) -> UUID:
    known = (await nodes.find_named(tx, revision.graph, [name])).get(name)
    if known is not None and not known.placeholder:
        return known.id
    revision.graph.require_kind(fields.kind, "entity_type")
    _require_short(name)
    (made,) = await nodes.create_nodes(tx, revision, [fields])
    return made


def _expiry(now: datetime, ttl_days: float | None, expires_at: datetime | None) -> datetime | None:
    if expires_at is not None and expires_at <= now:
        raise InvalidInput("Lies in the past", path="expires_at")
    return now + timedelta(days=ttl_days) if expires_at is None and ttl_days is not None else expires_at


def _changed(fields: NodeFields, wanted: Change, now: datetime) -> NodeFields:
    if wanted.kind is not None and fields.name is None:
        raise InvalidInput("A fact has no entity type", path="entity_type")
    if wanted.text is not None and fields.name is not None:
        _require_short(wanted.text)
    reason = {} if wanted.reason is None else {"reason": wanted.reason}
    return replace(
        fields,
        name=fields.name if wanted.text is None or fields.name is None else wanted.text,
        content=fields.content if wanted.text is None or fields.name is not None else wanted.text,
        kind=fields.kind if wanted.kind is None else wanted.kind,
        metadata=(fields.metadata if wanted.metadata is None else wanted.metadata) | reason,
        status=wanted.status or fields.status,
        source=fields.source if wanted.source is None else wanted.source,
        ttl_days=fields.ttl_days if wanted.ttl_days is None else wanted.ttl_days,
        expires_at=_expiry(now, wanted.ttl_days, wanted.expires_at) or fields.expires_at,
    )


def _require_short(name: str) -> None:
    if len(name) > MAX_NAME:
        raise InvalidInput(f"An entity's name is too long (max {MAX_NAME} chars)", path="text")


def _by_node(hits: Sequence[Hit]) -> dict[UUID, list[Hit]]:
    """Hits by their node, best node first."""
    grouped: dict[UUID, list[Hit]] = {}
    for hit in hits:
        grouped.setdefault(hit.node_id, []).append(hit)
    return grouped


def _found(node: Version, hits: Sequence[Hit], named: bool) -> Found:
    return Found(
        node,
        score=1.0 if named else max(hit.score for hit in hits),
        similarity=1.0 if named else max(hit.meaning for hit in hits),
        matches=tuple(hit.text for hit in hits if hit.memory_id != node.node_id),
    )


def _has_status(node: Version, only: RecallFilter) -> bool:
    """Whether a node has the status that is asked for: entities that a question names were not filtered by it."""
    if only.status is not None:
        return node.status == only.status
    return node.status == "active" or (node.status == "outdated" and only.include_outdated)


def _among(edges: Sequence[Edge], met: Sequence[Version]) -> list[Edge]:
    known = {node.node_id for node in met}
    return [edge for edge in edges if edge.from_node in known and edge.to_node in known]
