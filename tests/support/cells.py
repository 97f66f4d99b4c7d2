"""Two cells: the database of the run, which is the home cell, and another database of the same server."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants import service as tenants
from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.postgres.connections import OWNER_ROLE
from recollect.postgres.migrate import migrate
from recollect.settings import Settings
from recollect.settings.cells import HOME, CellUrls
from recollect.valkey.client import connect_redis
from recollect_local.postgres import LocalPostgres
from recollect_operator.cells import OperatorCells
from tests.support.gateway import RunningGateway, serving
from tests.support.memories import Agent

OTHER = "b"
"""The name of the cell that is not the home cell."""

_serial = itertools.count(1)

NewTenantOf = Callable[[str], Awaitable[Caller]]
"""Creates a tenant in a cell, and returns its operator."""


def cell_url(postgres: LocalPostgres, role: str, database: str) -> str:
    """Another database of the same server."""
    return postgres.url(role).replace("/recollect?", f"/{database}?")


async def make_cell(postgres: LocalPostgres, database: str) -> CellUrls:
    """A new database with the schema."""
    administrator = await asyncpg.connect(postgres.url())
    try:
        await administrator.execute(f'CREATE DATABASE "{database}" TEMPLATE template0')
    finally:
        await administrator.close()
    await migrate(cell_url(postgres, "postgres", database))
    roles = {"database_url": "app", "owner_database_url": "owner", "operator_database_url": "operator"}
    return CellUrls(**{url: cell_url(postgres, f"recollect_{role}", database) for url, role in roles.items()})


@pytest.fixture(scope="session")
async def celled(postgres: LocalPostgres, settings: Settings) -> Settings:
    """The settings of both cells."""
    operator_url = postgres.url("recollect_operator")
    cells = {OTHER: await make_cell(postgres, "recollect_b")}
    return settings.model_copy(update={"cells": cells, "operator_database_url": operator_url})


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Databases]:
    """The cells of these settings, as a gateway opens them."""
    async with connect_redis(settings) as redis, Databases.open(settings, redis, lambda *_: None) as cells:
        yield cells


@pytest.fixture
async def cells(celled: Settings) -> AsyncIterator[Databases]:
    """Both cells, as a new gateway opens them."""
    async with opened(celled) as database:
        yield database


def routed(databases: Databases, agent: Agent) -> Agent:
    """The agent as a call of a gateway has it: each transaction finds the tenant's cell."""
    database: Any = databases.of(agent.caller.tenant_id)
    return replace(agent, db=database)


@pytest.fixture(scope="session")
def celled_gateway(celled: Settings) -> Iterator[RunningGateway]:
    """A gateway of both cells."""
    with serving(celled) as gateway:
        yield gateway


@pytest.fixture
async def new_tenant_of(celled: Settings) -> NewTenantOf:
    """Makes tenants in cells."""

    async def make(cell: str) -> Caller:
        slug = f"celled-{next(_serial)}"
        async with (
            OperatorCells.connect(celled, OWNER_ROLE, lambda its: its.migration_url) as operators,
            operators.claimed(slug, cell) as tenant_id,
            operators.at(cell).session() as operator,
        ):
            return operator_caller(await tenants.create_tenant(operator, slug, slug, tenant_id=tenant_id))

    return make


@pytest.fixture
async def resident(new_tenant_of: NewTenantOf) -> Caller:
    """A caller of a tenant in the other cell."""
    return await new_tenant_of(OTHER)


@pytest.fixture
async def native(new_tenant_of: NewTenantOf) -> Caller:
    """A caller of a tenant in the home cell."""
    return await new_tenant_of(HOME)


@pytest.fixture
async def owner_b(celled: Settings) -> AsyncIterator[asyncpg.Connection]:
    """A plain connection as the owner of the other cell."""
    url = celled.of_cell(OTHER).migration_url
    connection = await asyncpg.connect(url, server_settings={"search_path": "recollect, public"})
    yield connection
    await connection.close()
