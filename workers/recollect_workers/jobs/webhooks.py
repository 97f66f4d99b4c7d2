"""Deliver events to webhooks: collect new events, send due deliveries.

A turn is a few requests of one tenant, sent at once; then the tenant waits behind the others. So a tenant with a
thousand deliveries, or with slow addresses, delays no other tenant. No transaction is open during a request: a delivery
is claimed under a lease in one transaction, and its outcome is recorded in another. If a worker dies in between, the
delivery is sent again when its lease ends, under the same id.
"""

import asyncio
from datetime import timedelta
from functools import partial
from uuid import UUID

import structlog

from recollect.accounts.identity.model import worker_caller
from recollect.outbound.http_client import AT_ONCE_EACH, OutboundFailed
from recollect.telemetry.metrics import record_webhook_attempt
from recollect.webhooks.deliveries import service as deliveries
from recollect.webhooks.deliveries.model import AttemptError, DeliveryContent, Outcome, outcome_of, signed_headers
from recollect.webhooks.endpoints.service import cipher_of
from recollect.webhooks.events import service as events
from recollect_workers.context import WorkerContext
from recollect_workers.failure_logging import FailureLogger
from recollect_workers.time_slices import TimeSlices, run_slices

RECORDING = timedelta(seconds=60)
"""How long a lease lasts beyond the longest request, to record the outcome."""

log = structlog.get_logger(__name__)


async def collect(context: WorkerContext) -> None:
    """Create deliveries for new events. Raises Unavailable when the database is unreachable.

    Any number of workers may do this at once: each takes webhooks that no other has locked.
    """
    for tenant_id in context.until_stopping(await events.tenants_with_news(context.database)):
        with FailureLogger("webhook events not collected", tenant_id):
            async with context.database.transaction(worker_caller(tenant_id)) as tx:
                found = await events.collect(tx)
            if found:
                context.webhooks_due.set()


async def send(context: WorkerContext) -> None:
    """Send due deliveries until none is left. Raises Unavailable when the database is unreachable.

    A worker runs one such sweep at a time, which bounds the number of requests.
    """
    slices = TimeSlices(context.settings.webhook_tenants_at_once)
    await run_slices(
        slices, partial(_start_round, context, slices), due=context.webhooks_due, stopping=context.stopping
    )


async def _start_round(context: WorkerContext, slices: TimeSlices) -> bool:
    """Begin a turn for each tenant that has something due and no turn; True if there was any."""
    started = False
    for tenant_id in await deliveries.tenants_with_due(context.database):
        await slices.wait_for_capacity()
        if context.stopping.is_set():
            break
        if slices.has(tenant_id):
            continue
        messages = await _claim(context, tenant_id)
        if messages:
            slices.begin(tenant_id, _run_slice(context, tenant_id, messages))
            started = True
    return started


async def _claim(context: WorkerContext, tenant_id: UUID) -> list[DeliveryContent]:
    lease = timedelta(seconds=context.settings.outbound_seconds) + RECORDING
    with FailureLogger("deliveries not claimed", tenant_id):
        async with context.database.transaction(worker_caller(tenant_id)) as tx:
            return await deliveries.claim(tx, lease=lease, limit=AT_ONCE_EACH)
    return []


async def _run_slice(context: WorkerContext, tenant_id: UUID, messages: list[DeliveryContent]) -> None:
    """Send the claimed deliveries, and record their outcomes. Never raises."""
    await asyncio.gather(*(_deliver(context, tenant_id, message) for message in messages))


async def _deliver(context: WorkerContext, tenant_id: UUID, message: DeliveryContent) -> None:
    fields = {"webhook": str(message.delivery.webhook_id), "delivery": str(message.delivery.id)}
    with FailureLogger("delivery attempt not recorded", tenant_id, **fields):
        outcome = await attempt(context, tenant_id, message)
        record_webhook_attempt(str(outcome.error or "delivered"))
        async with context.database.transaction(worker_caller(tenant_id)) as tx:
            disabled_reason = await deliveries.record(tx, message.delivery, outcome)
        if outcome.error is not None:
            log.info("webhook delivery failed", tenant=str(tenant_id), **fields, error=str(outcome.error))
        if disabled_reason is not None:
            log.warning("webhook disabled", tenant=str(tenant_id), **fields, reason=disabled_reason)


async def attempt(context: WorkerContext, tenant_id: UUID, message: DeliveryContent) -> Outcome:
    """Send a delivery once; the outcome."""
    assert context.outbound is not None
    cipher = cipher_of(context.settings.pepper)
    try:
        headers = signed_headers(message, cipher, tenant_id)
    except ValueError:
        log.error("cannot decrypt webhook secret with RECOLLECT_KEY_SECRET", tenant=str(tenant_id))
        return Outcome(error=AttemptError.SECRET_UNREADABLE)
    try:
        answer = await context.outbound.post(
            message.delivery.url, message.body, on_behalf_of=tenant_id, headers=headers
        )
    except OutboundFailed:
        return Outcome(error=AttemptError.NO_ANSWER)
    return outcome_of(answer.status, answer.headers.get("retry-after"))
