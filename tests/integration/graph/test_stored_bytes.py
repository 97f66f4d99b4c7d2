"""The bytes of text that a graph stores, as its head counts them."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from recollect.caller import Caller
from recollect.graph.entities.model import NewEntity
from recollect.platform.migrate import migrations
from recollect.postgres.database import Database
from tests.support.invariants import assert_laws
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


async def test_the_migration_counts_existing_text(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.create(NewEntity("Ada", "person", ("likes tea", "likes cake")), "Grace")
    await agent.relate(("Ada", "Grace", "knows"))
    await agent.unobserve(("Ada", "likes tea"))
    await agent.delete("Grace")
    counted = await owner.fetchval(COUNT, agent.caller.tenant_id)
    await owner.execute("UPDATE graph_heads SET stored_bytes = 0 WHERE tenant_id = $1", agent.caller.tenant_id)
    [quotas] = [migration.sql for migration in migrations() if migration.name.endswith("_quotas")]
    [fill] = [statement for statement in quotas.split(";\n") if "UPDATE graph_heads h SET" in statement]
    await owner.execute(fill)
    assert await owner.fetchval(COUNT, agent.caller.tenant_id) == counted > 0
    await assert_laws(agent)
