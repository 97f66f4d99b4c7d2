"""Use cases of events: find new events for a webhook, and create deliveries for them.

Nothing is written for webhooks when something happens. For graphs, a cursor holds the last revision that a webhook
got: revisions have no gaps, so that none is missed and none is sent twice. Other events have the time at which they
happened; each look goes a little further back than the last one, and each source is sent once. Removed members are
found in the audit log, which is written in the transaction that removes them. Whether there is anything to collect is
asked of what happened since the last look: of graphs that were written, and of deleted graphs by the audit log.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from recollect.postgres.database import Database
from recollect.postgres.transactions import Transaction
from recollect.webhooks.deliveries import service as deliveries
from recollect.webhooks.deliveries.model import MAX_CHANGES, NewDelivery
from recollect.webhooks.events import store
from recollect.webhooks.events.model import (
    FOUND_AT_ONCE,
    GRAPH_EVENTS,
    JOB_EVENTS,
    KEY_EVENTS,
    OVERLAP,
    EventType,
    Watch,
)


async def tenants_with_news(db: Database) -> list[UUID]:
    """Active tenants that may have new events for a webhook."""
    async with db.system() as session:
        return await store.tenants_with_news(session, overlap=OVERLAP)


async def collect(tx: Transaction, *, only: UUID | None = None) -> int:
    """Create deliveries of new events for the tenant's webhooks, or for one, as far as they have room."""
    added = 0
    for watch in await store.lock_watches(tx, only=only, overlap=OVERLAP):
        room = min(await deliveries.room(tx, watch.id), FOUND_AT_ONCE)
        if room > 0:
            added += await _collect(tx, watch, room)
    return added


async def begin(
    tx: Transaction,
    webhook_id: UUID,
    event_types: Iterable[EventType],
    graph_ids: Sequence[UUID] | None,
    *,
    was: Iterable[EventType] = (),
) -> None:
    """Set a webhook's cursors to the present revisions of its graphs; those of known graphs stay if it got changes.

    `was`: the types of events that it got so far.
    """
    graph_types, old_types = frozenset(event_types) & GRAPH_EVENTS, frozenset(was)
    await store.keep_cursors(tx, webhook_id, graph_ids=graph_ids, graphs=bool(graph_types))
    if graph_types:
        anew = EventType.GRAPH_CHANGED in graph_types - old_types
        await store.set_cursors(tx, webhook_id, graph_ids=graph_ids, anew=anew)


async def _collect(tx: Transaction, watch: Watch, room: int) -> int:
    found: list[NewDelivery] = []
    is_complete = True
    for find in (_graphs_made, _graphs_changed, _graphs_deleted, _jobs, _keys, _members, _removed_members):
        remaining = room - len(found)
        if remaining <= 0:
            is_complete = False
            break
        events = await find(tx, watch, remaining)
        is_complete = is_complete and len(events) < remaining and not any(map(_is_cut, events))
        found += events
    added = await deliveries.add(tx, watch.id, found)
    if is_complete:
        await store.record_read(tx, watch)
    return len(added)


def _is_cut(event: NewDelivery) -> bool:
    """Whether a graph may have more revisions than one delivery reports; they are found by the next look."""
    if event.revision is None or event.after_revision is None:
        return False
    return event.revision - event.after_revision >= MAX_CHANGES


async def _graphs_made(tx: Transaction, watch: Watch, limit: int) -> list[NewDelivery]:
    if not watch.wants(*GRAPH_EVENTS):
        return []
    graphs = await store.add_cursors(tx, watch, limit=limit)
    if not watch.wants(EventType.GRAPH_CREATED):
        return []
    return [
        _event(
            EventType.GRAPH_CREATED,
            graph.graph_id,
            graph.created_at,
            {"graph": graph.graph_id, "created_by": graph.created_by},
        )
        for graph in graphs
    ]


async def _graphs_changed(tx: Transaction, watch: Watch, limit: int) -> list[NewDelivery]:
    if not watch.wants(EventType.GRAPH_CHANGED):
        return []
    return [
        NewDelivery(
            EventType.GRAPH_CHANGED,
            f"{EventType.GRAPH_CHANGED}:{news.graph_id}:{news.revision}",
            news.at,
            graph_id=news.graph_id,
            after_revision=news.after_revision,
            revision=news.revision,
        )
        for news in await store.advance_cursors(tx, watch, max_changes=MAX_CHANGES, limit=limit)
    ]


async def _graphs_deleted(tx: Transaction, watch: Watch, limit: int) -> list[NewDelivery]:
    if not watch.wants(*GRAPH_EVENTS):
        return []
    deleted_ids = await store.remove_cursors_of_deleted(tx, watch, limit=limit)
    if not watch.wants(EventType.GRAPH_DELETED):
        return []
    return [_event(EventType.GRAPH_DELETED, graph_id, watch.now, {"graph": graph_id}) for graph_id in deleted_ids]


async def _jobs(tx: Transaction, watch: Watch, limit: int) -> list[NewDelivery]:
    if not watch.wants(*JOB_EVENTS):
        return []
    return [
        NewDelivery(
            EventType.JOB_FAILED if job.status == "failed" else EventType.JOB_FINISHED,
            f"job:{job.id}",
            job.finished_at,
            {
                "job": job.id,
                "kind": job.kind,
                "graph": job.graph_id,
                "status": job.status,
                "error_code": job.error_code if job.status == "failed" else None,
                "created_by": job.created_by,
            },
        )
        for job in await store.find_ended_jobs(tx, watch, limit=limit)
    ]


async def _keys(tx: Transaction, watch: Watch, limit: int) -> list[NewDelivery]:
    if not watch.wants(*KEY_EVENTS):
        return []
    return [
        _event(
            EventType(key.event_type), key.id, key.at, {"key": key.id, "kind": key.kind, "created_by": key.created_by}
        )
        for key in await store.find_keys(tx, watch, limit=limit)
    ]


async def _members(tx: Transaction, watch: Watch, limit: int) -> list[NewDelivery]:
    if not watch.wants(EventType.MEMBER_JOINED):
        return []
    return [
        NewDelivery(
            EventType.MEMBER_JOINED,
            member.source,
            member.created_at,
            {"person": member.person_id, "role": member.role},
        )
        for member in await store.find_joined_members(tx, watch, limit=limit)
    ]


async def _removed_members(tx: Transaction, watch: Watch, limit: int) -> list[NewDelivery]:
    if not watch.wants(EventType.MEMBER_REMOVED):
        return []
    return [
        _event(EventType.MEMBER_REMOVED, removed.entry_id, removed.at, {"person": removed.person, "role": removed.role})
        for removed in await store.find_removed_members(tx, watch, limit=limit)
    ]


def _event(event_type: EventType, about: UUID, at: datetime, data: dict[str, object]) -> NewDelivery:
    return NewDelivery(event_type, f"{event_type}:{about}", at, data)
