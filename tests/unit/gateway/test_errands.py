"""BackgroundTasks run in the background, are bounded, and only log their errors."""

import asyncio

from structlog.testing import capture_logs

from recollect_gateway.process.background_tasks import MAX_RUNNING, BackgroundTasks


async def test_an_errand_runs_after_its_caller_went_on() -> None:
    errands, done = BackgroundTasks(), []

    async def errand() -> None:
        done.append("errand")

    errands.begin("test", errand)
    done.append("answer")
    await errands.settle(60)
    assert done == ["answer", "errand"]


async def test_a_failed_errand_is_only_logged() -> None:
    errands = BackgroundTasks()

    async def errand() -> None:
        raise ValueError("no")

    with capture_logs() as logs:
        errands.begin("test", errand)
        await errands.settle(60)
    assert [(line["event"], line["errand"]) for line in logs] == [("errand failed", "test")]


async def test_errands_are_bounded_and_abandoned_at_shutdown() -> None:
    errands, begun, never = BackgroundTasks(), [], asyncio.Event()

    async def errand() -> None:
        begun.append(1)
        await never.wait()

    with capture_logs() as logs:
        for _ in range(MAX_RUNNING + 1):
            errands.begin("test", errand)
    assert [line["event"] for line in logs] == ["errand dropped"]
    await asyncio.sleep(0)
    assert len(begun) == MAX_RUNNING
    await errands.settle(0.01)
    errands.begin("test", errand)
    await errands.settle(0.01)
    assert len(begun) == MAX_RUNNING + 1, "there is room again"
