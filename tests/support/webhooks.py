"""Webhooks for tests: a receiver on loopback, a worker that sends, and a desk that creates and reads webhooks."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
from standardwebhooks import Webhook as Verifier

from recollect.caller import Caller
from recollect.embedding import create_embedder
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.outbound.http_client import Outbound
from recollect.postgres.database import Database
from recollect.retention.erasure import service as erasure
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import Wakeups
from recollect.webhooks.deliveries.model import Delivery
from recollect.webhooks.endpoints import service as webhooks
from recollect.webhooks.endpoints.model import IssuedWebhook, NewWebhook, Webhook, WebhookPatch
from recollect.webhooks.events.model import EventType
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import webhooks as worker
from tests.support.web_server import Answering, WebServer, plain, web_server

OK = plain(b"")
LOOPBACK = "127.0.0.1/32"
"""The networks in which receivers may be reached, unlike other addresses of this machine."""


def headers_of(head: bytes) -> dict[str, str]:
    """The headers of a request, by their names in lower case."""
    lines = [line.split(": ", 1) for line in head.decode().split("\r\n")[1:] if line]
    return {name.lower(): value for name, value in lines}


@dataclass
class Receiver:
    """Answers each request with the next of `answers`, the last of which repeats."""

    server: WebServer = field(default_factory=WebServer)
    answers: list[Answering] = field(default_factory=lambda: [OK])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/hook"

    @property
    def ids(self) -> list[str]:
        """The `webhook-id` of each request."""
        return [headers_of(head)["webhook-id"] for head, _ in self.server.requests]

    def events(self, secret: str) -> list[dict[str, Any]]:
        """The event of each request, which the official library has verified."""
        return [Verifier(secret).verify(body, headers_of(head)) for head, body in self.server.requests]

    async def answer(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        await answer(head, writer)


@asynccontextmanager
async def receiving(*answers: Answering, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Receiver]:
    """A receiver, for as long as the context lasts."""
    receiver = Receiver(answers=list(answers) or [OK])
    async with web_server(receiver.answer, host=host, port=port) as receiver.server:
        yield receiver


@asynccontextmanager
async def sending(settings: Settings, db: Database, **changed: Any) -> AsyncIterator[WorkerContext]:
    """The context of a worker that may send to receivers on loopback."""
    told: dict[str, Any] = {"outbound_networks": [LOOPBACK]} | changed
    settings = settings.model_copy(update=told)
    outbound = Outbound(settings)
    async with connect_redis(settings) as redis:
        wakeups = Wakeups(redis)
        yield WorkerContext(settings, db, create_embedder(settings), wakeups, asyncio.Event(), outbound=outbound)
        await wakeups.aclose()
    await outbound.close()


@dataclass(frozen=True)
class WebhookDesk:
    """Creates webhooks for a caller, makes events, and lets a worker deliver them."""

    db: Database
    caller: Caller
    owner: asyncpg.Connection
    worker: WorkerContext

    @property
    def pepper(self) -> bytes:
        return self.worker.settings.key_secret.get_secret_value().encode()

    async def make(
        self, url: str, *types: EventType, graph_ids: Sequence[UUID] | None = None, description: str = ""
    ) -> IssuedWebhook:
        """Create a webhook, for changes of graphs unless other events are named."""
        chosen = None if graph_ids is None else tuple(graph_ids)
        new = NewWebhook(url, types or (EventType.GRAPH_CHANGED,), description, chosen)
        async with self.db.transaction(self.caller) as tx:
            return await webhooks.create_webhook(tx, new, pepper=self.pepper)

    async def look(self, webhook_id: UUID) -> Webhook:
        async with self.db.transaction(self.caller, read_only=True) as tx:
            return await webhooks.get_webhook(tx, webhook_id)

    async def change(self, webhook_id: UUID, **changed: Any) -> Webhook:
        async with self.db.transaction(self.caller) as tx:
            return await webhooks.change_webhook(tx, webhook_id, WebhookPatch(**changed))

    async def rotate(self, webhook_id: UUID, **overlap: float) -> IssuedWebhook:
        async with self.db.transaction(self.caller) as tx:
            return await webhooks.rotate_secret(tx, webhook_id, overlap=timedelta(**overlap), pepper=self.pepper)

    async def test(self, webhook_id: UUID) -> Delivery:
        async with self.db.transaction(self.caller) as tx:
            return await webhooks.test_webhook(tx, webhook_id)

    async def deliveries(self, webhook_id: UUID, **only: Any) -> list[Delivery]:
        """The deliveries, newest first."""
        async with self.db.transaction(self.caller, read_only=True) as tx:
            return list(await webhooks.list_deliveries(tx, webhook_id, **only))

    async def replay(self, webhook_id: UUID, delivery_id: UUID) -> Delivery:
        async with self.db.transaction(self.caller) as tx:
            return await webhooks.replay(tx, webhook_id, delivery_id)

    async def graph(self, name: str) -> UUID:
        """Create a graph."""
        async with self.db.transaction(self.caller) as tx:
            return (await graphs.create_graph(tx, NewGraph(name))).id

    async def delete_graph(self, name: str) -> None:
        async with self.db.transaction(self.caller) as tx:
            await erasure.erase_graph(tx, name)

    async def write(self, *names: str, graph: str = "default") -> None:
        """Create entities, each in its own revision."""
        for name in names:
            async with (
                self.db.transaction(self.caller) as tx,
                graphs.write_graph(tx, graph, "create_entities") as revision,
            ):
                await entities.create_entities(tx, revision, [NewEntity(name, "person", ("likes tea",))])

    async def tell(self) -> None:
        """Do what a worker does: look for events, and send what is due."""
        await worker.collect(self.worker)
        await worker.send(self.worker)

    async def wait_no_longer(self) -> None:
        """End every wait for another attempt."""
        await self.owner.execute(
            "UPDATE webhook_deliveries SET next_attempt_at = now() WHERE tenant_id = $1 AND next_attempt_at > now()",
            self.caller.tenant_id,
        )


@asynccontextmanager
async def at_desk(
    settings: Settings, db: Database, owner: asyncpg.Connection, caller: Caller, **changed: Any
) -> AsyncIterator[WebhookDesk]:
    """A desk, without webhooks of other tests, because a worker works for every tenant."""
    await owner.execute("DELETE FROM webhooks")
    async with sending(settings, db, **changed) as context:
        yield WebhookDesk(db, caller, owner, context)
