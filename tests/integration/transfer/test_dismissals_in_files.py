"""Which entities are different, as somebody said, is part of exports, and comes back by imports."""

import json

import pytest

from recollect.caller import Caller
from recollect.curation.dismissals import service as dismissals
from recollect.graph.entities.model import NewEntity
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.transfer.model import ExportSelection, Strategy
from recollect.transfer.records import MAX_DIFFERENT
from tests.conftest import NewTenant
from tests.integration.transfer.test_import_export_formats import (
    LOSSLESS,
    create_graph,
    entity,
    exported,
    import_records,
    imported,
)
from tests.support.dismissals import different, dismiss, ids_of
from tests.support.memories import Agent

ALIKE = ("Acme Inc", "Acme Ink", "Acme, Inc", "Acme Inks")
PAIRS = {frozenset(ALIKE[:2]), frozenset((ALIKE[0], ALIKE[2])), frozenset(ALIKE[1:3])}


@pytest.fixture
async def agent(db: Database, caller: Caller) -> Agent:
    """An agent with four entities that look alike, three pairs of which are different."""
    agent = Agent(db, caller)
    await agent.create(*(NewEntity(name, "company", ("makes anvils",)) for name in ALIKE))
    for one, other in map(sorted, PAIRS):
        await dismiss_named(agent, one, other)
    return agent


async def dismiss_named(agent: Agent, one: str, other: str) -> None:
    ids = await ids_of(agent)
    await dismiss(agent, ids[one], ids[other])


@pytest.mark.parametrize("format_name", LOSSLESS)
async def test_pairs_that_are_different_come_back(
    agent: Agent, db: Database, new_tenant: NewTenant, caller: Caller, format_name: str
) -> None:
    """Each once, said by whoever imports; a second import adds none."""
    other = await create_graph(Agent(db, caller, "copy"))
    file = await exported(agent, format_name, page_items=2)
    for strategy in (Strategy.SKIP, Strategy.REPLACE, Strategy.MERGE):
        assert not (await imported(other, file, format_name, strategy)).problems
        assert await different(other) == dict.fromkeys(PAIRS, caller.subject)
    assert await exported(other, format_name) is not None
    assert [e.get("differentFrom") for e in json.loads(await exported(other))["entities"]] == [
        None,
        [ALIKE[0]],
        [ALIKE[0], ALIKE[1]],
        None,
    ]


async def test_a_part_of_a_graph_has_the_pairs_within_it(agent: Agent, db: Database, caller: Caller) -> None:
    """Also a past state: of the pairs of now those whose entities were there. What is deleted is in no pair."""
    await agent.remember(NewMemory("is in Oslo", about=(ALIKE[2],), tags=("north",)))
    await agent.create(NewEntity("Acme Inc.", "company", ()))
    await dismiss_named(agent, "Acme Inc.", ALIKE[3])
    then = json.loads(await exported(agent, as_of="1"))
    assert sum(len(e.get("differentFrom", ())) for e in then["entities"]) == len(PAIRS)
    await agent.delete(ALIKE[0])
    now = json.loads(await exported(agent))
    assert {e["name"]: e["differentFrom"] for e in now["entities"] if "differentFrom" in e} == {
        ALIKE[2]: [ALIKE[1]],
        "Acme Inc.": [ALIKE[3]],
    }
    companies = await exported(agent, selection=ExportSelection(kind="nothing"))
    assert json.loads(companies)["entities"] == []


async def test_a_pair_with_what_is_not_there_is_passed_over(db: Database, caller: Caller) -> None:
    agent = Agent(db, caller)
    records = [entity("Ada"), entity("Bob", different_from=["Ada", "Nobody", "Bob"])]
    assert not (await import_records(agent, *records)).problems
    assert set(await different(agent)) == {frozenset(("Ada", "Bob"))}


async def test_pairs_beyond_the_bound_of_a_graph_are_problems(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dismissals, "MAX_DISMISSALS", len(PAIRS) + 1)
    records = [entity("Ada"), entity("Bob"), entity("Cy", different_from=["Ada", "Bob"])]
    [problem] = (await import_records(agent, *records)).problems
    assert (problem.where, problem.of_part) == ("item 2.differentFrom", True)
    assert len(await different(agent)) == len(PAIRS) + 1


async def test_a_list_of_too_many_names_is_refused(db: Database, caller: Caller) -> None:
    agent = Agent(db, caller)
    file = {
        "entities": [
            {"name": "Ada", "entityType": "", "observations": [], "differentFrom": ["B"] * (MAX_DIFFERENT + 1)}
        ]
    }
    [problem] = (await imported(agent, json.dumps(file).encode())).problems
    assert problem.where == "entities.0"
    assert "differentFrom" in problem.reason
