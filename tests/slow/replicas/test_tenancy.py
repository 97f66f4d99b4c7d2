"""Connections to the replica isolate tenants as those to the primary do, and each tenant has a share of them."""

from contextlib import AsyncExitStack
from dataclasses import replace

import asyncpg
import pytest

from recollect.caller import Caller
from recollect.errors import Forbidden
from recollect.postgres.sql import Query
from recollect_gateway.calls import Call, read_by_replica
from tests.support.measured import Measured
from tests.support.replicas import NewTenantOfPair, Pair, outcomes

NAMES = Query.compile("SELECT array_agg(name ORDER BY name) FROM nodes")
ANY_TENANT = Query.compile("SELECT count(*) FROM tenants")
SESSION = Query.compile(
    "SELECT array[current_user::text, current_setting('transaction_read_only'), current_setting('statement_timeout'), "
    "current_setting('transaction_isolation'), pg_is_in_recovery()::text]"
)
WRITE = Query.compile("INSERT INTO graphs (tenant_id, id, name) VALUES (:tenant_id, gen_random_uuid(), 'mine')")


@pytest.fixture
async def both(pair: Pair, new_tenant_of_pair: NewTenantOfPair) -> tuple[Caller, Caller]:
    """Two tenants with graphs of the same name, each with a node, which the replica has replayed."""
    callers = await new_tenant_of_pair(), await new_tenant_of_pair()
    async with pair.opened() as reader:
        for caller, name in zip(callers, ("Ada", "Grace"), strict=True):
            await reader.agent(caller).create(name)
    await pair.catch_up()
    return callers


async def names(call: Call) -> list[str]:
    """The names of all nodes that a reading transaction sees."""
    async with call.reading("default") as view:
        assert "true" in await view.tx.fetchval(SESSION)
        return list(await view.tx.fetchval(NAMES))


async def test_the_replica_isolates_tenants_and_has_the_session_of_the_primary(
    pair: Pair, both: tuple[Caller, Caller]
) -> None:
    one, other = both
    async with pair.opened(database_pool_size=1, database_tenant_share=1) as reader:
        assert await read_by_replica(reader.call(one), names) == ["Ada"]
        assert await read_by_replica(reader.call(other), names) == ["Grace"], "on the very connection of the other"
        async with reader.replica.reading(one, None) as tx:
            assert await tx.fetchval(ANY_TENANT) == 1
            told = await tx.fetchval(SESSION)
        assert told == ["recollect_app", "on", "30s", "repeatable read", "true"]
        async with reader.replica.system() as session:
            assert await session.fetchval(NAMES) is None


async def test_the_replica_refuses_writes(pair: Pair, both: tuple[Caller, Caller]) -> None:
    async with pair.opened() as reader:
        with pytest.raises(Exception) as refused:  # noqa: PT011 - the error of the driver is its cause
            async with reader.replica.reading(both[0], None) as tx:
                await tx.execute(WRITE)
        assert isinstance(refused.value.__cause__, asyncpg.ReadOnlySQLTransactionError)


async def test_an_allow_list_applies_on_the_replica(pair: Pair, both: tuple[Caller, Caller]) -> None:
    async with pair.opened() as reader:
        confined = replace(both[0], graphs=frozenset())
        with pytest.raises(Forbidden):
            await read_by_replica(reader.call(confined), names)


async def test_a_tenant_beyond_its_share_of_the_replica_reads_from_the_primary(
    pair: Pair, both: tuple[Caller, Caller], measured: Measured
) -> None:
    flooding, other = both
    async with pair.opened(database_pool_size=2, database_tenant_share=0.5) as reader, AsyncExitStack() as held:
        by_replica = replace(reader.call(flooding), by_replica=True)
        await held.enter_async_context(by_replica.reading("default"))
        assert outcomes(measured) == {"replica": 1}
        async with by_replica.reading("default"):
            assert outcomes(measured) == {"replica": 1, "full": 1}
        async with replace(reader.call(other), by_replica=True).reading("default"):
            assert outcomes(measured) == {"replica": 2, "full": 1}
        assert not reader.replica.is_paused
