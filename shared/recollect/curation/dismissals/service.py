"""Use cases of dismissals: say that two entities are different, list who said so of which, and take it back."""

from collections.abc import Sequence
from uuid import UUID

from recollect.curation.dismissals import store
from recollect.curation.dismissals.model import MAX_DISMISSALS, Dismissal, Dismissed, Pair
from recollect.errors import Conflict, NotFound
from recollect.graph.graphs.model import Graph
from recollect.graph.graphs.view import GraphView
from recollect.postgres.transactions import Transaction


def pair_of(node_id: UUID, other_id: UUID) -> Pair:
    """The pair of two entities, whichever is named first."""
    return (node_id, other_id) if node_id < other_id else (other_id, node_id)


async def dismiss(tx: Transaction, graph: Graph, pair: Pair, *, likeness: float | None) -> None:
    """Record that two entities are different; to dismiss a pair again changes nothing.

    `likeness`: that of the proposal that this ends. Raises NotFound where an entity is not there, Conflict where
    MAX_DISMISSALS pairs are dismissed.
    """
    count = await store.lock_dismissals(tx, graph)
    if await store.is_dismissed(tx, graph, pair):
        return
    if count >= MAX_DISMISSALS:
        raise Conflict(f"{MAX_DISMISSALS:,} pairs of this graph are dismissed: take one back first")
    if not await store.insert_dismissal(tx, graph, pair, likeness=likeness, by=tx.caller.subject):
        raise NotFound("There is no such entity any more.", path="id")


async def dismiss_all(tx: Transaction, graph: Graph, pairs: Sequence[Pair]) -> list[Pair]:
    """Record that the entities of each pair are different; return the pairs for which there is no room."""
    count, dismissed = await store.lock_dismissals(tx, graph), await store.list_dismissed_pairs(tx, graph)
    new = [(node, other) for node, other in pairs if other not in dismissed.get(node, ())]
    room = max(MAX_DISMISSALS - count, 0)
    await store.insert_dismissals(tx, graph, new[:room], by=tx.caller.subject)
    return new[room:]


async def take_back(tx: Transaction, graph: Graph, pair: Pair) -> float | None:
    """Take back that two entities are different; return the likeness of the former proposal. Raises NotFound."""
    was_dismissed, likeness = await store.delete_dismissal(tx, graph, pair)
    if not was_dismissed:
        raise NotFound("They are not dismissed any more.", path="id")
    return likeness


async def list_dismissals(view: GraphView, *, offset: int, limit: int) -> list[Dismissal]:
    """Dismissed pairs of a graph, the latest first. Only the present has them."""
    if view.at is not None or not view.is_there:
        return []
    return await store.list_dismissals(view.tx, view.graph, offset=offset, limit=limit)


async def list_dismissed(tx: Transaction, graph: Graph) -> Dismissed:
    """All dismissed pairs of a graph, by each of their entities."""
    return await store.list_dismissed_pairs(tx, graph)


async def inherit(tx: Transaction, graph: Graph, survivor: UUID, merged: Sequence[UUID]) -> None:
    """Have an entity be different from all that those are different from which are merged into it."""
    dismissed = await store.list_dismissed_pairs(tx, graph)
    if any(node in dismissed for node in merged):
        room = MAX_DISMISSALS - await store.lock_dismissals(tx, graph)
        await store.inherit_dismissals(tx, graph, survivor, merged, limit=max(room, 0))
