"""One function per query of `queries.sql`."""

from datetime import timedelta
from uuid import UUID

import asyncpg

from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction
from recollect.webhooks.endpoints.model import NewWebhook, Webhook

queries = Queries(__package__)


async def lock_webhooks(tx: Transaction) -> None:
    """Lock the tenant's webhooks against additions until the transaction ends."""
    await tx.execute(queries.lock_webhooks)


async def insert_webhook(
    tx: Transaction, webhook_id: UUID, new: NewWebhook, *, secret: bytes, max_webhooks: int
) -> Webhook | None:
    """Store a webhook with its encrypted secret; None where the tenant has `max_webhooks`."""
    row = await tx.fetchrow(
        queries.insert_webhook,
        id=webhook_id,
        url=new.url,
        description=new.description,
        event_types=list(new.event_types),
        graph_ids=new.graph_ids,
        secret=secret,
        subject=tx.caller.subject,
        max_webhooks=max_webhooks,
    )
    return _webhook(row) if row else None


async def list_webhooks(tx: Transaction, *, after: UUID | None, limit: int) -> list[Webhook]:
    """The tenant's webhooks, oldest first."""
    return [_webhook(row) for row in await tx.fetch(queries.list_webhooks, after=after, limit=limit)]


async def find_webhook(tx: Transaction, webhook_id: UUID) -> Webhook | None:
    """A webhook, or None."""
    row = await tx.fetchrow(queries.find_webhook, id=webhook_id)
    return _webhook(row) if row else None


async def lock_webhook(tx: Transaction, webhook_id: UUID) -> Webhook | None:
    """A webhook, locked until the transaction ends; or None."""
    row = await tx.fetchrow(queries.lock_webhook, id=webhook_id)
    return _webhook(row) if row else None


async def update_webhook(tx: Transaction, webhook_id: UUID, patched: NewWebhook, *, anew: bool) -> Webhook:
    """Store the address and the filter of an existing webhook."""
    row = await tx.fetchrow(
        queries.update_webhook,
        id=webhook_id,
        url=patched.url,
        description=patched.description,
        event_types=list(patched.event_types),
        graph_ids=patched.graph_ids,
        anew=anew,
    )
    assert row is not None
    return _webhook(row)


async def enable_webhook(tx: Transaction, webhook_id: UUID) -> Webhook:
    """Enable an existing webhook."""
    row = await tx.fetchrow(queries.enable_webhook, id=webhook_id)
    assert row is not None
    return _webhook(row)


async def disable_webhook(tx: Transaction, webhook_id: UUID) -> Webhook:
    """Disable an existing webhook."""
    row = await tx.fetchrow(queries.disable_webhook, id=webhook_id)
    assert row is not None
    return _webhook(row)


async def replace_secret(tx: Transaction, webhook_id: UUID, *, secret: bytes, overlap: timedelta) -> Webhook | None:
    """Give a webhook another secret; None if the tenant has no such one."""
    row = await tx.fetchrow(queries.replace_secret, id=webhook_id, secret=secret, overlap=overlap)
    return _webhook(row) if row else None


async def delete_webhook(tx: Transaction, webhook_id: UUID) -> bool:
    """Delete a webhook; False where there is none."""
    return await tx.fetchval(queries.delete_webhook, id=webhook_id) is not None


def _webhook(row: asyncpg.Record) -> Webhook:
    graph_ids = row["graph_ids"]
    return Webhook(
        **{
            **row,
            "event_types": tuple(row["event_types"]),
            "graph_ids": None if graph_ids is None else tuple(graph_ids),
        }
    )
