"""Names of a file in several forms, in an import of many steps: they stay apart, and meet what the graph had before."""

import json
import unicodedata
from typing import Any

import httpx2
import pytest

from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from tests.support.jobs import look, started
from tests.support.memories import Agent

NFC, NFD = "Zoë", unicodedata.normalize("NFD", "Zoë")
JSONL = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The forms are in different steps."""
    monkeypatch.setattr("recollect.transfer.batches.BATCH_ITEMS", 2)


async def test_forms_in_different_steps_stay_apart(
    http: httpx2.AsyncClient, context: WorkerContext, subtests: pytest.Subtests
) -> None:
    for options in ({}, {"strategy": "merge"}, {"strategy": "skip"}, {"strategy": "fail"}, {"strict": "true"}):
        graph = "-".join(["forms", *options, *options.values()])
        with subtests.test(graph):
            assert (await imported(http, context, graph, FILE, **options))["status"] == "succeeded"
            assert (await http.get(f"/v1/graphs/{graph}/export", params={"format": "jsonl"})).text == FILE


async def test_an_entity_of_before_is_met_in_every_step(
    http: httpx2.AsyncClient, context: WorkerContext, agent: Agent
) -> None:
    await agent.create(NFC)
    await imported(http, context, "default", "\n".join(FILE.splitlines()[1:]), strategy="merge")
    graph = await agent.read()
    [zoe] = [entity for entity in graph.entities if entity.name == NFC]
    assert set(zoe.observations) == {"said as NFD", "said with a space"}
    assert len(graph.entities) == 1 + len(OTHERS)
    assert {(r.source, r.target) for r in graph.relations} == {(NFC, f"Other {number}") for number in range(3)}


async def test_a_dry_run_tells_what_the_import_does(http: httpx2.AsyncClient, context: WorkerContext) -> None:
    for before in ([], [NFC]):
        graph = f"tried-{len(before)}"
        lines = "\n".join(entity(name, "here before") for name in before)
        await imported(http, context, graph, lines or entity("Somebody", "else"))
        tried = await imported(http, context, graph, FILE, strategy="merge", check="true")
        made = await imported(http, context, graph, FILE, strategy="merge")
        counts = {name: count for name, count in made["result"].items() if name != "dry_run"}
        assert {name: count for name, count in tried["result"].items() if name != "dry_run"} == counts
        assert counts["entities_created"] == len(OTHERS) + (0 if before else 3)


def entity(name: str, said: str) -> str:
    record = {"type": "entity", "name": name, "entityType": "person", "observations": [said]}
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def relation(name: str, other: int) -> str:
    record = {"type": "relation", "from": name, "to": f"Other {other}", "relationType": "knows"}
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


OTHERS = [entity(f"Other {number}", "is another") for number in range(5)]
FILE = "\n".join(
    [
        entity(NFC, "said as NFC"),
        *OTHERS[:2],
        entity(NFD, "said as NFD"),
        *OTHERS[2:],
        entity(f"{NFC} ", "said with a space"),
        *map(relation, (NFC, NFD, f"{NFC} "), range(3)),
    ]
)


async def imported(
    http: httpx2.AsyncClient, context: WorkerContext, graph: str, content: str, **params: Any
) -> dict[str, Any]:
    """The finished job of an import."""
    address = f"/v1/graphs/{graph}/imports"
    job = await started(await http.post(address, content=content.encode(), headers=JSONL, params=params))
    await job_loop.sweep(context)
    return await look(http, job)
