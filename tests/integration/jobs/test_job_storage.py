"""What the jobs of a tenant keep is bounded by its plan, exactly, and how many of them there are."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import asyncpg
import httpx2
import pytest

from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller
from recollect.errors import ErrorCode, TooLarge
from recollect.jobs import service as jobs
from recollect.jobs.model import MAX_CHUNK, JobBounds, NewJob
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.gateway import RunningGateway, eventually
from tests.support.jobs import COPY, Desk
from tests.support.quotas import limit

HALF = b"x" * (MAX_CHUNK // 2)
KEPT = "SELECT coalesce(sum(octet_length(chunk)), 0)::bigint FROM job_inputs WHERE tenant_id = $1"
JSONL = {"Content-Type": "application/x-ndjson"}


@pytest.fixture
def desk(db: Database, caller: Caller) -> Desk:
    return Desk(db, caller)


@pytest.fixture
async def http(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(key) as http:
        yield http


async def hold(desk: Desk, *chunks: bytes) -> None:
    async with desk.writing() as tx:
        job = await jobs.schedule(tx, NewJob(COPY, unique=False, is_held=True))
        await jobs.append_input(tx, job.id, chunks, JobBounds.of(Settings()))


async def refusal(storing: Awaitable[Any]) -> str:
    with pytest.raises(TooLarge) as refused:
        await storing
    assert refused.value.code is ErrorCode.JOB_STORAGE_FULL
    return refused.value.message


@pytest.mark.proves("security: job-storage")
async def test_jobs_keep_at_most_what_the_plan_allows_in_graphs(
    desk: Desk, operator: Operator, tenant: Tenant, owner: asyncpg.Connection, new_tenant: NewTenant, db: Database
) -> None:
    await limit(operator, tenant.slug, stored_bytes=3 * len(HALF))
    await hold(desk, HALF, HALF)
    message = await refusal(hold(desk, HALF, b"x"))
    assert "more than the 1,572,864 bytes that the plan of this tenant allows" in message
    assert "Delete outputs of other jobs" in message
    await hold(desk, HALF)
    await refusal(hold(desk, b"x"))
    assert await owner.fetchval(KEPT, tenant.id) == 3 * len(HALF)
    await hold(Desk(db, replace(desk.caller, tenant_id=(await new_tenant()).id)), HALF)  # another's room


async def test_a_small_plan_leaves_room_for_one_chunk(desk: Desk, operator: Operator, tenant: Tenant) -> None:
    await limit(operator, tenant.slug, stored_bytes=1)
    await hold(desk, HALF, HALF)
    await refusal(hold(desk, b"x"))


async def test_two_uploads_at_once_do_not_exceed_it_together(
    desk: Desk, operator: Operator, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    """There is room for one of two, and the first has stored and not committed yet."""
    await limit(operator, tenant.slug, stored_bytes=MAX_CHUNK + 1)
    async with desk.writing() as tx:
        job = await jobs.schedule(tx, NewJob(COPY, unique=False, is_held=True))
        await jobs.append_input(tx, job.id, [HALF, b"x"], JobBounds.of(Settings()))
        waiting = asyncio.create_task(hold(desk, HALF, b"x"))
        await eventually(lambda: waits_or_is_done(owner, waiting))
        assert not waiting.done(), "it counted without what is not committed"
    await refusal(waiting)


async def waits_or_is_done(owner: asyncpg.Connection, task: asyncio.Task[None]) -> bool:
    waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"
    return task.done() or bool(await owner.fetchval(waits))


async def test_an_announced_file_without_room_is_refused_before_it_is_sent(
    http: httpx2.AsyncClient, operator: Operator, tenant: Tenant, desk: Desk
) -> None:
    await limit(operator, tenant.slug, stored_bytes=3 * len(HALF))

    async def body() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield HALF

    refused = await http.post("/v1/graphs/default/imports", content=b"\n" * 4 * len(HALF), headers=JSONL)
    assert (refused.status_code, refused.json()["code"]) == (413, "job_storage_full"), refused.text
    assert await desk.list() == [], "not even a job that is cancelled"
    unannounced = await http.post("/v1/graphs/default/imports", content=body(), headers=JSONL)
    assert (unannounced.status_code, unannounced.json()["code"]) == (413, "job_storage_full")
    assert [job.status for job in await desk.list()] == ["cancelled"]
    fits = await http.post("/v1/graphs/default/imports", content=b"\n" * 3 * len(HALF), headers=JSONL)
    assert fits.status_code == 202


async def test_who_is_confined_to_graphs_is_not_told_what_the_jobs_of_others_keep(
    desk: Desk, db: Database, operator: Operator, tenant: Tenant
) -> None:
    await limit(operator, tenant.slug, stored_bytes=2 * len(HALF))
    await hold(desk, HALF)

    async def announce(caller: Caller) -> None:
        async with db.transaction(caller) as tx:
            await jobs.require_room_for(tx, MAX_CHUNK, JobBounds.of(Settings()))

    assert f"They take {len(HALF):,} already" in await refusal(announce(desk.caller))
    confined = replace(desk.caller, graphs=frozenset({uuid4()}))
    assert "already" not in await refusal(announce(confined))


async def test_the_oldest_finished_jobs_go_for_new_ones(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.jobs.service.MAX_STORED", 3)
    begun = [await desk.start(COPY, number=number) for number in range(3)]
    for job in begun[:2]:
        await desk.cancel(job)
    newest = await desk.start(COPY, number=3)
    assert [job.id for job in await desk.list()] == [newest.id, begun[2].id, begun[1].id]
    more = [await desk.start(COPY, number=number) for number in (4, 5)]
    left = [job.id for job in await desk.list()]
    assert left == [more[1].id, more[0].id, newest.id, begun[2].id], "those under way stay"
