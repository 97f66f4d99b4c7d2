"""Imports by a job: dry runs, the strategy `fail`, and `strict`, which imports nothing of a file with problems."""

import json
from typing import Any
from uuid import UUID

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.transfer.formats import FORMATS, IMPORTED
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.jobs import Desk, import_by_another, look, started
from tests.support.memories import Agent

JSON = {"Content-Type": "application/json"}
JSONL = {"Content-Type": "application/x-ndjson"}
COUNTS = [f"{what}_{how}" for what in ("entities", "facts", "relations") for how in ("created", "updated", "skipped")]
COUNTS.append("observations_added")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Related items are in different batches."""
    monkeypatch.setattr("recollect.transfer.batches.BATCH_ITEMS", 4)


def entity(number: int, **more: Any) -> dict[str, Any]:
    parent = {"parentId": f"e{number - 1}"} if number % 3 else {}
    return {"name": f"e{number}", "entityType": "thing", "observations": [f"says {number}"], **parent, **more}


WHOLE: dict[str, list[dict[str, Any]]] = {
    "entities": [entity(number) for number in range(14)],
    "facts": [{"text": f"fact {number}", "kind": "note"} for number in range(6)],
    "relations": [
        *({"from": f"e{n}", "to": f"e{n + 1}", "relationType": "before"} for n in range(13)),
        *({"from": f"e{n}", "to": {"text": f"fact {n}"}, "relationType": "about"} for n in range(6)),
    ],
}
CIRCLE = [entity(0, parentId="e9"), *(entity(n, parentId=f"e{n - 1}") for n in range(1, 10))]
"""No batch has the whole cycle, and each single reference is valid."""
RETURN = [entity(0), *(entity(n, parentId=f"e{n - 1}") for n in range(1, 10)), entity(0, parentId="e9")]
THERE = {"entities": [entity(2, tags=["old"]), entity(9, observations=["says else"])], "facts": [{"text": "fact 3"}]}


async def import_directly(http: httpx2.AsyncClient, graph: str, content: Any, **params: Any) -> httpx2.Response:
    """Import in a request, without a job."""
    return await http.post(f"/v1/graphs/{graph}/import", content=json.dumps(content), headers=JSON, params=params)


async def finished_import(
    http: httpx2.AsyncClient, context: WorkerContext, graph: str, content: bytes, headers: Any, **params: Any
) -> dict[str, Any]:
    """The finished job of an import."""
    job = await started(await http.post(f"/v1/graphs/{graph}/imports", content=content, headers=headers, params=params))
    await job_loop.sweep(context)
    return await look(http, job)


async def revision(http: httpx2.AsyncClient, graph: str) -> str:
    answer = await http.get(f"/v1/graphs/{graph}/export")
    assert answer.status_code == 200
    return str(answer.headers["Recollect-Revision"])


def counts(said: dict[str, Any]) -> dict[str, int]:
    return {name: said[name] for name in COUNTS}


@pytest.mark.parametrize(
    ("format_name", "content", "place"),
    [
        ("csv", "secret,name\n", "line 1.column 1: Unknown column"),
        ("csv", "# ENTITIES\nname,secret\n", "line 2.column 2: Unknown column"),
        ("graphml", "<secret/>", "line 1: This element"),
        ("graphml", '<graphml><key id="a" for="node" attr.name="secret"/></graphml>', "line 1: Unknown key"),
        ("graphml", '<graphml><graph><node id="a"><data key="secret"/></node></graph></graphml>', "line 1: Its key"),
        ("json", '{"secret":[]}', "line 1: Unknown part"),
    ],
)
async def test_a_parse_error_gives_the_place_without_the_content(
    http: httpx2.AsyncClient, context: WorkerContext, format_name: str, content: str, place: str
) -> None:
    headers = {"Content-Type": FORMATS[format_name].media_type}
    job = await finished_import(http, context, "default", content.encode(), headers)
    assert job["status"] == "failed"
    assert job["error"]["message"].startswith(place)
    assert "secret" not in json.dumps(job)


async def test_problems_are_reported_without_the_content(http: httpx2.AsyncClient, context: WorkerContext) -> None:
    known = {"name": "Ada", "entityType": "", "observations": []}
    broken = [{**known, "secret": 1}, {**known, "said": [{"secret": 1}]}, {**known, "metadata": {"secret": "\0"}}]
    job = await finished_import(http, context, "default", json.dumps({"entities": broken}).encode(), JSON)
    assert (job["status"], job["result"]["problems"]) == ("succeeded", 3)
    told = (await http.get(f"/v1/jobs/{job['id']}/output")).text
    assert [json.loads(line)["reason"].partition(":")[0] for line in told.splitlines()] == [
        "field 4",
        "said.0",
        "metadata.field 1",
    ]


class TestSameAsDirectImport:
    """A job returns what a direct import returns."""

    async def file(self, http: httpx2.AsyncClient, format_name: str) -> tuple[bytes, dict[str, str]]:
        if format_name == "json":
            return json.dumps(WHOLE).encode(), JSON
        assert (await import_directly(http, "source", WHOLE)).status_code == 200
        answer = await http.get("/v1/graphs/source/export", params={"format": format_name})
        return answer.content, {"Content-Type": FORMATS[format_name].media_type}

    @pytest.mark.parametrize("strategy", ["skip", "merge", "replace"])
    @pytest.mark.parametrize("format_name", IMPORTED)
    async def test_a_job_counts_existing_items_like_a_direct_import(
        self, http: httpx2.AsyncClient, context: WorkerContext, format_name: str, strategy: str
    ) -> None:
        content, headers = await self.file(http, format_name)
        for graph in ("direct", "job"):
            assert (await import_directly(http, graph, THERE)).status_code == 200
        for check in (True, False):
            params = {"strategy": strategy, "check": check}
            before = await revision(http, "job")
            direct = await http.post("/v1/graphs/direct/import", content=content, headers=headers, params=params)
            job = await finished_import(http, context, "job", content, headers, **params)
            assert job["status"] == "succeeded", job
            assert counts(job["result"]) == counts(direct.json()), check
            assert (job["result"]["problems"], direct.json()["errors"]) == (0, [])
            assert job["result"].get("dry_run", False) is check
            assert (await revision(http, "job") == before) is check

    @pytest.mark.parametrize("format_name", IMPORTED)
    async def test_strategy_fail_succeeds_on_an_empty_graph_and_fails_the_second_time(
        self, http: httpx2.AsyncClient, context: WorkerContext, format_name: str
    ) -> None:
        content, headers = await self.file(http, format_name)
        assert (await import_directly(http, "direct", {"entities": []})).status_code == 200
        assert (await import_directly(http, "job", {"entities": []})).status_code == 200
        direct = await http.post(
            "/v1/graphs/direct/import", content=content, headers=headers, params={"strategy": "fail"}
        )
        job = await finished_import(http, context, "job", content, headers, strategy="fail")
        assert (job["status"], counts(job["result"])) == ("succeeded", counts(direct.json()))
        assert job["done"] == job["total"] > 0
        before = await revision(http, "job")
        direct = await http.post(
            "/v1/graphs/direct/import", content=content, headers=headers, params={"strategy": "fail"}
        )
        for check in (False, True):
            job = await finished_import(http, context, "job", content, headers, strategy="fail", check=check)
            assert (direct.status_code, job["status"], job["error"]["code"]) == (409, "failed", direct.json()["code"])
        assert await revision(http, "job") == before


class TestFail:
    @pytest.mark.parametrize("there", ["e13", "e0"])
    async def test_nothing_is_written_if_an_entity_exists(
        self, http: httpx2.AsyncClient, context: WorkerContext, there: str
    ) -> None:
        await import_directly(http, "default", {"entities": [{"name": there, "entityType": "", "observations": []}]})
        before = await revision(http, "default")
        job = await finished_import(http, context, "default", json.dumps(WHOLE).encode(), JSON, strategy="fail")
        assert (job["status"], job["error"]["code"]) == ("failed", "name_taken")
        assert job["error"]["message"].startswith(f"entities.{there[1:]}: It exists already")
        assert await revision(http, "default") == before

    async def test_nothing_is_written_if_a_name_occurs_twice(
        self, http: httpx2.AsyncClient, context: WorkerContext
    ) -> None:
        twice = {"entities": [*WHOLE["entities"], entity(1)]}
        before = await revision(http, "default")
        job = await finished_import(http, context, "default", json.dumps(twice).encode(), JSON, strategy="fail")
        assert (job["status"], job["error"]["code"]) == ("failed", "name_taken")
        assert job["error"]["message"].startswith("entities.14: ")
        assert await revision(http, "default") == before

    @pytest.mark.parametrize("moment", ["while it is tried", "while it is written"])
    async def test_an_entity_created_meanwhile_fails_the_trial_or_is_reported_as_a_problem(
        self, http: httpx2.AsyncClient, desk: Desk, context: WorkerContext, agent: Agent, moment: str
    ) -> None:
        """Each step is by another worker, so that each reads the file from its beginning."""
        await agent.create("other")
        content = json.dumps(WHOLE).encode()
        job = await started(await http.post("/v1/graphs/default/imports?strategy=fail", content=content, headers=JSON))
        made = False
        while job["status"] in ("queued", "running"):
            tried = job["done"] > (job["total"] or 0) / 2
            if not made and job["done"] >= 4 and (tried or moment == "while it is tried"):
                await agent.create("e1" if not tried else "e13")
                made = True
                before = (await agent.head()).revision
            await import_by_another(context, desk)
            job = await look(http, job)
        assert made
        if moment == "while it is tried":
            assert (job["status"], job["error"]["code"]) == ("failed", "name_taken")
            assert (await agent.head()).revision == before
        else:
            assert (job["status"], job["result"]["problems"], job["result"]["entities_created"]) == ("succeeded", 1, 13)
            told = await http.get(f"/v1/jobs/{job['id']}/output")
            assert told.json() == {"path": "entities.13", "reason": "somebody else created it during the import"}
            assert (await agent.head()).entities == 15

    async def test_a_conflict_costs_no_other_object_of_its_line(
        self, http: httpx2.AsyncClient, desk: Desk, context: WorkerContext, agent: Agent
    ) -> None:
        """All objects of a line have one place."""
        await agent.create("other")
        objects = [json.dumps({"type": "entity", **entity(number)}) for number in range(6)]
        content = "\n".join(["".join(objects[:2]), "".join(objects[2:])]).encode()
        job = await started(await http.post("/v1/graphs/default/imports?strategy=fail", content=content, headers=JSONL))
        made = False
        while job["status"] in ("queued", "running"):
            if not made and job["done"] > (job["total"] or 0) / 2:
                await agent.create("e5")
                made = True
            await import_by_another(context, desk)
            job = await look(http, job)
        assert made
        assert (job["status"], job["result"]["problems"], job["result"]["entities_created"]) == ("succeeded", 1, 5)


@pytest.mark.parametrize("asked", [{}, {"strict": "true"}, {"strategy": "fail"}, {"check": "true"}])
async def test_progress_has_the_total_from_the_first_step_and_counts_each_item_once(
    http: httpx2.AsyncClient, desk: Desk, context: WorkerContext, asked: dict[str, str]
) -> None:
    content = {**WHOLE, "entities": [*reversed(WHOLE["entities"])]}  # Parents come after their children.
    url = "/v1/graphs/default/imports"
    job = await started(await http.post(url, content=json.dumps(content).encode(), headers=JSON, params=asked))
    told = []
    while job["status"] in ("queued", "running"):
        await import_by_another(context, desk)
        job = await look(http, job)
        told.append((job["done"], job["total"]))
    assert job["status"] == "succeeded"
    items = sum(map(len, WHOLE.values()))
    assert {total for _, total in told} == {items}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (items, items)


class TestStrict:
    @pytest.mark.parametrize(
        ("entities", "place"),
        [
            ([*WHOLE["entities"], {"name": 7}], "entities.14"),
            ([*WHOLE["entities"], entity(20, parentId="nobody")], "entities.14.parentId"),
            (CIRCLE, "entities.0.parentId"),
            (RETURN, "entities.10.parentId"),
        ],
    )
    async def test_a_strict_import_writes_nothing_if_there_is_a_problem(
        self, http: httpx2.AsyncClient, context: WorkerContext, entities: list[dict[str, Any]], place: str
    ) -> None:
        content = json.dumps({"entities": entities}).encode()
        before = await revision(http, "default")
        job = await finished_import(http, context, "default", content, JSON, strict=True, strategy="merge")
        assert (job["status"], job["error"]["code"]) == ("failed", "invalid_input")
        assert job["error"]["message"].startswith(place)
        assert await revision(http, "default") == before
        job = await finished_import(http, context, "default", content, JSON, check=True)
        told = await http.get(f"/v1/jobs/{job['id']}/output")
        assert told.json()["path"].startswith(place)
        assert (job["status"], job["result"]["problems"]) == ("succeeded", 1)

    async def test_a_strict_import_works_with_a_whitelist(
        self, http: httpx2.AsyncClient, context: WorkerContext, desk: Desk
    ) -> None:
        async with desk.writing() as tx:
            await graphs.create_graph(tx, NewGraph("narrow", kind_whitelist=("thing", "note")))
        job = await finished_import(http, context, "narrow", json.dumps(WHOLE).encode(), JSON, strict=True)
        assert (job["status"], job["result"]["problems"], job["result"]["relations_created"]) == ("succeeded", 0, 19)


async def test_a_dry_run_does_not_create_a_graph(
    http: httpx2.AsyncClient, context: WorkerContext, gateway: RunningGateway, issue: NewApiKey, caller: Caller
) -> None:
    job = await finished_import(http, context, "absent", json.dumps(WHOLE).encode(), JSON, check="true")
    assert (job["status"], job["graph"], job["result"]["dry_run"]) == ("succeeded", None, True)
    assert [graph["name"] for graph in (await http.get("/v1/graphs")).json()["items"]] == ["default"]
    really = await finished_import(http, context, "absent", json.dumps(WHOLE).encode(), JSON)
    assert {**really["result"], "dry_run": True} == job["result"]
    graph = (await http.get("/v1/graphs/absent")).json()["id"]
    async with gateway.http((await issue(caller, graph_ids=(UUID(graph),))).secret) as confined:
        for name in ("absent", "elsewhere"):
            answer = await confined.post(f"/v1/graphs/{name}/imports?check=true", content=b"{}", headers=JSON)
            assert answer.status_code == (202 if name == "absent" else 403)


async def test_another_tenants_entities_do_not_count_as_existing(
    http: httpx2.AsyncClient, context: WorkerContext, gateway: RunningGateway, issue: NewApiKey, new_tenant: NewTenant
) -> None:
    await import_directly(http, "default", WHOLE)
    async with gateway.http((await issue(operator_caller(await new_tenant()))).secret) as foreign:
        job = await finished_import(foreign, context, "default", json.dumps(WHOLE).encode(), JSON, strategy="fail")
    assert (job["status"], job["result"]["entities_created"]) == ("succeeded", 14)
