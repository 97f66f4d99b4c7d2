"""One function per query of `queries.sql`."""

from uuid import UUID

import asyncpg

from recollect.graph.graphs.model import Change
from recollect.notifications.model import MAX_JUDGED_IDS, ChangeFilter
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction

queries = Queries(__package__)


async def list_filtered_changes(
    tx: Transaction, graph_id: UUID, filters: ChangeFilter, *, since: int, ids: int, limit: int
) -> list[tuple[Change, bool]]:
    """The changes of a graph after a revision, oldest first, each with whether it passes the filter."""
    rows = await tx.fetch(
        queries.list_filtered_changes,
        graph_id=graph_id,
        since=since,
        limit=limit,
        max_ids=ids,
        max_judged=MAX_JUDGED_IDS,
        nodes=list(filters.nodes) or None,
        kinds=list(filters.kinds) or None,
        tags=list(filters.tags) or None,
    )
    return [(_change(row), row["wanted"]) for row in rows]


def _change(row: asyncpg.Record) -> Change:
    fields = {name: value for name, value in row.items() if name != "wanted"}
    return Change(**fields | {"ids": tuple(row["ids"])})
