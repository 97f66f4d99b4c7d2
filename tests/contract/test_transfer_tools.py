"""`export_graph` and `import_graph`, as in the enhanced memory server and, for the export, the mcp-memory crate."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import networkx
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller, Scope
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.transfer import exports
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from recollect_gateway.mcp_endpoint.tools.admin import get_job
from recollect_gateway.mcp_endpoint.tools.organize import export_graph, import_graph
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from tests.conftest import NewTenant
from tests.support.bounds import lower
from tests.support.gateway import NewApiKey, RunningGateway, revision_of, rpc_headers, serving
from tests.support.jobs import employed

pytestmark = pytest.mark.usefixtures("leaves_nothing")

ALICE = {"name": "Alice", "entityType": "person", "observations": ["likes tea"], "tags": ["vip"], "importance": 5}
BOB = {"name": "Bob", "entityType": "person", "observations": []}
KNOWS = {"from": "Alice", "to": "Bob", "relationType": "knows"}


class Tools:
    """Calls the tools of one toolset."""

    def __init__(self, gateway: RunningGateway, http: httpx2.AsyncClient, toolset: str) -> None:
        self.gateway, self.http, self.path = gateway, http, f"/mcp/x/{toolset}"

    async def result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return await self.gateway.call(self.http, tool, arguments, path=self.path)

    async def text(self, tool: str, **arguments: Any) -> str:
        result = await self.result(tool, **arguments)
        assert not result["isError"], result
        return str(result["content"][0]["text"])

    async def structured(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self.result(tool, **arguments)
        assert not result["isError"], result
        structured: dict[str, Any] = result["structuredContent"]
        return structured

    async def error(self, tool: str, **arguments: Any) -> tuple[dict[str, Any], str]:
        result = await self.result(tool, **arguments)
        assert result["isError"], result
        return result["_meta"][ERROR_META], result["content"][0]["text"]


@pytest.fixture
async def memory(gateway: RunningGateway, key: str) -> AsyncIterator[Tools]:
    async with gateway.http(key, **rpc_headers()) as http:
        tools = Tools(gateway, http, "memory")
        await tools.structured("create_entities", entities=[ALICE, BOB])
        await tools.structured("create_relations", relations=[KNOWS])
        yield tools


@pytest.fixture
def organize(memory: Tools) -> Tools:
    return Tools(memory.gateway, memory.http, "organize")


class TestExportGraph:
    @pytest.mark.proves("memory: export_graph", "crate: export")
    async def test_json_has_entities_and_relations(self, memory: Tools) -> None:
        said = json.loads(await memory.text("export_graph", format="json"))
        assert [entity["name"] for entity in said["entities"]] == ["Alice", "Bob"]
        assert said["entities"][0].items() >= ALICE.items()
        assert said["entities"][0].keys() >= {"createdAt", "lastModified"}
        assert [edge.items() >= KNOWS.items() for edge in said["relations"]] == [True]

    @pytest.mark.proves("memory: export_graph", "crate: export")
    async def test_mermaid_and_dot_are_written_as_the_crate_writes_them(self, memory: Tools) -> None:
        drawn = await memory.text("export_graph", format="mermaid")
        assert drawn == 'graph LR\n  n0["Alice"]\n  n1["Bob"]\n  n0 -->|knows| n1\n'
        drawn = await memory.text("export_graph", format="dot")
        assert drawn == ('digraph G {\n  n0 [label="Alice"];\n  n1 [label="Bob"];\n  n0 -> n1 [label="knows"];\n}\n')

    @pytest.mark.proves("crate: export")
    async def test_json_is_the_default_format(self, memory: Tools) -> None:
        assert await memory.text("export_graph") == await memory.text("export_graph", format="json")

    @pytest.mark.proves("organize: export_graph")
    async def test_jsonl_is_the_file_of_the_official_server(self, organize: Tools) -> None:
        lines = (await organize.text("export_graph", format="jsonl")).splitlines()
        assert [json.loads(line)["type"] for line in lines] == ["entity", "entity", "relation"]
        assert lines[2] == '{"type":"relation","from":"Alice","to":"Bob","relationType":"knows"}'

    @pytest.mark.proves("organize: export_graph")
    async def test_networkx_reads_graphml(self, organize: Tools) -> None:
        graph = networkx.parse_graphml(await organize.text("export_graph", format="graphml"))
        assert graph.nodes["Alice"]["observations"] == '["likes tea"]'
        assert graph.edges["Alice", "Bob"]["relationType"] == "knows"
        assert "<gexf" in await organize.text("export_graph", format="gexf")

    @pytest.mark.proves("organize: export_graph")
    async def test_csv_and_markdown_have_their_sections(self, organize: Tools) -> None:
        lines = (await organize.text("export_graph", format="csv")).splitlines()
        assert lines[0] == "# ENTITIES"
        assert lines[1].startswith("name,entityType,observations,createdAt,lastModified,tags,importance,parentId")
        assert "# RELATIONS" in lines
        assert "### Alice\n" in await organize.text("export_graph", format="markdown")

    async def test_the_structured_content_has_the_file_too(self, memory: Tools) -> None:
        said = await memory.structured("export_graph", format="mermaid")
        assert said["data"] == await memory.text("export_graph", format="mermaid")
        assert (said["mediaType"], said["revision"], said["factsLeftOut"]) == ("text/vnd.mermaid", 2, 0)

    @pytest.mark.proves("enhanced-server: formats-and-strategies")
    async def test_a_filter_keeps_entities_and_the_relations_among_them(self, memory: Tools) -> None:
        said = json.loads(await memory.text("export_graph", format="json", filter={"tags": ["VIP"]}))
        assert ([entity["name"] for entity in said["entities"]], said["relations"]) == (["Alice"], [])
        none = await memory.text("export_graph", format="jsonl", filter={"endDate": "2020-01-01T00:00:00Z"})
        assert none == ""

    async def test_a_date_includes_its_whole_day(self, organize: Tools) -> None:
        [alice, _] = json.loads(await organize.text("export_graph", format="json"))["entities"]
        day = alice["lastModified"][:10]
        for only in ({"startDate": day}, {"startDate": day, "endDate": day}):
            assert "Alice" in await organize.text("export_graph", format="json", filter=only)
        result = await organize.result("export_graph", format="json", filter={"endDate": "yesterday"})
        assert result["_meta"][ERROR_META] == {"code": "invalid_input", "path": "filter.endDate"}
        assert "2027-01-31" in result["content"][0]["text"]

    async def test_an_export_reads_the_past(self, memory: Tools) -> None:
        assert "knows" not in await memory.text("export_graph", format="dot", as_of="1")

    async def test_facts_that_are_left_out_are_counted(self, memory: Tools) -> None:
        await Tools(memory.gateway, memory.http, "agent").structured("remember", items=[{"text": "Rain is expected"}])
        result = await memory.result("export_graph", format="dot")
        assert result["content"][1]["text"] == "1 fact was left out: this format can hold entities only."
        assert "Rain" in await memory.text("export_graph", format="json")

    @pytest.mark.parametrize("format_name", ["json", "csv", "dot"])
    async def test_an_unknown_graph_is_empty(self, memory: Tools, format_name: str) -> None:
        assert "Alice" not in await memory.text("export_graph", format=format_name, graph="nowhere")

    async def test_a_large_export_is_refused_with_alternatives(
        self, settings: Settings, memory: Tools, key: str
    ) -> None:
        for small in ({"max_reply_items": 2}, {"max_reply_bytes": 1_100}):
            with serving(settings.model_copy(update=small)) as gateway:
                async with gateway.http(key, **rpc_headers()) as http:
                    error, text = await Tools(gateway, http, "memory").error("export_graph", format="json")
            assert error == {"code": "reply_too_large"}
            assert "call start_export with the same arguments" in text
            assert "recollect export --graph default --format json" in text
            assert "GET /v1/graphs/default/export?format=json" in text

    async def test_a_filtered_export_of_a_large_graph_is_refused_too(
        self, memory: Tools, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        only = {"entityType": "nothing has it"}
        assert json.loads(await memory.text("export_graph", format="json", filter=only))["entities"] == []
        monkeypatch.setattr(export_graph, "MAX_PAGES", 2)
        error, text = await memory.error("export_graph", format="json", filter=only)
        assert error == {"code": "reply_too_large"}
        assert "call start_export with the same arguments" in text


class TestStartExport:
    """An export that is too large for a reply, by tools alone."""

    @pytest.mark.proves("organize: start_export", "admin: start_export")
    @pytest.mark.parametrize("format_name", ["json", "graphml"])
    async def test_the_file_is_read_in_pieces(self, organize: Tools, context: WorkerContext, format_name: str) -> None:
        await organize.structured("add_tags", entityName="Alice", tags=["größe €", "𝄞 clef"])
        whole = await organize.text("export_graph", format=format_name)
        started = await organize.result("start_export", format=format_name)
        job = started["structuredContent"]
        assert (job["kind"], job["status"], job["graph"]) == ("export_graph", "queued", "default")
        assert f"get_job with id {job['id']}" in started["content"][1]["text"]
        assert "output" not in await organize.structured("get_job", id=job["id"], output_offset=0)
        await job_loop.sweep(context)
        pieces: list[str] = []
        offset: int | None = 0
        while offset is not None:
            said = await organize.structured("get_job", id=job["id"], output_offset=offset, output_limit=101)
            pieces.append(said["output"]["text"])
            assert len(pieces[-1].encode()) <= 101
            offset = said["output"].get("next_offset")
        assert ("".join(pieces), len(pieces) > 3) == (whole, True)
        assert said["output"]["path"] == f"/v1/jobs/{job['id']}/output"
        fetched = await organize.http.get(said["output"]["path"])
        assert fetched.text == whole
        assert fetched.headers["Content-Type"].split(";")[0] == said["output"]["media_type"]
        beyond = await organize.structured("get_job", id=job["id"], output_offset=10**9)
        assert (beyond["output"]["text"], beyond["output"].get("next_offset")) == ("", None)

    async def test_each_piece_fits_a_reply(
        self, settings: Settings, organize: Tools, context: WorkerContext, key: str
    ) -> None:
        whole = await organize.text("export_graph", format="json")
        job = await organize.structured("start_export", format="json")
        await job_loop.sweep(context)
        pieces: list[str] = []
        with serving(settings.model_copy(update={"max_reply_bytes": 1_100})) as gateway:
            async with gateway.http(key, **rpc_headers()) as http:
                offset: int | None = 0
                while offset is not None:
                    tools = Tools(gateway, http, "admin")
                    output = (await tools.structured("get_job", id=job["id"], output_offset=offset))["output"]
                    pieces.append(output["text"])
                    offset = output.get("next_offset")
        assert "".join(pieces) == whole
        assert len(pieces) > 1

    @pytest.mark.proves("admin: start_export")
    async def test_an_equal_running_export_is_reused(self, organize: Tools, context: WorkerContext) -> None:
        first = await organize.structured("start_export", format="csv", filter={"tags": ["VIP"]})
        assert (await organize.structured("start_export", format="csv", filter={"tags": ["vip"]}))["id"] == first["id"]
        others: list[dict[str, Any]] = [{"format": "csv"}, {"format": "json", "filter": {"tags": ["vip"]}}]
        assert first["id"] not in [(await organize.structured("start_export", **each))["id"] for each in others]
        await organize.structured("add_tags", entityName="Bob", tags=["vip"])
        assert (await organize.structured("start_export", format="csv", filter={"tags": ["vip"]}))["id"] != first["id"]
        await job_loop.sweep(context)
        read = await organize.structured("get_job", id=first["id"], output_offset=0)
        assert "Bob" not in read["output"]["text"], "as it was when it was asked for"

    @pytest.mark.proves("organize: get_job")
    async def test_waiting_for_an_export_reports_its_progress(
        self,
        organize: Tools,
        gateway: RunningGateway,
        key: str,
        context: WorkerContext,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        entities = [{"name": f"e{n}", "entityType": "thing", "observations": []} for n in range(40)]
        await organize.structured("import_graph", format="json", data=json.dumps({"entities": entities}))
        lower(monkeypatch, exports.export_step, page_items=1)
        monkeypatch.setattr(get_job, "POLL_SECONDS", 0.02)
        told: list[tuple[float, float | None]] = []

        watched = asyncio.Event()

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            told.append((progress, total))
            watched.set()

        async def begin() -> None:
            await watched.wait()
            await job_loop.sweep(context)

        job = await organize.structured("start_export", format="jsonl")
        sweeping = asyncio.create_task(begin())
        async with gateway.client(key, "/mcp/x/organize") as client:
            arguments = {"id": job["id"], "wait_seconds": 60, "output_offset": 0}
            result = await client.call_tool("get_job", arguments, progress_callback=tell)
        await sweeping
        assert result.structured_content is not None
        assert len(result.structured_content["output"]["text"].splitlines()) == 43
        assert len(told) > 2, "and what lies between"
        assert [progress for progress, _ in told] == sorted({progress for progress, _ in told}), "it rises each time"
        assert (told[0][0], told[-1][0]) == (0, 43)

    async def test_a_read_only_key_cannot_start_an_export(
        self, organize: Tools, gateway: RunningGateway, issue: NewApiKey, caller: Caller
    ) -> None:
        job = await organize.structured("start_export", format="json")
        reader = await issue(caller, scopes=frozenset({Scope.MEMORY_READ}))
        async with gateway.http(reader.secret, **rpc_headers()) as http:
            answer = await gateway.post(http, "tools/call", {"name": "start_export"}, path="/mcp/x/organize")
            assert "Unknown tool" in answer["error"]["message"]
            assert (await Tools(gateway, http, "organize").structured("get_job", id=job["id"]))["status"] == "queued"

    async def test_another_tenant_cannot_read_the_export(
        self, organize: Tools, gateway: RunningGateway, issue: NewApiKey, new_tenant: NewTenant, context: WorkerContext
    ) -> None:
        job = await organize.structured("start_export", format="json")
        await job_loop.sweep(context)
        issued = await issue(operator_caller(await new_tenant()))
        async with gateway.http(issued.secret, **rpc_headers()) as http:
            stranger = Tools(gateway, http, "organize")
            error, _ = await stranger.error("get_job", id=job["id"], output_offset=0)
            assert error == {"code": "job_not_found"}
            assert (await stranger.structured("start_export", format="json"))["id"] != job["id"]


class TestImportGraph:
    @pytest.mark.proves("organize: import_graph")
    @pytest.mark.parametrize("format_name", ["json", "csv", "graphml", "jsonl"])
    async def test_an_export_can_be_imported(self, organize: Tools, format_name: str) -> None:
        data = await organize.text("export_graph", format=format_name)
        said = await organize.structured("import_graph", format=format_name, data=data, graph="copy")
        assert (said["entitiesCreated"], said["relationsCreated"], said["errors"]) == (2, 1, [])
        again = await organize.structured("import_graph", format=format_name, data=data, graph="copy")
        assert (again["entitiesSkipped"], again["relationsSkipped"], again["entitiesCreated"]) == (2, 1, 0)
        drawn = [await organize.text("export_graph", format="dot", graph=name) for name in ("copy", "default")]
        assert drawn[0] == drawn[1]

    @pytest.mark.proves("organize: import_graph")
    async def test_each_merge_strategy_treats_existing_entities_as_documented(self, organize: Tools) -> None:
        data = json.dumps({"entities": [{**ALICE, "entityType": "robot", "observations": ["hums"], "tags": ["old"]}]})

        async def alice() -> dict[str, Any]:
            found = json.loads(await organize.text("export_graph", format="json"))["entities"]
            return next(entity for entity in found if entity["name"] == "Alice")

        said = await organize.structured("import_graph", format="json", data=data)
        assert (said["entitiesSkipped"], (await alice())["observations"]) == (1, ["likes tea"])
        error, text = await organize.error("import_graph", format="json", data=data, mergeStrategy="fail")
        assert error == {"code": "name_taken", "path": "entities.0"}
        assert "There is already an entity named 'Alice'." in text
        said = await organize.structured("import_graph", format="json", data=data, mergeStrategy="merge")
        found = await alice()
        assert said["entitiesUpdated"] == 1
        assert (found["entityType"], found["observations"]) == ("person", ["likes tea", "hums"])
        assert found["tags"] == ["vip", "old"]
        said = await organize.structured("import_graph", format="json", data=data, mergeStrategy="replace")
        found = await alice()
        assert said["entitiesUpdated"] == 1
        assert (found["entityType"], found["observations"], found["tags"]) == ("robot", ["hums"], ["old"])

    async def test_a_dry_run_reports_and_writes_nothing(self, organize: Tools, db: Database, caller: Caller) -> None:
        before = await revision_of(db, caller)
        data = json.dumps({"entities": [ALICE, {**BOB, "name": "Carol"}, {"name": 7}], "relations": [KNOWS]})
        said = await organize.structured("import_graph", format="json", data=data, dryRun=True)
        assert (said["dryRun"], said["entitiesCreated"], said["entitiesSkipped"]) == (True, 1, 1)
        assert said["relationsSkipped"] == 1
        assert said["errors"] == [{"path": "data.entities.2", "reason": "name: Expected `str`, got `int`"}]
        said = await organize.structured("import_graph", format="json", data=data, dryRun=True, graph="new")
        assert said["entitiesCreated"] == 2
        assert await revision_of(db, caller) == before
        assert await revision_of(db, caller, "new") == 0

    @pytest.mark.parametrize(
        ("format_name", "data", "path", "said"),
        [
            ("json", '{"entities":[{"name":"x"}]}', "data.entities.0", "entityType: Required. Nothing was imported"),
            ("json", "[1]", "data.0", "Expected `object`, got `int`. Nothing was imported"),
            ("json", "[1", "line 1", "Not a JSON object of lists"),
            ("csv", "name,importance\nx,high\n", "data.line 2", "importance: is not a number. Nothing was imported"),
            ("csv", "name,name\n", "line 1.column 2", "This column occurs twice"),
            ("csv", "name,size\n", "line 1.column 2", "Unknown column"),
            ("jsonl", "{}", "data.line 1", "Object missing required field `type`"),
            ("graphml", "<!DOCTYPE a [<!ENTITY b 'c'>]><a/>", "line 1", "Document types and entities are not accepted"),
        ],
    )
    async def test_broken_data_is_refused_with_its_place_and_nothing_is_written(
        self, organize: Tools, db: Database, caller: Caller, format_name: str, data: str, path: str, said: str
    ) -> None:
        before = await revision_of(db, caller)
        error, text = await organize.error("import_graph", format=format_name, data=data)
        assert error == {"code": "invalid_input", "path": path}
        assert said in text
        assert await revision_of(db, caller) == before

    async def test_data_that_is_too_long_is_refused_with_alternatives(self, organize: Tools) -> None:
        error, text = await organize.error("import_graph", format="csv", data="name\n" + "x" * 2_000_000)
        assert error == {"code": "request_too_large", "path": "data"}
        for elsewhere in ("`recollect import`", "POST /v1/graphs/{graph}/imports"):
            assert elsewhere in text

    @pytest.mark.parametrize("dry_run", [False, True])
    async def test_a_large_import_becomes_a_job(
        self, settings: Settings, organize: Tools, db: Database, caller: Caller, dry_run: bool
    ) -> None:
        data = "name\n" + "".join(f"e{number}\n" for number in range(import_graph.MAX_ITEMS + 1))
        async with employed(settings, db) as context:
            said = await organize.structured("import_graph", format="csv", data=data, dryRun=dry_run)
            assert (said["entitiesCreated"], said["job"]["kind"], said["dryRun"]) == (0, "import_graph", dry_run)
            before = await revision_of(db, caller)
            await job_loop.sweep(context)
            job = await organize.structured("get_job", id=said["job"]["id"], output_offset=0)
        assert (job["status"], job["result"]["entities_created"]) == ("succeeded", import_graph.MAX_ITEMS + 1)
        assert job["output"]["text"] == ""
        assert (await revision_of(db, caller) == before) is dry_run

    async def test_a_large_import_with_broken_data_imports_nothing(
        self, settings: Settings, organize: Tools, db: Database, caller: Caller
    ) -> None:
        data = (
            "name,importance\n"
            + "".join(f"e{number},1\n" for number in range(import_graph.MAX_ITEMS + 1))
            + "secret,x\n"
        )
        async with employed(settings, db) as context:
            said = await organize.structured("import_graph", format="csv", data=data)
            before = await revision_of(db, caller)
            await job_loop.sweep(context)
            job = await organize.structured("get_job", id=said["job"]["id"])
        assert (job["status"], job["error"]["code"]) == ("failed", "invalid_input")
        assert "secret" not in job["error"]["message"]
        assert await revision_of(db, caller) == before

    async def test_an_import_is_one_revision(self, organize: Tools, db: Database, caller: Caller) -> None:
        data = "name\n" + "".join(f"e{number}\n" for number in range(1_200))
        before = await revision_of(db, caller)
        said = await organize.structured("import_graph", format="csv", data=data)
        assert said["entitiesCreated"] == 1_200
        assert await revision_of(db, caller) == before + 1
