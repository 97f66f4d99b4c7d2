"""One function per query of `queries.sql`."""

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

from recollect.curation.dismissals.model import Dismissal, Dismissed, Pair
from recollect.graph.graphs.model import Graph
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction

queries = Queries(__package__)


async def lock_dismissals(tx: Transaction, graph: Graph) -> int:
    """Let no other transaction dismiss pairs of a graph until this one ends; return how many are dismissed."""
    return await tx.fetchval(queries.lock_dismissals, graph_id=graph.id)


async def insert_dismissal(tx: Transaction, graph: Graph, pair: Pair, *, likeness: float | None, by: str) -> bool:
    """Record that two entities are different; return whether it is new, False where one of them is not there."""
    inserted = await tx.fetchval(
        queries.insert_dismissal,
        graph_id=graph.id,
        node_id=pair[0],
        other_id=pair[1],
        likeness=likeness,
        dismissed_by=by,
    )
    return inserted is not None


async def insert_dismissals(tx: Transaction, graph: Graph, pairs: Sequence[Pair], *, by: str) -> None:
    """Record that the entities of each pair are different. They are live entities of the graph."""
    await tx.execute(
        queries.insert_dismissals,
        graph_id=graph.id,
        node_ids=[node_id for node_id, _ in pairs],
        other_ids=[other_id for _, other_id in pairs],
        dismissed_by=by,
    )


async def is_dismissed(tx: Transaction, graph: Graph, pair: Pair) -> bool:
    """Whether a pair is dismissed."""
    found = await tx.fetchval(queries.find_dismissal, graph_id=graph.id, node_id=pair[0], other_id=pair[1])
    return found is not None


async def delete_dismissal(tx: Transaction, graph: Graph, pair: Pair) -> tuple[bool, float | None]:
    """Delete the dismissal of a pair; return whether there was one, and how similar the proposal was."""
    row = await tx.fetchrow(queries.delete_dismissal, graph_id=graph.id, node_id=pair[0], other_id=pair[1])
    return row is not None, row["likeness"] if row else None


async def list_dismissed_pairs(tx: Transaction, graph: Graph) -> Dismissed:
    """All dismissed pairs of a graph: for each entity of one, those from which it is different."""
    dismissed = defaultdict[UUID, set[UUID]](set)
    for row in await tx.fetch(queries.list_dismissed_pairs, graph_id=graph.id):
        dismissed[row["node_id"]].add(row["other_id"])
        dismissed[row["other_id"]].add(row["node_id"])
    return dict(dismissed)


async def list_dismissals(tx: Transaction, graph: Graph, *, offset: int, limit: int) -> list[Dismissal]:
    """Dismissed pairs, the latest first."""
    return await tx.fetch_objects(queries.list_dismissals, Dismissal, graph_id=graph.id, offset=offset, limit=limit)


async def inherit_dismissals(
    tx: Transaction, graph: Graph, survivor: UUID, merged: Sequence[UUID], *, limit: int
) -> None:
    """Have an entity be different from what those that are merged into it are different from, `limit` at most."""
    await tx.execute(queries.inherit_dismissals, graph_id=graph.id, survivor=survivor, merged=list(merged), limit=limit)
