"""BackgroundTasks run in the background, are bounded, and only log their errors."""

import asyncio

from structlog.testing import capture_logs

from recollect_gateway.process.background_tasks import MAX_RUNNING, BackgroundTasks


async def test_a_task_runs_after_its_caller_went_on() -> None:
    tasks, done = BackgroundTasks(), []

    async def task() -> None:
        done.append("task")

    tasks.begin("test", task)
    done.append("answer")
    await tasks.settle(60)
    assert done == ["answer", "task"]


async def test_a_failed_task_is_only_logged() -> None:
    tasks = BackgroundTasks()

    async def task() -> None:
        raise ValueError("no")

    with capture_logs() as logs:
        tasks.begin("test", task)
        await tasks.settle(60)
    assert [(line["event"], line["errand"]) for line in logs] == [("errand failed", "test")]


async def test_tasks_are_bounded_and_abandoned_at_shutdown() -> None:
    tasks, begun, never = BackgroundTasks(), [], asyncio.Event()

    async def task() -> None:
        begun.append(1)
        await never.wait()

    with capture_logs() as logs:
        for _ in range(MAX_RUNNING + 1):
            tasks.begin("test", task)
    assert [line["event"] for line in logs] == ["errand dropped"]
    await asyncio.sleep(0)
    assert len(begun) == MAX_RUNNING
    await tasks.settle(0.01)
    tasks.begin("test", task)
    await tasks.settle(0.01)
    assert len(begun) == MAX_RUNNING + 1, "there is room again"
