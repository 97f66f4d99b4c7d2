"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from recollect.ids import new_id
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction
from recollect.webhooks.deliveries.model import AttemptError, ClaimedDelivery, Delivery, NewDelivery

queries = Queries(__package__)


async def tenants_with_due(session: Session) -> list[UUID]:
    """Tenants that have a due delivery."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_due)]


async def tenants_with_old(session: Session, *, retention: timedelta) -> list[UUID]:
    """Tenants with deliveries older than `retention`."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_old, retention=retention)]


async def count_pending(tx: Transaction, webhook_id: UUID, *, max_pending: int) -> int:
    """How many deliveries of a webhook are still to be sent; no more than so many are counted."""
    return await tx.fetchval(queries.count_pending, webhook_id=webhook_id, max_pending=max_pending)


async def insert_deliveries(tx: Transaction, webhook_id: UUID, new: Sequence[NewDelivery]) -> list[Delivery]:
    """Store deliveries, except for sources that the webhook has had; the stored ones."""
    return await tx.fetch_objects(
        queries.insert_deliveries,
        Delivery,
        webhook_id=webhook_id,
        ids=[new_id() for _ in new],
        event_types=[each.event_type for each in new],
        sources=[each.source for each in new],
        times=[each.occurred_at for each in new],
        graph_ids=[each.graph_id for each in new],
        after_revisions=[each.after_revision for each in new],
        revisions=[each.revision for each in new],
        datas=[each.data for each in new],
    )


async def list_deliveries(
    tx: Transaction, webhook_id: UUID, *, status: str | None, before: UUID | None, limit: int
) -> list[Delivery]:
    """Deliveries of a webhook, newest first."""
    return await tx.fetch_objects(
        queries.list_deliveries, Delivery, webhook_id=webhook_id, status=status, before=before, limit=limit
    )


async def replay_delivery(tx: Transaction, webhook_id: UUID, delivery_id: UUID) -> Delivery | None:
    """Make a delivery due again; None if the webhook has no such one."""
    return await tx.fetch_object(queries.replay_delivery, Delivery, webhook_id=webhook_id, id=delivery_id)


async def replay_failed(tx: Transaction, webhook_id: UUID, *, since: datetime, limit: int) -> int:
    """Make given-up deliveries due again; how many."""
    return len(await tx.fetch(queries.replay_failed, webhook_id=webhook_id, since=since, limit=limit))


async def lock_claims(tx: Transaction) -> None:
    """Lock the tenant's deliveries against claims of other workers."""
    await tx.execute(queries.lock_claims)


async def claim_deliveries(tx: Transaction, *, lease: timedelta, each: int, limit: int) -> list[ClaimedDelivery]:
    """Claim due deliveries of the tenant for one attempt each."""
    return await tx.fetch_objects(
        queries.claim_deliveries, ClaimedDelivery, lease_id=uuid4(), lease=lease, each=each, limit=limit
    )


async def record_success(tx: Transaction, delivery: ClaimedDelivery, *, status: int) -> bool:
    """Record that a delivery was accepted; False if another worker has it."""
    recorded = await tx.fetchval(queries.record_success, id=delivery.id, lease_id=delivery.lease, status=status)
    return recorded is not None


async def record_failure(
    tx: Transaction, delivery: ClaimedDelivery, *, status: int | None, error: AttemptError, wait: timedelta | None
) -> bool:
    """Record a failed attempt, and the wait before the next one, if any; False if another worker has the delivery."""
    recorded = await tx.fetchval(
        queries.record_failure, id=delivery.id, lease_id=delivery.lease, status=status, error=error, wait=wait
    )
    return recorded is not None


async def note_success(tx: Transaction, webhook_id: UUID) -> None:
    """Record that an attempt at a webhook succeeded."""
    await tx.execute(queries.note_success, webhook_id=webhook_id)


async def note_failure(tx: Transaction, webhook_id: UUID, *, gone: bool, failing: timedelta) -> str | None:
    """Record that an attempt at a webhook failed; the reason if that disabled it, else None."""
    return await tx.fetchval(queries.note_failure, webhook_id=webhook_id, gone=gone, failing=failing)


async def remove_old(tx: Transaction, *, retention: timedelta, limit: int) -> bool:
    """Remove deliveries older than `retention`; whether there may be more."""
    return await tx.fetchval(queries.remove_old, retention=retention, limit=limit)


async def remove_surplus(tx: Transaction, webhook_id: UUID, *, max_stored: int) -> None:
    """Remove deliveries of a webhook beyond so many."""
    await tx.execute(queries.remove_surplus, webhook_id=webhook_id, max_stored=max_stored)
