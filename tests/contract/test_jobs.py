"""Jobs in the tools of toolset `admin` and the routes under /v1/jobs, while a worker runs."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller, Scope
from recollect.embedding import create_embedder
from recollect.jobs import service as jobs
from recollect.jobs.kinds import KINDS, REINDEX_PASSAGES
from recollect.jobs.model import JobBounds, NewJob
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from recollect_gateway.mcp_endpoint.tools.admin import get_job
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import embedding
from tests.conftest import NewTenant
from tests.support.gateway import MODES, NewApiKey, RunningGateway, eventually, rpc_headers
from tests.support.jobs import COPY, COUNT, REFUSE, Desk, effects, has_begun
from tests.support.quick_embedder import OF_WORDLLAMA
from tests.support.timeouts import MAX_WAIT_SECONDS

PATH = "/mcp/x/admin"


@pytest.fixture
async def http(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(key, **rpc_headers()) as http:
        yield http


@pytest.fixture
async def stranger(
    gateway: RunningGateway, issue: NewApiKey, new_tenant: NewTenant
) -> AsyncIterator[httpx2.AsyncClient]:
    """An admin of another tenant."""
    issued = await issue(operator_caller(await new_tenant()), kind="admin")
    async with gateway.http(issued.secret, **rpc_headers()) as http:
        yield http


class TestTools:
    async def call(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, tool: str, **arguments: Any
    ) -> dict[str, Any]:
        result = await gateway.call(http, tool, arguments, path=PATH)
        assert not result["isError"], result
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    async def refused(self, gateway: RunningGateway, http: httpx2.AsyncClient, tool: str, **arguments: Any) -> str:
        result = await gateway.call(http, tool, arguments, path=PATH)
        assert result["isError"], result
        code: str = result["_meta"][ERROR_META]["code"]
        return code

    @pytest.mark.proves("admin: reindex")
    async def test_an_equal_job_is_started_once_and_succeeds(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, context: WorkerContext
    ) -> None:
        entities = [{"name": "Ada", "entityType": "person", "observations": ["likes tea"]}]
        await gateway.call(http, "create_entities", {"entities": entities})
        started = await self.call(gateway, http, "reindex")
        assert (started["kind"], started["status"], started["graph"]) == ("reindex_passages", "queued", "default")
        assert started["created_by"].startswith("key:")
        assert (await self.call(gateway, http, "reindex"))["id"] == started["id"]
        await job_loop.sweep(context)
        done = await self.call(gateway, http, "get_job", id=started["id"])
        assert (done["status"], done["done"], done["total"], done["result"]) == ("succeeded", 1, 1, {"nodes": 1})
        assert "error" not in done
        assert (await self.call(gateway, http, "reindex"))["id"] != started["id"]

    @OF_WORDLLAMA
    @pytest.mark.proves("admin: reembed")
    async def test_a_graph_is_reembedded_with_another_model_and_back(
        self,
        gateway: RunningGateway,
        http: httpx2.AsyncClient,
        context: WorkerContext,
        caller: Caller,
        owner: asyncpg.Connection,
    ) -> None:
        old, new = context.embedder, create_embedder(Settings(embedder="minilm"))
        during = replace(context, embedder=new, previous=old)

        async def reembedded(model: str | None, **arguments: Any) -> dict[str, Any]:
            job = await self.call(gateway, http, "reembed", model=model, **arguments)
            assert (job["kind"], job["status"], job["graph"]) == ("reembed_passages", "queued", "default")
            assert (await self.call(gateway, http, "reembed", model=model, **arguments))["id"] == job["id"]
            await job_loop.sweep(during)
            return await self.call(gateway, http, "get_job", id=job["id"])

        async def models() -> set[str]:
            query = "SELECT embedding_model FROM passages WHERE tenant_id = $1 AND removed_revision IS NULL"
            return {row["embedding_model"] for row in await owner.fetch(query, caller.tenant_id)}

        entities = [{"name": "Ada", "entityType": "person", "observations": ["likes tea"]}]
        await gateway.call(http, "create_entities", {"entities": entities})
        await embedding.embed_passages(context, caller.tenant_id, {})
        assert await models() == {old.model}
        there = await reembedded(None)
        assert (there["status"], there["result"]) == ("succeeded", {"model": new.model, "passages": 1, "embedded": 1})
        assert await models() == {new.model}
        back = await reembedded(old.model, drop_old=True)
        assert (back["status"], back["result"]) == ("succeeded", {"model": old.model, "passages": 1, "embedded": 0})
        assert await models() == {old.model}
        unknown = await reembedded("nobody/none")
        assert (unknown["status"], unknown["error"]["code"]) == ("failed", "invalid_input")
        await new.close()

    async def test_a_job_for_an_unknown_graph_is_refused(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        for tool in ("reindex", "reembed"):
            assert await self.refused(gateway, http, tool, graph="nowhere") == "graph_not_found"
        assert await self.call(gateway, http, "list_jobs", graph="nowhere") == {"jobs": [], "more": False}

    @pytest.mark.proves("admin: list_jobs")
    async def test_jobs_are_listed_newest_first_in_pages_and_filtered(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, desk: Desk
    ) -> None:
        made = [str((await desk.start(kind, graph=graph)).id) for kind, graph in ((COUNT, None), (REFUSE, "default"))]
        made.append((await self.call(gateway, http, "reindex"))["id"])
        await self.call(gateway, http, "cancel_job", id=made[0])

        async def listed(**arguments: Any) -> list[str]:
            return [job["id"] for job in (await self.call(gateway, http, "list_jobs", **arguments))["jobs"]]

        assert await listed() == made[::-1]
        assert (await self.call(gateway, http, "list_jobs", limit=2))["more"] is True
        assert await listed(before=made[1]) == [made[0]]
        assert await listed(status="cancelled") == [made[0]]
        assert await listed(kind=REINDEX_PASSAGES) == [made[2]]
        assert await listed(kind=REINDEX_PASSAGES, before=made[2]) == []
        assert await listed(graph="default") == [made[2], made[1]]

    async def test_an_unknown_kind_is_refused_with_the_known_ones(
        self, gateway: RunningGateway, http: httpx2.AsyncClient
    ) -> None:
        result = await gateway.call(http, "list_jobs", {"kind": "odd"}, path=PATH)
        assert result["_meta"][ERROR_META] == {"code": "invalid_input", "path": "kind"}
        assert result["content"][0]["text"].endswith(", ".join(KINDS))

    @pytest.fixture
    def often(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the gateway look at jobs often, so that a short one has several reports."""
        monkeypatch.setattr(get_job, "POLL_SECONDS", 0.01)

    @pytest.mark.proves("admin: get_job", "jobs: progress")
    @pytest.mark.usefixtures("often")
    @pytest.mark.parametrize("revision", MODES)
    async def test_waiting_for_a_job_reports_its_progress(
        self, gateway: RunningGateway, key: str, desk: Desk, context: WorkerContext, revision: str
    ) -> None:
        job = await desk.start(COUNT, steps=20, seconds=0.02)
        told: list[tuple[float, float | None]] = []

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            told.append((progress, total))

        sweeping = asyncio.create_task(job_loop.sweep(context))
        async with gateway.client(key, PATH, revision=revision) as client:
            arguments = {"id": str(job.id), "wait_seconds": 60}
            result = await client.call_tool("get_job", arguments, progress_callback=tell)
        await sweeping
        assert result.structured_content is not None
        assert (result.structured_content["status"], result.structured_content["done"]) == ("succeeded", 20)
        assert len(told) > 2
        assert [progress for progress, _ in told] == sorted({progress for progress, _ in told}), "it rises each time"
        assert told[-1] == (20, 20)

    @pytest.mark.usefixtures("often")
    @pytest.mark.parametrize("revision", MODES)
    async def test_a_client_may_wait_without_asking_for_progress(
        self, gateway: RunningGateway, key: str, desk: Desk, context: WorkerContext, revision: str
    ) -> None:
        job = await desk.start(COUNT, steps=2, seconds=0.1)
        sweeping = asyncio.create_task(job_loop.sweep(context))
        async with gateway.client(key, PATH, revision=revision) as client:
            result = await client.call_tool("get_job", {"id": str(job.id), "wait_seconds": 60})
        await sweeping
        assert result.structured_content is not None
        assert result.structured_content["status"] == "succeeded"

    async def test_the_wait_for_a_job_is_bounded(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, desk: Desk
    ) -> None:
        job, started = await desk.start(COUNT), time.monotonic()
        shown = await self.call(gateway, http, "get_job", id=str(job.id), wait_seconds=1.2)
        assert shown["status"] == "queued"
        assert time.monotonic() - started >= 1.2

    @pytest.mark.proves("organize: cancel_job", "admin: cancel_job")
    async def test_a_queued_job_is_cancelled_for_good(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, desk: Desk, context: WorkerContext
    ) -> None:
        job = await desk.start(COUNT, steps=1)
        for _ in range(2):
            ended = await self.call(gateway, http, "cancel_job", id=str(job.id))
            assert (ended["status"], ended["cancel_requested"], ended["done"]) == ("cancelled", True, 0)
        await job_loop.sweep(context)
        assert (await self.call(gateway, http, "get_job", id=str(job.id)))["status"] == "cancelled"

    async def test_a_failed_job_has_its_error(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, desk: Desk, context: WorkerContext
    ) -> None:
        job = await desk.start(REFUSE)
        await job_loop.sweep(context)
        shown = await self.call(gateway, http, "get_job", id=str(job.id))
        assert shown["error"] == {"code": "invalid_input", "message": "It is not to be done."}

    async def test_a_job_of_another_graph_or_tenant_is_not_found(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, stranger: httpx2.AsyncClient, desk: Desk
    ) -> None:
        job = await desk.start(COUNT)
        for tool in ("get_job", "cancel_job"):
            assert await self.refused(gateway, http, tool, id=str(job.id), graph="other") == "job_not_found"
            theirs = await gateway.call(stranger, tool, {"id": str(job.id)}, path=PATH)
            nobodys = await gateway.call(stranger, tool, {"id": str(uuid4())}, path=PATH)
            assert theirs == nobodys
        await desk.start(REINDEX_PASSAGES)
        for wanted in ({}, {"kind": REINDEX_PASSAGES}):
            assert (await self.call(gateway, stranger, "list_jobs", **wanted))["jobs"] == []
        assert (await desk.look(job)).status == "queued"


class TestRoutes:
    async def done(self, http: httpx2.AsyncClient, method: str, path: str, status: int = 200) -> Any:
        response = await http.request(method, path)
        assert response.status_code == status, response.text
        return response.json()

    async def refused(self, http: httpx2.AsyncClient, method: str, path: str) -> tuple[int, str]:
        response = await http.request(method, path)
        return response.status_code, response.json()["code"]

    async def test_a_job_is_started_and_succeeds(
        self, http: httpx2.AsyncClient, db: Database, caller: Caller, context: WorkerContext
    ) -> None:
        started = await self.done(http, "POST", "/v1/graphs/default/reindex", 202)
        assert (started["status"], started["graph"], started["total"]) == ("queued", "default", None)
        assert await self.done(http, "GET", f"/v1/jobs/{started['id']}") == started
        assert await self.done(http, "GET", "/v1/jobs") == {"items": [started], "next_cursor": None}
        await job_loop.sweep(context)
        ended = await self.done(http, "GET", f"/v1/jobs/{started['id']}")
        assert (ended["status"], ended["result"], ended["error"]) == ("succeeded", {"nodes": 0}, None)
        assert await self.done(http, "POST", f"/v1/jobs/{started['id']}/cancel") == ended

    @pytest.mark.parametrize("limit", [1, 2, 3])
    async def test_pages_are_newest_first_and_complete(self, http: httpx2.AsyncClient, desk: Desk, limit: int) -> None:
        made = [str((await desk.start(COUNT)).id) for _ in range(3)]
        found: list[str] = []
        page = await self.done(http, "GET", f"/v1/jobs?limit={limit}")
        while True:
            assert len(page["items"]) <= limit
            found += [job["id"] for job in page["items"]]
            if page["next_cursor"] is None:
                break
            page = await self.done(http, "GET", f"/v1/jobs?limit={limit}&cursor={page['next_cursor']}")
        assert found == made[::-1]

    async def test_jobs_are_filtered(self, http: httpx2.AsyncClient, desk: Desk) -> None:
        tenants, graphs = await desk.start(COUNT, graph=None), await desk.start(COUNT)
        await desk.cancel(tenants)
        for query, job in (("graph=default", graphs), ("status=cancelled", tenants), ("status=queued", graphs)):
            page = await self.done(http, "GET", f"/v1/jobs?{query}")
            assert [item["id"] for item in page["items"]] == [str(job.id)]
        assert await self.refused(http, "GET", "/v1/jobs?graph=nowhere") == (404, "graph_not_found")
        assert await self.refused(http, "GET", "/v1/jobs?status=odd") == (400, "invalid_input")
        odd = (await http.get("/v1/jobs?kind=odd")).json()
        assert (odd["code"], odd["path"]) == ("invalid_input", "kind")
        assert odd["detail"].endswith(", ".join(KINDS))

    async def test_pages_are_filtered_by_kind(
        self, http: httpx2.AsyncClient, stranger: httpx2.AsyncClient, desk: Desk
    ) -> None:
        older, newer = await desk.start(REINDEX_PASSAGES), await desk.start(REINDEX_PASSAGES, graph=None)
        for _ in range(2):
            await desk.start(COUNT)
        query = f"/v1/jobs?kind={REINDEX_PASSAGES}&limit=1"
        first = await self.done(http, "GET", query)
        assert [job["id"] for job in first["items"]] == [str(newer.id)]
        second = await self.done(http, "GET", f"{query}&cursor={first['next_cursor']}")
        assert [job["id"] for job in second["items"]] == [str(older.id)]
        assert second["next_cursor"] is None
        assert await self.done(stranger, "GET", query) == {"items": [], "next_cursor": None}

    async def test_the_output_of_a_job_is_downloaded_completely(
        self, http: httpx2.AsyncClient, desk: Desk, context: WorkerContext, settings: Settings
    ) -> None:
        chunks = [bytes([number]) * 300_000 for number in range(20)]
        async with desk.writing() as tx:
            job = await jobs.schedule(tx, NewJob(COPY, is_held=True))
            await jobs.append_input(tx, job.id, chunks, JobBounds.of(settings))
            await jobs.start(tx, job.id)
        path = f"/v1/jobs/{job.id}/output"
        assert await self.refused(http, "GET", path) == (409, "job_not_finished")
        await job_loop.sweep(context)
        response = await http.get(path)
        assert response.status_code == 200
        assert response.headers["Content-Length"] == "6000000"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Content-Disposition"] == f'attachment; filename="{job.id}"'
        assert response.content == b"".join(chunks)

    async def test_a_job_without_output_has_none_to_download(
        self, http: httpx2.AsyncClient, desk: Desk, context: WorkerContext
    ) -> None:
        job = await desk.start(COUNT, steps=1)
        await job_loop.sweep(context)
        assert await self.refused(http, "GET", f"/v1/jobs/{job.id}/output") == (404, "job_has_no_output")

    async def test_a_job_of_another_tenant_is_not_found(
        self, http: httpx2.AsyncClient, stranger: httpx2.AsyncClient, desk: Desk, context: WorkerContext
    ) -> None:
        job = await desk.start(COUNT, steps=1, output=True)
        await job_loop.sweep(context)
        assert (await http.get(f"/v1/jobs/{job.id}/output")).content == b"0\n"
        for method, rest in (("GET", ""), ("POST", "/cancel"), ("GET", "/output")):
            theirs = await stranger.request(method, f"/v1/jobs/{job.id}{rest}")
            nobodys = await stranger.request(method, f"/v1/jobs/{uuid4()}{rest}")
            assert (theirs.status_code, theirs.json()) == (nobodys.status_code, nobodys.json())
            assert theirs.json()["code"] == "job_not_found"
        assert await self.done(stranger, "GET", "/v1/jobs") == {"items": [], "next_cursor": None}

    async def test_each_route_needs_its_scope(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, desk: Desk
    ) -> None:
        job = await desk.start(COUNT, steps=1)
        reading = (await issue(caller, scopes=frozenset({Scope.MEMORY_READ}))).secret
        writing = (await issue(caller, scopes=frozenset({Scope.MEMORY_WRITE}))).secret
        both = (await issue(caller, scopes=frozenset({Scope.MEMORY_READ, Scope.MEMORY_WRITE}))).secret
        async with gateway.http(reading) as reader, gateway.http(writing) as writer, gateway.http(both) as agent:
            for method, path, allowed, barred in (
                ("GET", "/v1/jobs", reader, writer),
                ("GET", f"/v1/jobs/{job.id}", reader, writer),
                ("GET", f"/v1/jobs/{job.id}/output", reader, writer),
                ("POST", f"/v1/jobs/{job.id}/cancel", agent, reader),  # Who reads only may cancel their own export.
                ("POST", "/v1/graphs/default/reindex", writer, reader),
            ):
                assert await self.refused(barred, method, path) == (403, "scope_required")
                assert (await allowed.request(method, path)).status_code in (200, 202, 409)

    async def test_a_confined_key_sees_only_jobs_of_its_graphs(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, desk: Desk, db: Database
    ) -> None:
        seen, hidden = await desk.start(COUNT), await desk.start(COUNT, graph=None)
        assert seen.graph_id is not None
        narrow = (await issue(caller, graph_ids=(seen.graph_id,))).secret
        async with gateway.http(narrow) as http:
            page = await self.done(http, "GET", "/v1/jobs")
            assert [item["id"] for item in page["items"]] == [str(seen.id)]
            assert await self.refused(http, "GET", f"/v1/jobs/{hidden.id}") == (404, "job_not_found")
            assert await self.refused(http, "POST", "/v1/graphs/other/reindex") == (403, "graph_not_allowed")

    async def test_a_running_job_is_cancelled(
        self, http: httpx2.AsyncClient, desk: Desk, context: WorkerContext
    ) -> None:
        job = await desk.start(COUNT, steps=1_000, seconds=0.02)
        sweeping = asyncio.create_task(job_loop.sweep(context))
        await eventually(lambda: has_begun(desk, job))
        shown = await self.done(http, "GET", f"/v1/jobs/{job.id}")
        assert (shown["status"], shown["total"]) == ("running", 1_000)
        asked = await self.done(http, "POST", f"/v1/jobs/{job.id}/cancel")
        assert (asked["status"], asked["cancel_requested"]) == ("running", True)
        await asyncio.wait_for(sweeping, MAX_WAIT_SECONDS)
        ended = await self.done(http, "GET", f"/v1/jobs/{job.id}")
        assert ended["status"] == "cancelled"
        async with desk.db.transaction(desk.caller, read_only=True) as tx:
            assert await effects(tx._connection, desk.caller.tenant_id) == list(range(ended["done"]))
