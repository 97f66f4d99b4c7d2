"""Two tenants that hold the very same things, in every table there is."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import asyncpg
import pytest

from recollect.graphs import service as graphs
from recollect.identity import service as identity
from recollect.identity.model import IssuedKey, NewKey, operator_caller
from recollect.memory.model import Item
from recollect.nodes.model import NewEntity
from recollect.platform.db import Database
from tests.conftest import NewTenant
from tests.memories import Agent, at_work

PEPPER = b"pepper"


@dataclass(frozen=True)
class Neighbour(Agent):
    """A tenant with a key, an entity, a relation, a placeholder, a fact, an observation, and an alias."""

    key: IssuedKey | None = None


@pytest.fixture
async def neighbours(
    db: Database, new_tenant: NewTenant, owner: asyncpg.Connection
) -> AsyncIterator[tuple[Neighbour, Neighbour]]:
    callers = [operator_caller(await new_tenant()) for _ in range(2)]
    async with at_work(db, callers[0]) as mine, at_work(db, callers[1]) as other:
        yield await _settled(mine, owner), await _settled(other, owner)


async def _settled(agent: Agent, owner: asyncpg.Connection) -> Neighbour:
    db, caller = agent.db, agent.caller
    await agent.create(NewEntity("Ada", "person", ("writes programs",)))
    await agent.relate(("Ada", "Babbage", "knows"))
    await agent.remember("the engine was never built", Item("likes tea", about=("Ada",)))
    await owner.execute(
        "INSERT INTO aliases SELECT tenant_id, graph_id, id, 'Countess', 1 FROM nodes WHERE tenant_id = $1 LIMIT 1",
        caller.tenant_id,
    )
    async with db.transaction(caller) as tx:
        default = await graphs.get_graph(tx, "default")
        key = await identity.create_key(tx, NewKey("laptop", default_graph_id=default.id), pepper=PEPPER)
    return Neighbour(db, caller, key=key)
