"""Use cases of webhooks: create, list, change and delete them, rotate their secrets, send test events.

A webhook belongs to the tenant, as its graphs do, and outlives the credential that created it. So only admins without
an allow-list of graphs may create, see or change webhooks.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, Detail, changed_fields, named
from recollect.caller import Check, unconditional
from recollect.crypto.encryption import Cipher
from recollect.errors import Conflict, ErrorCode, InvalidInput, NotFound
from recollect.ids import new_id
from recollect.postgres.transactions import Transaction
from recollect.webhooks.deliveries import service as deliveries
from recollect.webhooks.deliveries.model import PURPOSE, Delivery, DeliveryStatus, NewDelivery, secret_binding
from recollect.webhooks.endpoints import store
from recollect.webhooks.endpoints.model import (
    MAX_OVERLAP,
    MAX_WEBHOOKS,
    IssuedWebhook,
    NewWebhook,
    Webhook,
    WebhookPatch,
    new_secret,
    shown_secret,
)
from recollect.webhooks.events import service as events
from recollect.webhooks.events.model import TEST, known_types

OF_THE_TENANT = " and cannot use webhooks, which belong to the whole tenant"


async def create_webhook(tx: Transaction, new: NewWebhook, *, pepper: bytes) -> IssuedWebhook:
    """Create a webhook, which gets events from now on; its secret is in the result and nowhere else.

    Raises InvalidInput, Conflict where the tenant has MAX_WEBHOOKS, Forbidden under an allow-list.
    """
    tx.caller.require_unconfined(OF_THE_TENANT)
    new.require_valid()
    webhook_id, secret = new_id(), new_secret()
    await store.lock_webhooks(tx)
    webhook = await store.insert_webhook(
        tx, webhook_id, new, secret=_encrypted(tx, webhook_id, secret, pepper), max_webhooks=MAX_WEBHOOKS
    )
    if webhook is None:
        raise Conflict(
            f"A tenant can have at most {MAX_WEBHOOKS} webhooks. Delete one first.", code=ErrorCode.TOO_MANY_WEBHOOKS
        )
    await events.begin(tx, webhook_id, new.event_types, new.graph_ids)
    await _record(tx, Action.WEBHOOK_CREATED, webhook_id)
    return IssuedWebhook(webhook, shown_secret(secret))


async def list_webhooks(tx: Transaction, *, after: UUID | None = None, limit: int = 50) -> list[Webhook]:
    """The tenant's webhooks, oldest first, disabled ones included. Raises Forbidden under an allow-list."""
    tx.caller.require_unconfined(OF_THE_TENANT)
    return await store.list_webhooks(tx, after=after, limit=limit)


async def get_webhook(tx: Transaction, webhook_id: UUID) -> Webhook:
    """A webhook. Raises NotFound, Forbidden under an allow-list."""
    tx.caller.require_unconfined(OF_THE_TENANT)
    return _found(await store.find_webhook(tx, webhook_id))


async def change_webhook(
    tx: Transaction, webhook_id: UUID, patch: WebhookPatch, *, check: Check[Webhook] = unconditional
) -> Webhook:
    """Change a webhook. It gets new types of events from now on, and changes of graphs from its present position.

    A webhook that is enabled again gets the events since it was disabled, and its pending deliveries. Raises NotFound,
    InvalidInput, Forbidden under an allow-list, and as `check` does.
    """
    tx.caller.require_unconfined(OF_THE_TENANT)
    webhook = _found(await store.lock_webhook(tx, webhook_id))
    check(webhook)
    patched = patch.applied_to(webhook)
    patched.require_valid()
    old_types = known_types(webhook.event_types)
    has_new_filter = frozenset(patched.event_types) != old_types or patched.graph_ids != webhook.graph_ids
    if has_new_filter:  # Earlier events are collected by the old filter.
        await events.collect(tx, only=webhook_id)
    changed = await store.update_webhook(tx, webhook_id, patched, anew=has_new_filter)
    if has_new_filter:
        await events.begin(tx, webhook_id, patched.event_types, patched.graph_ids, was=old_types)
    if patch.enabled is not None and patch.enabled is not webhook.enabled:
        change = store.enable_webhook if patch.enabled else store.disable_webhook
        changed = await change(tx, webhook_id)
    if fields := changed_fields(webhook, changed):
        await _record(tx, Action.WEBHOOK_CHANGED, webhook_id, fields=fields)
    return changed


async def delete_webhook(tx: Transaction, webhook_id: UUID) -> None:
    """Delete a webhook with its deliveries. Raises NotFound, Forbidden under an allow-list."""
    tx.caller.require_unconfined(OF_THE_TENANT)
    if not await store.delete_webhook(tx, webhook_id):
        raise _no_webhook()
    await _record(tx, Action.WEBHOOK_DELETED, webhook_id)


async def rotate_secret(tx: Transaction, webhook_id: UUID, *, overlap: timedelta, pepper: bytes) -> IssuedWebhook:
    """Give a webhook another secret; the old one signs, too, until the overlap ends.

    Raises NotFound, InvalidInput for an overlap out of bounds, Forbidden under an allow-list.
    """
    tx.caller.require_unconfined(OF_THE_TENANT)
    if not timedelta(0) <= overlap <= MAX_OVERLAP:
        raise InvalidInput(f"Must be between 0 and {MAX_OVERLAP.days * 24} hours", path="overlap_hours")
    secret = new_secret()
    encrypted = _encrypted(tx, webhook_id, secret, pepper)
    webhook = _found(await store.replace_secret(tx, webhook_id, secret=encrypted, overlap=overlap))
    await _record(tx, Action.WEBHOOK_SECRET_ROTATED, webhook_id)
    return IssuedWebhook(webhook, shown_secret(secret))


async def test_webhook(tx: Transaction, webhook_id: UUID) -> Delivery:
    """Send a webhook a test event. Raises NotFound, Conflict, Forbidden under an allow-list."""
    await _require_enabled(tx, webhook_id)
    await deliveries.require_room(tx, webhook_id)
    now = datetime.now(UTC)
    [delivery] = await deliveries.add(
        tx, webhook_id, [NewDelivery(TEST, f"{TEST}:{new_id()}", now, {"webhook": webhook_id})]
    )
    return delivery


async def list_deliveries(
    tx: Transaction,
    webhook_id: UUID,
    *,
    status: DeliveryStatus | None = None,
    before: UUID | None = None,
    limit: int = 50,
) -> Sequence[Delivery]:
    """A webhook's deliveries, newest first. Raises NotFound, Forbidden under an allow-list."""
    await get_webhook(tx, webhook_id)
    return await deliveries.list_deliveries(tx, webhook_id, status=status, before=before, limit=limit)


async def replay(tx: Transaction, webhook_id: UUID, delivery_id: UUID) -> Delivery:
    """Send a delivery again, under its id. Raises NotFound, Conflict, Forbidden under an allow-list."""
    await _require_enabled(tx, webhook_id)
    return await deliveries.replay(tx, webhook_id, delivery_id)


async def replay_failed(tx: Transaction, webhook_id: UUID, *, since: datetime) -> tuple[int, bool]:
    """Send again the given-up deliveries of events since a time; how many, and whether more may be left.

    Raises NotFound, Conflict for a webhook that is disabled, Forbidden under an allow-list.
    """
    await _require_enabled(tx, webhook_id)
    return await deliveries.replay_failed(tx, webhook_id, since=since)


def cipher_of(pepper: bytes) -> Cipher:
    """The cipher of webhook secrets, derived from the secret that keys are hashed with."""
    return Cipher.of(pepper, purpose=PURPOSE)


async def _require_enabled(tx: Transaction, webhook_id: UUID) -> None:
    webhook = await get_webhook(tx, webhook_id)
    if not webhook.enabled:
        raise Conflict("This webhook is disabled. Enable it first.", code=ErrorCode.WEBHOOK_DISABLED)


async def _record(tx: Transaction, action: Action, webhook_id: UUID, **details: Detail) -> None:
    await audit.record(tx, action, named("webhook", webhook_id), **details)


def _encrypted(tx: Transaction, webhook_id: UUID, secret: bytes, pepper: bytes) -> bytes:
    return cipher_of(pepper).encrypt(secret, bound_to=secret_binding(tx.tenant_id, webhook_id))


def _found(webhook: Webhook | None) -> Webhook:
    if webhook is None:
        raise _no_webhook()
    return webhook


def _no_webhook() -> NotFound:
    return NotFound("There is no such webhook.", code=ErrorCode.WEBHOOK_NOT_FOUND)
