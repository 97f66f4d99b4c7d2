"""Reads of a graph from replicas: a call goes on there where the replica has the graph just as the primary has it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from recollect.caller import Caller
from recollect.fairness.slots import without_preemption, yield_to_others
from recollect.graph.graphs import store
from recollect.graph.graphs.model import GraphPosition
from recollect.graph.graphs.view import GraphView
from recollect.postgres.replica_lag import ReplicaOutcome
from recollect.postgres.replicas import ReplicaFailed
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import ReadReplica, Transaction

T = TypeVar("T")

Read = Callable[[Transaction], Awaitable[T]]
"""A function that reads a graph in a transaction. It may run twice: it changes nothing and sends nothing on its way."""


async def replicated(view: GraphView, stack: AsyncExitStack) -> GraphView | None:
    """The same view in a transaction of the replica, which the stack then holds; None: the view stays on the primary.

    The graph, the moment and all that the caller may see are those that the view's own transaction found on the
    primary.
    """
    replica_tx = await _begin_on_replica(view.tx, view.graph.id, stack) if view.is_there else None
    return None if replica_tx is None else replace(view, tx=replica_tx)


async def read_graph(db: TenantDatabase, caller: Caller, graph_id: UUID, read: Read[T]) -> T:
    """What `read` returns for a graph, in one read-only transaction: on the replica where it is up to date."""
    try:
        async with AsyncExitStack() as primary, AsyncExitStack() as replica:
            tx = await primary.enter_async_context(db.transaction(caller, read_only=True))
            replica_tx = await _begin_on_replica(tx, graph_id, replica)
            if replica_tx is None:
                return await read(tx)
            await primary.aclose()
            return await read(replica_tx)
    except ReplicaFailed:
        async with db.transaction(caller, read_only=True) as tx:
            return await read(tx)


async def read_at_replica(tx: Transaction, graph_id: UUID, read: Read[T]) -> T:
    """What `read` returns for a graph, on the replica where it is up to date, while the primary's `tx` stays open.

    `read` must not depend on anything that `tx` itself wrote.
    """
    try:
        async with AsyncExitStack() as replica:
            replica_tx = await _begin_on_replica(tx, graph_id, replica)
            if replica_tx is not None:
                return await read(replica_tx)
    except ReplicaFailed:
        pass
    return await read(tx)


async def _begin_on_replica(tx: Transaction, graph_id: UUID, stack: AsyncExitStack) -> Transaction | None:
    """A transaction of the replica that sees this graph as `tx` of the primary sees it; the stack holds it.

    The replica must have the graph at that very revision, neither older nor newer.
    """
    replica = tx.replica
    if replica is None:
        return None
    if replica.is_paused:
        replica.note(ReplicaOutcome.PAUSED)
        return None
    position = await store.find_position(tx, graph_id)
    if position is None:  # It was deleted since the call began.
        return None
    await yield_to_others()  # Before the timeout: the time that a call waits for others is not the replica's.
    try:
        with without_preemption():
            async with asyncio.timeout(replica.wait_seconds), AsyncExitStack() as begun:
                return await _begin_and_compare(tx, replica, position, graph_id, begun, stack)
    except TimeoutError:
        replica.note(ReplicaOutcome.UNREACHABLE)
    except ReplicaFailed:
        pass
    return None


async def _begin_and_compare(
    tx: Transaction,
    replica: ReadReplica,
    position: GraphPosition,
    graph_id: UUID,
    begun: AsyncExitStack,
    stack: AsyncExitStack,
) -> Transaction | None:
    min_log = replica.marks.note(position.log)
    replica_tx = await begun.enter_async_context(replica.reading(tx.caller, tx.reply_bytes, tx.plan))
    outcome = compared(position, min_log, await store.find_position(replica_tx, graph_id))
    replica.note(outcome)
    if outcome is not ReplicaOutcome.REPLICA:
        return None
    await stack.enter_async_context(begun.pop_all())
    return replica_tx


def compared(primary: GraphPosition, min_log: int, replica: GraphPosition | None) -> ReplicaOutcome:
    """Whether a replica at this position may answer for the primary; `min_log`: the log position that it needs."""
    if replica is not None and not replica.is_replayed:
        return ReplicaOutcome.PROMOTED
    if replica is None or replica.written != primary.written:
        return ReplicaOutcome.BEHIND
    return ReplicaOutcome.REPLICA if replica.log >= min_log else ReplicaOutcome.LAGGING
