"""An erasure that computes for long beside the event loop: who waits for it, and who does not.

It holds its graph, as any write does, and a connection of its tenant's share. Computing takes turns in a thread.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.fairness.computing import compute_while_locked
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.postgres.database import Database
from recollect.retention.erasure import service as erasure
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.memories import Agent, names
from tests.support.timeouts import MAX_WAIT_SECONDS

SHARE = 2
"""Connections of one tenant, of twice as many."""


@pytest.fixture
async def small(settings: Settings) -> AsyncIterator[Database]:
    changed = settings.model_copy(update={"database_pool_size": 2 * SHARE, "database_tenant_share": 0.5})
    async with Database.connect(settings.database_url, settings=changed) as database:
        yield database


@pytest.fixture
async def agent(small: Database, caller: Caller) -> Agent:
    return Agent(small, caller)


async def erase(agent: Agent) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        await erasure.erase_person(tx, agent.graph or "default", "Ada")


async def test_erasures_that_compute_hold_up_only_what_is_theirs(
    agent: Agent, new_tenant: NewTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many erasures as the tenant has connections: another tenant reads, writes and erases meanwhile."""
    computing, goes_on = asyncio.Semaphore(0), asyncio.Event()

    async def slowly(tenant_id: Any, slices: Any) -> Any:
        if tenant_id == agent.caller.tenant_id:
            computing.release()
            await goes_on.wait()
        return await compute_while_locked(tenant_id, slices)

    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, NewGraph("second"))
    theirs = [replace(agent, graph=graph) for graph in ("default", "second")]
    for each in theirs:
        await each.create("Ada", "Grace")
    monkeypatch.setattr(erasure, "compute_while_locked", slowly)
    under_way = [asyncio.create_task(erase(each)) for each in theirs]
    async with asyncio.timeout(MAX_WAIT_SECONDS):
        for _ in theirs:
            await computing.acquire()
        neighbour = Agent(agent.db, operator_caller(await new_tenant()))
        await neighbour.create("Ada", "Grace")
        await neighbour.observe("Grace", "writes compilers")
        assert await neighbour.recalled("compilers") == ["writes compilers"]
        await erase(neighbour)
        assert names(await neighbour.read()) == ["Grace"]
    assert not any(task.done() for task in under_way)
    goes_on.set()
    await asyncio.gather(*under_way)
    assert names(await agent.read()) == ["Grace"]


async def test_its_graph_is_read_while_it_computes(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader sees the state before it, to the last."""
    await agent.create("Ada", "Grace")
    read = list[list[str]]()

    async def reading(tenant_id: Any, slices: Any) -> Any:
        read.append(sorted(names(await agent.read())))
        return await compute_while_locked(tenant_id, slices)

    monkeypatch.setattr(erasure, "compute_while_locked", reading)
    await erase(agent)
    assert read
    assert set(map(tuple, read)) == {("Ada", "Grace")}
    assert names(await agent.read()) == ["Grace"]
