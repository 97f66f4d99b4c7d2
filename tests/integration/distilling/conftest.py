"""A language model, a gateway that knows it, and a worker that asks it."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import asyncpg
import httpx2
import pytest

from recollect.caller import Caller
from recollect.outbound.http_client import Outbound
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from tests.support.chat_server import ChatServer, serving_model
from tests.support.gateway import RunningGateway, serving
from tests.support.jobs import Desk, employed

LOOPBACK = "127.0.0.1/32"


@pytest.fixture(scope="module")
def model() -> Iterator[ChatServer]:
    with serving_model() as server:
        yield server


@pytest.fixture(autouse=True)
def new_script(model: ChatServer) -> Iterator[None]:
    """Each test begins with a model that finds nothing."""
    yield
    model.answers.clear()
    model.requests.clear()
    model.requested.clear()
    model.answering.set()
    model.model, model.accepts = lambda turns: [], lambda request: True


@pytest.fixture(scope="module")
def distilling(settings: Settings, model: ChatServer) -> Settings:
    """Settings of an operator with a model, whose tenants may have theirs on loopback."""
    changed = {"distil_url": model.url, "distil_model": "scripted", "outbound_networks": [LOOPBACK]}
    return settings.model_copy(update=changed)


@pytest.fixture(scope="module")
def gateway(distilling: Settings) -> Iterator[RunningGateway]:
    with serving(distilling) as gateway:
        yield gateway


@pytest.fixture
async def worker(distilling: Settings, db: Database) -> AsyncIterator[WorkerContext]:
    outbound = Outbound(distilling)
    async with employed(distilling, db) as context:
        yield replace(context, outbound=outbound)
    await outbound.close()


@dataclass(frozen=True)
class Conversations:
    """A client that stores conversations and has them distilled."""

    http: httpx2.AsyncClient
    owner: asyncpg.Connection
    worker: WorkerContext
    desk: Desk

    async def say(self, *texts: str, thread: str = "support-1", graph: str = "default") -> list[str]:
        """Store turns of a conversation; their ids."""
        messages = [{"role": "user", "name": "Ada", "content": text} for text in texts]
        body = {"thread": thread, "messages": messages}
        response = await self.http.post(f"/v1/graphs/{graph}/conversations", json=body)
        assert response.status_code == 200, response.text
        return [memory["id"] for memory in response.json()["memories"]]

    async def start(self, *, thread: str = "support-1", **more: Any) -> dict[str, Any]:
        """Start a job."""
        response = await self.http.post("/v1/graphs/default/distil", json={"thread": thread, **more})
        assert response.status_code == 202, response.text
        job: dict[str, Any] = response.json()
        return job

    async def finish(self, job: dict[str, Any]) -> dict[str, Any]:
        """Let a worker do it, without waiting after failures; the job when it has ended."""
        for _ in range(20):
            await job_loop.sweep(self.worker)
            job = (await self.http.get(f"/v1/jobs/{job['id']}")).json()
            if job["finished_at"]:
                return job
            await self.owner.execute("UPDATE jobs SET next_attempt_at = now() WHERE id = $1", UUID(job["id"]))
        raise AssertionError(f"the job does not end: {job}")

    async def distil(self, **more: Any) -> dict[str, Any]:
        """Distil a thread; the job, which has succeeded."""
        job = await self.finish(await self.start(**more))
        assert job["status"] == "succeeded", job
        return job

    async def recalled(self, query: str = "Berlin tea", **more: Any) -> list[dict[str, Any]]:
        """What recall finds that was distilled, as agents get it."""
        body = {"query": query, "limit": 50, **more}
        response = await self.http.post("/v1/graphs/default/recall", json=body)
        assert response.status_code == 200, response.text
        return [memory for memory in response.json()["memories"] if memory.get("source") == "distilled"]

    async def derived(self) -> list[str]:
        """The texts of all live facts that were distilled, active or not, of the tenant."""
        rows = await self.owner.fetch(
            "SELECT content FROM nodes WHERE tenant_id = $1 AND removed_revision IS NULL AND source = 'distilled' "
            "AND status = 'active' ORDER BY content",
            self.desk.caller.tenant_id,
        )
        return [row["content"] for row in rows]

    async def fact(self, text: str) -> asyncpg.Record:
        """The row of a live fact."""
        row = await self.owner.fetchrow(
            "SELECT * FROM nodes WHERE tenant_id = $1 AND removed_revision IS NULL AND content = $2",
            self.desk.caller.tenant_id,
            text,
        )
        assert row is not None
        return row


@pytest.fixture
async def talk(
    http: httpx2.AsyncClient, owner: asyncpg.Connection, worker: WorkerContext, db: Database, caller: Caller
) -> Conversations:
    return Conversations(http, owner, worker, Desk(db, caller))
