"""Errands: done beside what comes next, bounded, and never anybody's error but the log's."""

import asyncio

from structlog.testing import capture_logs

from recollect_gateway.errands import MOST, Errands


async def test_one_is_done_after_whoever_began_it_went_on() -> None:
    errands, done = Errands(), []

    async def errand() -> None:
        done.append("errand")

    errands.begin("test", errand)
    done.append("answer")
    await errands.settle(60)
    assert done == ["answer", "errand"]


async def test_what_fails_is_told_in_the_log_alone() -> None:
    errands = Errands()

    async def errand() -> None:
        raise ValueError("no")

    with capture_logs() as told:
        errands.begin("test", errand)
        await errands.settle(60)
    assert [(line["event"], line["errand"]) for line in told] == [("errand failed", "test")]


async def test_so_many_are_under_way_and_a_gateway_that_stops_leaves_them() -> None:
    errands, begun, never = Errands(), [], asyncio.Event()

    async def errand() -> None:
        begun.append(1)
        await never.wait()

    with capture_logs() as told:
        for _ in range(MOST + 1):
            errands.begin("test", errand)
    assert [line["event"] for line in told] == ["errand dropped"]
    await asyncio.sleep(0)
    assert len(begun) == MOST
    await errands.settle(0.01)
    errands.begin("test", errand)
    await errands.settle(0.01)
    assert len(begun) == MOST + 1, "there is room again"
