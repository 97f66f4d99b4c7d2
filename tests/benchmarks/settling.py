"""When a filled graph may be measured: every passage has all that it is found by, and its words are counted.

The worker counts the words of a graph again once it has changed by a fifth: what it knows of a graph that was just
filled depends on when it came to it. Here they are counted once more, so that the same filling gives the same figures.
"""

import asyncio

from rich.progress import Progress

from recollect.caller import Caller
from recollect.graph.graphs import service as graphs
from recollect.graph.passages import service as passages
from recollect.platform.db import Database
from recollect.platform.sql import Query
from recollect_local.server import Server
from tests.benchmarks.stack import require_running

PENDING = "SELECT count(*) FROM passages WHERE tenant_id = $1 AND NOT settled AND removed_revision IS NULL"
"""How many passages of a tenant lack a vector, or what is said around them."""

PENDING_OF = """
    SELECT count(*) FROM passages
    WHERE tenant_id = ANY (ARRAY(SELECT id FROM tenants)) AND memory_id = ANY ($1::uuid[]) AND NOT settled
        AND removed_revision IS NULL"""
"""The same of some memories."""


async def settle(db: Database, caller: Caller, worker: Server, progress: Progress, title: str) -> None:
    """Return when all of the tenant's graphs may be measured; raises RuntimeError where the worker ended before."""
    waiting = await _count_pending(db, caller)
    embedding = progress.add_task(title, total=waiting)
    while left := await _count_pending(db, caller):
        progress.update(embedding, completed=waiting - left)
        require_running(worker)
        await asyncio.sleep(0.5)
    progress.update(embedding, completed=waiting)
    await _count_words(db, caller)


async def _count_pending(db: Database, caller: Caller) -> int:
    async with db.transaction(caller, read_only=True) as tx:
        return int(await tx.fetchval(Query(PENDING, ("tenant_id",))))


async def _count_words(db: Database, caller: Caller) -> None:
    async with db.transaction(caller, read_only=True) as tx:
        filled = await graphs.list_graphs(tx, limit=graphs.MAX_GRAPHS)
    for graph in filled:
        async with db.transaction(caller) as tx:
            await passages.lock_term_counts(tx, graph.id)  # the worker may be at it
            await passages.recount_graph(tx, graph.id)
