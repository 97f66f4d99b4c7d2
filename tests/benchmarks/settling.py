"""Waits until a filled graph can be measured: all passages are completely indexed, and words are counted.

The worker counts the words of a graph again once it has changed by a fifth, so the counts of a new graph depend on the
moment of its visit. Here they are counted once more, so that the same data give the same figures.
"""

import asyncio

from rich.progress import Progress

from recollect.caller import Caller
from recollect.graph.graphs import service as graphs
from recollect.graph.passage_words import service as passage_words
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect_local.server import Server
from tests.benchmarks.stack import require_running

PENDING = "SELECT count(*) FROM passages WHERE tenant_id = $1 AND NOT settled AND removed_revision IS NULL"
"""The number of passages of a tenant without a vector, or without their context."""

PENDING_OF = """
    SELECT count(*) FROM passages
    WHERE tenant_id = ANY (ARRAY(SELECT id FROM tenants)) AND memory_id = ANY ($1::uuid[]) AND NOT settled
        AND removed_revision IS NULL"""
"""The number of such passages of some memories."""


async def settle(db: Database, caller: Caller, worker: Server, progress: Progress, title: str) -> None:
    """Wait until all graphs of the tenant can be measured; raises RuntimeError if the worker ended before."""
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
            await passage_words.lock_term_counts(tx, graph.id)  # the worker may be at it
            await passage_words.recount_graph(tx, graph.id)
