"""Moments: the past state of a graph that `as_of` names, and how far back states can be read."""

from datetime import datetime

from recollect.errors import ErrorCode, InvalidInput
from recollect.graph.graphs import store
from recollect.graph.graphs.model import Graph, Moment, local_as_of, parse_as_of
from recollect.postgres.transactions import Transaction
from recollect.times import lacks_offset, zone_of


async def find_moment(tx: Transaction, graph: Graph, as_of: str | datetime | None) -> Moment | None:
    """The past state that `as_of` (a revision or a time) names; None for now. A day is one of the graph's time zone.

    Raises InvalidInput, also where compaction has removed that state.
    """
    if as_of is None:
        return None
    if isinstance(as_of, str) and lacks_offset(as_of):
        as_of = local_as_of(as_of, zone_of(await store.find_time_zone(tx, graph.name)))
    revision_or_time = parse_as_of(as_of) if isinstance(as_of, str) else as_of
    if isinstance(revision_or_time, datetime):
        return await moment_at(tx, graph, revision_or_time)
    revision = revision_or_time
    await require_not_compacted(tx, graph, revision, path="as_of")
    at = graph.created_at if revision == 0 else await store.find_change(tx, graph, revision)
    if at is None:
        newest = (await store.find_head(tx, graph.id)).revision
        raise InvalidInput(f"The graph's newest revision is {newest}", path="as_of")
    return Moment(revision, at)


async def require_not_compacted(tx: Transaction, graph: Graph, revision: int, *, path: str) -> None:
    """Raise InvalidInput where compaction has removed the state at a revision."""
    horizon = await store.find_horizon(tx, graph)
    if revision < horizon.revision:
        raise _compacted(horizon, path)


async def moment_at(tx: Transaction, graph: Graph, at: datetime) -> Moment:
    """The state of a graph at a time; raises InvalidInput where compaction has removed it."""
    horizon = await store.find_horizon(tx, graph)
    if horizon.revision and at < horizon.at:
        raise _compacted(horizon, "as_of")
    newest = await store.find_revision_at(tx, graph, at)
    return Moment(newest.revision if newest else 0, at)


async def horizon_at(tx: Transaction, graph: Graph, before: datetime) -> Moment:
    """The oldest state that can be read once a graph is compacted up to a time; revision 0: every state can be."""
    horizon, newest = await store.find_horizon(tx, graph), await store.find_revision_at(tx, graph, before)
    return newest if newest is not None and newest.revision > horizon.revision else horizon


async def horizon_of(tx: Transaction, graph: Graph) -> Moment:
    """The oldest state of a graph that can be read; revision 0: every state can be."""
    return await store.find_horizon(tx, graph)


async def raise_horizon(tx: Transaction, graph: Graph, before: datetime) -> Moment:
    """Move the horizon up to a time, never back: older states cannot be read any more. Returns the horizon."""
    horizon = await horizon_at(tx, graph, before)
    await store.raise_horizon(tx, graph, horizon)
    return horizon


def _compacted(horizon: Moment, path: str) -> InvalidInput:
    return InvalidInput(
        f"The past can be read back to revision {horizon.revision} ({horizon.at:%Y-%m-%dT%H:%M:%S.%fZ}): compaction "
        "removed what was before",
        code=ErrorCode.COMPACTED,
        path=path,
    )
