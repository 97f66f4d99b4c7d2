"""The open files of a worker's imports: their number is limited, and a step that is cut off closes its file."""

import asyncio
import json
from dataclasses import replace

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.jobs import kinds
from recollect.jobs import service as jobs
from recollect.jobs.model import Job, JobBounds, StepResult
from recollect.postgres.database import Database
from recollect.postgres.transactions import Transaction
from recollect.transfer import file_jobs
from recollect.transfer.model import Strategy
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from recollect_workers.jobs.import_readers import MAX_READERS, ImportReaders
from recollect_workers.jobs.transfer import Imports
from tests.conftest import NewTenant
from tests.support.gateway import eventually
from tests.support.jobs import Desk, take_one_step

ENTITIES = 14


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file has several batches."""
    monkeypatch.setattr("recollect.transfer.batches.BATCH_ITEMS", 4)


async def started(desk: Desk, context: WorkerContext) -> Job:
    """An import of the desk's tenant."""
    entities = [{"name": f"e{number}", "entityType": "thing", "observations": []} for number in range(ENTITIES)]
    async with desk.writing() as tx:
        job = await file_jobs.create_held_import(tx, "default", "json", Strategy.SKIP)
        await jobs.append_input(
            tx, job.id, [json.dumps({"entities": entities}).encode()], JobBounds.of(context.settings)
        )
        return await jobs.start(tx, job.id)


def importing(context: WorkerContext, readers: ImportReaders) -> WorkerContext:
    """A worker that only does imports."""
    return replace(context, kinds={kinds.IMPORT_GRAPH: Imports(readers).step})


async def test_one_more_import_than_open_files_does_not_block_any(
    context: WorkerContext, db: Database, new_tenant: NewTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each tenant has a turn of one batch, and no step reads more than one."""
    monkeypatch.setattr(job_loop, "SLICE_SECONDS", 0)
    readers = ImportReaders(idle_seconds=60, reading_seconds=0)
    worker = importing(context, readers)
    desks = [Desk(db, operator_caller(await new_tenant())) for _ in range(MAX_READERS + 1)]
    waiting = [(desk, await started(desk, context)) for desk in desks]
    for _ in range(20):
        for desk, _job in waiting:
            await run_slice(worker, desk)
        assert len(readers) <= MAX_READERS
        waiting = [(desk, job) for desk, job in waiting if not (await desk.look(job)).is_finished]
    assert waiting == []
    assert len(readers) == 0
    for desk in desks:
        [job] = await desk.list()
        assert job.result is not None
        assert (job.status, job.result["entities_created"]) == ("succeeded", ENTITIES)


async def test_each_turn_makes_progress_on_a_file_that_takes_longer_than_a_turn(
    context: WorkerContext, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each turn is by another worker, which reads from the beginning, a batch in each step. The first one also
    counts.
    """
    monkeypatch.setattr(job_loop, "SLICE_SECONDS", 0)
    job = await started(desk, context)
    done = []
    for _ in range(5):
        await run_slice(importing(context, ImportReaders(idle_seconds=60, reading_seconds=0)), desk)
        done.append((await desk.look(job)).done)
    assert done == [4, 8, 12, 14, 14]
    assert (await desk.look(job)).status == "succeeded"


async def test_an_import_can_be_cancelled_while_a_turn_reads(
    context: WorkerContext, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_loop, "SLICE_SECONDS", 0)
    job = await started(desk, context)
    imports, steps = Imports(ImportReaders(idle_seconds=60, reading_seconds=0)), 0

    async def step(tx: Transaction, job: Job) -> StepResult:
        nonlocal steps
        steps += 1
        read = await imports.step(tx, job)
        await desk.cancel(job)
        return read

    await run_slice(replace(context, kinds={kinds.IMPORT_GRAPH: step}), desk)
    seen = await desk.look(job)
    assert (steps, seen.status, seen.done, seen.total) == (1, "cancelled", 0, None)


async def test_an_idle_file_is_closed(context: WorkerContext, desk: Desk) -> None:
    """No text remains of a job that was cancelled, erased or taken over."""
    kept, dropped = ImportReaders(idle_seconds=60), ImportReaders(idle_seconds=0)
    for readers, held in ((kept, 1), (dropped, 0)):
        job = await started(desk, context)
        worker = importing(context, readers)
        await take_one_step(worker, desk)
        assert len(readers) == held
        while not (await desk.look(job)).is_finished:
            await take_one_step(worker, desk)
        assert len(readers) == 0
        assert (await desk.look(job)).status == "succeeded"


async def claimed(context: WorkerContext, desk: Desk) -> Job:
    job = await job_loop._attempt_claim(context, desk.caller.tenant_id)
    assert job is not None
    return job


async def run_slice(context: WorkerContext, desk: Desk) -> None:
    await job_loop.run_slice(context, desk.caller.tenant_id, await claimed(context, desk))


@pytest.mark.parametrize("way", ["cancelled", "its lease ends"])
async def test_a_step_that_is_cut_off_while_reading_stops_using_its_connection(
    context: WorkerContext, desk: Desk, owner: asyncpg.Connection, way: str
) -> None:
    """After its transaction is rolled back, nothing of the step uses the connection."""
    job = await started(desk, context)
    bounded = context.settings.model_copy(update={"job_lease_seconds": 0.5 if way == "its lease ends" else 60})
    worker = replace(importing(context, ImportReaders(idle_seconds=60)), settings=bounded)
    taken = await claimed(worker, desk)
    waiting = "SELECT count(*) FROM pg_locks WHERE relation = 'job_inputs'::regclass AND NOT granted"

    async def is_reading() -> bool:
        return bool(await owner.fetchval(waiting))

    async with owner.transaction():
        await owner.execute("LOCK TABLE job_inputs IN ACCESS EXCLUSIVE MODE")
        step = asyncio.create_task(job_loop.take_step(worker, desk.caller, taken))
        if way == "cancelled":
            await eventually(is_reading)
            step.cancel()
        with pytest.raises(asyncio.CancelledError if way == "cancelled" else TimeoutError):
            await step
    await owner.execute("UPDATE jobs SET claimed_until = now() WHERE id = $1", job.id)
    while not (await desk.look(job)).is_finished:
        await take_one_step(importing(context, ImportReaders(idle_seconds=60)), desk)
    assert (await desk.look(job)).status == "succeeded"
