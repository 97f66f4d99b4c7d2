"""Use cases of proposals: list and count the pairs that passes found similar, merge one, or dismiss it for good."""

from datetime import UTC, datetime
from uuid import UUID

from recollect.caller import Scope
from recollect.curation.dismissals import service as dismissals
from recollect.curation.duplicates import store
from recollect.curation.duplicates.model import Proposal
from recollect.curation.duplicates.similarity import SimilarPair
from recollect.curation.merging.model import MergedEntity
from recollect.curation.merging.service import merge_nodes
from recollect.errors import NotFound
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import service as nodes
from recollect.postgres.transactions import Transaction

MAX_COUNTED, MAX_SEARCHED = 100, 1_000
"""Proposals that are counted, at most, and stored ones among which they are sought: some may be of entities that
were deleted."""


async def list_proposals(view: GraphView, *, offset: int, limit: int) -> list[Proposal]:
    """Pairs that the last passes proposed and whose entities are still there, the most similar first.

    Only the present has proposals.
    """
    if view.at is not None or not view.is_there:
        return []
    return await store.list_duplicates(view.tx, view.graph, least=0.0, offset=offset, limit=limit)


async def count_proposals(tx: Transaction, graph_id: UUID) -> int:
    """The number of a graph's proposals, counted up to MAX_COUNTED among the first MAX_SEARCHED that are stored."""
    return await store.count_duplicates(tx, graph_id, searched=MAX_SEARCHED, limit=MAX_COUNTED)


async def dismiss_pair(tx: Transaction, graph_name: str, node_id: UUID, other_id: UUID) -> None:
    """Record that two entities are different: they are neither proposed nor merged as duplicates.

    It applies to all users, whatever changes, until it is undone. Raises NotFound, Forbidden, and Conflict
    where too many pairs are dismissed.
    """
    tx.caller.require(Scope.MEMORY_WRITE)
    graph, pair = await graphs.get_graph(tx, graph_name), dismissals.pair_of(node_id, other_id)
    await dismissals.dismiss(tx, graph, pair, likeness=await store.remove_duplicate(tx, graph, pair))


async def take_back_dismissal(tx: Transaction, graph_name: str, node_id: UUID, other_id: UUID) -> None:
    """Take back that two entities are different: they are proposed again, if they were. Raises NotFound, Forbidden."""
    tx.caller.require(Scope.MEMORY_WRITE)
    graph, pair = await graphs.get_graph(tx, graph_name), dismissals.pair_of(node_id, other_id)
    likeness = await dismissals.take_back(tx, graph, pair)
    if likeness is not None:
        await store.insert_duplicates(tx, graph, [SimilarPair(*pair, likeness)], datetime.now(UTC))


async def merge_pair(tx: Transaction, revision: Revision, kept: UUID, other: UUID) -> MergedEntity:
    """Merge an entity into another one, which stays. Raises NotFound where either is not there, or is no entity."""
    heads = await nodes.read_heads(tx, revision.graph, [kept, other])
    for node_id in (kept, other):
        if node_id not in heads or heads[node_id].name is None or heads[node_id].placeholder or kept == other:
            raise NotFound("There is no such entity any more.", path="id")
    return await merge_nodes(tx, revision, kept, [other])
