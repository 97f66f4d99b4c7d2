"""Metrics of a worker: what waits, how long it waited, and how jobs ended."""

import asyncpg

from recollect.accounts.identity.model import worker_caller
from recollect.caller import Caller
from recollect.moves.model import Step
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_workers import job_loop
from recollect_workers.jobs import backlog, embedding
from tests.support.jobs import COUNT, REFUSE, Desk, employed
from tests.support.measured import Measured
from tests.support.memories import at_work


async def test_waiting_work_is_measured_and_so_is_its_lag(
    settings: Settings, db: Database, caller: Caller, measured: Measured
) -> None:
    async with at_work(db, caller) as agent, employed(settings, db) as worker:
        await agent.remember("one kettle", "another kettle")
        await backlog.measure(worker)
        waiting = {at["recollect.queue.name"]: point.value for at, point in measured.of("recollect.queue.waiting")}
        assert waiting.keys() == {"passages", "jobs", "deliveries"}
        assert waiting["passages"] >= 2  # Those of concurrent tests wait, too.
        for instrument in ("recollect.moves", "recollect.move.step.age"):
            assert {at["recollect.move.step"] for at, _ in measured.of(instrument)} == set(Step)
        await embedding.embed_passages(worker, caller.tenant_id, {})
    [(attributes, lag)] = measured.of("recollect.embedding.lag")
    assert (attributes, lag.count) == ({}, 2)
    assert 0 <= lag.min <= lag.max < 3_600
    pools = {at["db.client.connection.pool.name"] for at, _ in measured.of("db.client.connection.wait_time")}
    assert pools == {"tenants", "reserved"}
    assert {point.value for _, point in measured.of("db.client.connection.count")} == {0}


async def test_finished_jobs_are_measured_by_outcome(
    settings: Settings, db: Database, caller: Caller, measured: Measured, owner: asyncpg.Connection
) -> None:
    async with at_work(db, caller) as agent, employed(settings, db) as worker:
        await agent.remember("one kettle")
        desk = Desk(db, worker_caller(caller.tenant_id))
        await desk.start(COUNT, steps=2)
        await desk.start(REFUSE)
        await job_loop.sweep(worker)
    told = {
        (at["recollect.job.kind"], at["recollect.job.status"], at.get("error.type")): point.count
        for at, point in measured.of("recollect.job.duration")
    }
    assert told.pop((COUNT, "succeeded", None)) == 1
    assert told == {(REFUSE, "failed", "invalid_input"): 1}
    [(attributes, failed)] = measured.of("recollect.jobs.failed")
    assert (attributes, failed.value) == ({"recollect.job.kind": REFUSE, "error.type": "invalid_input"}, 1)
