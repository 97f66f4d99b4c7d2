"""Use cases of deliveries: add and list them, claim them for an attempt, record its outcome, replay them.

Delivery is at least once: if a worker dies between sending and recording, the delivery is sent again under the same id.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.errors import Conflict, ErrorCode, NotFound
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from recollect.postgres.transactions import Transaction
from recollect.webhooks.deliveries import store
from recollect.webhooks.deliveries.model import (
    AT_ONCE_EACH,
    FAILING_FOR,
    MAX_CHANGES,
    MAX_PENDING,
    MAX_STORED,
    SEND_WEBHOOKS,
    AttemptError,
    ClaimedDelivery,
    Delivery,
    DeliveryContent,
    DeliveryStatus,
    NewDelivery,
    Outcome,
    changes_data,
    event_body,
    wait_after,
)

REMOVED_AT_ONCE = 1_000
"""The most deliveries that one transaction removes."""


async def tenants_with_due(db: Database) -> list[UUID]:
    """Active tenants that have a due delivery."""
    async with db.system() as session:
        return await store.tenants_with_due(session)


async def tenants_with_old(db: Database, *, retention: timedelta) -> list[UUID]:
    """Active tenants with deliveries older than `retention`."""
    async with db.system() as session:
        return await store.tenants_with_old(session, retention=retention)


async def room(tx: Transaction, webhook_id: UUID) -> int:
    """How many more deliveries a webhook may have pending."""
    return MAX_PENDING - await store.count_pending(tx, webhook_id, max_pending=MAX_PENDING)


async def add(tx: Transaction, webhook_id: UUID, new: Sequence[NewDelivery]) -> list[Delivery]:
    """Have events sent to a webhook once this transaction has committed, except for sources that it has had."""
    if not new:
        return []
    added = await store.insert_deliveries(tx, webhook_id, new)
    await store.remove_surplus(tx, webhook_id, max_stored=MAX_STORED)
    tx.wake(SEND_WEBHOOKS)
    return added


async def list_deliveries(
    tx: Transaction,
    webhook_id: UUID,
    *,
    status: DeliveryStatus | None = None,
    before: UUID | None = None,
    limit: int = 50,
) -> list[Delivery]:
    """Deliveries of a webhook, newest first, before the id `before`."""
    return await store.list_deliveries(tx, webhook_id, status=status, before=before, limit=limit)


async def replay(tx: Transaction, webhook_id: UUID, delivery_id: UUID) -> Delivery:
    """Send a delivery again under its id, in whatever state it is. Raises NotFound, Conflict where too many wait."""
    await require_room(tx, webhook_id)
    delivery = await store.replay_delivery(tx, webhook_id, delivery_id)
    if delivery is None:
        raise NotFound("There is no such delivery. Old deliveries are removed.", code=ErrorCode.DELIVERY_NOT_FOUND)
    tx.wake(SEND_WEBHOOKS)
    return delivery


async def replay_failed(tx: Transaction, webhook_id: UUID, *, since: datetime) -> tuple[int, bool]:
    """Send again the given-up deliveries of events since a time, the oldest first, as far as there is room.

    Returns how many there were, and whether more may be left for another call.
    """
    free = await room(tx, webhook_id)
    replayed = await store.replay_failed(tx, webhook_id, since=since, limit=max(free, 0))
    tx.wake(SEND_WEBHOOKS)
    return replayed, replayed >= free


async def require_room(tx: Transaction, webhook_id: UUID) -> None:
    """Raise Conflict where a webhook has the most pending deliveries that it may."""
    if await room(tx, webhook_id) < 1:
        raise Conflict(
            f"{MAX_PENDING} deliveries of this webhook still have to be sent. Wait until some of them are sent.",
            code=ErrorCode.TOO_MANY_DELIVERIES,
        )


async def claim(tx: Transaction, *, lease: timedelta, limit: int) -> list[DeliveryContent]:
    """Claim due deliveries of the tenant for one attempt each; no other worker gets them while the lease lasts."""
    await store.lock_claims(tx)
    claimed = await store.claim_deliveries(tx, lease=lease, each=AT_ONCE_EACH, limit=limit)
    return [await _message(tx, delivery) for delivery in claimed]


async def record(tx: Transaction, delivery: ClaimedDelivery, outcome: Outcome) -> str | None:
    """Record the outcome of an attempt; the reason if it disabled the webhook, else None.

    If another worker has claimed the delivery since, the delivery is unchanged. The webhook's row is locked
    first, as in its deletion, so that they cannot deadlock.
    """
    if outcome.error is None:
        await store.note_success(tx, delivery.webhook_id)
        await store.record_success(tx, delivery, status=outcome.status or 0)
        return None
    reason = None
    if outcome.error is not AttemptError.SECRET_UNREADABLE:  # A fault of ours, for which nobody's webhook is disabled.
        gone = outcome.error is AttemptError.GONE
        reason = await store.note_failure(tx, delivery.webhook_id, gone=gone, failing=FAILING_FOR)
    if reason is not None:
        await audit.record(tx, Action.WEBHOOK_DISABLED, named("webhook", delivery.webhook_id), reason=reason)
    wait = wait_after(delivery.attempts, outcome)
    await store.record_failure(tx, delivery, status=outcome.status, error=outcome.error, wait=wait)
    return reason


async def remove_old(tx: Transaction, *, retention: timedelta) -> bool:
    """Remove deliveries older than `retention`, sent or not; whether there may be more."""
    return await store.remove_old(tx, retention=retention, limit=REMOVED_AT_ONCE)


async def _message(tx: Transaction, delivery: ClaimedDelivery) -> DeliveryContent:
    if delivery.graph_id is None:
        return DeliveryContent(delivery, event_body(delivery, delivery.data or {}))
    assert delivery.after_revision is not None
    assert delivery.revision is not None
    found = await graphs.changes_of(tx, delivery.graph_id, since=delivery.after_revision, limit=MAX_CHANGES)
    changes = [change for change in found if change.revision <= delivery.revision]
    data = changes_data(delivery.graph_id, delivery.after_revision, delivery.revision, changes)
    return DeliveryContent(delivery, event_body(delivery, data))
