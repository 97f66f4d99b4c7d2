"""Names that differ in their apostrophes only are forms of one name, in every tool that takes names."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.graph.graphs import service as graphs
from recollect.memory import reading
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.support.memories import Agent, at_work, names

TYPED, PRINTED = "Rory O'Brien", "Rory O’Brien"
FORMS = [f"Rory O{mark}Brien" for mark in "'’‘‛ʼ＇"]


@pytest.fixture
async def agent(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        yield agent


async def store_both(agent: Agent, owner: asyncpg.Connection) -> None:
    """Two entities whose names are forms of one, as an older graph may have them."""
    await agent.create(TYPED, "other")
    await owner.execute(
        "UPDATE nodes SET name = $2 WHERE tenant_id = $1 AND name = 'other'", agent.caller.tenant_id, PRINTED
    )


async def opened(agent: Agent, *asked: str) -> list[str | None]:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        found = await reading.get_entities(await graphs.view(tx, None), asked)
    return [None if entity is None else entity.name for entity in found]


async def test_every_form_finds_the_only_entity_of_the_name_once(agent: Agent) -> None:
    await agent.create(PRINTED)
    for form in FORMS:
        assert names(await agent.open(form)) == [PRINTED]
    assert names(await agent.open(*FORMS)) == [PRINTED]
    assert await opened(agent, TYPED, PRINTED, "nobody") == [PRINTED, None]


async def test_of_two_forms_each_is_found_as_it_is_written(agent: Agent, owner: asyncpg.Connection) -> None:
    await store_both(agent, owner)
    assert names(await agent.open(TYPED, PRINTED)) == [TYPED, PRINTED]
    assert await opened(agent, PRINTED, TYPED) == [PRINTED, TYPED]
    assert names(await agent.open("Rory OʼBrien")) == [TYPED]


async def test_the_living_form_comes_first(agent: Agent, owner: asyncpg.Connection) -> None:
    await store_both(agent, owner)
    await agent.let_go(TYPED)
    assert names(await agent.open(TYPED)) == [PRINTED]
    assert names(await agent.open(TYPED, PRINTED)) == [PRINTED]


async def test_another_form_of_a_name_makes_no_other_entity(agent: Agent) -> None:
    await agent.create(TYPED)
    assert await agent.create(PRINTED) == []
    await agent.remember(NewMemory("likes tea", about=(PRINTED,)))
    await agent.observe("Rory O‘Brien", "likes rum")
    [entity] = (await agent.read()).entities
    assert (entity.name, entity.observations) == (TYPED, ("likes tea", "likes rum"))
    await agent.relate((PRINTED, "Rory O‛Brien", "knows"))
    assert [relation.source for relation in (await agent.read()).relations] == [TYPED]
    await agent.delete(PRINTED)
    assert names(await agent.read()) == []
