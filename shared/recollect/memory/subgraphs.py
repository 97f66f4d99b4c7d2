"""Use cases of lineages with their edges: write a whole subgraph, connect, walk, and see what lies at a node."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from recollect.errors import ErrorCode, Forbidden, InvalidInput, NotFound, RecollectError
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import PutOutcome
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import unique, unique_by
from recollect.graph.passages import service as passages
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import Edge, EdgeUpsert, NewEdge, Walk
from recollect.graph.traversal import service as traversal
from recollect.memory.facts import require_nodes
from recollect.memory.model import (
    UNBOUNDED,
    EdgePage,
    EdgeSpec,
    Fusion,
    NamedEdge,
    NodeHit,
    NodeSearch,
    NodeSpec,
    RankedNodes,
    Target,
    WalkedSubgraph,
    WrittenSubgraph,
)
from recollect.platform.db import Transaction
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.cache import Lookup
from recollect.retrieval.recall.model import Question, RecallFilter
from recollect.retrieval.recall.ranking import MIN_BEST_COVERAGE, WEIGHTS
from recollect.retrieval.search import service as search
from recollect.retrieval.search.fusion import fuse
from recollect.retrieval.search.model import LabelQuery

MAX_EDGES = 1_000
"""Edges in one answer at most."""

LABEL_SCORE = sum(WEIGHTS[term] for term in ("own", "near", "far", "coverage", "about")) / sum(WEIGHTS.values())
"""The score of a summary or tags that hold every word of a question: as recall counts words and whom they are about."""


async def put_subgraph(
    tx: Transaction, revision: Revision, specs: Sequence[NodeSpec], edges: Sequence[EdgeSpec]
) -> WrittenSubgraph:
    """Write nodes and the edges among them, best effort: for each, in order, what became of it or why nothing did.

    An edge names each end by the ref of a node of this call or by a lineage. What a failed ref names fails as well.
    """
    puts = await _put_all(tx, revision, specs)
    refs = {
        spec.ref: put.node_id
        for spec, put in zip(specs, puts, strict=True)
        if spec.ref is not None and isinstance(put, PutOutcome)
    }
    return WrittenSubgraph(puts, await connect(tx, revision, edges, refs))


async def connect(
    tx: Transaction, revision: Revision, edges: Sequence[EdgeSpec], refs: Mapping[str, UUID] | None = None
) -> list[EdgeUpsert | RecollectError]:
    """Upsert edges, best effort, between lineages and what `refs` stand for; into other graphs by their names."""
    homes = await graphs.find_graph_ids(tx, unique(edge.to_graph for edge in edges if edge.to_graph is not None))
    steps = [_resolved(tx, revision.graph, edge, refs or {}, homes) for edge in edges]
    upserted = iter(await relations.connect(tx, revision, [step for step in steps if isinstance(step, NewEdge)]))
    return [next(upserted) if isinstance(step, NewEdge) else step for step in steps]


async def put_edge(tx: Transaction, revision: Revision, edge: EdgeSpec) -> EdgeUpsert:
    """Make one edge, or give the one that is there other properties; raises what `connect` would answer."""
    (outcome,) = await connect(tx, revision, [edge])
    if isinstance(outcome, RecollectError):
        raise outcome
    return outcome


async def edges_at(view: GraphView, node_id: UUID, walk: Walk, *, offset: int = 0, limit: int) -> EdgePage:
    """A page of the edges at a node, by ordinal and age, with those of other graphs that the caller may use.

    The past (`as_of`) knows the edges of the node's own graph only. Raises NotFound for the node.
    """
    await require_nodes(view, [node_id])
    allowed = None if view.tx.caller.graphs is None else list(view.tx.caller.graphs)
    found = await relations.edges_of(view, [node_id], walk, within=allowed, offset=offset, limit=limit + 1)
    links = await _links(view, found[:limit], await _names(view, found))
    return EdgePage(links, more=len(found) > limit)


async def walk_from(view: GraphView, start: UUID, walk: Walk, *, depth: int, max_nodes: int) -> WalkedSubgraph:
    """What lies within `depth` edges of a node, nearest first. Raises NotFound for it.

    Symlinks lead into other graphs, each with revisions of its own: InvalidInput for following them in the past.
    """
    if walk.symlinks and view.at is not None:
        raise InvalidInput("The past is read one graph at a time: leave follow_symlinks or as_of", path="as_of")
    await require_nodes(view, [start])
    reached = await traversal.neighbourhood(view, [start], walk, depth=depth, max_nodes=max_nodes)
    edges = sorted(reached.edges.values(), key=lambda edge: edge.id)
    names = await _names(view, edges)
    if view.at is None:
        found = await lineages.get_nodes_across(view.tx, list(names), list(reached.depths))
    else:
        found = await lineages.get_nodes(view, list(reached.depths))
    links = await _links(view, edges[:MAX_EDGES], names)
    cut = reached.cut or ("edges" if len(edges) > MAX_EDGES else None)
    return WalkedSubgraph([(node, reached.depths[node.node_id]) for node in found], links, names, cut)


async def search_nodes(
    view: GraphView,
    question: Question,
    only: RecallFilter,
    *,
    offset: int = 0,
    limit: int,
    cached: Lookup | None = None,
) -> RankedNodes:
    """A page of the nodes that answer a question, by the best of their texts, each with its score and that text.

    Sibling heads are found one by one.

    Every page is cut from one ranking of bounded length: what the graph holds decides it, so that pages of one revision
    do not overlap. `cached`: as recall takes it.
    """
    hits, waiting = await _ranked(view, question, only, cached=cached)
    page = {hit.version_ref: hit for hit in hits[offset : offset + limit]}
    found = await lineages.get_found(view, list(page))
    return RankedNodes(
        [(node, page[told].score, page[told].text) for told, node in found.items()],
        more=len(hits) > offset + limit,
        waiting=waiting,
    )


async def search_batch(view: GraphView, searches: Sequence[NodeSearch], *, limit: int) -> Fusion:
    """Nodes that answer any of several questions, best by reciprocal-rank fusion first; each, or sibling head, once."""
    asked = [await _ranked(view, one.question, one.only) for one in searches]
    rankings = [[hit.version_ref for hit in hits[: one.limit]] for one, (hits, _) in zip(searches, asked, strict=True)]
    fused = {found.key: found for found in fuse(rankings)}
    found = await lineages.get_found(view, list(fused)[:limit])
    return Fusion(
        [(node, fused[told]) for told, node in found.items()],
        unique=len(fused),
        per_query=[len(ranking) for ranking in rankings],
        waiting=max(waiting for _, waiting in asked),
    )


async def symlinks_of(view: GraphView, *, inbound: bool = False, offset: int, limit: int) -> EdgePage:
    """The edges of a graph into others which the caller may use (`inbound`: from those into it), oldest first."""
    found = await relations.list_symlinks(view.tx, view.graph, inbound=inbound, offset=offset, limit=limit + 1)
    return EdgePage(await _links(view, found[:limit], await _names(view, found)), more=len(found) > limit)


async def _ranked(
    view: GraphView, question: Question, only: RecallFilter, *, cached: Lookup | None = None
) -> tuple[list[NodeHit], int]:
    """Nodes by their best text, best first, and how many passages wait: what recall finds, summaries and tags.

    Summaries and tags are no memories: they are matched by their words alone.
    """
    recalled = await recall.recall(
        view, [question], only, limit=recall.MAX_RECALLED, token_budget=UNBOUNDED, cached=cached
    )
    (words,) = await passages.count_terms(view.tx, view.graph.id, [question.text])
    labels = LabelQuery(tuple(words), MIN_BEST_COVERAGE, only.kinds, only.tags, only.fresh_only, recall.MAX_RECALLED)
    labelled = await search.match_labels(view, labels)
    hits = [
        *(NodeHit(hit.version_ref, hit.score, hit.text) for hit in recalled.hits),
        *(NodeHit((one.node_id, None), one.share * LABEL_SCORE, one.text) for one in labelled),
    ]
    best = sorted(hits, key=lambda hit: -hit.score)
    return unique_by(lambda hit: hit.version_ref, best), recalled.waiting


async def _put_all(tx: Transaction, revision: Revision, specs: Sequence[NodeSpec]) -> list[PutOutcome | RecollectError]:
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


async def _names(view: GraphView, edges: Sequence[Edge]) -> dict[UUID, str]:
    """The names of the graphs that edges start and end in, of those that are there and that the caller may use."""
    names = {view.graph.id: view.graph.name}
    if any(edge.is_symlink or edge.graph_id != view.graph.id for edge in edges):
        names |= {other.id: other.name for other in await graphs.list_graphs(view.tx, limit=graphs.MAX_GRAPHS)}
    return names


async def _links(view: GraphView, edges: Sequence[Edge], names: Mapping[UUID, str]) -> list[NamedEdge]:
    """Edges with the names of their graphs and whether their target is gone (not told of the past)."""
    is_now = view.at is None
    homes = await nodes.find_homes(view.tx, [edge.to_node for edge in edges]) if edges and is_now else {}
    return [
        NamedEdge(
            edge,
            names.get(edge.graph_id),
            names.get(edge.to_graph),
            dangling=is_now and homes.get(edge.to_node) != edge.to_graph,
        )
        for edge in edges
    ]
