"""A question may name an entity by another name than memories do."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.graph.aliases import service as aliases
from recollect.graph.aliases.model import MAX_CHARACTERS
from recollect.graph.nodes import service as nodes
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


async def test_passages_have_the_words_of_the_first_of_many_aliases(agent: Agent, owner: asyncpg.Connection) -> None:
    """Not of all: each passage has them. The others are found as well, where a question names the entity by them."""
    names = [f"called {'on and ' * 60}{number:04}" for number in range(MAX_CHARACTERS // 400 * 3)]
    async with agent.writing() as (tx, revision):
        head = (await nodes.require_entity_heads(tx, revision.graph, ["Margarethe Oberholzer"]))[
            "Margarethe Oberholzer"
        ]
        await aliases.alias(tx, revision, {head.id: names})
        known_as = (await aliases.names_of(tx, [head.id]))[head.id].aliases
        assert known_as is not None
        assert len(known_as) == MAX_CHARACTERS
    await agent.remember(NewMemory("She likes tea.", about=("Margarethe Oberholzer",)))
    await agent.embed()
    words = await owner.fetchval(
        "SELECT max(length(tsv::text)) FROM passages WHERE tenant_id = $1 AND node_id = $2",
        agent.caller.tenant_id,
        head.id,
    )
    assert words < 2 * MAX_CHARACTERS
    assert "She likes tea." in await agent.recalled(f"What does {names[-1]} like?", limit=10, token_budget=100_000)
