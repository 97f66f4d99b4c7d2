"""Use cases of compaction: what was deleted or superseded longer ago than the retention goes for good.

The state at the horizon and every later one read as before, and so does all that is live; the log stays. Rows are
deleted; that PostgreSQL's autovacuum makes room of them for others is its own affair.

The worker looks at every graph once a day (`graphs.compaction_check_at`), and starts a job where something is to go.
"""

from dataclasses import asdict
from datetime import datetime, timedelta
from uuid import UUID

from recollect.errors import Conflict
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.passages import reembedding
from recollect.graph.passages import service as passages
from recollect.jobs import service as jobs
from recollect.jobs.kinds import COMPACT_GRAPH
from recollect.jobs.model import MAX_PENDING_FOR_SWEEPS, NewJob
from recollect.platform.db import Database, Transaction
from recollect.retention.compaction import store
from recollect.retention.compaction.model import Compaction, CompactionCheck, FreedRows

MAX_STEP = 2_000
"""Rows of a table that one step removes, at most."""

CHECKED_AT_ONCE = 100
"""Graphs of a tenant that one transaction looks at, at most."""

CHECK_EVERY = timedelta(days=1)
"""How long a graph is left alone after it was looked at, whatever became of it."""


async def preview(tx: Transaction, graph: Graph, *, before: datetime) -> Compaction:
    """What a compaction of all that was gone before a time would free."""
    horizon = await graphs.horizon_at(tx, graph, before)
    freed = await store.count_compactable(tx, graph, horizon.revision) if horizon.revision else FreedRows()
    replaced = await reembedding.count_replaced(tx, graph.id, before=before, horizon=horizon.revision)
    return Compaction(horizon if horizon.revision else None, freed + FreedRows(vectors=replaced))


async def compact(tx: Transaction, graph_id: UUID, *, before: datetime, limit: int = MAX_STEP) -> Compaction:
    """Remove what was deleted or superseded before a time: one step, up to `limit` rows of a table.

    So do vectors of models that have not served the graph since. The graph's lock is held, and no revision is made:
    nothing that can be read changes. From the first step on the past before the horizon is refused. Raises NotFound,
    Forbidden.
    """
    revision = await graphs.hold_graph(tx, graph_id)
    horizon = await graphs.raise_horizon(tx, revision.graph, before)
    await graphs.plan_checks_once(tx)
    await passages.raise_index_epoch(tx, graph_id)  # Holds off the worker, which may settle passages of this graph.
    freed = await _remove(tx, revision, horizon.revision, limit) if horizon.revision else FreedRows()
    replaced = await reembedding.drop_replaced(tx, graph_id, before=before, limit=limit)
    more = max(replaced, *(count for table, count in asdict(freed).items() if table != "vectors")) >= limit
    return Compaction(horizon if horizon.revision else None, freed + FreedRows(vectors=replaced), more)


async def tenants_to_check(db: Database) -> list[UUID]:
    """Active tenants with graphs that were not looked at for CHECK_EVERY."""
    async with db.system() as session:
        return await store.tenants_to_check(session)


async def check_graphs(tx: Transaction, *, retention_days: float, limit: int = CHECKED_AT_ONCE) -> CompactionCheck:
    """Look at graphs of the tenant whose turn it is, and start a job for each of which something is to go.

    Up to `limit`, longest waiting first, and none that another worker looks at now. Where the tenant
    has MAX_PENDING_FOR_SWEEPS jobs, those that are left wait for them.
    """
    found = await store.list_to_check(tx, retention=timedelta(days=retention_days), limit=limit)
    seen, started = [], 0
    for graph_id, due in found:
        if due:
            new = NewJob(COMPACT_GRAPH, graph_id, {"retention_days": retention_days})
            try:
                await jobs.schedule(tx, new, most_pending=MAX_PENDING_FOR_SWEEPS)
            except Conflict:
                break
            started += 1
        seen.append(graph_id)
    await store.note_checked(tx, seen, again_after=CHECK_EVERY)
    return CompactionCheck(started, more=len(seen) == limit)


async def _remove(tx: Transaction, revision: Revision, horizon: int, limit: int) -> FreedRows:
    """Nodes last: only those go that nothing hangs on any more."""
    graph = revision.graph
    observations = await store.compact_observations(tx, graph, horizon, limit=limit)
    relations = await store.compact_relations(tx, graph, horizon, limit=limit)
    aliases = await store.compact_aliases(tx, graph, horizon, limit=limit)
    removed, vectors = await store.compact_passages(tx, graph, horizon, limit=limit)
    versions = await store.compact_versions(tx, graph, horizon, limit=limit)
    nodes, theirs = await store.compact_nodes(tx, graph, horizon, limit=limit)
    return FreedRows(nodes, versions + theirs, observations, relations, aliases, removed, vectors)
