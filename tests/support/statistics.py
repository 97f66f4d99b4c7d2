"""Databases of which PostgreSQL knows much or nothing when it plans: for tests of how many rows statements look at."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant
from recollect.graph.entities.model import NewEntity
from recollect.memory.model import NewMemory
from recollect.platform.migrate import migrate
from recollect.platform.operator_sessions import Operator
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres
from tests.support.memories import Agent
from tests.support.plans import Watch, watched

BATCH = 500
"""Items in a call; comparing each with each is BATCH² rows."""

STATES = ("none", "unread", "others", "own")
"""What there are statistics of: nothing, in tables that are empty, or hold five thousand passages of ten tenants; forty
small tenants, but not the one at work; its own thousand as well."""


@dataclass(frozen=True)
class Work:
    """An agent with nothing in its graph, or a thousand entities of which PostgreSQL knows, and who watches it."""

    agent: Agent
    watch: Watch
    owner: asyncpg.Connection


@pytest.fixture(params=STATES)
async def work(request: pytest.FixtureRequest, postgres: LocalPostgres, settings: Settings) -> AsyncIterator[Work]:
    """In a database of its own, in which statistics are gathered when the test says so."""
    name, state = f"statistics_{request.param}", request.param
    url = urlunsplit(urlsplit(postgres.url())._replace(path=f"/{name}"))
    await _administer(postgres.url(), f"CREATE DATABASE {name}")
    await migrate(url)
    owner = await asyncpg.connect(url, server_settings={"search_path": "recollect, public"})
    tables = "SELECT relname FROM pg_class WHERE relnamespace = 'recollect'::regnamespace AND relkind = 'r'"
    for table in await owner.fetch(tables):
        await owner.execute(f"ALTER TABLE {table['relname']} SET (autovacuum_enabled = off)")
    try:
        async with watched(url, settings) as (db, watch):
            if state == "unread":
                for number in range(10):
                    await _large(Agent(db, operator_caller(await _tenant(owner, f"large-{number}"))))
            elif state != "none":
                for number in range(40):
                    await _small(Agent(db, operator_caller(await _tenant(owner, f"small-{number}"))))
                await owner.execute("ANALYZE")
            agent = Agent(db, operator_caller(await _tenant(owner, "big")))
            if state == "own":
                await agent.create(*entities_of("old", 2 * BATCH))
                await agent.embed()
                await owner.execute("ANALYZE")
            yield Work(agent, watch, owner)
    finally:
        await owner.close()
        await _administer(postgres.url(), f"DROP DATABASE {name} WITH (FORCE)")


async def _administer(url: str, statement: str) -> None:
    superuser = await asyncpg.connect(url)
    await superuser.execute(statement)
    await superuser.close()


async def _tenant(owner: asyncpg.Connection, slug: str) -> Tenant:
    return await tenants.create_tenant(Operator(owner), slug, slug)


async def _small(agent: Agent) -> None:
    await agent.create(*entities_of("entity", 8))
    await agent.relate(*(("entity 0", f"entity {n}", "to") for n in range(1, 8)))
    await agent.remember(*(NewMemory(f"something {n} of entity {n}", thread="talk") for n in range(5)))
    await agent.embed()


async def _large(agent: Agent) -> None:
    await agent.remember(*(turn(number) for number in range(BATCH)))
    await agent.embed()


def turn(number: int, thread: str | None = None) -> NewMemory:
    return NewMemory(f"turn {number} is about {number * 7919 % 1009}", thread=thread or f"thread {number // 10}")


def entities_of(name: str, count: int) -> list[NewEntity]:
    return [
        NewEntity(f"{name} {n}", "thing", (f"likes tea {n}", f"drinks tea {n}", "and wine"), (f"tag {n}",))
        for n in range(count)
    ]
