"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from recollect.graph.graphs.model import Graph
from recollect.platform.db import Session, Transaction
from recollect.platform.sql import Queries
from recollect.retention.compaction.model import FreedRows

queries = Queries(__package__)


async def count_compactable(tx: Transaction, graph: Graph, horizon: int) -> FreedRows:
    """What nobody can read who reads the state at the horizon or a later one."""
    row = await tx.fetchrow(queries.count_compactable, graph_id=graph.id, horizon=horizon)
    assert row is not None
    return FreedRows(**row)


async def tenants_to_check(session: Session) -> list[UUID]:
    """Tenants with graphs whose turn has come to be looked at."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_to_check)]


async def list_to_check(tx: Transaction, *, retention: timedelta, limit: int) -> list[tuple[UUID, bool]]:
    """Take graphs in hand whose turn has come, and whether something of each was gone longer ago than the retention."""
    rows = await tx.fetch(queries.list_to_check, retention=retention, limit=limit)
    return [(row["id"], row["due"]) for row in rows]


async def note_checked(tx: Transaction, graph_ids: Sequence[UUID], *, again_after: timedelta) -> None:
    """Look at these graphs again after a while."""
    await tx.execute(queries.note_checked, graph_ids=graph_ids, again_after=again_after)


async def compact_observations(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> int:
    """Delete observations that were taken away by a revision; how many."""
    count: int = await tx.fetchval(queries.compact_observations, graph_id=graph.id, horizon=horizon, limit=limit)
    return count


async def compact_relations(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> int:
    """Delete relations that were taken away by a revision; how many."""
    count: int = await tx.fetchval(queries.compact_relations, graph_id=graph.id, horizon=horizon, limit=limit)
    return count


async def compact_aliases(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> int:
    """Delete aliases that were taken away by a revision; how many."""
    count: int = await tx.fetchval(queries.compact_aliases, graph_id=graph.id, horizon=horizon, limit=limit)
    return count


async def compact_passages(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> tuple[int, int]:
    """Delete passages that were taken away by a revision, and their vectors; how many of each."""
    row = await tx.fetchrow(queries.compact_passages, graph_id=graph.id, horizon=horizon, limit=limit)
    assert row is not None
    return row["passages"], row["vectors"]


async def compact_versions(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> int:
    """Delete versions that were superseded by a revision, but for what each lineage was then; how many."""
    count: int = await tx.fetchval(queries.compact_versions, graph_id=graph.id, horizon=horizon, limit=limit)
    return count


async def compact_nodes(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> tuple[int, int]:
    """Delete lineages deleted by a revision that nothing hangs on, and their versions; how many of each."""
    row = await tx.fetchrow(queries.compact_nodes, graph_id=graph.id, horizon=horizon, limit=limit)
    assert row is not None
    return row["nodes"], row["versions"]
