"""A read is shared by every caller that asked before the read began, and by no other."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from recollect.caller import Caller, Scope
from recollect.valkey.change_bus import Listener
from recollect_gateway.streaming.shared_reads import SharedReads
from recollect_gateway.streaming.streams import Stream, Streams


class Log:
    """A log whose reads end when the test lets them."""

    def __init__(self) -> None:
        self.begun, self.written = 0, 0
        self.let, self.begins = asyncio.Event(), asyncio.Condition()

    async def read(self) -> int:
        async with self.begins:
            self.begun += 1
            self.begins.notify_all()
        seen = self.written
        await self.let.wait()
        return seen


@pytest.fixture
def reads() -> SharedReads:
    return SharedReads()


@pytest.fixture
def log() -> Log:
    return Log()


def ask(reads: SharedReads, read: Callable[[], Awaitable[int]], key: str = "key") -> "asyncio.Task[int]":
    """Ask for a read at this moment."""
    return asyncio.create_task(reads.read(key, reads.now(), read))


async def begun(log: Log, count: int) -> None:
    async with log.begins:
        await log.begins.wait_for(lambda: log.begun >= count)


async def test_callers_that_asked_before_a_read_began_share_it_even_after_its_end(reads: SharedReads, log: Log) -> None:
    wanted = [reads.now() for _ in range(100)]
    log.let.set()
    assert [await reads.read("key", moment, log.read) for moment in wanted] == [0] * 100
    assert log.begun == 1


async def test_callers_that_ask_later_share_a_later_read(reads: SharedReads, log: Log) -> None:
    first = ask(reads, log.read)
    await begun(log, 1)
    log.written = 1
    later = [ask(reads, log.read) for _ in range(100)]
    await begun(log, 2)
    log.let.set()
    assert await first == 0
    assert await asyncio.gather(*later) == [1] * 100
    assert log.begun == 2


async def test_another_key_is_another_read(reads: SharedReads, log: Log) -> None:
    log.let.set()
    wanted = reads.now()
    for key in ("one", "two"):
        await reads.read(key, wanted, log.read)
    assert log.begun == 2


async def test_a_failed_or_cancelled_read_is_not_shared(reads: SharedReads, log: Log) -> None:
    async def fail() -> int:
        await log.read()
        raise LookupError

    failing, waiting = ask(reads, fail), ask(reads, log.read)
    await begun(log, 1)
    waiting.cancel()
    others = [ask(reads, log.read) for _ in range(3)]
    await begun(log, 2)
    others[0].cancel()
    log.let.set()
    with pytest.raises(LookupError):
        await failing
    assert await asyncio.gather(*others[1:]) == [0, 0]
    assert log.begun == 3


ONE, OTHER = UUID(int=1), UUID(int=2)
CALLER = Caller(ONE, "one", "key:1", frozenset(Scope))


@pytest.mark.proves("security: shared-reads")
@pytest.mark.parametrize(
    ("other", "count"),
    [
        (replace(CALLER, subject="key:2"), 1),
        (replace(CALLER, tenant_id=OTHER), 2),
        (replace(CALLER, graphs=frozenset({ONE})), 2),
    ],
    ids=["another key", "another tenant", "other graphs"],
)
async def test_streams_of_one_tenant_that_see_the_same_graphs_share_reads(log: Log, other: Caller, count: int) -> None:
    nothing: Any = None
    streams = Streams(nothing, nothing, nothing)
    both = [Stream(streams, caller, nothing, Listener(caller.tenant_id, None)) for caller in (CALLER, other)]
    log.let.set()
    for stream in both:
        assert await stream.shared("the same", log.read) == 0
    assert log.begun == count
