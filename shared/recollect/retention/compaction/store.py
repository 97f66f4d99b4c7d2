"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from recollect.graph.graphs.model import Graph
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction
from recollect.retention.compaction.model import FreedRows

queries = Queries(__package__)


async def count_compactable(tx: Transaction, graph: Graph, horizon: int) -> FreedRows:
    """The number of rows of each table that no read of the state at the horizon, or a later one, needs."""
    row = await tx.fetchrow(queries.count_compactable, graph_id=graph.id, horizon=horizon)
    assert row is not None
    return FreedRows(**row)


async def retained_since(tx: Transaction, retention: timedelta) -> datetime:
    """The moment that is a retention ago, by the clock of the database."""
    return await tx.fetchval(queries.retained_since, retention=retention)


async def tenants_to_check(session: Session) -> list[UUID]:
    """Tenants with graphs that are due for a check."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_to_check)]


async def list_to_check(tx: Transaction, *, retention: timedelta, limit: int) -> list[tuple[UUID, bool]]:
    """Lock graphs that are due for a check; for each, whether it has rows that ended longer ago than the retention."""
    await tx.execute(queries.sort_by_indexes)
    rows = await tx.fetch(queries.list_to_check, retention=retention, limit=limit)
    return [(row["id"], row["due"]) for row in rows]


async def note_checked(tx: Transaction, graph_ids: Sequence[UUID], *, again_after: timedelta) -> None:
    """Set the time of the next check of these graphs."""
    await tx.execute(queries.note_checked, graph_ids=graph_ids, again_after=again_after)


async def compact_observations(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> int:
    """Delete versions of observations that had ended by a revision; return how many."""
    return await tx.fetchval(queries.compact_observations, graph_id=graph.id, horizon=horizon, limit=limit)


async def compact_relations(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> int:
    """Delete relations that had ended by a revision; return how many."""
    return await tx.fetchval(queries.compact_relations, graph_id=graph.id, horizon=horizon, limit=limit)


async def compact_aliases(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> int:
    """Delete aliases that had ended by a revision; return how many."""
    return await tx.fetchval(queries.compact_aliases, graph_id=graph.id, horizon=horizon, limit=limit)


async def compact_passages(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> tuple[int, int]:
    """Delete passages that had ended by a revision, and their vectors; return how many of each."""
    row = await tx.fetchrow(queries.compact_passages, graph_id=graph.id, horizon=horizon, limit=limit)
    assert row is not None
    return row["passages"], row["vectors"]


async def compact_versions(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> int:
    """Delete versions superseded by a revision, except the newest of each lineage at that revision; return how many."""
    return await tx.fetchval(queries.compact_versions, graph_id=graph.id, horizon=horizon, limit=limit)


async def compact_nodes(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> tuple[int, int]:
    """Delete lineages deleted by a revision, if no row refers to them, and their versions; return how many of each."""
    row = await tx.fetchrow(queries.compact_nodes, graph_id=graph.id, horizon=horizon, limit=limit)
    assert row is not None
    return row["nodes"], row["versions"]
