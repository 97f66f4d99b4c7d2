"""Use cases of searching nodes: by one question, by several, and by similarity to a node."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.fairness.computing import interleave
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Version
from recollect.graph.nodes.model import unique, unique_by
from recollect.graph.passage_words import service as passage_words
from recollect.graph.relations import service as relations
from recollect.graph.relations import subgraphs
from recollect.graph.relations.model import Edge, Walk
from recollect.memory.model import (
    UNBOUNDED,
    Fusion,
    NodeHit,
    NodeSearch,
    RankedNodes,
)
from recollect.memory.reading import require_nodes
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.cache import Lookup
from recollect.retrieval.recall.model import Question, RecallFilter
from recollect.retrieval.recall.ranking import Hit
from recollect.retrieval.recall.ranking_weights import WEIGHTS_WITHOUT_TOKENS
from recollect.retrieval.recall.terms import counted_words, label_words
from recollect.retrieval.search import service as search
from recollect.retrieval.search.fusion import fuse
from recollect.retrieval.search.model import LabelQuery
from recollect.retrieval.similarity import service as similarity
from recollect.text.unicode_forms import plainly
from recollect.words.analysis import asked_words

MAX_SIMILAR_EDGES = 1_000
"""The maximum number of relations returned with similar facts."""

MIN_LABEL_COVERAGE = 0.4
"""Share of the question's words that the labels of a node must have."""

_WORD_TERMS = ("own", "near", "far", "coverage", "about")
LABEL_SCORE = sum(WEIGHTS_WITHOUT_TOKENS[term] for term in _WORD_TERMS) / sum(WEIGHTS_WITHOUT_TOKENS.values())
"""The score of a summary or of tags that have every word of a question: the share of words in recall's weights."""


@dataclass(frozen=True, slots=True)
class NodeMatch:
    """A node that a search found; `similarity` is a cosine, 1 where the question names it.

    `matches`: the observations, and the contents of sibling heads, that match.
    """

    node: Version
    score: float
    similarity: float
    matches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SimilarFact:
    """A fact that means nearly the same as a node: the cosine of the two, and the fact's relations."""

    node: Version
    score: float
    edges: tuple[Edge, ...]


async def find(
    view: GraphView,
    question: Question,
    filters: RecallFilter,
    *,
    limit: int,
    threshold: float | None,
    cached: Lookup | None = None,
) -> list[NodeMatch]:
    """Nodes that match a question, best first: the entities that it names, and what recall finds, grouped by node.

    `threshold` is the least similarity, a cosine; what is not embedded yet has none. In a view of the past an
    entity is found by the names that it has now. `cached`: as for recall.
    """
    named = [] if filters.named is False else await search.find_mentioned(view.tx, view.graph, question.asking_part)
    recalled = await recall.recall(
        view, [question], filters, limit=recall.MAX_RECALLED, token_budget=UNBOUNDED, cached=cached
    )
    hits = _by_node(recalled.hits)
    ranked = unique([*named, *hits])
    matches = [
        _node_match(node, hits.get(node.node_id, []), node.node_id in named)
        for node in await lineages.get_nodes(view, ranked)
        if _has_status(node, filters) and (node.node_id in hits or _has_kind_and_tag(node, filters))
    ]
    return [match for match in matches if threshold is None or match.similarity >= threshold][:limit]


async def find_similar(
    view: GraphView, node_id: UUID, *, threshold: float, limit: int, edges: bool
) -> list[SimilarFact]:
    """Active facts that mean nearly the same as a node, nearest first; raises NotFound.

    Only embedded facts are found, and none where the node is not embedded.
    """
    await require_nodes(view, [node_id])
    scores = dict(await similarity.find_similar(view, node_id, min_score=threshold, limit=limit))
    found = await lineages.get_nodes(view, list(scores))
    own_edges: list[Edge] = []
    if edges and found:
        own_edges = await relations.edges_of(
            view, list(scores), Walk(), within=[view.graph.id], limit=MAX_SIMILAR_EDGES
        )
        ends = {edge.id: sum(end in scores for end in (edge.from_node, edge.to_node)) for edge in own_edges}
        own_edges = await subgraphs.edges_within_reply(view, own_edges, ends)
    return [
        SimilarFact(n, scores[n.node_id], tuple(e for e in own_edges if n.node_id in (e.from_node, e.to_node)))
        for n in found
    ]


async def search_nodes(
    view: GraphView,
    question: Question,
    filters: RecallFilter,
    *,
    offset: int = 0,
    limit: int,
    cached: Lookup | None = None,
) -> RankedNodes:
    """A page of the nodes that match a question, ranked by the best of their texts, each with its score and that text.

    Each sibling head is a result of its own.

    Every page is cut from one ranking of bounded length, which depends on the graph alone, so that pages of one
    revision do not overlap. `cached`: as for recall.
    """
    hits, waiting = await _ranked(view, question, filters, cached=cached)
    page = {hit.version_ref: hit for hit in hits[offset : offset + limit]}
    found = await lineages.get_found(view, list(page))
    return RankedNodes(
        [(node, page[ref].score, page[ref].text) for ref, node in found.items()],
        more=len(hits) > offset + limit,
        waiting=waiting,
    )


async def search_batch(view: GraphView, searches: Sequence[NodeSearch], *, offset: int = 0, limit: int) -> Fusion:
    """A page of the nodes that match any of several questions, ordered by reciprocal-rank fusion, best first.

    Each node, or sibling head, is returned once.
    """
    results = [await _ranked(view, query.question, query.filters) for query in searches]
    rankings = [
        [hit.version_ref for hit in hits[: query.limit]] for query, (hits, _) in zip(searches, results, strict=True)
    ]
    fused = {entry.key: entry for entry in fuse(rankings)}
    found = await lineages.get_found(view, list(fused)[offset : offset + limit])
    return Fusion(
        [(node, fused[ref]) for ref, node in found.items()],
        unique=len(fused),
        per_query=[len(ranking) for ranking in rankings],
        waiting=max(waiting for _, waiting in results),
    )


def _by_node(hits: Sequence[Hit]) -> dict[UUID, list[Hit]]:
    """Hits by their node, best node first."""
    grouped: dict[UUID, list[Hit]] = {}
    for hit in hits:
        grouped.setdefault(hit.node_id, []).append(hit)
    return grouped


def _node_match(node: Version, hits: Sequence[Hit], is_named: bool) -> NodeMatch:
    return NodeMatch(
        node,
        score=1.0 if is_named else max(hit.score for hit in hits),
        similarity=1.0 if is_named else max(hit.meaning for hit in hits),
        matches=tuple(hit.text for hit in hits if hit.key != (node.node_id, None)),
    )


def _has_status(node: Version, filters: RecallFilter) -> bool:
    """Whether a node has the status of the filter: the search for named entities does not filter by status."""
    if filters.status is not None:
        return node.status == filters.status
    return node.status == "active" or (node.status == "outdated" and filters.include_outdated)


def _has_kind_and_tag(node: Version, filters: RecallFilter) -> bool:
    """Whether a node has a kind and a tag of the filter: recall filters its hits, but not the named entities."""
    tags = set(map(plainly, node.tags))
    kinds = {kind.casefold() for kind in filters.kinds}
    return (not kinds or (node.kind or "").casefold() in kinds) and (
        not filters.tags or any(plainly(tag) in tags for tag in filters.tags)
    )


async def _ranked(
    view: GraphView, question: Question, filters: RecallFilter, *, cached: Lookup | None = None
) -> tuple[list[NodeHit], int]:
    """Nodes by their best text, best first, and how many passages are not embedded yet.

    The texts are what recall finds, summaries and tags. Summaries and tags are no memories: they match by words alone.
    """
    labels = await _label_query(view, question, filters)
    recalled = await recall.recall(
        view, [question], filters, limit=recall.MAX_RECALLED, token_budget=UNBOUNDED, cached=cached
    )
    labelled = await search.match_labels(view, labels)
    hits = [
        *(NodeHit(hit.version_ref, hit.score, hit.text) for hit in recalled.hits),
        *(NodeHit((label.node_id, None), label.share * LABEL_SCORE, label.text) for label in labelled),
    ]
    best = sorted(hits, key=lambda hit: -hit.score)
    return unique_by(lambda hit: hit.version_ref, best), recalled.waiting


async def _label_query(view: GraphView, question: Question, filters: RecallFilter) -> LabelQuery:
    asked = await interleave(asked_words(question.asking_part))
    counts = await passage_words.count_words(view.tx, view.graph.id, asked)
    words, optional = label_words(counted_words(asked, counts))
    return LabelQuery(
        tuple(words),
        MIN_LABEL_COVERAGE,
        optional,
        filters.kinds,
        filters.tags,
        filters.fresh_only,
        recall.MAX_RECALLED,
    )
