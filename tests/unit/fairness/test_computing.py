"""Long computations take turns, end when their caller leaves, and are refused when their time is over."""

import asyncio
import threading
import time
from collections.abc import Callable
from uuid import UUID, uuid4

import anyio
import pytest

from recollect.errors import ErrorCode, TooLarge
from recollect.fairness import computing
from recollect.fairness.computing import Slices, collect_yielding, compute, finish, in_one_slice
from tests.support.gateway import eventually

ADVICE = "Ask for less."


def counting(slices: int, on_slice: Callable[[], None] = lambda: None) -> Slices[int]:
    for _ in range(slices):
        on_slice()
        sum(range(10_000))
        yield
    return slices


async def test_a_computation_runs_outside_the_event_loop_and_returns_its_result() -> None:
    threads = set[int]()
    result = await compute(uuid4(), counting(50, lambda: threads.add(threading.get_ident())), seconds=60, advice=ADVICE)
    assert result == 50
    assert threading.get_ident() not in threads
    assert finish(counting(50)) == 50
    assert await compute(uuid4(), in_one_slice(lambda: 7), seconds=60, advice=ADVICE) == 7


@pytest.mark.proves("security: computations")
async def test_a_computation_is_refused_with_advice_when_its_time_is_over() -> None:
    slices = counting(10**9)
    with pytest.raises(TooLarge, match=ADVICE) as refused:
        await compute(uuid4(), slices, seconds=0.2, advice=ADVICE)
    assert refused.value.code == ErrorCode.TOO_COSTLY
    slices.close()  # raises where it were running still


async def test_a_computation_ends_when_its_caller_is_cancelled() -> None:
    done = 0

    def note() -> None:
        nonlocal done
        done += 1

    leaving = asyncio.create_task(compute(uuid4(), counting(10**9, note), seconds=10**6, advice=ADVICE))

    async def has_begun() -> bool:
        return done > 0

    await eventually(has_begun)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    async with asyncio.timeout(60):
        before = -1
        while before != done:
            before = done
            await asyncio.sleep(3 * computing.SLICE_SECONDS)


async def test_an_error_of_a_computation_reaches_its_caller() -> None:
    def broken() -> int:
        raise LookupError

    with pytest.raises(LookupError):
        await compute(uuid4(), in_one_slice(broken), seconds=60, advice=ADVICE)


@pytest.mark.proves("security: computations")
async def test_a_tenant_with_many_computations_does_not_delay_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other tenant gets turns between those of the crowd, which has twenty times as many computations."""
    monkeypatch.setattr(computing, "SLICE_SECONDS", 0.01)
    crowd, other = uuid4(), uuid4()
    ended: list[UUID] = []

    async def run(tenant: UUID) -> None:
        await compute(tenant, lasting(5 * computing.SLICE_SECONDS), seconds=10**6, advice=ADVICE)
        ended.append(tenant)

    async with anyio.create_task_group() as tasks:
        for tenant in (*[crowd] * 20, other):
            tasks.start_soon(run, tenant)
    assert ended.index(other) < 3


async def test_a_tenant_uses_one_thread_at_a_time() -> None:
    at_once = most = 0
    lock = threading.Lock()

    def slices() -> Slices[None]:
        nonlocal at_once, most
        for _ in range(20):
            with lock:
                at_once += 1
                most = max(most, at_once)
            time.sleep(0.005)
            with lock:
                at_once -= 1
            yield

    tenant = uuid4()
    await asyncio.gather(*(compute(tenant, slices(), seconds=60, advice=ADVICE) for _ in range(4)))
    assert most == 1


def lasting(seconds: float) -> Slices[None]:
    """A computation of so many seconds of processor time."""
    spent = 0.0
    while spent < seconds:
        started = time.thread_time()
        sum(range(50_000))
        spent += time.thread_time() - started
        yield


async def test_lists_are_made_while_other_tasks_run() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    numbers = list(range(20))
    assert await collect_yielding(map(negated_slowly, numbers)) == [-number for number in numbers]
    beside.cancel()
    assert turns >= 9
    assert await collect_yielding(()) == []


def negated_slowly(number: int) -> int:
    """The number negated, in the time for which `collect_yielding` holds the loop."""
    time.sleep(computing.MAX_BLOCKING_SECONDS)
    return -number
