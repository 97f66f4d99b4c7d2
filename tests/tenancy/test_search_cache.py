"""The search cache: no question, ranking or value in Redis crosses from one tenant to another."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.memories import Agent, at_work
from tests.support.recalls import RecallStack, stack


@pytest.fixture
async def one(settings: Settings) -> AsyncIterator[RecallStack]:
    async with stack(settings) as one:
        yield one


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        yield agent


async def test_equal_questions_of_two_tenants_have_separate_entries(
    one: RecallStack, db: Database, new_tenant: NewTenant
) -> None:
    callers = [operator_caller(await new_tenant()) for _ in range(2)]
    async with at_work(db, callers[0]) as mine, at_work(db, callers[1]) as other:
        await mine.remember("my alder")
        await other.remember("the other's alder")
        assert await one.cached(mine.caller, "alder") == ["my alder"]
        assert await one.cached(other.caller, "alder") == ["the other's alder"]
        assert await one.cached(mine.caller, "alder") == ["my alder"]


@pytest.mark.proves("security: caches")
async def test_a_cached_value_of_another_tenant_is_not_used(
    one: RecallStack, db: Database, new_tenant: NewTenant
) -> None:
    """Moved to another key in Redis, it cannot be decrypted; even if it could, its passages could not be read."""
    callers = [operator_caller(await new_tenant()) for _ in range(2)]
    async with at_work(db, callers[0]) as mine, at_work(db, callers[1]) as other:
        await mine.remember("my alder")
        await other.remember("the other's alder")
        redis = one.redis
        for agent in (mine, other):
            await one.cached(agent.caller, "alder")
        [my_key], [other_key] = [await one.keys(agent.caller) for agent in (mine, other)]
        await redis.set(my_key, await redis.get(other_key))
        moved = await one.recall(mine.caller, "alder")
        assert (moved.hits, moved.texts) == (0, ["my alder"])
        assert moved.lookup is not None
        assert moved.lookup.found == {}, "it was opened"
        theirs = (await one.recall(other.caller, "alder")).searched.hits
        await one.forge(mine.caller, "alder", [hit.ranked for hit in theirs])
        forged = await one.recall(mine.caller, "alder")
        assert forged.lookup is not None
        assert forged.lookup.found, "the forged value was opened"
        assert (forged.hits, forged.texts) == (0, ["my alder"])


async def test_passages_of_another_graph_are_not_read(one: RecallStack, agent: Agent) -> None:
    elsewhere = replace(agent, graph="elsewhere")
    await agent.remember("my alder")
    await elsewhere.remember("an alder elsewhere")
    await one.cached(agent.caller, "alder")
    found = (await one.recall(agent.caller, "alder", graph="elsewhere")).searched.hits
    await one.forge(agent.caller, "alder", [hit.ranked for hit in found])
    assert (await one.recall(agent.caller, "alder")).texts == ["my alder"]
