"""Steps of an import: other calls wait for at most one short step."""

import asyncio
from math import ceil

import pytest

from recollect.fairness import fair_queue, slots
from recollect.fairness.fair_queue import FairQueue
from recollect.fairness.slots import acquire_slot
from recollect.graph.entities.model import NewEntity
from recollect.graph.nodes.store import MAX_WRITTEN
from recollect.postgres.transactions import SHORT_STEP_ROWS
from recollect.transfer import service as transfer
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.formats.jsonl import record_of
from recollect.transfer.model import ImportResult, Strategy
from tests.support.memories import Agent, names
from tests.support.statements import sent_statements

TURNS = 50
"""Turns of the event loop, after which everything that can continue has done so."""

COUNT = 2 * MAX_WRITTEN + 1
WRITES = ("nodes.insert_nodes", "nodes.append_versions", "observations.insert_observations", "passages.insert_passages")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in these tests depends on how fast the machine is."""
    monkeypatch.setattr(fair_queue, "LATELY_SECONDS", 1000.0)
    monkeypatch.setattr(fair_queue, "RESTS", 0.0)
    monkeypatch.setattr(slots, "SLOT_SECONDS", 1000.0)
    monkeypatch.setattr(slots, "MAX_PREEMPTED_SECONDS", 1000.0)


def entities(count: int) -> list[ParsedRecord]:
    made = [NewEntity(f"entity {number}", "thing", (f"is number {number}",)) for number in range(count)]
    return [ParsedRecord(f"line {number}", record_of(entity)) for number, entity in enumerate(made, 1)]


async def import_of(agent: Agent, items: list[ParsedRecord]) -> ImportResult:
    async with agent.writing() as (tx, revision):
        return await transfer.import_items(tx, revision, items, Strategy.MERGE)


async def test_a_flooding_tenants_import_waits_while_another_tenants_call_is_at_work(
    agent: Agent, patient: None
) -> None:
    queue = FairQueue(4)
    async with acquire_slot(queue, "other", wait_seconds=1000):
        """The other tenant called lately, so a flood gets one slot beside it."""
    async with acquire_slot(queue, "flood", wait_seconds=1000):
        waiting = asyncio.create_task(queue.take("flood"))
        async with agent.writing() as (tx, revision):
            await queue.take("other")
            with sent_statements() as sent:
                step = asyncio.create_task(transfer.import_items(tx, revision, entities(3), Strategy.MERGE))
                for _ in range(TURNS):
                    await asyncio.sleep(0)
                assert sent == []
                queue.give_back("other", 0.0)
                assert (await step).entities_created == 3
                assert len(sent) > 3
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert len(names(await agent.read())) == 3


@pytest.mark.parametrize(("waits", "rows"), [(True, SHORT_STEP_ROWS), (False, MAX_WRITTEN)])
async def test_a_flooding_tenants_import_takes_short_steps_if_another_tenant_may_call(
    agent: Agent, patient: None, waits: bool, rows: int
) -> None:
    """A tenant none of whose calls wait takes the steps that it would take alone."""
    queue = FairQueue(4)
    async with acquire_slot(queue, "other", wait_seconds=1000):
        """The other tenant called lately, so a flood gets one slot beside it."""
    async with acquire_slot(queue, "flood", wait_seconds=1000):
        waiting = [asyncio.create_task(queue.take("flood"))] if waits else []
        await asyncio.sleep(0)
        with sent_statements() as sent:
            assert (await import_of(agent, entities(COUNT))).entities_created == COUNT
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    steps = ceil(COUNT / rows)
    assert {write: sum(write in statement for statement in sent) for write in WRITES} == dict.fromkeys(WRITES, steps)
    assert len(names(await agent.read())) == COUNT


async def test_each_statement_writes_few_rows_and_none_deletes_rows_of_another(
    agent: Agent,
) -> None:
    with sent_statements() as sent:
        assert (await import_of(agent, entities(COUNT))).entities_created == COUNT
    assert {write: sum(write in statement for statement in sent) for write in WRITES} == dict.fromkeys(WRITES, 3)
    assert not [statement for statement in sent if "remove_names" in statement]
    assert len(names(await agent.read())) == COUNT


async def test_an_entity_without_observations_is_found_by_name_and_later_by_observations(agent: Agent) -> None:
    silent = ParsedRecord("line 1", record_of(NewEntity("Zanzibar", "place", ())))
    await import_of(agent, [silent, *entities(1)])
    assert await agent.recalled("Zanzibar") == ["Zanzibar"]
    await import_of(agent, [ParsedRecord("line 1", record_of(NewEntity("Zanzibar", "place", ("smells of cloves",))))])
    assert await agent.recalled("Zanzibar") == await agent.recalled("cloves") == ["smells of cloves"]
    assert await agent.recalled("number 0") == ["is number 0"]
