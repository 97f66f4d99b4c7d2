"""Use cases of search."""

from collections.abc import Sequence
from uuid import UUID

from recollect.graphs import service as graphs
from recollect.graphs.model import Graph
from recollect.nodes import service as nodes
from recollect.passages import service as passages
from recollect.platform.db import Transaction
from recollect.relations import service as relations
from recollect.relations.model import Subgraph
from recollect.search import store
from recollect.search.model import (
    Close,
    Question,
    Recalled,
    RecallFilter,
    SubstringQuery,
    fuse,
    phrases,
    within_budget,
)

MAX_RECALLED = 100
"""Hits of one recall at most."""

MAX_MENTIONED = 100
"""Entities that are recognised in one text, at most."""


async def search_nodes(
    tx: Transaction, graph_name: str | None, query: SubstringQuery, *, as_of: str | None = None
) -> Subgraph:
    """Entities (`as_of`: as they were) that hold a substring, best first, with every relation that touches them."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return Subgraph([], [])
    at = await graphs.moment(tx, graph, as_of)
    found = await store.search_substring(tx, graph, query, at)
    entities = await nodes.entities_by_id(tx, found[: query.limit], graph=graph, at=at)
    next_offset = query.offset + query.limit if len(found) > query.limit else None
    return await relations.subgraph_of(tx, graph, entities, next_offset=next_offset, at=at)


async def recall(
    tx: Transaction,
    graph_name: str | None,
    questions: Sequence[Question],
    only: RecallFilter,
    *,
    limit: int,
    token_budget: int,
) -> Recalled:
    """Memories that answer the questions, best first, as many as fit `limit` and `token_budget` (tokens)."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return Recalled([], more=False, waiting=0)
    rankings = [await store.recall(tx, graph, question, only, limit=MAX_RECALLED) for question in questions]
    hits = rankings[0] if len(rankings) == 1 else fuse(rankings)
    kept = within_budget(hits, limit=limit, token_budget=token_budget)
    return Recalled(kept, more=len(hits) > len(kept), waiting=await passages.count_waiting(tx, graph.id))


async def find_close(
    tx: Transaction, graph: Graph, questions: Sequence[Question], node_ids: Sequence[UUID | None]
) -> list[list[Close]]:
    """For each new text, older memories that say nearly the same, nearest first."""
    return await store.find_close(tx, graph, questions, node_ids)


async def find_mentioned(tx: Transaction, graph: Graph, text: str) -> list[UUID]:
    """Entities whose name, or a name that they had before a merge, stands in a text; oldest first."""
    return await store.find_mentioned(tx, graph, phrases(text), limit=MAX_MENTIONED)


async def find_similar(
    tx: Transaction, graph: Graph, node_id: UUID, *, min_score: float, limit: int
) -> list[tuple[UUID, float]]:
    """Active facts that mean nearly the same as a node, with their cosines, nearest first.

    What is not embedded yet is left out.
    """
    return await store.find_similar(tx, graph, node_id, min_score=min_score, limit=limit)


async def vectors_ready(tx: Transaction) -> bool:
    """Whether the database can compare vectors."""
    return await store.vectors_ready(tx)
