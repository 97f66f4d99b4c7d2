"""Databases with and without planner statistics, for tests of how many rows statements read."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant
from recollect.graph.entities.model import NewEntity
from recollect.memory.model import NewMemory
from recollect.postgres.migrate import migrate
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres
from tests.support.memories import Agent
from tests.support.plans import Watch, watched

BATCH = 500
"""The number of items in a call; comparing all pairs means BATCH² rows."""

STATES = ("none", "unread", "beside", "among", "own")
"""States of the statistics: none, for empty tables or for five thousand passages of ten tenants; those of forty small
tenants without the one at work, with a large tenant beside them, or with thousands more; and also with its own
thousand. A test can request the forty alone ("others")."""

ADDED_TO = {
    "unread": "none",
    "others": "none",
    "beside": "others",
    "beside less": "others",
    "among": "others",
    "own": "others",
}
"""The state from which a state is copied before more is added; "none" comes from migrations."""

WORKING = "big"
"""The slug of the tenant at work."""

COPIES_BESIDE = {"beside": 30_000, "beside less": 12_000}
"""The rows of the large tenant in each table: with these, an index with few entries of one tenant has fewer levels than
others; with the smaller number, the primary key has fewer levels than the index for look-ups."""

AMONG, OF_EACH = 30_000, 12
"""The rows of thousands of tenants in each table, and the rows of each of these tenants."""

COPIED = {
    "nodes": ("id", "name"),
    "node_versions": ("id", "node_id"),
    "observations": ("id", "node_id"),
    "relations": ("id", "to_node"),
    "passages": ("id", "memory_id", "node_id", "sequence"),
    "passage_evidence": ("passage_id",),
    "passage_vectors": ("passage_id",),
    "searched_vectors": ("passage_id",),
}
"""Tables with many rows of a large tenant, and the columns that differ between the rows."""


@dataclass(frozen=True)
class Work:
    """An agent with an empty graph, or with a thousand entities in the statistics, and the watch of its statements."""

    agent: Agent
    watch: Watch
    owner: asyncpg.Connection


@pytest.fixture(params=STATES)
async def work(request: pytest.FixtureRequest, postgres: LocalPostgres, settings: Settings) -> AsyncIterator[Work]:
    """Work in its own database, where only the test gathers statistics."""
    server = postgres.url()
    async with _at_work(server, await _template(server, request.param, settings), settings) as work:
        yield work
        assert work.watch.has_begun


@asynccontextmanager
async def work_after(
    fill: Callable[[Work], Awaitable[None]], state: str, server: str, settings: Settings
) -> AsyncIterator[Work]:
    """Work in a database in that state, in which `fill` has written once; each test gets a copy."""
    template = f"statistics_of_{_identifier(state)}_{fill.__name__}"
    if not await _exists(server, template):
        await _copy(server, await _template(server, state, settings), template)
        async with _working_in(_database(server, template), settings) as work:
            await fill(work)
    async with _at_work(server, template, settings) as work:
        yield work
        assert work.watch.has_begun


@asynccontextmanager
async def _at_work(server: str, template: str, settings: Settings) -> AsyncIterator[Work]:
    """Work in a copy of a database, which is dropped at the end."""
    name = f"{template}_copy"
    await _copy(server, template, name)
    try:
        async with _working_in(_database(server, name), settings) as work:
            yield work
    finally:
        await _administer(server, f"DROP DATABASE {name} WITH (FORCE)")


@asynccontextmanager
async def _working_in(url: str, settings: Settings) -> AsyncIterator[Work]:
    owner = await _connect(url)
    try:
        tenant = await tenants.find_tenant(Operator(owner), WORKING)
        async with watched(url, settings) as (db, watch):
            yield Work(Agent(db, operator_caller(tenant)), watch, owner)
    finally:
        await owner.close()


async def _template(server: str, state: str, settings: Settings) -> str:
    """The name of a database in that state, which is made once and copied for tests."""
    template = f"statistics_of_{_identifier(state)}"
    if not await _exists(server, template):
        if state == "none":
            await _administer(server, f"CREATE DATABASE {template}")
            await _prepare(_database(server, template))
        else:
            await _copy(server, await _template(server, ADDED_TO[state], settings), template)
            await _fill(_database(server, template), state, settings)
    return template


async def _prepare(url: str) -> None:
    """Migrate a database without automatic statistics, and create the tenant."""
    await migrate(url)
    owner = await _connect(url)
    tables = "SELECT relname FROM pg_class WHERE relnamespace = 'recollect'::regnamespace AND relkind = 'r'"
    for table in await owner.fetch(tables):
        await owner.execute(f"ALTER TABLE {table['relname']} SET (autovacuum_enabled = off)")
    await _tenant(owner, WORKING)
    await owner.close()


async def _fill(url: str, state: str, settings: Settings) -> None:
    """Write what a state has in addition to the one that it extends."""
    owner = await _connect(url)
    tenant = await tenants.find_tenant(Operator(owner), WORKING)
    async with watched(url, settings) as (db, _):
        if state == "unread":
            for number in range(10):
                await _large(Agent(db, operator_caller(await _tenant(owner, f"large-{number}"))))
        if state == "others":
            for number in range(40):
                await _small(Agent(db, operator_caller(await _tenant(owner, f"small-{number}"))))
        if state in COPIES_BESIDE:
            await _copy_for_large_tenant(owner, tenant, COPIES_BESIDE[state])
        if state == "among":
            await _copy_for_many_tenants(owner)
        if state == "own":
            agent = Agent(db, operator_caller(tenant))
            await agent.create(*entities_of("old", 2 * BATCH))
            await agent.embed()
    if state != "unread":
        await owner.execute("ANALYZE")
    await owner.close()


async def _exists(server: str, database: str) -> bool:
    return bool(await _administer(server, "SELECT 1 FROM pg_database WHERE datname = $1", database))


def _identifier(state: str) -> str:
    return state.replace(" ", "_")


async def _copy(server: str, database: str, copy: str) -> None:
    await _administer(server, f"CREATE DATABASE {copy} TEMPLATE {database} STRATEGY file_copy")


def _database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


async def _connect(url: str) -> asyncpg.Connection:
    return await asyncpg.connect(url, server_settings={"search_path": "recollect, public"})


async def _administer(url: str, statement: str, *parameters: str) -> list[asyncpg.Record]:
    superuser = await asyncpg.connect(url)
    try:
        return await superuser.fetch(statement, *parameters)
    finally:
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


async def _copy_for_large_tenant(owner: asyncpg.Connection, beside: Tenant, copies: int) -> None:
    """Copy rows for one large tenant, whose vectors are in the same partition as those of another."""
    large = await owner.fetchval(
        "SELECT t.id FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, 1000)) AS t"
        " CROSS JOIN generate_series(0, 15) AS n"
        " WHERE satisfies_hash_partition('searched_vectors'::regclass, 16, n, t.id)"
        " AND satisfies_hash_partition('searched_vectors'::regclass, 16, n, $1::uuid) LIMIT 1",
        beside.id,
    )
    await _copy_rows(owner, copies, {"tenant_id": f"'{large}'::uuid"})


async def _copy_for_many_tenants(owner: asyncpg.Connection) -> None:
    """Copy a dozen rows for each of thousands of tenants, in a graph each."""
    of_tenant = {column: f"md5('{column} ' || n / {OF_EACH})::uuid" for column in ("tenant_id", "graph_id")}
    await _copy_rows(owner, AMONG, of_tenant)


async def _copy_rows(owner: asyncpg.Connection, copies: int, of_tenant: dict[str, str]) -> None:
    """Copy a row of each table so often, with other values in these columns; rows that copies refer to do not exist."""
    async with owner.transaction():
        await owner.execute("SET LOCAL session_replication_role = replica")
        for table, others in COPIED.items():
            attributes = await owner.fetch(
                "SELECT attname FROM pg_attribute"
                " WHERE attrelid = $1::regclass AND attnum > 0 AND attgenerated = '' AND NOT attisdropped",
                table,
            )
            columns = [row["attname"] for row in attributes]
            other = dict.fromkeys(others, "gen_random_uuid()") | of_tenant
            if "name" in other:
                other["name"] = "'a name that is as long as many names are ' || n"
            await owner.execute(
                f"INSERT INTO {table} ({', '.join(columns)})"
                f" SELECT {', '.join(other.get(column, f't.{column}') for column in columns)}"
                f" FROM (SELECT * FROM {table} ORDER BY tenant_id LIMIT 1) AS t"
                f" CROSS JOIN generate_series(1, {copies}) AS n"
            )
