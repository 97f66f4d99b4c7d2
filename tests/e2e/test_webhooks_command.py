"""`recollect webhooks` as a user types it, against a gateway that listens."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.support.commands import Shell
from tests.support.gateway import RunningGateway, serving
from tests.support.web_server import plain
from tests.support.webhooks import LOOPBACK, OK, WebhookDesk, at_desk, receiving


@pytest.fixture
async def desk(
    settings: Settings, db: Database, owner: asyncpg.Connection, caller: Caller
) -> AsyncIterator[WebhookDesk]:
    async with at_desk(settings, db, owner, caller) as desk:
        yield desk


async def test_webhooks_are_created_listed_replayed_and_deleted(
    settings: Settings, admin_key: str, desk: WebhookDesk, tmp_path: Path
) -> None:
    gone = plain(b"", status="410 Gone")
    with serving(settings.model_copy(update={"outbound_networks": [LOOPBACK]})) as gateway:
        shell = Shell(tmp_path, {"RECOLLECT_URL": gateway.url, "RECOLLECT_API_KEY": admin_key})
        async with receiving(OK, gone) as receiver:
            made = await shell.run("webhooks", "create", receiver.url, "--event", "graph.changed", "--graph", "default")
            assert (made.code, made.err) == (0, "")
            webhook_id, secret = made.out.decode().strip().split("\t")
            await desk.write("Ada")
            await desk.tell()
            sent = (await shell.run("webhooks", "deliveries", webhook_id, "--status", "delivered")).out.decode()
            delivery_id, event, status, attempts, answer, error, _ = sent.strip().split("\t")
            assert (event, status, attempts, answer, error) == ("graph.changed", "delivered", "1", "200", "-")
            assert (await shell.run("webhooks", "replay", webhook_id, delivery_id)).code == 0
            await desk.tell()
            assert [event["type"] for event in receiver.events(secret)] == ["graph.changed"] * 2
            listed = await shell.run("webhooks", "list")
            assert listed.out.decode() == f"{webhook_id}\t{receiver.url}\tgraph.changed\tdisabled: gone\n"
            await desk.owner.execute("UPDATE webhooks SET enabled = true, disabled_reason = NULL, disabled_at = NULL")
            again = await shell.run("webhooks", "replay", webhook_id, "--since", "2026-01-01")
            assert again.out == b"deliveries to send again: 1\n"
        assert (await shell.run("webhooks", "delete", webhook_id)).code == 0
        assert await desk.owner.fetchval("SELECT count(*) FROM webhooks") == 0


async def test_invalid_arguments_are_reported(gateway: RunningGateway, admin_key: str, tmp_path: Path) -> None:
    shell = Shell(tmp_path, {"RECOLLECT_URL": gateway.url, "RECOLLECT_API_KEY": admin_key})
    odd = await shell.run("webhooks", "create", "https://example.com/", "--event", "graph.painted")
    assert (odd.code, "graph.painted" in odd.err) == (1, True)
    both = await shell.run("webhooks", "replay", str(uuid4()))
    assert (both.code, "--since" in both.err) == (1, True)
