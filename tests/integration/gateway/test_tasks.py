"""Tasks over the gateway: a tool whose work is a job returns a handle, by which a client follows the work."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity import service as identity
from recollect.caller import Caller, Scope
from recollect.curation.duplicates import service as duplicates
from recollect.graph.graphs import service as graphs
from recollect.jobs.kinds import FORGET_STATISTICS
from recollect.postgres.database import Database
from recollect.retention.compaction import service as compaction
from recollect.settings import Settings
from recollect.valkey.change_channel import ChangePublisher
from recollect.valkey.client import connect_redis
from recollect_gateway.mcp_endpoint.confirmation import MAX_UNCONFIRMED
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from recollect_gateway.mcp_endpoint.tasks.watching import MAX_TASKS
from recollect_gateway.mcp_endpoint.tasks.wire import EXTENSION, POLL_MS
from recollect_gateway.mcp_endpoint.tools import CATALOGUE
from recollect_gateway.mcp_endpoint.tools.organize import import_graph
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from tests.contract.test_retention import age
from tests.integration.gateway.test_subscriptions import listen_message, modern_headers, opened
from tests.support.bounds import lower
from tests.support.gateway import LEGACY, NewApiKey, RunningGateway, rpc_answer, serving
from tests.support.jobs import Desk, take_one_step
from tests.support.tasks import KNOWS_TASKS, NOBODYS, TaskClient
from tests.support.timeouts import MAX_WAIT_SECONDS

METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
ENTITY = {"name": "Ada", "entityType": "person", "observations": ["likes tea"]}


@pytest.fixture
async def client(http: httpx2.AsyncClient) -> TaskClient:
    client = TaskClient(http)
    await client.call("create_entities", entities=[ENTITY])
    return client


@pytest.fixture(scope="module")
def patient(settings: Settings) -> Iterator[RunningGateway]:
    """A gateway whose streams look only when they are woken."""
    with serving(settings.model_copy(update={"stream_check_seconds": 600})) as gateway:
        yield gateway


class TestLifecycle:
    async def test_a_task_ends_with_the_result_of_the_tool(
        self, client: TaskClient, context: WorkerContext, settings: Settings
    ) -> None:
        handle = await client.call("reindex")
        kept = timedelta(days=settings.job_retention_days) // timedelta(milliseconds=1)
        assert (handle["resultType"], handle["status"], handle["pollIntervalMs"]) == ("task", "working", POLL_MS)
        assert kept <= handle["ttlMs"] < kept + 60_000
        assert handle.keys().isdisjoint({"result", "error", "content", "requestState"})
        waiting = await client.get(handle["taskId"])
        assert (waiting["resultType"], waiting["status"], waiting["statusMessage"]) == ("complete", "working", "0 done")
        await job_loop.sweep(context)
        done = await client.get(handle["taskId"])
        result = done["result"]
        assert (done["status"], result["isError"]) == ("completed", False)
        assert done["ttlMs"] >= kept
        assert "pollIntervalMs" not in done
        told = result["structuredContent"]
        assert (told["id"], told["status"], told["result"]) == (handle["taskId"], "succeeded", {"nodes": 1})
        assert done["createdAt"] <= done["lastUpdatedAt"] == told["finished_at"][:23] + "Z"

    async def test_equal_work_returns_the_running_task(self, client: TaskClient) -> None:
        assert await client.begin("reindex") == await client.begin("reindex")

    async def test_cancelling_is_acknowledged_before_the_task_ends(
        self, client: TaskClient, context: WorkerContext, db: Database, caller: Caller
    ) -> None:
        task_id = await client.begin("start_export", format="json")
        for _ in range(2):  # A task that has ended stays as it is, and the answer is the same.
            answer = (await client.ask("tasks/cancel", task_id))["result"]
            assert answer.keys() == {"resultType", "_meta"}
            ended = await client.get(task_id)
            assert ended["status"] == "cancelled"
            assert ended.keys().isdisjoint({"result", "error"})
        desk = Desk(db, caller)
        job = await desk.start("count_steps", steps=3)  # Its kind is not a task.
        await take_one_step(context, desk)
        assert (await client.refusal("tasks/cancel", str(job.id)))["data"] == {"code": "job_not_found"}
        assert not (await desk.look(job)).cancel_requested

    async def test_failed_work_completes_with_the_tools_error(
        self, client: TaskClient, context: WorkerContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(import_graph, "MAX_ITEMS", 1)
        data = "name\nOslo\nBergen\n" + '"broken'
        task_id = await client.begin("import_graph", format="csv", data=data)
        await job_loop.sweep(context)
        done = await client.get(task_id)
        assert (done["status"], done["result"]["isError"]) == ("completed", True)
        assert done["result"]["_meta"][ERROR_META]["code"] == "invalid_input"
        assert done["statusMessage"] in done["result"]["content"][0]["text"]
        assert "broken" not in str(done)

    async def test_an_update_is_acknowledged_and_changes_nothing(self, client: TaskClient) -> None:
        task_id = await client.begin("reindex")
        before = await client.get(task_id)
        answer = (await client.ask("tasks/update", task_id))["result"]
        assert answer.keys() == {"resultType", "_meta"}
        after = await client.get(task_id)
        assert {**after, "ttlMs": 0} == {**before, "ttlMs": 0}


class TestEachTool:
    """The result of each tool that starts a job."""

    async def test_all_tools_that_start_jobs_are_tested_here(self) -> None:
        assert {tool.name for tool in CATALOGUE if tool.work is not None} == {
            "compact",
            "compress_graph",
            "import_graph",
            "propose_duplicates",
            "reembed",
            "reindex",
            "start_export",
        }

    @pytest.mark.parametrize(
        ("tool", "arguments"),
        [("start_export", {"format": "json"}), ("propose_duplicates", {}), ("reembed", {})],
    )
    async def test_tools_that_return_a_job_end_with_that_job(
        self, client: TaskClient, context: WorkerContext, tool: str, arguments: dict[str, Any]
    ) -> None:
        task_id = await client.begin(tool, **arguments)
        await job_loop.sweep(context)
        done = await client.get(task_id)
        plain = replace(client, capabilities={})
        assert done["result"]["structuredContent"] == (await plain.call("get_job", id=task_id))["structuredContent"]
        assert done["status"] == "completed"

    @pytest.mark.parametrize("dry_run", [False, True])
    async def test_an_import_returns_its_counts_and_problems(
        self, client: TaskClient, context: WorkerContext, monkeypatch: pytest.MonkeyPatch, dry_run: bool
    ) -> None:
        monkeypatch.setattr(import_graph, "MAX_ITEMS", 1)
        broken = '{"type": "entity"}\n' if dry_run else ""
        data = "".join(f'{{"type":"entity","name":"e{n}","entityType":"t","observations":["o"]}}\n' for n in range(2))
        task_id = await client.begin("import_graph", format="jsonl", data=data + broken, dryRun=dry_run)
        await job_loop.sweep(context)
        told = (await client.get(task_id))["result"]["structuredContent"]
        assert (told["entitiesCreated"], told["observationsAdded"], told["dryRun"]) == (2, 2, dry_run)
        at_once = await client.call("import_graph", format="jsonl", data=broken, dryRun=True)
        assert told["problems"] == len(told["errors"]) == int(dry_run)
        assert [error["reason"] for error in told["errors"]] == [
            error["reason"] for error in at_once["structuredContent"]["errors"]
        ]
        assert told.keys() == at_once["structuredContent"].keys()

    async def test_a_compression_returns_what_was_merged(
        self, client: TaskClient, context: WorkerContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(duplicates, "MAX_COMPARED", 1)
        alike = [{**ENTITY, "name": name} for name in ("Acme Inc", "ACME Inc.")]
        await client.call("create_entities", entities=alike)
        task_id = await client.begin("compress_graph", threshold=0.8)
        await job_loop.sweep(context)
        told = (await client.get(task_id))["result"]["structuredContent"]
        assert (told["entitiesMerged"], told["job"]["status"]) == (1, "succeeded")

    async def test_a_compaction_asks_first_and_returns_everything_that_was_freed(
        self,
        client: TaskClient,
        context: WorkerContext,
        owner: asyncpg.Connection,
        caller: Caller,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        names = [f"entity {n}" for n in range(MAX_UNCONFIRMED)]
        await client.call("create_entities", entities=[{**ENTITY, "name": name} for name in names])
        await client.call("delete_entities", entityNames=names)
        await age(owner, caller)
        told = (await client.call("compact", dry_run=True))["structuredContent"]
        lower(monkeypatch, compaction.compact, limit=40)
        asking = replace(client, capabilities=KNOWS_TASKS | {"elicitation": {}})
        question = await asking.call("compact")
        assert (question["resultType"], "taskId" in question) == ("input_required", False)
        assert await jobs_of(owner, caller) == 0
        yes = {"confirm": {"action": "accept", "content": {"confirm": True}}}
        handle = await asking.call("compact", more={"inputResponses": yes, "requestState": question["requestState"]})
        assert (handle["resultType"], "requestState" in handle) == ("task", False)
        await job_loop.sweep(context)
        done = (await client.get(handle["taskId"]))["result"]["structuredContent"]
        assert done == {**told, "dry_run": False}
        assert done["freed"]["nodes"] == MAX_UNCONFIRMED

    async def test_work_that_needs_no_job_is_answered_at_once(self, client: TaskClient) -> None:
        for tool in ("compress_graph", "compact"):
            assert (await client.call(tool))["resultType"] == "complete"


class TestSupport:
    async def test_the_server_announces_the_extension(self, client: TaskClient) -> None:
        told = rpc_answer((await client.send("server/discover", None)).text)["result"]["capabilities"]
        assert told["extensions"][EXTENSION] == {}
        assert "tasks" not in told

    @pytest.mark.parametrize("capabilities", [{}, {"extensions": {"io.modelcontextprotocol/ui": {}}}])
    async def test_a_client_without_the_extension_gets_the_job(
        self, client: TaskClient, capabilities: dict[str, Any]
    ) -> None:
        plain = replace(client, capabilities=capabilities)
        answer = await plain.call("reindex")
        assert (answer["resultType"], answer["structuredContent"]["status"]) == ("complete", "queued")
        for method in METHODS:
            error = await plain.refusal(method, answer["structuredContent"]["id"])
            assert error["code"] == -32021
            assert error["data"] == {"requiredCapabilities": KNOWS_TASKS}

    async def test_an_older_revision_has_no_tasks(
        self, gateway: RunningGateway, http: httpx2.AsyncClient, client: TaskClient
    ) -> None:
        asked = {"protocolVersion": LEGACY, "capabilities": KNOWS_TASKS, "clientInfo": {"name": "t", "version": "1"}}
        told = await gateway.post(http, "initialize", asked)
        assert told["result"]["capabilities"].keys().isdisjoint({"extensions", "tasks"})
        called = await gateway.call(http, "reindex", {}, path="/mcp/x/all")
        assert "taskId" not in called
        task_id = called["structuredContent"]["id"]
        for method in METHODS:
            params = {"taskId": task_id} | ({"inputResponses": {}} if method == "tasks/update" else {})
            assert (await gateway.post(http, method, params))["error"]["code"] == -32601

    async def test_methods_removed_from_the_extension_do_not_exist(self, client: TaskClient) -> None:
        for method in ("tasks/list", "tasks/result"):
            assert (await client.refusal(method, NOBODYS))["code"] == -32601

    @pytest.mark.parametrize("name", [None, NOBODYS, "x"])
    async def test_a_header_that_names_another_task_is_refused(self, client: TaskClient, name: str | None) -> None:
        task_id = await client.begin("reindex")
        for method in METHODS:
            response = await client.send(method, name, taskId=task_id, inputResponses={})
            assert rpc_answer(response.text)["error"]["code"] == -32020
        assert (await client.get(task_id))["status"] == "working"


class TestListening:
    """`subscriptions/listen` with `taskIds`: each task is reported at first, and when it changes."""

    @pytest.fixture
    async def telling(self, settings: Settings, context: WorkerContext) -> AsyncIterator[WorkerContext]:
        """A worker that announces what it writes."""
        async with connect_redis(settings) as redis:
            publisher = ChangePublisher(redis)
            async with Database.connect(
                settings.database_url, settings=settings, on_written=publisher.publish
            ) as database:
                yield replace(context, database=database)
                await publisher.aclose()

    async def heard(self, lines: AsyncIterator[dict[str, Any]]) -> dict[str, Any]:
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            message = await anext(lines)
        told: dict[str, Any] = message["params"]
        assert message["method"] == "notifications/tasks"
        assert told.pop("_meta")["io.modelcontextprotocol/subscriptionId"] == "me"
        return told

    async def test_the_end_of_a_task_is_reported_with_its_result(
        self, patient: RunningGateway, client: TaskClient, key: str, telling: WorkerContext
    ) -> None:
        task_id = await client.begin("start_export", format="json")
        async with opened(patient, key, {"taskIds": [task_id, NOBODYS, "x"]}, KNOWS_TASKS) as lines:
            assert (await anext(lines))["params"]["notifications"] == {"taskIds": [task_id]}
            assert (await self.heard(lines))["status"] == "working"
            await job_loop.sweep(telling)
            told = await self.heard(lines)
            while told["status"] == "working":
                told = await self.heard(lines)
        asked = await client.get(task_id)
        assert told.items() <= asked.items()
        assert asked.keys() - told.keys() == {"resultType", "_meta"}

    async def test_an_ended_task_is_reported_once_and_a_cancellation_is_reported(
        self, patient: RunningGateway, client: TaskClient, key: str
    ) -> None:
        first, second = await client.begin("start_export", format="json"), await client.begin("reindex")
        await client.ask("tasks/cancel", first)
        async with opened(patient, key, {"taskIds": [first, second]}, KNOWS_TASKS) as lines:
            await anext(lines)
            told = [await self.heard(lines) for _ in range(2)]
            assert {each["taskId"]: each["status"] for each in told} == {first: "cancelled", second: "working"}
            await client.ask("tasks/cancel", second)
            assert (await self.heard(lines))["taskId"] == second

    async def test_a_client_without_the_extension_cannot_listen_to_tasks(
        self, gateway: RunningGateway, key: str
    ) -> None:
        async with gateway.http(key, **modern_headers()) as http:
            answer = rpc_answer((await http.post("/mcp", json=listen_message({"taskIds": [NOBODYS]}))).text)
        assert (answer["error"]["code"], answer["error"]["data"]) == (-32021, {"requiredCapabilities": KNOWS_TASKS})

    @pytest.mark.parametrize("asked", ["x", [1], [NOBODYS] * (MAX_TASKS + 1)])
    async def test_invalid_task_ids_are_refused(self, gateway: RunningGateway, key: str, asked: Any) -> None:
        async with gateway.http(key, **modern_headers()) as http:
            answer = rpc_answer((await http.post("/mcp", json=listen_message({"taskIds": asked}, KNOWS_TASKS))).text)
        assert answer["error"]["code"] == -32602


async def test_a_revoked_key_cannot_follow_its_task_which_ends(
    client: TaskClient, context: WorkerContext, issue: NewApiKey, db: Database, caller: Caller, http: httpx2.AsyncClient
) -> None:
    revoked, own = await issue(caller), http.headers["Authorization"]
    http.headers["Authorization"] = f"Bearer {revoked.secret}"
    task_id = await client.begin("reindex")
    async with db.transaction(caller) as tx:
        await identity.revoke_key(tx, revoked.key.id)
    for method in METHODS:
        assert (await client.send(method, task_id, taskId=task_id, inputResponses={})).status_code == 401
    http.headers["Authorization"] = own
    await job_loop.sweep(context)
    done = await client.get(task_id)
    assert (done["status"], done["result"]["isError"]) == ("completed", True)
    assert done["result"]["_meta"][ERROR_META]["code"] == "unauthenticated"


Confined = Callable[..., Awaitable[TaskClient]]


class TestPermissions:
    """A task is for those who may read or cancel its job in any other way, and for nobody else."""

    @pytest.fixture
    async def other(
        self, gateway: RunningGateway, issue: NewApiKey, caller: Caller, http: httpx2.AsyncClient
    ) -> Confined:
        async def make(**fields: Any) -> TaskClient:
            http.headers["Authorization"] = f"Bearer {(await issue(caller, **fields)).secret}"
            return TaskClient(http)

        return make

    @pytest.mark.parametrize(
        "fields",
        [
            {"toolsets": ("memory",)},
            {"scopes": frozenset({Scope.MEMORY_WRITE})},
            {"scopes": frozenset({Scope.TENANT_ADMIN})},
        ],
        ids=["toolset", "scope", "admin alone"],
    )
    async def test_a_task_is_hidden_from_keys_that_may_not_read_jobs(
        self, client: TaskClient, other: Confined, fields: dict[str, Any]
    ) -> None:
        await self.is_hidden(await client.begin("reindex"), await other(**fields))

    @pytest.mark.proves("security: tasks")
    async def test_a_task_is_hidden_from_keys_of_other_graphs(
        self, client: TaskClient, other: Confined, db: Database, caller: Caller
    ) -> None:
        await client.call("create_entities", graph="work", entities=[ENTITY])
        async with db.transaction(caller) as tx:
            ids = await graphs.graph_ids(tx, ["default", "work"])
        task_id = await client.begin("reindex")
        await self.is_hidden(task_id, await other(graph_ids=(ids["work"],)))
        assert (await (await other(graph_ids=(ids["default"],))).get(task_id))["status"] == "working"

    async def is_hidden(self, task_id: str, client: TaskClient) -> None:
        for method in METHODS:
            error = await client.refusal(method, task_id)
            assert error["code"] == -32602
            assert error == await client.refusal(method, NOBODYS) == await client.refusal(method, "no id at all")

    async def test_a_job_that_no_tool_starts_is_not_a_task(
        self, client: TaskClient, db: Database, caller: Caller
    ) -> None:
        job = await Desk(db, caller).start(FORGET_STATISTICS)
        await self.is_hidden(str(job.id), client)

    async def test_a_caller_who_may_only_read_cannot_cancel_a_task(self, client: TaskClient, other: Confined) -> None:
        task_id = await client.begin("start_export", format="json")
        reader = await other(scopes=frozenset({Scope.MEMORY_READ}))
        assert (await reader.get(task_id))["status"] == "working"
        error = await reader.refusal("tasks/cancel", task_id)
        assert error["data"] == {"code": "scope_required"}
        writer = replace(await other(), headers={"X-MCP-Readonly": "true"})
        assert (await writer.refusal("tasks/cancel", task_id))["data"] == {"code": "scope_required"}
        assert (await writer.get(task_id))["status"] == "working"

    async def test_a_key_that_could_not_follow_a_task_gets_the_result_directly(
        self,
        client: TaskClient,
        other: Confined,
        owner: asyncpg.Connection,
        caller: Caller,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A key confined to `memory` may compact, and cannot read jobs."""
        names = [f"entity {n}" for n in range(9)]
        await client.call("create_entities", entities=[{**ENTITY, "name": name} for name in names])
        await client.call("delete_entities", entityNames=names)
        await age(owner, caller)
        lower(monkeypatch, compaction.compact, limit=4)
        told = await (await other(toolsets=("memory",))).call("compact")
        assert (told["resultType"], told["structuredContent"]["job"] is None) == ("complete", False)


async def jobs_of(owner: asyncpg.Connection, caller: Caller) -> int:
    return int(await owner.fetchval("SELECT count(*) FROM jobs WHERE tenant_id = $1", caller.tenant_id))
