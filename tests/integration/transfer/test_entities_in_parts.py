"""An entity with very many observations is imported in steps, each a bounded transaction, whoever takes them."""

import json
from typing import Any

import asyncpg
import httpx2
import pytest

from recollect.transfer import service as transfer
from recollect.transfer.batches import read_batches
from recollect.transfer.records import EntityRecord
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from tests.support.jobs import Desk, import_by_another, look, started
from tests.support.memories import Agent

PART = 4
TEXTS = [f"says {number}" for number in range(4 * PART + 3)]
TYPES = {"jsonl": "application/x-ndjson", "json": "application/json"}
LARGE: dict[str, Any] = {"name": "Large", "entityType": "thing", "observations": TEXTS}
SMALL: list[dict[str, Any]] = [{"name": f"Small {n}", "entityType": "thing", "observations": ["is"]} for n in range(3)]
RELATION = {"from": "Large", "to": "Small 0", "relationType": "knows"}


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.transfer.batches.BATCH_OBSERVATIONS", PART)


def jsonl(*entities: dict[str, Any]) -> str:
    lines = [{"type": "entity", **entity} for entity in entities] + [{"type": "relation", **RELATION}]
    return "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)


FILE = jsonl(SMALL[0], LARGE, *SMALL[1:])


async def imported(
    http: httpx2.AsyncClient, context: WorkerContext, graph: str, content: str, kind: str = "jsonl", **params: Any
) -> dict[str, Any]:
    address = f"/v1/graphs/{graph}/imports"
    headers = {"Content-Type": TYPES[kind]}
    job = await started(await http.post(address, content=content.encode(), headers=headers, params=params))
    await job_loop.sweep(context)
    return await look(http, job)


async def test_every_step_is_bounded_and_the_file_comes_back(
    http: httpx2.AsyncClient, context: WorkerContext, agent: Agent, owner: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    for options in ({}, {"strategy": "merge"}, {"strategy": "skip"}, {"strategy": "fail"}, {"strict": "true"}):
        graph = "-".join(["parts", *options, *options.values()])
        with subtests.test(graph):
            tried = await imported(http, context, graph, FILE, **options, check="true")
            job = await imported(http, context, graph, FILE, **options)
            assert job["status"] == "succeeded"
            counts = {name: job["result"][name] for name in ("entities_created", "observations_added", "problems")}
            assert counts == {"entities_created": 4, "observations_added": len(TEXTS) + 3, "problems": 0}
            assert {name: tried["result"][name] for name in counts} == counts
            assert (job["done"], job["total"]) == (5, 5)
            assert (await http.get(f"/v1/graphs/{graph}/export", params={"format": "jsonl"})).text == FILE
            written = await owner.fetch(
                "SELECT count(*) AS count FROM observations WHERE tenant_id = $1 AND graph_id = ("
                "SELECT id FROM graphs WHERE tenant_id = $1 AND name = $2) GROUP BY added_revision",
                agent.caller.tenant_id,
                graph,
            )
            assert len(written) >= len(TEXTS) / PART
            assert max(row["count"] for row in written) <= PART


async def test_attributes_of_observations_stay_with_them(http: httpx2.AsyncClient, context: WorkerContext) -> None:
    said = [{"thread": f"t{number}", "tags": [f"tag {number}"]} for number in range(len(TEXTS))]
    content = json.dumps({"entities": [{**LARGE, "said": said, "tags": ["whole"]}]})
    for strategy in ("skip", "merge", "replace"):
        await imported(http, context, f"said-{strategy}", content, "json", strategy=strategy)
        exported = await http.get(f"/v1/graphs/said-{strategy}/export", params={"format": "json"})
        [entity] = exported.json()["entities"]
        told = {text: (o["thread"], o["tags"]) for text, o in zip(entity["observations"], entity["said"], strict=True)}
        assert told == {text: (o["thread"], o["tags"]) for text, o in zip(TEXTS, said, strict=True)}
        assert entity["tags"] == ["whole"]


async def test_the_strategies_hold_for_all_parts(
    http: httpx2.AsyncClient, context: WorkerContext, agent: Agent, subtests: pytest.Subtests
) -> None:
    before = jsonl({**LARGE, "observations": ["said before", TEXTS[-1]]})
    expected = {"skip": ["said before", TEXTS[-1]], "merge": ["said before", TEXTS[-1], *TEXTS[:-1]], "replace": TEXTS}
    for strategy, texts in expected.items():
        with subtests.test(strategy):
            await imported(http, context, strategy, before)
            done = await imported(http, context, strategy, FILE, strategy=strategy)
            graph = await http.get(f"/v1/graphs/{strategy}/nodes/Large")
            assert sorted(graph.json()["observations"]) == sorted(texts)
            assert done["result"]["entities_created"] == 3
            assert done["result"]["entities_skipped"] == (1 if strategy == "skip" else 0)


async def test_an_entity_that_a_skip_brings_back_gets_all_parts(
    http: httpx2.AsyncClient, context: WorkerContext, agent: Agent
) -> None:
    await imported(http, context, "default", jsonl({**LARGE, "observations": ["said before"]}))
    await agent.let_go("Large")
    await imported(http, context, "default", FILE, strategy="skip")
    node = (await http.get("/v1/graphs/default/nodes/Large")).json()
    assert (node["status"], node["observations"]) == ("active", TEXTS)


async def test_workers_that_fail_in_the_middle_double_and_lose_nothing(
    http: httpx2.AsyncClient,
    desk: Desk,
    context: WorkerContext,
    agent: Agent,
    owner: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each step is by another worker, and every other one fails after it has written: its transaction goes with it."""
    import_items, calls = transfer.import_items, 0

    async def failing(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        result = await import_items(*arguments, **options)
        if calls % 2:
            raise ConnectionResetError("The worker is killed")
        return result

    headers = {"Content-Type": TYPES["jsonl"]}
    job = await started(await http.post("/v1/graphs/default/imports", content=FILE.encode(), headers=headers))
    monkeypatch.setattr(transfer, "import_items", failing)
    while job["status"] in ("queued", "running"):
        await import_by_another(context, desk)
        await owner.execute("UPDATE jobs SET next_attempt_at = now() WHERE tenant_id = $1", agent.caller.tenant_id)
        job = await look(http, job)
    assert job["status"] == "succeeded"
    assert job["result"]["observations_added"] == len(TEXTS) + 3
    assert (await http.get("/v1/graphs/default/export", params={"format": "jsonl"})).text == FILE


def test_a_job_of_before_reads_the_batches_of_before() -> None:
    raw = [FILE.encode()]
    whole = [len(batch.items) for batch in read_batches("jsonl", raw, in_parts=False)]
    parts = list(read_batches("jsonl", raw))
    assert len(parts) > len(whole)
    assert sum(batch.read for batch in parts) == sum(whole) == 5


def test_parts_are_bounded_by_their_bytes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.transfer.batches.BATCH_BYTES", 1_000)
    monkeypatch.setattr("recollect.transfer.batches.BATCH_OBSERVATIONS", 1_000)
    texts = [f"{number} " + "x" * 300 for number in range(20)]
    batches = list(read_batches("jsonl", [jsonl({**LARGE, "observations": texts}).encode()]))
    records = [item.record for batch in batches for item in batch.items]
    found = [record.observations for record in records if isinstance(record, EntityRecord)]
    assert [text for part in found for text in part] == texts
    assert max(len(part) for part in found) == 3


async def test_many_aliases_are_written_in_steps_too(
    http: httpx2.AsyncClient, context: WorkerContext, agent: Agent, owner: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    names = [f"alias {number:02}" for number in range(3 * PART + 1)]
    content = json.dumps({"entities": [{**LARGE, "aliases": names, "tags": ["whole"]}]})
    before = json.dumps({"entities": [{**LARGE, "observations": ["said before"], "aliases": ["former"]}]})
    for strategy, known in (("skip", False), ("merge", False), ("fail", False), ("merge", True), ("skip", True)):
        graph = f"aliases-{strategy}-{known}"
        with subtests.test(graph):
            if known:
                await imported(http, context, graph, before, "json")
            job = await imported(http, context, graph, content, "json", strategy=strategy)
            assert (job["status"], job["result"]["problems"], job["done"]) == ("succeeded", 0, 1), job
            exported = await http.get(f"/v1/graphs/{graph}/export", params={"format": "json"})
            [entity] = exported.json()["entities"]
            kept = ["former"] * known
            expected = (
                (kept, ["said before"])
                if known and strategy == "skip"
                else (
                    sorted([*names, *kept]),
                    [*["said before"] * known, *TEXTS],
                )
            )
            assert (sorted(entity["aliases"]), entity["observations"]) == expected
            written = await owner.fetch(
                "SELECT count(*) AS count FROM aliases WHERE tenant_id = $1 AND graph_id = ("
                "SELECT id FROM graphs WHERE tenant_id = $1 AND name = $2) GROUP BY added_revision",
                agent.caller.tenant_id,
                graph,
            )
            assert max(row["count"] for row in written) <= PART
