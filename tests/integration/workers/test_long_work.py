"""Long work of the worker, by schedule or on request: expiry, deduplication, and exports and imports in steps."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import asyncpg
import httpx2
import pytest

from recollect.caller import Caller, Scope
from recollect.curation.duplicates import deduplication
from recollect.curation.duplicates import service as duplicates
from recollect.errors import ErrorCode, NotFound, TooLarge
from recollect.fairness import computing
from recollect.fairness.computing import Slices
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import GraphPatch, NewGraph
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NewFact
from recollect.jobs import kinds
from recollect.jobs.kinds import DEDUPLICATE
from recollect.jobs.model import Job
from recollect.postgres.database import Database
from recollect.retention.expiry import service as core_expiry
from recollect.settings import Settings
from recollect.transfer import exports, file_jobs
from recollect.transfer import service as transfer
from recollect.transfer.formats import FORMATS
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import duplicates as duplicate_jobs
from recollect_workers.jobs import expiry
from tests.support.bounds import lower
from tests.support.gateway import NewApiKey, RunningGateway, serving
from tests.support.jobs import Desk, import_by_another, look, started
from tests.support.memories import Agent, found_duplicates, names

HOUR = timedelta(hours=1)


async def expire(agent: Agent, owner: asyncpg.Connection, count: int, *, ago: timedelta = HOUR) -> None:
    """So many facts that expired that long ago."""
    expires_at = datetime.now(UTC) + HOUR
    async with agent.writing() as (tx, revision):
        await nodes.create_facts(tx, revision, [NewFact(f"fact {n}", expires_at=expires_at) for n in range(count)])
    for table in ("nodes", "node_versions", "passages"):
        await owner.execute(
            f"UPDATE {table} SET expires_at = expires_at - $2::interval WHERE tenant_id = $1 AND expires_at > now()",
            agent.caller.tenant_id,
            HOUR + ago,
        )


async def statuses(agent: Agent, owner: asyncpg.Connection) -> dict[str, int]:
    rows = await owner.fetch(
        "SELECT status, count(*) FROM nodes WHERE tenant_id = $1 AND removed_revision IS NULL GROUP BY 1",
        agent.caller.tenant_id,
    )
    return {row["status"]: row["count"] for row in rows}


class TestExpiry:
    @pytest.mark.proves("jobs: expiry")
    async def test_expired_nodes_of_every_tenant_are_archived_in_steps(
        self,
        agent: Agent,
        other: Agent,
        owner: asyncpg.Connection,
        context: WorkerContext,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        taken = list[tuple[str, int]]()
        archive = core_expiry.archive_expired

        async def in_small_steps(tx: Any, graph_id: UUID) -> Any:
            step = await archive(tx, graph_id, limit=10)
            if tx.tenant_id in (agent.caller.tenant_id, other.caller.tenant_id):
                taken.append((str(tx.tenant_id), step.nodes))
            return step

        monkeypatch.setattr(core_expiry, "archive_expired", in_small_steps)
        await expire(agent, owner, 25)
        await expire(other, owner, 5)
        await expiry.archive(context)
        for each, count in ((agent, 25), (other, 5)):
            assert await statuses(each, owner) == {"archived": count}
        assert sorted(count for tenant, count in taken if tenant == str(agent.caller.tenant_id)) == [5, 10, 10]
        assert str(other.caller.tenant_id) in [tenant for tenant, _ in taken[:2]], "each has its turn"

    async def test_a_failure_for_one_tenant_does_not_delay_others(
        self,
        agent: Agent,
        other: Agent,
        owner: asyncpg.Connection,
        context: WorkerContext,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        archive = core_expiry.archive_expired

        async def fail(tx: Any, graph_id: UUID) -> Any:
            if tx.tenant_id == agent.caller.tenant_id:
                raise LookupError
            return await archive(tx, graph_id)

        monkeypatch.setattr(core_expiry, "archive_expired", fail)
        await expire(agent, owner, 1)
        await expire(other, owner, 1)
        await expiry.archive(context)
        assert (await statuses(agent, owner), await statuses(other, owner)) == ({"active": 1}, {"archived": 1})

    @pytest.mark.proves("jobs: expiry")
    async def test_expired_nodes_are_deleted_after_the_retention(
        self, agent: Agent, owner: asyncpg.Connection, context: WorkerContext
    ) -> None:
        await expire(agent, owner, 3)
        await expiry.archive(context)
        await expiry.purge(context)
        assert await statuses(agent, owner) == {"archived": 3}
        hasty = replace(context, settings=context.settings.model_copy(update={"retention_days": 1 / 48}))
        await expiry.purge(hasty)
        assert await statuses(agent, owner) == {}
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            changes, _ = await graphs.recent_changes(tx, "default", since=0, limit=10)
        assert [change.operation for change in changes] == ["test", "archive_expired", "purge_expired"]

    async def test_graphs_whose_nodes_cannot_be_deleted_do_not_delay_others(
        self, agent: Agent, owner: asyncpg.Connection, context: WorkerContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tied, free = replace(agent, graph="a"), replace(agent, graph="b")
        await tied.create("Ada", "Grace")
        await tied.relate(("Grace", "Ada", "knows"))
        await owner.execute(
            "UPDATE nodes SET expires_at = now() - interval '1 hour' WHERE tenant_id = $1 AND name = 'Ada'",
            agent.caller.tenant_id,
        )
        await expire(free, owner, 2)
        await expiry.archive(context)
        assert await statuses(agent, owner) == {"archived": 3, "active": 1}
        monkeypatch.setattr(graphs, "MAX_GRAPHS", 1)
        await expiry.purge(replace(context, settings=context.settings.model_copy(update={"retention_days": 1 / 48})))
        assert await statuses(agent, owner) == {"archived": 1, "active": 1}

    async def test_a_deleted_graph_is_not_created_again(self, agent: Agent, owner: asyncpg.Connection) -> None:
        await expire(replace(agent, graph="gone"), owner, 1)
        async with agent.db.transaction(agent.caller) as tx:
            [graph_id] = await core_expiry.graphs_with_expired(tx)
            await graphs.delete_graph(tx, "gone", "delete")
        for step in (core_expiry.archive_expired, partial(core_expiry.purge_expired, retention=HOUR)):
            with pytest.raises(NotFound):
                async with agent.db.transaction(agent.caller) as tx:
                    await step(tx, graph_id)


CROWD = [NewEntity("Acme Corp", "company"), NewEntity("Acme Corp.", "company"), NewEntity("Zuse KG", "company")]


class TestDuplicates:
    async def ask(self, agent: Agent, **dedup: Any) -> None:
        async with agent.db.transaction(agent.caller) as tx:
            await graphs.configure_graph(tx, "default", GraphPatch(metadata={"dedup": dedup}), "configure")

    @pytest.mark.proves("jobs: duplicate-proposals")
    async def test_a_graph_with_deduplication_gets_one_job(
        self, agent: Agent, desk: Desk, context: WorkerContext
    ) -> None:
        await agent.create(*CROWD)
        await self.ask(agent, mode="merge", threshold=0.6)
        await duplicate_jobs.schedule(context)
        await duplicate_jobs.schedule(context)
        [job] = await desk.list()
        assert (job.kind, job.graph, job.status, job.created_by) == (DEDUPLICATE, "default", "queued", "worker")
        await job_loop.sweep(context)
        [shown] = await desk.list()
        assert (shown.status, shown.done, shown.result) == (
            "succeeded",
            3,
            {"compared": 3, "proposed": 0, "merged": 1},
        )
        assert names(await agent.read()) == ["Acme Corp", "Zuse KG"]
        await duplicate_jobs.schedule(context)
        assert len(await desk.list()) == 1

    async def test_a_failed_job_is_not_repeated_at_once(
        self, agent: Agent, desk: Desk, owner: asyncpg.Connection, context: WorkerContext, monkeypatch: Any
    ) -> None:
        await agent.create(*CROWD)
        await self.ask(agent, mode="propose")
        monkeypatch.setattr(deduplication, "MAX_PROFILES", 1)
        await duplicate_jobs.schedule(context)
        await job_loop.sweep(context)
        [failed] = await desk.list()
        assert (failed.status, failed.error_code) == ("failed", "reply_too_large")
        await duplicate_jobs.schedule(context)
        assert len(await desk.list()) == 1
        await owner.execute("UPDATE jobs SET finished_at = finished_at - interval '2 hours' WHERE id = $1", failed.id)
        await duplicate_jobs.schedule(context)
        assert len(await desk.list()) == 2

    async def test_no_job_is_started_beside_a_running_one(
        self, agent: Agent, desk: Desk, owner: asyncpg.Connection, context: WorkerContext
    ) -> None:
        await agent.create(*CROWD)
        await self.ask(agent, mode="propose")
        await desk.start(DEDUPLICATE, mode="propose", threshold=0.8)
        newer = await desk.start(DEDUPLICATE, mode="propose", threshold=0.9)
        ended = "UPDATE jobs SET status = 'succeeded', finished_at = now() - interval '2 hours' WHERE id = $1"
        await owner.execute(ended, newer.id)
        await duplicate_jobs.schedule(context)
        assert len(await desk.list()) == 2

    async def test_scheduled_jobs_leave_room_for_requested_ones(
        self, agent: Agent, desk: Desk, context: WorkerContext, monkeypatch: Any
    ) -> None:
        monkeypatch.setattr(deduplication, "MAX_PENDING_FOR_SWEEPS", 2)
        async with desk.writing() as tx:
            for n in range(4):
                await graphs.create_graph(tx, NewGraph(f"g{n}", metadata={"dedup": {"mode": "propose"}}))
        await duplicate_jobs.schedule(context)
        assert len(await desk.list()) == 2
        await job_loop.sweep(context)
        await duplicate_jobs.schedule(context)
        assert len(await desk.list()) == 4

    async def test_no_connection_is_held_during_comparison(
        self, agent: Agent, desk: Desk, context: WorkerContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        narrow = context.settings.model_copy(update={"database_pool_size": 1, "database_acquire_seconds": 20})
        await agent.create(*CROWD)
        await desk.start(DEDUPLICATE, mode="merge", threshold=0.6)
        compare, served = computing.compute, list[str]()
        async with Database.connect(narrow.database_url, settings=narrow) as db:

            async def beside(tenant_id: UUID, slices: Slices[Any], **bounds: Any) -> Any:
                async with db.transaction(agent.caller, read_only=True) as tx:
                    served.append((await graphs.get_graph(tx, "default")).name)
                return await compare(tenant_id, slices, **bounds)

            monkeypatch.setattr(computing, "compute", beside)
            await job_loop.sweep(replace(context, database=db))
        [shown] = await desk.list()
        assert (shown.status, shown.result) == ("succeeded", {"compared": 3, "proposed": 0, "merged": 1})
        assert set(served) == {"default"}

    async def test_nothing_is_merged_once_the_graph_no_longer_wants_it(
        self, agent: Agent, desk: Desk, context: WorkerContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await agent.create(*CROWD)
        await self.ask(agent, mode="merge", threshold=0.6)
        await desk.start(DEDUPLICATE)
        compare = computing.compute

        async def reconfigured(tenant_id: UUID, slices: Slices[Any], **bounds: Any) -> Any:
            await self.ask(agent, mode="propose", threshold=0.6)
            return await compare(tenant_id, slices, **bounds)

        monkeypatch.setattr(computing, "compute", reconfigured)
        await job_loop.sweep(context)
        [shown] = await desk.list()
        assert (shown.status, shown.result) == ("succeeded", {"compared": 3, "proposed": 1, "merged": 0})
        assert len(names(await agent.read())) == 3

    async def test_a_job_continues_after_its_graph_was_renamed(
        self, agent: Agent, desk: Desk, context: WorkerContext
    ) -> None:
        await agent.create(*CROWD)
        job = await desk.start(DEDUPLICATE, mode="propose")
        async with desk.writing() as tx:
            await graphs.configure_graph(tx, "default", GraphPatch(name="renamed"), "configure")
        await job_loop.sweep(context)
        assert (await desk.look(job)).status == "succeeded"
        async with desk.db.transaction(desk.caller, read_only=True) as tx:
            assert await graphs.open_graph(tx, "default") is None, "nothing made it anew"

    async def test_a_graph_too_large_for_a_call_is_compared_by_a_requested_job(
        self, agent: Agent, http: httpx2.AsyncClient, context: WorkerContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await agent.create(NewEntity("Acme Corporation", "company"), NewEntity("Acme Corporatiom", "company"))
        monkeypatch.setattr(duplicates, "MAX_COMPARED", 1)

        async def found() -> list[list[str]]:
            async with agent.db.transaction(agent.caller, read_only=True) as tx:
                return await found_duplicates(await graphs.view(tx, None), threshold=0.6)

        with pytest.raises(TooLarge, match="POST /v1/graphs/default/deduplicate"):
            await found()
        async with agent.db.transaction(agent.caller) as tx:
            dedup = {"dedup": {"mode": "off", "threshold": 0.6}}
            await graphs.configure_graph(tx, "default", GraphPatch(metadata=dedup), "configure")
        job = await started(await http.post("/v1/graphs/default/deduplicate"))
        assert (await started(await http.post("/v1/graphs/default/deduplicate")))["id"] == job["id"]
        await job_loop.sweep(context)
        assert (await look(http, job))["result"] == {"compared": 2, "proposed": 1, "merged": 0}
        assert await found() == [["Acme Corporation", "Acme Corporatiom"]]
        assert (await http.post("/v1/graphs/absent/deduplicate")).status_code == 404


def lines(count: int) -> bytes:
    """A `memory.jsonl` of so many entities with an observation each, of which every other is related to the previous
    one.
    """
    said: list[dict[str, Any]] = []
    for n in range(count):
        said.append({"type": "entity", "name": f"e{n}", "entityType": "thing", "observations": [f"says {n}"]})
        if n % 2:
            said.append({"type": "relation", "from": f"e{n - 1}", "to": f"e{n}", "relationType": "before"})
    return b"".join(json.dumps(line).encode() + b"\n" for line in said)


JSONL = {"Content-Type": "application/x-ndjson"}


class TestTransfer:
    @pytest.fixture(autouse=True)
    def small_batches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("recollect.transfer.batches.BATCH_ITEMS", 7)

    @pytest.mark.proves("jobs: transfer")
    async def test_a_graph_is_imported_and_exported_by_jobs(
        self, http: httpx2.AsyncClient, desk: Desk, context: WorkerContext
    ) -> None:
        file = lines(60)
        job = await started(await http.post("/v1/graphs/new/imports", content=file, headers=JSONL))
        assert (job["kind"], job["graph"], job["status"]) == (kinds.IMPORT_GRAPH, "new", "queued")
        await job_loop.sweep(context)
        shown = await look(http, job)
        assert (shown["status"], shown["done"], shown["total"]) == ("succeeded", 90, 90)
        assert (shown["result"]["entities_created"], shown["result"]["relations_created"]) == (60, 30)
        out = await started(await http.post("/v1/graphs/new/exports", json={"format": "jsonl"}))
        await job_loop.sweep(context)
        answer = await http.get(f"/v1/jobs/{out['id']}/output")
        assert answer.headers["Content-Type"].startswith("application/x-ndjson")
        at_once = await http.get("/v1/graphs/new/export", params={"format": "jsonl"})
        assert answer.content == at_once.content
        assert len(answer.content.splitlines()) == 90
        again = await started(await http.post("/v1/graphs/new/imports", content=file, headers=JSONL))
        await job_loop.sweep(context)
        result = (await look(http, again))["result"]
        assert (result["entities_created"], result["entities_skipped"], result["relations_skipped"]) == (0, 60, 30)

    @pytest.mark.parametrize("format_name", ["json", "csv", "graphml", "gexf", "dot", "markdown", "mermaid"])
    async def test_a_job_exports_the_same_as_a_stream(
        self, agent: Agent, http: httpx2.AsyncClient, context: WorkerContext, format_name: str, monkeypatch: Any
    ) -> None:
        await agent.create(*(NewEntity(f"e{n}", "thing", (f"says {n}",)) for n in range(20)))
        await agent.relate(("e1", "e2", "knows"), ("e2", "nobody", "knows"))
        await agent.remember("a fact")
        lower(monkeypatch, exports.export_step, page_items=6)
        job = await started(await http.post("/v1/graphs/default/exports", json={"format": format_name}))
        await agent.create("later")
        await job_loop.sweep(context)
        answer = await http.get(f"/v1/jobs/{job['id']}/output")
        as_of = str((await look(http, job))["result"]["revision"])
        stream = await http.get("/v1/graphs/default/export", params={"format": format_name, "as_of": as_of})
        assert answer.content == stream.content
        assert answer.headers["Content-Type"] == stream.headers["Content-Type"]

    @pytest.mark.parametrize("format_name", sorted(FORMATS))
    async def test_an_export_of_an_empty_graph_is_an_empty_file_of_its_format(
        self, http: httpx2.AsyncClient, context: WorkerContext, format_name: str
    ) -> None:
        job = await started(await http.post("/v1/graphs/default/exports", json={"format": format_name}))
        await job_loop.sweep(context)
        answer = await http.get(f"/v1/jobs/{job['id']}/output")
        assert (answer.status_code, answer.text) == (200, exports.empty(format_name))
        assert answer.headers["Content-Length"] == str(len(answer.content))
        assert answer.headers["Content-Type"].split(";")[0] == FORMATS[format_name].media_type
        assert (answer.content == b"") == (format_name == "jsonl")

    async def test_a_filter_applies_and_is_not_stored_in_clear(
        self, agent: Agent, http: httpx2.AsyncClient, context: WorkerContext, owner: asyncpg.Connection
    ) -> None:
        await agent.create(NewEntity("Ada", "secret kind"), NewEntity("Bob", "other"))
        wanted = {"format": "jsonl", "filter": {"kind": "secret kind"}}
        job = await started(await http.post("/v1/graphs/default/exports", json=wanted))
        await job_loop.sweep(context)
        answer = await http.get(f"/v1/jobs/{job['id']}/output")
        assert [json.loads(line)["name"] for line in answer.content.splitlines()] == ["Ada"]
        row = await owner.fetchval("SELECT to_jsonb(j)::text FROM jobs j WHERE id = $1", job["id"])
        assert "secret kind" not in row
        assert await owner.fetchval("SELECT count(*) FROM job_inputs WHERE job_id = $1", job["id"]) == 0

    async def test_problems_of_an_import_can_be_fetched(
        self, http: httpx2.AsyncClient, context: WorkerContext, owner: asyncpg.Connection
    ) -> None:
        file = (
            lines(10)
            + b"a broken secret\n"
            + b'{"type": "entity", "name": "last", "entityType": "", "observations": []}'
        )
        job = await started(await http.post("/v1/graphs/default/imports", content=file, headers=JSONL))
        await job_loop.sweep(context)
        shown = await look(http, job)
        assert (shown["status"], shown["result"]["entities_created"], shown["result"]["problems"]) == (
            "succeeded",
            11,
            1,
        )
        answer = await http.get(f"/v1/jobs/{job['id']}/output")
        [told] = [json.loads(line) for line in answer.content.splitlines()]
        assert told["path"] == "line 16"
        assert "secret" not in answer.text

    async def test_an_empty_file_imports_nothing(self, http: httpx2.AsyncClient, context: WorkerContext) -> None:
        job = await started(await http.post("/v1/graphs/default/imports", content=b"", headers=JSONL))
        await job_loop.sweep(context)
        shown = await look(http, job)
        assert (shown["status"], set(shown["result"].values())) == ("succeeded", {0})
        problems = await http.get(f"/v1/jobs/{job['id']}/output")
        assert (problems.status_code, problems.content) == (200, b"")

    async def test_an_unreadable_file_fails_without_its_content(
        self, http: httpx2.AsyncClient, context: WorkerContext
    ) -> None:
        headers = {"Content-Type": "application/json"}
        file = b'{"entities": [{"name": "Ada", "entityType": "x", "observations": []}, secret'
        job = await started(await http.post("/v1/graphs/default/imports", content=file, headers=headers))
        await job_loop.sweep(context)
        shown = await look(http, job)
        assert (shown["status"], shown["error"]["code"]) == ("failed", "invalid_input")
        assert "secret" not in shown["error"]["message"]

    @pytest.mark.proves("jobs: transfer")
    async def test_another_worker_continues_an_import(
        self, http: httpx2.AsyncClient, desk: Desk, context: WorkerContext, agent: Agent
    ) -> None:
        """Each step is by another worker, which has no open file."""
        job = await started(await http.post("/v1/graphs/default/imports", content=lines(40), headers=JSONL))
        steps = 0
        while (await look(http, job))["status"] != "succeeded":
            await import_by_another(context, desk)
            steps += 1
        assert steps > 8
        assert (await agent.head()).entities == 40
        assert (await agent.head()).revision == steps - 1

    async def test_a_failed_step_is_repeated(
        self, http: httpx2.AsyncClient, desk: Desk, context: WorkerContext, agent: Agent, monkeypatch: Any
    ) -> None:
        imported, broken = transfer.import_items, iter((True, False, True, True))

        async def wavering(*given: Any, **options: Any) -> Any:
            done = await imported(*given, **options)
            if next(broken, False):
                raise OSError
            return done

        monkeypatch.setattr(transfer, "import_items", wavering)
        monkeypatch.setattr("recollect.jobs.model.FIRST_WAIT_SECONDS", 0.01)
        job = await started(await http.post("/v1/graphs/default/imports", content=lines(20), headers=JSONL))
        while (await look(http, job))["status"] in ("queued", "running"):
            await job_loop.sweep(context)
        shown = await look(http, job)
        assert (shown["status"], shown["done"], shown["result"]["entities_created"]) == ("succeeded", 30, 20)
        assert (await agent.head()).entities == 20

    async def test_a_file_too_large_to_store_is_refused_and_leaves_nothing(
        self, settings: Settings, key: str, desk: Desk
    ) -> None:
        tight = settings.model_copy(update={"job_storage_bytes": 1_048_576, "max_request_bytes": 10_000})
        with serving(tight) as gateway:
            async with gateway.http(key) as http:
                much = await http.post("/v1/graphs/default/imports", content=b"\n" * 3_000_000, headers=JSONL)
                some = await http.post("/v1/graphs/default/imports", content=b"\n" * 500_000, headers=JSONL)
        assert (much.status_code, much.json()["code"]) == (413, ErrorCode.JOB_STORAGE_FULL)
        assert some.status_code == 202, "larger than any other request may be"
        assert [job.status for job in await desk.list()] == ["queued"], "the other was refused before it was sent"

    async def test_invalid_requests_are_refused(self, http: httpx2.AsyncClient, desk: Desk, agent: Agent) -> None:
        await agent.create("Ada")
        refused = [
            await http.post("/v1/graphs/default/imports", content=b"x", headers={"Content-Type": "text/html"}),
            await http.post("/v1/graphs/absent/exports", json={}),
            await http.post("/v1/graphs/default/exports", json={"format": "docx"}),
            await http.post("/v1/graphs/default/exports", json={"filter": {"since": "2027-01-01T00:00:00"}}),
            await http.post("/v1/graphs/default/exports", json={"filter": {"tag": ["x"]}}),
        ]
        assert [response.status_code for response in refused] == [415, 404, 400, 400, 400]
        assert await desk.list() == []

    async def test_scopes_and_allow_lists_apply(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, agent: Agent, desk: Desk
    ) -> None:
        await agent.create("Ada")
        async with desk.writing() as tx:
            mine = await graphs.create_graph(tx, NewGraph("mine"))
        reader = await issue(caller, scopes=frozenset({Scope.MEMORY_READ}))
        confined = await issue(caller, graph_ids=(mine.id,), default_graph_id=mine.id)
        for issued, graph, allowed in (
            (reader, "default", "exports"),
            (confined, "default", ""),
            (confined, "absent", ""),
        ):
            async with gateway.http(issued.secret) as http:
                for part in ("deduplicate", "exports", "imports"):
                    answer = await http.post(f"/v1/graphs/{graph}/{part}", content=b"{}", headers=TYPES[part])
                    assert answer.status_code == (202 if part == allowed else 403), (graph, part, answer.text)
        assert [job.kind for job in await desk.list()] == ["export_graph"]

    async def test_another_tenants_jobs_and_outputs_are_not_found(
        self,
        agent: Agent,
        gateway: RunningGateway,
        issue: NewApiKey,
        other: Agent,
        http: httpx2.AsyncClient,
        context: Any,
    ) -> None:
        await agent.create("Ada")
        job = await started(await http.post("/v1/graphs/default/exports", json={}))
        await job_loop.sweep(context)
        async with gateway.http((await issue(other.caller)).secret) as foreign:
            for path in (f"/v1/jobs/{job['id']}", f"/v1/jobs/{job['id']}/output"):
                assert (await foreign.get(path)).status_code == 404
            own = await started(await foreign.post("/v1/graphs/default/exports", json={}))
            taken = await foreign.post("/v1/graphs/default/imports", content=lines(2), headers=JSONL)
            assert taken.status_code == 202
            await job_loop.sweep(context)
            assert "Ada" not in (await foreign.get(f"/v1/jobs/{own['id']}/output")).text
        assert names(await agent.read()) == ["Ada"]
        assert names(await other.read()) == ["e0", "e1"]


TYPES = {"deduplicate": {}, "exports": {"Content-Type": "application/json"}, "imports": JSONL}


def test_a_job_knows_the_media_type_of_its_output(job_of: Any) -> None:
    assert file_jobs.media_type_of(job_of(kinds.EXPORT_GRAPH, {"format": "graphml"})) == "application/graphml+xml"
    assert file_jobs.media_type_of(job_of(kinds.IMPORT_GRAPH, {"format": "graphml"})) == "application/x-ndjson"
    assert file_jobs.media_type_of(job_of("reindex_passages", {})) is None


@pytest.fixture
def job_of() -> Any:
    blank = dict.fromkeys(Job.__dataclass_fields__)
    return lambda kind, arguments: Job(**{**blank, "kind": kind, "arguments": arguments})
