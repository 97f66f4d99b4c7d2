"""Use cases of lineages with their edges: write a whole subgraph, connect, walk, and see what lies at a node."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from recollect.errors import ErrorCode, Forbidden, InvalidInput, NotFound, RecollectError
from recollect.graphs import service as graphs
from recollect.graphs.model import Graph, Moment, Revision
from recollect.lineages import service as lineages
from recollect.lineages.model import Put, not_found
from recollect.memory.model import (
    UNBOUNDED,
    Edges,
    EdgeSpec,
    Fusion,
    Link,
    NodeSearch,
    NodeSpec,
    Ranked,
    Subnet,
    Target,
    Walked,
)
from recollect.nodes import service as nodes
from recollect.nodes.model import unique, unique_by
from recollect.platform.db import Transaction
from recollect.recall import service as recall
from recollect.recall.cache import Lookup
from recollect.recall.model import Question, RecallFilter
from recollect.relations import service as relations
from recollect.relations.model import Edge, NewEdge, Walk
from recollect.search.fusion import fuse
from recollect.traversal import service as traversal

MAX_EDGES = 1_000
"""Edges in one answer at most."""


async def put_subgraph(
    tx: Transaction, revision: Revision, specs: Sequence[NodeSpec], edges: Sequence[EdgeSpec]
) -> Subnet:
    """Write nodes and the edges among them, best effort: for each, in order, what became of it or why nothing did.

    An edge names each end by the ref of a node of this call or by a lineage. What a failed ref names fails as well.
    """
    puts = await _put_all(tx, revision, specs)
    refs = {
        spec.ref: put.node_id
        for spec, put in zip(specs, puts, strict=True)
        if spec.ref is not None and isinstance(put, Put)
    }
    return Subnet(puts, await connect(tx, revision, edges, refs))


async def connect(
    tx: Transaction, revision: Revision, edges: Sequence[EdgeSpec], refs: Mapping[str, UUID] | None = None
) -> list[Edge | RecollectError]:
    """Make edges, best effort, between lineages and what `refs` stand for; into other graphs by their names."""
    homes = await graphs.find_graph_ids(tx, unique(edge.to_graph for edge in edges if edge.to_graph is not None))
    steps = [_resolved(tx, revision.graph, edge, refs or {}, homes) for edge in edges]
    made = iter(await relations.connect(tx, revision, [step for step in steps if isinstance(step, NewEdge)]))
    return [next(made) if isinstance(step, NewEdge) else step for step in steps]


async def put_edge(tx: Transaction, revision: Revision, edge: EdgeSpec) -> Edge:
    """Make one edge; raises what `connect` would answer."""
    (outcome,) = await connect(tx, revision, [edge])
    if isinstance(outcome, RecollectError):
        raise outcome
    return outcome


async def edges_at(
    tx: Transaction, graph_name: str | None, node_id: UUID, walk: Walk, *, limit: int, as_of: str | None = None
) -> Edges:
    """Edges at a node, in the order of ordinal and age, with those of other graphs that the caller may use.

    The past (`as_of`) knows the edges of the node's own graph only. Raises NotFound for the node.
    """
    graph, at = await _at(tx, graph_name, node_id, as_of)
    allowed = None if tx.caller.graphs is None else list(tx.caller.graphs)
    found = await relations.edges_of(tx, graph, [node_id], replace(walk, at=at), within=allowed, limit=limit + 1)
    links = await _links(tx, found[:limit], await _names(tx, graph, found), at)
    return Edges(links, more=len(found) > limit)


async def walk_from(
    tx: Transaction,
    graph_name: str | None,
    start: UUID,
    walk: Walk,
    *,
    depth: int,
    max_nodes: int,
    as_of: str | None = None,
) -> Walked:
    """What lies within `depth` edges of a node, nearest first. Raises NotFound for it.

    Symlinks lead into other graphs, each with revisions of its own: InvalidInput for following them in the past.
    """
    if walk.symlinks and as_of is not None:
        raise InvalidInput("The past is read one graph at a time: leave follow_symlinks or as_of", path="as_of")
    graph, at = await _at(tx, graph_name, start, as_of)
    reached = await traversal.neighbourhood(tx, graph, [start], replace(walk, at=at), depth=depth, max_nodes=max_nodes)
    edges = sorted(reached.edges.values(), key=lambda edge: edge.id)
    names = await _names(tx, graph, edges)
    if at is None:
        found = await lineages.get_nodes_across(tx, list(names), list(reached.depths))
    else:
        found = await lineages.get_nodes(tx, graph, list(reached.depths), at=at)
    links = await _links(tx, edges[:MAX_EDGES], names, at)
    cut = reached.cut or ("edges" if len(edges) > MAX_EDGES else None)
    return Walked([(node, reached.depths[node.node_id]) for node in found], links, names, cut)


async def search_nodes(
    tx: Transaction,
    graph_name: str | None,
    question: Question,
    only: RecallFilter,
    *,
    limit: int,
    as_of: str | None = None,
    cached: Lookup | None = None,
) -> Ranked:
    """Nodes by the best of their memories that answer a question, each with its score.

    `as_of`: in the graph as it was. `cached`: as recall takes it.
    """
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return Ranked([], more=False, waiting=0)
    at = await graphs.moment(tx, graph, as_of)
    recalled = await recall.recall(
        tx, graph_name, [question], only, limit=recall.MAX_RECALLED, token_budget=UNBOUNDED, as_of=as_of, cached=cached
    )
    hits = unique_by(lambda hit: hit.node_id, recalled.hits)
    found = await lineages.get_nodes(tx, graph, [hit.node_id for hit in hits[:limit]], at=at)
    scores = {hit.node_id: hit.score for hit in hits}
    return Ranked(
        [(node, scores[node.node_id]) for node in found],
        more=len(hits) > limit or recalled.more,
        waiting=recalled.waiting,
    )


async def search_batch(
    tx: Transaction, graph_name: str | None, searches: Sequence[NodeSearch], *, limit: int, as_of: str | None = None
) -> Fusion:
    """Nodes that answer any of several questions, by reciprocal-rank fusion, best first; each once.

    `as_of`: of the graph as it was.
    """
    asked = [
        await recall.recall(
            tx, graph_name, [one.question], one.only, limit=recall.MAX_RECALLED, token_budget=UNBOUNDED, as_of=as_of
        )
        for one in searches
    ]
    rankings = [
        unique(hit.node_id for hit in recalled.hits)[: one.limit] for one, recalled in zip(searches, asked, strict=True)
    ]
    fused = {found.key: found for found in fuse(rankings)}
    graph = await graphs.open_graph(tx, graph_name)
    at = await graphs.moment(tx, graph, as_of) if graph else None
    nodes_found = await lineages.get_nodes(tx, graph, list(fused)[:limit], at=at) if graph else []
    return Fusion(
        [(node, fused[node.node_id]) for node in nodes_found],
        unique=len(fused),
        per_query=[len(ranking) for ranking in rankings],
        waiting=max(recalled.waiting for recalled in asked),
    )


async def symlinks_of(tx: Transaction, graph_name: str | None, *, offset: int, limit: int) -> Edges:
    """The edges of a graph that lead into others which the caller may use, oldest first."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return Edges([], more=False)
    found = await relations.list_symlinks(tx, graph, offset=offset, limit=limit + 1)
    allowed = [link for link in found[:limit] if tx.caller.may_use_graph(link.to_graph)]
    return Edges(await _links(tx, allowed, await _names(tx, graph, allowed), None), more=len(found) > limit)


async def _put_all(tx: Transaction, revision: Revision, specs: Sequence[NodeSpec]) -> list[Put | RecollectError]:
    """The outcome of each spec; one whose ref another spec has taken is not written."""
    refs: dict[str | None, int] = {}
    repeated = {place for place, spec in enumerate(specs) if refs.setdefault(spec.ref, place) != place and spec.ref}
    drafts = [spec.draft for place, spec in enumerate(specs) if place not in repeated]
    written = iter(await lineages.put_nodes(tx, revision, drafts))
    return [
        InvalidInput(f"This call has another node with the ref {spec.ref!r}", path="ref")
        if place in repeated
        else next(written)
        for place, spec in enumerate(specs)
    ]


def _resolved(
    tx: Transaction, graph: Graph, edge: EdgeSpec, refs: Mapping[str, UUID], homes: Mapping[str, UUID]
) -> NewEdge | RecollectError:
    try:
        source = _end("from", edge.source, refs)
        target = _end("to", edge.target, refs)
        to_graph = graph.id if edge.to_graph is None else _home(tx, edge.to_graph, homes)
    except RecollectError as error:
        return error
    return NewEdge(source, target, edge.type, to_graph, edge.metadata, edge.ordinal, edge.actor)


def _end(side: str, target: Target, refs: Mapping[str, UUID]) -> UUID:
    """The node that an end of an edge names, by a ref (the target's name) or by id."""
    if (target.id is None) == (target.name is None):
        raise InvalidInput(f"Give {side}_ref or {side}_lineage, one of them", path=f"{side}_ref")
    if target.id is not None:
        return target.id
    assert target.name is not None
    if target.name not in refs:
        raise InvalidInput(f"No node of this call that was written has the ref {target.name!r}", path=f"{side}_ref")
    return refs[target.name]


def _home(tx: Transaction, name: str, homes: Mapping[str, UUID]) -> UUID:
    if name in homes:
        return homes[name]
    if tx.caller.graphs is not None:
        raise Forbidden("This credential does not reach that graph.", code=ErrorCode.GRAPH_NOT_ALLOWED, path="to_graph")
    raise NotFound(f"There is no graph named {name!r}.", code=ErrorCode.GRAPH_NOT_FOUND, path="to_graph")


async def _at(tx: Transaction, graph_name: str | None, node_id: UUID, as_of: str | None) -> tuple[Graph, Moment | None]:
    """The graph and the moment to read, in which the node lives; raises NotFound."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        raise not_found(node_id)
    at = await graphs.moment(tx, graph, as_of)
    if not await lineages.get_nodes(tx, graph, [node_id], at=at):
        raise not_found(node_id)
    return graph, at


async def _names(tx: Transaction, graph: Graph, edges: Sequence[Edge]) -> dict[UUID, str]:
    """The names of the graphs that edges start and end in, of those that are there and that the caller may use."""
    names = {graph.id: graph.name}
    if any(edge.is_symlink or edge.graph_id != graph.id for edge in edges):
        names |= {other.id: other.name for other in await graphs.list_graphs(tx, limit=graphs.MAX_GRAPHS)}
    return names


async def _links(tx: Transaction, edges: Sequence[Edge], names: Mapping[UUID, str], at: Moment | None) -> list[Link]:
    """Edges with the names of their graphs and whether their target is gone (not told of the past)."""
    homes = await nodes.find_homes(tx, [edge.to_node for edge in edges]) if edges and at is None else {}
    return [
        Link(
            edge,
            names.get(edge.graph_id),
            names.get(edge.to_graph),
            dangling=at is None and homes.get(edge.to_node) != edge.to_graph,
        )
        for edge in edges
    ]
