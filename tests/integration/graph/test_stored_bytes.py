"""The bytes of text that a graph stores, as its head counts them."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from recollect.caller import Caller
from recollect.graph.entities.model import NewEntity
from recollect.postgres.database import Database
from tests.support.memories import Agent, at_work

COUNT = "SELECT sum(stored_bytes)::int FROM graph_heads WHERE tenant_id = $1"


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        yield agent


async def test_text_and_metadata_are_counted_in_utf_8_bytes(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.create(NewEntity("Ada", "person"))
    before = await owner.fetchval(COUNT, agent.caller.tenant_id)
    await agent.observe("Ada", "grün")
    assert await owner.fetchval(COUNT, agent.caller.tenant_id) == before + len("grün".encode()) + len("{}{}")
    await agent.unobserve(("Ada", "grün"))
    await agent.delete("Ada")
    assert await owner.fetchval(COUNT, agent.caller.tenant_id) == before + len("grün".encode()) + len("{}{}")
