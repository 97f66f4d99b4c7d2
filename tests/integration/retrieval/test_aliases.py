"""A question may name an entity by another name than memories do."""

from collections.abc import AsyncIterator

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.retrieval.recall.ranking import CANDIDATES
from tests.conftest import NewTenant
from tests.support.memories import Agent, at_work

FACT = "Margarethe Oberholzer keeps the spare keys."


@pytest.fixture
async def agent(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    """An agent who knows somebody by two names, among more memories about a question than a search compares."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.create("Margarethe Oberholzer", "Maggie")
        await agent.merge(["Margarethe Oberholzer", "Maggie"], "Margarethe Oberholzer")
        await agent.remember(NewMemory(FACT, about=("Margarethe Oberholzer",)))
        await agent.remember(
            *(f"What did we ask visitor {number} about the garden?" for number in range(2 * CANDIDATES))
        )
        await agent.embed()
        yield agent


async def test_an_entity_that_is_named_by_an_alias_is_considered(agent: Agent) -> None:
    found = await agent.recall("What did we ask Maggie about the garden?", limit=100, token_budget=100_000)
    (hit,) = [hit for hit in found.hits if hit.text == FACT]
    assert hit.terms["about"] == 1


async def test_an_entity_that_is_not_named_is_not(agent: Agent) -> None:
    assert FACT not in await agent.recalled("What did we ask about the garden?", limit=100, token_budget=100_000)


async def test_a_forgotten_memory_of_such_an_entity_is_not_returned(agent: Agent) -> None:
    await agent.let_go("Margarethe Oberholzer", "archived")
    question = "What did we ask Maggie about the garden?"
    assert FACT not in await agent.recalled(question, limit=100, token_budget=100_000)
