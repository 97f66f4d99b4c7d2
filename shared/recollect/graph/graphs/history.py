"""The log of a graph read backwards, as people read it: who did what, newest first, and how fast it was written."""

from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from recollect.graph.graphs import moments, store
from recollect.graph.graphs.model import Change, Graph
from recollect.postgres.transactions import Transaction

MAX_LOOKED_AT = 5_000
"""Changes that one page of a filtered log looks at, at most, and among which actors and operations are found."""

MAX_ACTORS = 200
"""Pairs of an actor and an operation that are found, at most."""

MAX_SHOWN_IDS = 8
"""Ids of a change that a page of the log has, at most."""

SPANS = 60
"""Spans for which the rate of writes to a graph is reported."""


@dataclass(frozen=True, slots=True)
class LogPage:
    """Changes, newest first. `next`: the revision at which older ones go on; None: there are none."""

    changes: list[Change]
    next: int | None


@dataclass(frozen=True, slots=True)
class Span:
    """Some revisions in a row, from after `first` up to `last`, and when they were written."""

    first: int
    last: int
    began_at: datetime
    ended_at: datetime

    @property
    def per_hour(self) -> float:
        """How many revisions were written in an hour."""
        hours = (self.ended_at - self.began_at).total_seconds() / 3_600
        return (self.last - self.first) / max(hours, 1 / 3_600)


async def changes_until(
    tx: Transaction,
    graph: Graph,
    until: int,
    *,
    after: int = 0,
    actor: str | None = None,
    operation: str | None = None,
    limit: int,
) -> LogPage:
    """The changes of a graph up to a revision, by an actor and of an operation (None: any), newest first.

    A page may have fewer than `limit`, or none, although others follow: it looks at MAX_LOOKED_AT changes.
    """
    tx.caller.require_graph(graph.id)
    floor = max(after, until - MAX_LOOKED_AT)
    found = await store.list_changes_back(
        tx, graph, floor=floor, until=until, actor=actor, operation=operation, ids=MAX_SHOWN_IDS, limit=limit + 1
    )
    if len(found) > limit:
        return LogPage(found[:limit], found[limit].revision)
    return LogPage(found, floor if floor > after else None)


async def actors_of(tx: Transaction, graph: Graph, newest: int) -> tuple[list[str], list[str]]:
    """Who wrote the last changes of a graph, and by which operations; each in order."""
    pairs = await store.list_actors(tx, graph, floor=max(0, newest - MAX_LOOKED_AT), limit=MAX_ACTORS)
    return sorted({actor for actor, _ in pairs}), sorted({operation for _, operation in pairs})


async def spans_of(tx: Transaction, graph: Graph, newest: int) -> list[Span]:
    """How fast a graph was written, in spans of as many revisions each, from the oldest state that can be read.

    Only the revisions at the ends of spans are looked up, so it costs the same for every graph.
    """
    horizon = await moments.horizon_of(tx, graph)
    length = newest - horizon.revision
    ends = sorted({horizon.revision + length * number // SPANS for number in range(SPANS + 1)})
    times = {horizon.revision: horizon.at} | await store.find_times(tx, graph, ends)
    known = [revision for revision in ends if revision in times]
    return [Span(first, last, times[first], times[last]) for first, last in pairwise(known)]
