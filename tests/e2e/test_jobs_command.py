"""`recollect jobs` as a user types it, against a listening gateway and a worker."""

import asyncio
import json
from pathlib import Path
from uuid import uuid4

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.jobs.kinds import REINDEX_PASSAGES
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from tests.conftest import NewTenant
from tests.support.commands import Shell
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.jobs import COUNT, REFUSE, Desk, take_one_step


@pytest.fixture
def shell(gateway: RunningGateway, key: str, tmp_path: Path) -> Shell:
    return Shell(tmp_path, {"RECOLLECT_URL": gateway.url, "RECOLLECT_API_KEY": key})


async def test_jobs_are_listed_shown_and_cancelled(shell: Shell, desk: Desk, context: WorkerContext) -> None:
    first = await desk.start(COUNT, steps=3)
    second = await desk.start(REFUSE, graph=None)
    listed = await shell.run("jobs", "list")
    assert (listed.code, listed.err) == (0, "")
    rows = [line.split("\t") for line in listed.out.decode().splitlines()]
    assert [row[:5] for row in rows] == [
        [str(second.id), REFUSE, "-", "queued", "0"],
        [str(first.id), COUNT, "default", "queued", "0"],
    ]
    only = await shell.run("jobs", "list", "--graph", "default", "--status", "queued", "--json")
    assert [job["id"] for job in json.loads(only.out)["items"]] == [str(first.id)]
    of_kind = await shell.run("jobs", "list", "--kind", REINDEX_PASSAGES, "--json")
    assert json.loads(of_kind.out)["items"] == []
    odd = await shell.run("jobs", "list", "--kind", REFUSE)
    assert (odd.code, REINDEX_PASSAGES in odd.err) == (1, True)
    ended = await shell.run("jobs", "cancel", str(first.id))
    assert (ended.code, b"status\tcancelled\n" in ended.out) == (0, True)
    shown = await shell.run("jobs", "show", str(first.id), "--json")
    assert (shown.code, json.loads(shown.out)["status"]) == (0, "cancelled")
    await job_loop.sweep(context)
    failed = await shell.run("jobs", "show", str(second.id))
    assert (failed.code, b"error\tinvalid_input: It is not to be done." in failed.out) == (1, True)


async def test_waiting_shows_progress_until_the_end(shell: Shell, desk: Desk, context: WorkerContext) -> None:
    job = await desk.start(COUNT, steps=8, output=True)
    with shell.start("jobs", "show", str(job.id), "--wait") as waiting:
        assert waiting.stdout
        assert waiting.stderr
        for number in range(1, 9):  # each step when the one before was told
            await take_one_step(context, desk)
            assert await asyncio.to_thread(waiting.stderr.readline) == f"{COUNT}: {number} done\n".encode()
        out = await asyncio.to_thread(waiting.stdout.read)
        assert await asyncio.to_thread(waiting.wait) == 0
    lines = dict(line.split("\t") for line in out.decode().splitlines())
    assert (lines["status"], lines["done"], lines["result"]) == ("succeeded", "8/8", "steps=8")
    assert lines["output"] == f"16 bytes at /v1/jobs/{job.id}/output"


async def test_unknown_jobs_and_those_of_another_tenant_are_not_found(
    shell: Shell, desk: Desk, issue: NewApiKey, new_tenant: NewTenant, context: WorkerContext
) -> None:
    job = await desk.start(COUNT, steps=1)
    stranger = shell.with_variables(RECOLLECT_API_KEY=(await issue(operator_caller(await new_tenant()))).secret)
    for who, job_id in ((shell, uuid4()), (stranger, job.id)):
        for command in ("show", "cancel"):
            refused = await who.run("jobs", command, str(job_id))
            assert refused.code == 1
            assert refused.err.startswith("recollect: There is no such job.")
    assert (await stranger.run("jobs", "list")).out == b""
    assert (await desk.look(job)).status == "queued"


async def test_a_missing_gateway_is_reported(shell: Shell) -> None:
    nowhere = shell.with_variables(RECOLLECT_URL="http://127.0.0.1:9")
    refused = await nowhere.run("jobs", "list")
    assert refused.code == 1
    assert "does not answer" in refused.err
