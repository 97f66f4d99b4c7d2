"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import asyncpg

from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction
from recollect.webhooks.events.model import (
    GraphMade,
    GraphNews,
    JobEnded,
    KeyEvent,
    MemberJoined,
    MemberRemoved,
    Watch,
    known_types,
)

queries = Queries(__package__)


async def tenants_with_news(session: Session, *, overlap: timedelta) -> list[UUID]:
    """Tenants that may have new events for a webhook."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_news, overlap=overlap)]


async def lock_watches(tx: Transaction, *, only: UUID | None, overlap: timedelta) -> list[Watch]:
    """The enabled webhooks, or one of them, except for those that another worker has locked."""
    return [_watch(row) for row in await tx.fetch(queries.lock_watches, only=only, overlap=overlap)]


async def record_read(tx: Transaction, watch: Watch) -> None:
    """Note that all events until the beginning of this look are collected."""
    await tx.execute(queries.record_read, webhook_id=watch.id, looked_at=watch.now)


async def add_cursors(tx: Transaction, watch: Watch, *, limit: int) -> list[GraphMade]:
    """Add cursors for graphs that are new to a webhook; these graphs."""
    return await tx.fetch_objects(
        queries.add_cursors, GraphMade, webhook_id=watch.id, graph_ids=watch.graph_ids, limit=limit
    )


async def advance_cursors(tx: Transaction, watch: Watch, *, max_changes: int, limit: int) -> list[GraphNews]:
    """Advance a webhook's cursors; the revisions that are new to it."""
    return await tx.fetch_objects(
        queries.advance_cursors, GraphNews, webhook_id=watch.id, max_changes=max_changes, limit=limit
    )


async def remove_cursors_of_deleted(tx: Transaction, watch: Watch, *, limit: int) -> list[UUID]:
    """Remove a webhook's cursors of deleted graphs; the ids of these graphs."""
    return await tx.fetch_column(queries.remove_cursors_of_deleted, "graph_id", webhook_id=watch.id, limit=limit)


async def keep_cursors(tx: Transaction, webhook_id: UUID, *, graph_ids: Sequence[UUID] | None, graphs: bool) -> None:
    """Remove a webhook's cursors of other graphs than these, or all cursors."""
    await tx.execute(queries.keep_cursors, webhook_id=webhook_id, graph_ids=graph_ids, graphs=graphs)


async def set_cursors(tx: Transaction, webhook_id: UUID, *, graph_ids: Sequence[UUID] | None, anew: bool) -> None:
    """Set a webhook's cursors to the present revisions of these graphs."""
    await tx.execute(queries.set_cursors, webhook_id=webhook_id, graph_ids=graph_ids, anew=anew)


async def find_ended_jobs(tx: Transaction, watch: Watch, *, limit: int) -> list[JobEnded]:
    """Jobs that ended and are new to a webhook."""
    return await tx.fetch_objects(
        queries.find_ended_jobs,
        JobEnded,
        webhook_id=watch.id,
        since=watch.since,
        event_types=sorted(watch.event_types),
        graph_ids=watch.graph_ids,
        limit=limit,
    )


async def find_keys(tx: Transaction, watch: Watch, *, limit: int) -> list[KeyEvent]:
    """Keys that were created or revoked and are new to a webhook."""
    return await tx.fetch_objects(
        queries.find_keys,
        KeyEvent,
        webhook_id=watch.id,
        since=watch.since,
        event_types=sorted(watch.event_types),
        limit=limit,
    )


async def find_joined_members(tx: Transaction, watch: Watch, *, limit: int) -> list[MemberJoined]:
    """Members who joined and are new to a webhook."""
    return await tx.fetch_objects(
        queries.find_joined_members, MemberJoined, webhook_id=watch.id, since=watch.since, limit=limit
    )


async def find_removed_members(tx: Transaction, watch: Watch, *, limit: int) -> list[MemberRemoved]:
    """Members who were removed or left, and whose removal is new to a webhook."""
    return await tx.fetch_objects(
        queries.find_removed_members, MemberRemoved, webhook_id=watch.id, since=watch.since, limit=limit
    )


def _watch(row: asyncpg.Record) -> Watch:
    graph_ids = row["graph_ids"]
    return Watch(
        id=row["id"],
        event_types=known_types(row["event_types"]),
        graph_ids=None if graph_ids is None else tuple(graph_ids),
        since=row["since"],
        now=row["now"],
    )
