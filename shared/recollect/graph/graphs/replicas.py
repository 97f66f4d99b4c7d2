"""Reads of a graph from replicas: a call goes on there where the replica has just what the primary says there is."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from recollect.caller import Caller
from recollect.graph.graphs import store
from recollect.graph.graphs.model import GraphPosition
from recollect.graph.graphs.view import GraphView
from recollect.platform.db import Database
from recollect.platform.replicas import Replica, ReplicaFailed, ReplicaOutcome
from recollect.platform.slots import give_way, giving_no_way
from recollect.platform.transactions import Transaction

T = TypeVar("T")

Read = Callable[[Transaction], Awaitable[T]]
"""Reads of a graph in a transaction. It may be done twice: it changes nothing, and has told nobody before it ends."""


async def replicated(view: GraphView, stack: AsyncExitStack) -> GraphView | None:
    """The same view in a transaction of the replica, which the stack then holds; None: it stays where it is.

    The graph, the moment and all that the caller may see are those that the view's own transaction found on the
    primary.
    """
    there = await _begun_there(view.tx, view.graph.id, stack) if view.is_there else None
    return None if there is None else replace(view, tx=there)


async def read_graph(db: Database, caller: Caller, graph_id: UUID, read: Read[T]) -> T:
    """What `read` finds of a graph, in one transaction that only reads: of the replica where that may tell it."""
    try:
        async with AsyncExitStack() as primary, AsyncExitStack() as replica:
            tx = await primary.enter_async_context(db.transaction(caller, read_only=True))
            there = await _begun_there(tx, graph_id, replica)
            if there is None:
                return await read(tx)
            await primary.aclose()
            return await read(there)
    except ReplicaFailed:
        async with db.transaction(caller, read_only=True) as tx:
            return await read(tx)


async def read_beside(tx: Transaction, graph_id: UUID, read: Read[T]) -> T:
    """What `read` finds of a graph, of the replica where that may, for a transaction of the primary that goes on.

    Of what `tx` itself wrote, nothing may be read.
    """
    try:
        async with AsyncExitStack() as replica:
            there = await _begun_there(tx, graph_id, replica)
            if there is not None:
                return await read(there)
    except ReplicaFailed:
        pass
    return await read(tx)


async def _begun_there(tx: Transaction, graph_id: UUID, stack: AsyncExitStack) -> Transaction | None:
    """A transaction of the replica that shows of this graph what `tx` of the primary does; the stack holds it.

    The replica must have the graph at that very revision, neither older nor newer.
    """
    replica = tx.replica
    if replica is None:
        return None
    if replica.is_paused:
        replica.note(ReplicaOutcome.PAUSED)
        return None
    known = await store.find_position(tx, graph_id)
    if known is None:  # It was deleted since the call began.
        return None
    await give_way()  # Before it is timed: a call that waits for others says nothing of the replica.
    try:
        with giving_no_way():
            async with asyncio.timeout(replica.wait_seconds), AsyncExitStack() as begun:
                return await _begin_and_compare(tx, replica, known, graph_id, begun, stack)
    except TimeoutError:
        replica.note(ReplicaOutcome.AWAY)
    except ReplicaFailed:
        pass
    return None


async def _begin_and_compare(
    tx: Transaction,
    replica: Replica,
    known: GraphPosition,
    graph_id: UUID,
    begun: AsyncExitStack,
    stack: AsyncExitStack,
) -> Transaction | None:
    least = replica.marks.note(known.log)
    there = await begun.enter_async_context(replica.reading(tx.caller, tx.reply_bytes))
    outcome = compared(known, least, await store.find_position(there, graph_id))
    replica.note(outcome)
    if outcome is not ReplicaOutcome.REPLICA:
        return None
    await stack.enter_async_context(begun.pop_all())
    return there


def compared(known: GraphPosition, least: int, found: GraphPosition | None) -> ReplicaOutcome:
    """Whether a replica that found this may answer for a primary that told what is known of it."""
    if found is not None and not found.is_replayed:
        return ReplicaOutcome.PROMOTED
    if found is None or found.written != known.written:
        return ReplicaOutcome.BEHIND
    return ReplicaOutcome.REPLICA if found.log >= least else ReplicaOutcome.LAGGING
