"""Use cases of compaction: remove for good the rows that were deleted or superseded longer ago than the retention.

Reads of the present, of the state at the horizon and of later states do not change; the log stays. Rows are deleted;
PostgreSQL's autovacuum makes their space available again.

The worker checks every graph once a day (`graphs.compaction_check_at`), and starts a job if there is something to
remove.
"""

from dataclasses import asdict
from datetime import datetime, timedelta
from uuid import UUID

from recollect.accounts.tenants import service as tenants
from recollect.errors import Conflict
from recollect.graph.graphs import moments
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.passages import reembedding
from recollect.graph.passages import service as passages
from recollect.jobs import service as jobs
from recollect.jobs.kinds import COMPACT_GRAPH
from recollect.jobs.model import MAX_PENDING_FOR_SWEEPS, NewJob
from recollect.postgres.database import Database
from recollect.postgres.transactions import Transaction
from recollect.retention.compaction import store
from recollect.retention.compaction.model import Compaction, CompactionCheck, FreedRows

MAX_STEP = 2_000
"""Most rows of a table that one step removes."""

CHECKED_AT_ONCE = 100
"""Most graphs of a tenant that one transaction checks."""

CHECK_EVERY = timedelta(days=1)
"""How long after a check, whatever its result, a graph is due for the next one."""


async def retained_since(tx: Transaction, retention: timedelta) -> datetime:
    """Since when all rows are kept: what was deleted or superseded before may be removed.

    It is a matter of the clock of the database: a process whose clock is ahead would remove too much, for good.
    """
    return await store.retained_since(tx, retention)


async def preview(tx: Transaction, graph: Graph, *, before: datetime) -> Compaction:
    """The rows that a compaction of rows deleted or superseded before a time would remove."""
    horizon = await moments.horizon_at(tx, graph, before)
    freed = await store.count_compactable(tx, graph, horizon.revision) if horizon.revision else FreedRows()
    replaced = await reembedding.count_replaced(tx, graph.id, before=before, horizon=horizon.revision)
    return Compaction(horizon if horizon.revision else None, freed + FreedRows(vectors=replaced))


async def compact(tx: Transaction, graph_id: UUID, *, before: datetime, limit: int = MAX_STEP) -> Compaction:
    """Remove rows that were deleted or superseded before a time: one step, up to `limit` rows of a table.

    Vectors of models that have not served the graph since are removed, too. The step holds the graph's lock and makes
    no revision, since nothing readable changes. From the first step on, reading a state before the horizon is
    refused. Raises NotFound, Forbidden.
    """
    revision = await graphs.lock_graph_by_id(tx, graph_id)
    horizon = await moments.raise_horizon(tx, revision.graph, before)
    await tx.check_foreign_keys_at_once()
    await passages.raise_index_epoch(tx, graph_id)  # A worker that settles passages of this graph waits for it.
    freed = await _remove(tx, revision, horizon.revision, limit) if horizon.revision else FreedRows()
    replaced = await reembedding.drop_replaced(tx, graph_id, before=before, limit=limit)
    more = max(replaced, *(count for table, count in asdict(freed).items() if table != "vectors")) >= limit
    return Compaction(horizon if horizon.revision else None, freed + FreedRows(vectors=replaced), more)


async def tenants_to_check(db: Database) -> list[UUID]:
    """Active tenants with graphs whose last check is older than CHECK_EVERY."""
    async with db.system() as session:
        return await store.tenants_to_check(session)


async def check_graphs(tx: Transaction, *, retention_days: float, limit: int = CHECKED_AT_ONCE) -> CompactionCheck:
    """Check graphs of the tenant that are due, and start a job for each that has something to remove.

    Up to `limit` graphs, longest waiting first; those that another worker checks now are left out. Once the tenant has
    MAX_PENDING_FOR_SWEEPS jobs, the other graphs wait. `retention_days`: the default for tenants without a setting.
    """
    retention = await tenants.retention_of(tx, timedelta(days=retention_days))
    found = await store.list_to_check(tx, retention=retention, limit=limit)
    checked, started = [], 0
    for graph_id, is_due in found:
        if is_due:
            new = NewJob(COMPACT_GRAPH, graph_id, {"retention_days": retention / timedelta(days=1)})
            try:
                await jobs.schedule(tx, new, most_pending=MAX_PENDING_FOR_SWEEPS)
            except Conflict:
                break
            started += 1
        checked.append(graph_id)
    await store.note_checked(tx, checked, again_after=CHECK_EVERY)
    return CompactionCheck(started, more=len(checked) == limit)


async def _remove(tx: Transaction, revision: Revision, horizon: int, limit: int) -> FreedRows:
    """Delete rows of each table. Nodes come last: only nodes to which no row refers are deleted."""
    graph = revision.graph
    observations = await store.compact_observations(tx, graph, horizon, limit=limit)
    relations = await store.compact_relations(tx, graph, horizon, limit=limit)
    aliases = await store.compact_aliases(tx, graph, horizon, limit=limit)
    passage_count, vectors = await store.compact_passages(tx, graph, horizon, limit=limit)
    versions = await store.compact_versions(tx, graph, horizon, limit=limit)
    nodes, their_versions = await store.compact_nodes(tx, graph, horizon, limit=limit)
    return FreedRows(nodes, versions + their_versions, observations, relations, aliases, passage_count, vectors)
