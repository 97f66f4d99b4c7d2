"""How `recollect import` and `recollect export` follow their jobs: waits, Ctrl-C, and failures."""

import asyncio
import re
import signal
from pathlib import Path

import pytest

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import IssuedKey
from recollect.caller import Caller
from recollect.graph.entities.model import NewEntity
from recollect.jobs import leases
from recollect.jobs.model import Job
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.transfer.formats.jsonl import write_line
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from tests.e2e.test_import_export import SOUND
from tests.support.commands import Command, CommandOutput, Shell
from tests.support.gateway import NewApiKey, RunningGateway, eventually, serving
from tests.support.jobs import Desk, take_one_step

LINES = b"".join(write_line(NewEntity(f"e{number}", "thing", ("x",))) for number in range(1_100))


@pytest.fixture
async def issued(issue: NewApiKey, caller: Caller) -> IssuedKey:
    return await issue(caller)


@pytest.fixture
def shell(gateway: RunningGateway, issued: IssuedKey, tmp_path: Path) -> Shell:
    return Shell(tmp_path, {"RECOLLECT_URL": gateway.url, "RECOLLECT_API_KEY": issued.secret})


async def ended(command: Command, stdin: bytes = b"") -> CommandOutput:
    """Wait for the end of the command while the gateway answers it, and return its exit code and output."""
    return await asyncio.to_thread(command.communicate, stdin)


async def due_job(desk: Desk) -> Job:
    """Wait until the tenant's only job waits for a worker, and return it."""

    async def is_due() -> bool:
        return desk.caller.tenant_id in await leases.tenants_with_due(desk.db)

    await eventually(is_due)
    [job] = await desk.list()
    return job


async def sending_job(desk: Desk) -> Job:
    """Wait until the tenant's only job receives input, and return it."""

    async def is_there() -> bool:
        return bool(await desk.list())

    await eventually(is_there)
    [job] = await desk.list()
    return job


async def is_cancelled(desk: Desk, job: Job) -> None:
    """Wait until the job is cancelled."""

    async def holds() -> bool:
        return (await desk.look(job)).status == "cancelled"

    await eventually(holds)


async def test_a_command_reports_that_it_waits_for_a_worker(shell: Shell, desk: Desk, context: WorkerContext) -> None:
    with shell.start("import", str(SOUND), "--graph", "notes") as process:
        await due_job(desk)
        assert await asyncio.to_thread(process.stderr.readline) == b"importing: waiting for a worker\n"
        await job_loop.sweep(context)
        code, out, err = await ended(process)
    assert (code, err) == (0, "")
    assert out == b"notes: 8 new entities, 16 new observations, 7 new relations\n"


async def test_ctrl_c_cancels_an_import_and_reports_what_stays(
    shell: Shell, desk: Desk, context: WorkerContext
) -> None:
    (shell.folder / "long.jsonl").write_bytes(LINES)
    with shell.start("import", "long.jsonl", "--graph", "notes") as process:
        job = await due_job(desk)
        while not (await desk.look(job)).done:
            await take_one_step(context, desk)
        process.send_signal(signal.SIGINT)
        code, _, err = await ended(process)
    assert code == 130
    assert err == (
        "Stopped. The import is cancelled. What it has imported stays; run the command again to import the rest\n"
    )
    assert (await desk.look(job)).status == "cancelled"
    with shell.start("import", "long.jsonl", "--graph", "notes") as process:
        await due_job_after(desk, job)
        await job_loop.sweep(context)
        code, out, _ = await ended(process)
    assert code == 0
    assert b"lines contained nothing new" in out


async def due_job_after(desk: Desk, other: Job) -> None:
    async def is_due() -> bool:
        return len(await desk.list()) > 1 and desk.caller.tenant_id in await leases.tenants_with_due(desk.db)

    await eventually(is_due)


async def test_ctrl_c_cancels_an_export_and_leaves_no_file(shell: Shell, desk: Desk) -> None:
    with shell.start("export", "kept.jsonl", "--graph", "default") as process:
        job = await due_job(desk)
        process.send_signal(signal.SIGINT)
        code, _, err = await ended(process)
    assert (code, err) == (130, "Stopped. The export is cancelled\n")
    assert (await desk.look(job)).status == "cancelled"
    assert list(shell.folder.iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
async def test_an_interrupted_upload_imports_nothing(shell: Shell, desk: Desk, how: signal.Signals) -> None:
    with shell.start("import", "-", "--graph", "notes") as process:
        process.stdin.write(LINES)
        process.stdin.flush()  # and not closed: it waits for more
        job = await sending_job(desk)
        process.send_signal(how)
        assert await asyncio.to_thread(process.wait) == (130 if how is signal.SIGINT else -how)
        told = process.stderr.read().decode()
    assert told == ("Stopped. Nothing was imported; run the command again\n" if how is signal.SIGINT else "")
    await is_cancelled(desk, job)


async def test_input_that_arrives_too_slowly_is_reported(settings: Settings, shell: Shell, desk: Desk) -> None:
    with (
        serving(settings.model_copy(update={"body_seconds": 3.0})) as gateway,  # The job is made within that time.
        shell.start("import", "-", "--graph", "notes", "--url", gateway.url) as process,
    ):
        process.stdin.write(LINES[:1_000])
        process.stdin.flush()
        await is_cancelled(desk, await sending_job(desk))
        code, out, err = await ended(process, LINES[1_000:])
    assert (code, out) == (1, b"")
    assert err == ("recollect: The body did not arrive in time. Write the input to a file first, and import the file\n")


async def test_a_revoked_key_leaves_the_job_running_with_advice_how_to_follow_it(
    shell: Shell, desk: Desk, issued: IssuedKey, db: Database, caller: Caller
) -> None:
    with shell.start("import", str(SOUND), "--graph", "notes") as process:
        job = await due_job(desk)
        async with db.transaction(caller) as tx:
            await identity.revoke_key(tx, issued.key.id)
        code, _, err = await ended(process)
    assert code == 1
    assert "does not accept the API key. Set another" in err
    assert f"no longer follows the import. Follow it with `recollect jobs show {job.id} --wait`" in err
    assert (await desk.look(job)).status == "queued"


async def test_a_job_that_others_cancel_is_reported(shell: Shell, desk: Desk) -> None:
    with shell.start("export", "--graph", "default") as process:
        await desk.cancel(await due_job(desk))
        code, out, err = await ended(process)
    assert (code, out) == (1, b"")
    assert err == "recollect: The export was cancelled by somebody else. Run the command again\n"


async def test_a_broken_file_is_reported_with_its_place_and_what_stays(
    shell: Shell, desk: Desk, context: WorkerContext
) -> None:
    with shell.start("import", "-", "--graph", "notes", "--format", "json") as process:
        running = asyncio.create_task(ended(process, b'{"entities": [{"name": "a", "entityType": "b"}, '))
        await due_job(desk)
        await job_loop.sweep(context)
        code, out, err = await running
    assert (code, out) == (1, b"")
    said = r"recollect: The import failed: \S.*\. What it has imported stays; correct the file and run .*\n"
    assert re.fullmatch(said, err)


async def test_problems_beyond_the_listed_ones_are_counted(shell: Shell, desk: Desk, context: WorkerContext) -> None:
    with shell.start("import", "-", "--graph", "notes") as process:
        running = asyncio.create_task(ended(process, write_line(NewEntity("a")) + b"broken\n" * 10_003))
        await due_job(desk)
        await job_loop.sweep(context)
        code, out, err = await running
    assert code == 1
    assert len(err.splitlines()) == 10_002  # With one of progress, and one of the rest.
    assert err.splitlines()[-1] == "and 3 more"
    assert out.endswith(b"10003 broken lines or parts of them were left out\n")
