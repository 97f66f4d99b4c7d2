"""Webhooks when a worker is killed during a delivery, several workers send at once, or Valkey is away."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_workers.jobs import webhooks as worker
from tests.support.webhooks import LOOPBACK, OK, Receiver, WebhookDesk, at_desk, receiving
from tests.support.workers import working


@pytest.fixture
async def desk(
    settings: Settings, db: Database, owner: asyncpg.Connection, caller: Caller
) -> AsyncIterator[WebhookDesk]:
    async with at_desk(settings, db, owner, caller) as desk:
        yield desk


@pytest.fixture
def of_workers(settings: Settings) -> Settings:
    """Settings of worker processes that may send to receivers on loopback, and have no Valkey."""
    return settings.model_copy(
        update={"outbound_networks": [LOOPBACK], "sweep_seconds": 1, "redis_url": "redis://127.0.0.1:9/0"}
    )


async def test_a_delivery_of_a_killed_worker_is_sent_again_under_its_id(
    desk: WebhookDesk, of_workers: Settings, tmp_path: Path
) -> None:
    never = asyncio.Event()

    async def silent(_: bytes, writer: asyncio.StreamWriter) -> None:
        await never.wait()

    async with receiving(silent, OK) as receiver:
        made = await desk.make(receiver.url)
        await desk.write("Ada")
        with working(of_workers, tmp_path) as killed:
            await receiver.server.wait_for_requests(1)
            killed.stop(signal.SIGKILL)
        await worker.send(desk.worker)
        assert len(receiver.ids) == 1, "its lease lasts on"
        await desk.owner.execute("UPDATE webhook_deliveries SET claimed_until = now() WHERE claimed_until > now()")
        await worker.send(desk.worker)
        [delivery] = await desk.deliveries(made.webhook.id)
        assert (delivery.status, delivery.attempts) == ("delivered", 2)
        assert receiver.ids == [str(delivery.id)] * 2
        assert receiver.events(made.secret)[0] == receiver.events(made.secret)[1]
        never.set()


async def test_several_workers_send_each_event_once(desk: WebhookDesk, of_workers: Settings, tmp_path: Path) -> None:
    async with receiving() as receiver:
        made = await desk.make(receiver.url)
        with working(of_workers, tmp_path), working(of_workers, tmp_path):
            for number in range(4):
                await desk.write(f"{number}a", f"{number}b")
                await desk.test(made.webhook.id)
            while await received(receiver, made.secret) < 12:
                await receiver.server.wait_for_requests(len(receiver.ids) + 1)
        assert len(receiver.ids) == len(set(receiver.ids))
        assert await received(receiver, made.secret) == 12


async def received(receiver: Receiver, secret: str) -> int:
    """The number of received changes and tests."""
    return sum(len(event["data"].get("changes", [None])) for event in receiver.events(secret))


async def test_an_outcome_that_is_recorded_too_late_changes_nothing(desk: WebhookDesk) -> None:
    """The lease is over, and another worker has the delivery."""
    async with receiving() as receiver:
        made = await desk.make(receiver.url)
        await desk.test(made.webhook.id)
        [late] = await worker._claim(desk.worker, desk.caller.tenant_id)
        await desk.owner.execute("UPDATE webhook_deliveries SET claimed_until = now()")
        [message] = await worker._claim(desk.worker, desk.caller.tenant_id)
        await worker._deliver(desk.worker, desk.caller.tenant_id, late)
        [delivery] = await desk.deliveries(made.webhook.id)
        assert (delivery.status, delivery.attempts) == ("pending", 2)
        await worker._deliver(desk.worker, desk.caller.tenant_id, message)
        [delivery] = await desk.deliveries(made.webhook.id)
        assert delivery.status == "delivered"


async def test_a_webhook_that_is_deleted_during_a_delivery_is_no_error(desk: WebhookDesk) -> None:
    async with receiving() as receiver:
        made = await desk.make(receiver.url)
        await desk.test(made.webhook.id)
        [message] = await worker._claim(desk.worker, desk.caller.tenant_id)
        await desk.owner.execute("DELETE FROM webhooks")
        await worker._deliver(desk.worker, desk.caller.tenant_id, message)
        await worker.send(desk.worker)
        assert receiver.ids == [str(message.delivery.id)]
