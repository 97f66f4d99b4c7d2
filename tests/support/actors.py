"""Actors: agents below the transports, a desk that starts jobs, a worker, and a client of the routes."""

import itertools
from collections.abc import AsyncIterator, Callable

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_workers.context import WorkerContext
from tests.conftest import NewTenant
from tests.support.gateway import RunningGateway
from tests.support.jobs import Desk, employed
from tests.support.memories import Agent, at_work

_serial = itertools.count(1)


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    """The agent of the test's tenant."""
    async with at_work(db, caller) as agent:
        yield agent


@pytest.fixture
def new_graph(agent: Agent) -> Callable[[], Agent]:
    """Makes agents of the test's tenant, each on a new graph."""
    return lambda: Agent(agent.db, agent.caller, f"graph-{next(_serial)}")


@pytest.fixture
async def other(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    """The agent of another tenant."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        yield agent


@pytest.fixture
def desk(db: Database, caller: Caller) -> Desk:
    """A desk that starts jobs of the test's tenant."""
    return Desk(db, caller)


@pytest.fixture
async def context(settings: Settings, db: Database) -> AsyncIterator[WorkerContext]:
    """The context of a worker."""
    async with employed(settings, db) as context:
        yield context


@pytest.fixture
async def http(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of the plain routes, with the key of an agent of the test's tenant."""
    async with gateway.http(key) as http:
        yield http
