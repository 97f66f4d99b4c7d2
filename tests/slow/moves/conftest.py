"""Fixtures for tests of moves."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.settings.cells import CellUrls
from recollect_local.postgres import LocalPostgres
from tests.support.cells import cell_url, opened
from tests.support.memories import Agent
from tests.support.moves import AWAY, TwoCells
from tests.tenancy.conftest import neighbours, tables

__all__ = ["agent", "gateway", "neighbours", "reaching", "tables"]


@pytest.fixture
async def agent(db: Database, caller: Caller) -> Agent:
    """An agent of a tenant with memories. Suspensions and moves stop its caller, unlike an operator."""
    agent = Agent(db, replace(caller, of_service=False))
    await agent.create("Ada", "Grace")
    await agent.relate(("Ada", "Grace", "knows"))
    await agent.embed()
    return agent


@pytest.fixture
def reaching(two_cells: TwoCells, postgres: LocalPostgres) -> Settings:
    """Settings of a process that reaches both cells, as the application."""
    away = CellUrls(database_url=cell_url(postgres, "recollect_app", AWAY))
    return two_cells.settings.model_copy(update={"cells": {AWAY: away}})


@pytest.fixture
async def gateway(reaching: Settings) -> AsyncIterator[Databases]:
    """The cells as in a gateway that remembers where the tenant was before."""
    async with opened(reaching) as cells:
        yield cells
