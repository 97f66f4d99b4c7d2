"""Use cases of finding nodes: those that answer a question, and facts that mean nearly the same as a node."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Version
from recollect.graph.nodes.model import unique
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import Edge, Walk
from recollect.memory.facts import require_nodes
from recollect.memory.model import UNBOUNDED
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.cache import Lookup
from recollect.retrieval.recall.model import Question, RecallFilter
from recollect.retrieval.recall.ranking import Hit
from recollect.retrieval.search import service as search

MAX_SIMILAR_EDGES = 1_000
"""Relations told beside similar facts, at most."""


@dataclass(frozen=True, slots=True)
class NodeMatch:
    """A node that a search found; `similarity` is a cosine, 1 where the question names it.

    `matches`: the observations, and the contents of sibling heads, that answer.
    """

    node: Version
    score: float
    similarity: float
    matches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SimilarFact:
    """A fact that means nearly the same as a node: the cosine, and the relations at it."""

    node: Version
    score: float
    edges: tuple[Edge, ...]


async def find(
    view: GraphView,
    question: Question,
    only: RecallFilter,
    *,
    limit: int,
    threshold: float | None,
    cached: Lookup | None = None,
) -> list[NodeMatch]:
    """Nodes that answer a question, best first: entities that it names, and what recall finds, by node.

    `threshold` is the least similarity, a cosine; what is not embedded yet has none. `as_of`: in the graph as it was,
    where an entity is named by the names that it has now. `cached`: recall's.
    """
    named = [] if only.named is False else await search.find_mentioned(view.tx, view.graph, question.text)
    recalled = await recall.recall(
        view, [question], only, limit=recall.MAX_RECALLED, token_budget=UNBOUNDED, cached=cached
    )
    hits = _by_node(recalled.hits)
    ranked = unique([*named, *hits])
    found = [
        _found(node, hits.get(node.node_id, []), node.node_id in named)
        for node in await lineages.get_nodes(view, ranked)
        if _has_status(node, only)
    ]
    return [one for one in found if threshold is None or one.similarity >= threshold][:limit]


async def find_similar(
    view: GraphView, node_id: UUID, *, threshold: float, limit: int, edges: bool
) -> list[SimilarFact]:
    """Active facts that mean nearly the same as a node, nearest first; raises NotFound.

    As far as both are embedded.
    """
    await require_nodes(view, [node_id])
    scores = dict(await recall.find_similar(view, node_id, min_score=threshold, limit=limit))
    found = await lineages.get_nodes(view, list(scores))
    near: list[Edge] = []
    if edges and found:
        near = await relations.edges_of(view, list(scores), Walk(), within=[view.graph.id], limit=MAX_SIMILAR_EDGES)
    return [
        SimilarFact(n, scores[n.node_id], tuple(e for e in near if n.node_id in (e.from_node, e.to_node)))
        for n in found
    ]


def _by_node(hits: Sequence[Hit]) -> dict[UUID, list[Hit]]:
    """Hits by their node, best node first."""
    grouped: dict[UUID, list[Hit]] = {}
    for hit in hits:
        grouped.setdefault(hit.node_id, []).append(hit)
    return grouped


def _found(node: Version, hits: Sequence[Hit], named: bool) -> NodeMatch:
    return NodeMatch(
        node,
        score=1.0 if named else max(hit.score for hit in hits),
        similarity=1.0 if named else max(hit.meaning for hit in hits),
        matches=tuple(hit.text for hit in hits if hit.key != (node.node_id, None)),
    )


def _has_status(node: Version, only: RecallFilter) -> bool:
    """Whether a node has the status that is asked for: entities that a question names were not filtered by it."""
    if only.status is not None:
        return node.status == only.status
    return node.status == "active" or (node.status == "outdated" and only.include_outdated)
