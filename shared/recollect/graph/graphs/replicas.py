"""Views of replicas: a call goes on reading there where the replica has just what the primary says there is."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

from recollect.graph.graphs import store
from recollect.graph.graphs.model import GraphPosition
from recollect.graph.graphs.view import GraphView
from recollect.platform.replicas import ReplicaFailed, ReplicaOutcome


async def replicated(view: GraphView, stack: AsyncExitStack) -> GraphView | None:
    """The same view in a transaction of the replica, which the stack then holds; None: it stays where it is.

    The graph, the moment and all that the caller may see are those that the view's own transaction found on the
    primary. The replica must have the graph at that very revision, neither older nor newer.
    """
    replica = view.tx.replica
    if replica is None or not view.is_there:
        return None
    if replica.is_paused:
        replica.note(ReplicaOutcome.PAUSED)
        return None
    known = await store.find_position(view.tx, view.graph)
    assert known is not None
    least = replica.marks.note(known.log)
    try:
        async with asyncio.timeout(replica.wait_seconds), AsyncExitStack() as begun:
            tx = await begun.enter_async_context(replica.reading(view.tx.caller, view.tx.reply_bytes))
            outcome = _compared(known, least, await store.find_position(tx, view.graph))
            replica.note(outcome)
            if outcome is ReplicaOutcome.REPLICA:
                await stack.enter_async_context(begun.pop_all())
                return replace(view, tx=tx)
    except TimeoutError:
        replica.note(ReplicaOutcome.AWAY)
    except ReplicaFailed:
        pass
    return None


def _compared(known: GraphPosition, least: int, found: GraphPosition | None) -> ReplicaOutcome:
    """Whether a replica that found this may answer for a primary that told what is known of it."""
    if found is None or found.written != known.written:
        return ReplicaOutcome.BEHIND
    if not found.is_replayed:
        return ReplicaOutcome.PROMOTED
    return ReplicaOutcome.REPLICA if found.log >= least else ReplicaOutcome.LAGGING
