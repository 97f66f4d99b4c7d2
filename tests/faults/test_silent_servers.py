"""A server that accepts connections and never answers counts as away; one whose connections are in use does not."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from recollect.caller import Caller
from recollect.errors import ErrorCode, Unavailable
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.support.measured import Measured

LITTLE = 0.2
"""Seconds of the wait for a connection that never answers."""


@pytest.fixture
async def silent_url() -> AsyncIterator[str]:
    """The address of a server that accepts every connection and never answers."""
    held: list[asyncio.StreamWriter] = []

    async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    yield f"postgresql://recollect_app@{host}:{port}/recollect?sslmode=disable"
    for writer in held:
        writer.transport.abort()
    server.close()
    await server.wait_closed()


def unanswered(measured: Measured) -> dict[str, int]:
    """The number of connections that a server did not answer, by pool."""
    told = measured.of("recollect.database.failures")
    assert {at["error.type"] for at, _ in told} <= {"unanswered"}
    return {at["db.client.connection.pool.name"]: point.value for at, point in told}


async def begin(db: Database, caller: Caller) -> None:
    async with db.transaction(caller):
        """Whether it begins is the question."""


async def test_each_unanswered_connection_counts_as_a_failure_of_its_pool(
    silent_url: str, settings: Settings, caller: Caller, measured: Measured
) -> None:
    asked = settings.model_copy(update={"database_acquire_seconds": LITTLE})
    async with Database.connect(silent_url, settings=asked) as db:
        for _ in range(2):
            with pytest.raises(Unavailable) as refused:
                await begin(db, caller)
            assert refused.value.code is ErrorCode.BUSY
        with pytest.raises(Unavailable):
            await db.ping()
    assert unanswered(measured) == {"tenants": 2, "reserved": 1}


async def test_a_caller_that_leaves_at_once_does_not_count_as_a_failure(
    silent_url: str, settings: Settings, caller: Caller, measured: Measured
) -> None:
    async with Database.connect(silent_url, settings=settings) as db:
        asking = asyncio.create_task(begin(db, caller))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert unanswered(measured) == {}


async def test_a_wait_for_used_connections_does_not_count_as_a_failure(
    settings: Settings, caller: Caller, measured: Measured
) -> None:
    asked = settings.model_copy(update={"database_acquire_seconds": LITTLE, "database_pool_size": 1})
    async with Database.connect(settings.database_url, settings=asked) as db, db.transaction(caller):
        with pytest.raises(Unavailable):
            await begin(db, caller)
    assert [point.value for _, point in measured.of("db.client.connection.timeouts")] == [1]
    assert unanswered(measured) == {}
