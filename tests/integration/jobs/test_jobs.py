"""Jobs on a real PostgreSQL: started once, done in steps, scheduled fairly, cancellable, and limited."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from opentelemetry import trace

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import operator_caller, worker_caller
from recollect.accounts.tenants import service as tenants
from recollect.caller import Caller
from recollect.errors import Conflict, ErrorCode, Forbidden, NotFound, RecollectError, TooLarge
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import GraphPatch, NewGraph
from recollect.jobs import leases as job_turns
from recollect.jobs import model, store
from recollect.jobs import service as jobs
from recollect.jobs.kinds import FORGET_STATISTICS, REINDEX_PASSAGES
from recollect.jobs.model import (
    MAX_ATTEMPTS,
    MAX_CHUNK,
    Job,
    JobBounds,
    JobFilter,
    LeaseLost,
    NewJob,
    StepFunction,
    StepPostponed,
    StepRefused,
    StepResult,
)
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.transactions import Transaction
from recollect.settings import Settings
from recollect.telemetry.tracing import continued_span
from recollect_workers import job_loop
from recollect_workers.context import PreparedKind, WorkerContext
from recollect_workers.jobs import reindexing
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, eventually
from tests.support.jobs import BREAK, COPY, COUNT, REFUSE, WAVER, Desk, count_steps, effects, has_begun
from tests.support.memories import Agent
from tests.support.timeouts import MAX_WAIT_SECONDS

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

LONG = 10_000
"""Seconds; no test takes as long."""


@pytest.fixture
def bounds(settings: Settings) -> JobBounds:
    return JobBounds.of(settings)


async def claim(context: WorkerContext, caller: Caller, bounds: JobBounds) -> Job:
    async with context.database.transaction(worker_caller(caller.tenant_id)) as tx:
        job = await job_turns.claim_job(tx, context.kinds, bounds)
    assert job is not None
    return job


async def step(context: WorkerContext, caller: Caller, job: Job) -> Job:
    return await job_loop.take_step(context, worker_caller(caller.tenant_id), job)


async def end_lease(owner: asyncpg.Connection, job: Job) -> None:
    """Act as if the lease had ended."""
    await owner.execute("UPDATE jobs SET claimed_until = now() - interval '1 second' WHERE id = $1", job.id)


async def end_wait(owner: asyncpg.Connection, job: Job) -> None:
    """Act as if the wait before the next attempt were over."""
    await owner.execute("UPDATE jobs SET next_attempt_at = now() WHERE id = $1", job.id)


class TestStarting:
    async def test_a_job_has_the_requested_arguments_and_the_requester(self, desk: Desk, caller: Caller) -> None:
        job = await desk.start(COUNT, steps=3)
        assert (job.kind, job.status, job.graph, job.arguments) == (COUNT, "queued", "default", {"steps": 3})
        assert (job.created_by, job.done, job.total, job.result, job.started_at) == (
            caller.subject,
            0,
            None,
            None,
            None,
        )
        assert await desk.look(job) == job

    async def test_an_equal_pending_job_is_returned_instead_of_a_second(
        self, desk: Desk, context: WorkerContext
    ) -> None:
        first = await desk.start(COUNT, unique=True, steps=1, why="x")
        assert (await desk.start(COUNT, unique=True, why="x", steps=1)).id == first.id
        for steps, why in ((2, "x"), (1, "y")):
            assert (await desk.start(COUNT, unique=True, steps=steps, why=why)).id != first.id
        assert (await desk.start(COUNT, unique=True, graph=None, steps=1, why="x")).id != first.id
        assert (await desk.start(COUNT, steps=1, why="x")).id != first.id
        await desk.cancel_all()
        assert (await desk.start(COUNT, unique=True, steps=1, why="x")).id != first.id

    async def test_concurrent_requests_for_an_equal_job_start_one(self, desk: Desk) -> None:
        started = await asyncio.gather(*[desk.start(COUNT, unique=True, steps=1) for _ in range(8)])
        assert len({job.id for job in started}) == len(await desk.list()) == 1

    async def test_number_of_pending_jobs_of_a_tenant_is_limited(self, desk: Desk, context: WorkerContext) -> None:
        async def start() -> None:
            async with desk.writing() as tx:
                graph = await graphs.get_graph(tx, "default")
                await jobs.schedule(tx, NewJob(COUNT, graph.id, {"steps": 1}, unique=False), most_pending=3)

        for _ in range(3):
            await start()
        with pytest.raises(Conflict) as refused:
            await start()
        assert refused.value.code is ErrorCode.TOO_MANY_JOBS
        await job_loop.sweep(context)
        await start()

    async def test_an_allow_list_applies_to_jobs(self, desk: Desk) -> None:
        async with desk.writing() as tx:
            other = await graphs.create_graph(tx, NewGraph("other"))
        confined = Desk(desk.db, replace(desk.caller, graphs=frozenset({other.id})))
        seen = await confined.start(COUNT, graph="other", steps=1)
        for graph in ("default", None):
            hidden = await desk.start(COUNT, graph=graph, steps=1)
            with pytest.raises(Forbidden):
                await confined.start(COUNT, graph=graph, steps=1)
            with pytest.raises(NotFound):
                await confined.look(hidden)
            with pytest.raises(NotFound):
                await confined.cancel(hidden)
        assert await confined.list() == [seen]
        assert len(await desk.list()) == 3

    async def test_jobs_are_listed_in_pages_newest_first_and_filtered(self, desk: Desk) -> None:
        made = [await desk.start(kind, steps=1) for kind in (COUNT, REFUSE, COUNT)]
        await desk.cancel(made[0])
        async with desk.db.transaction(desk.caller, read_only=True) as tx:
            page = await jobs.list_jobs(tx, limit=2)
            assert [job.id for job in page] == [made[2].id, made[1].id]
            assert [job.id for job in await jobs.list_jobs(tx, before=page[-1].id)] == [made[0].id]
            assert [job.id for job in await jobs.list_jobs(tx, JobFilter(kind=REFUSE))] == [made[1].id]
            assert [job.id for job in await jobs.list_jobs(tx, JobFilter(status="cancelled"))] == [made[0].id]
            assert await jobs.list_jobs(tx, JobFilter(graph_id=uuid4())) == []

    async def test_jobs_of_a_deleted_graph_are_deleted(self, desk: Desk, context: WorkerContext) -> None:
        async with desk.writing() as tx:
            await graphs.create_graph(tx, NewGraph("doomed"))
        job = await desk.start(COUNT, graph="doomed", steps=2)
        claimed = await step(context, desk.caller, await claim(context, desk.caller, JobBounds.of(context.settings)))
        async with desk.writing() as tx:
            await graphs.delete_graph(tx, "doomed", "test")
        with pytest.raises(NotFound):
            await desk.look(job)
        with pytest.raises(RecollectError):
            await step(context, desk.caller, claimed)

    async def test_jobs_of_a_renamed_graph_continue(
        self, desk: Desk, context: WorkerContext, bounds: JobBounds
    ) -> None:
        async with desk.writing() as tx:
            await graphs.create_graph(tx, NewGraph("old"))
        job = await desk.start(COUNT, graph="old", steps=2)
        claimed = await step(context, desk.caller, await claim(context, desk.caller, bounds))
        async with desk.writing() as tx:
            await graphs.configure_graph(tx, "old", GraphPatch(name="new"), "test")
        assert (await step(context, desk.caller, claimed)).is_finished
        assert (await desk.look(job)).graph == "new"
        async with desk.db.transaction(desk.caller, read_only=True) as tx:
            assert await graphs.open_graph(tx, "old") is None


class TestSteps:
    async def test_a_job_is_done_in_steps_on_behalf_of_the_requester(
        self, desk: Desk, context: WorkerContext, owner: asyncpg.Connection
    ) -> None:
        job = await desk.start(COUNT, steps=5)
        await job_loop.sweep(context)
        done = await desk.look(job)
        assert (done.status, done.done, done.total, done.result) == ("succeeded", 5, 5, {"steps": 5})
        assert done.started_at
        assert done.finished_at
        assert done.expires_at
        assert done.expires_at - done.finished_at == timedelta(days=context.settings.job_retention_days)
        assert await effects(owner, desk.caller.tenant_id) == [0, 1, 2, 3, 4]
        actors = await owner.fetch("SELECT DISTINCT actor FROM changes WHERE tenant_id = $1", desk.caller.tenant_id)
        assert [row["actor"] for row in actors] == [desk.caller.subject]

    async def test_progress_is_visible_after_each_step(
        self, desk: Desk, context: WorkerContext, bounds: JobBounds
    ) -> None:
        job = await desk.start(COUNT, steps=3)
        claimed = await claim(context, desk.caller, bounds)
        for done in (1, 2, 3):
            claimed = await step(context, desk.caller, claimed)
            shown = await desk.look(job)
            assert (shown.done, shown.total, shown.status) == (done, 3, "succeeded" if done == 3 else "running")

    async def test_a_failed_step_is_rolled_back_and_retried_up_to_the_limit(
        self, desk: Desk, context: WorkerContext, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(model, "FIRST_WAIT_SECONDS", LONG)
        job = await desk.start(BREAK, steps=2)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            await job_loop.sweep(context)
            shown = await desk.look(job)
            assert shown.attempts == attempt
            assert shown.status == ("failed" if attempt == MAX_ATTEMPTS else "running")
            await end_wait(owner, job)
        assert (shown.error_code, shown.error_message) == ("internal_error", "Something went wrong on our side.")
        assert await effects(owner, desk.caller.tenant_id) == []

    async def test_retries_after_an_outage_wait_longer_each_time(
        self, desk: Desk, context: WorkerContext, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(model, "FIRST_WAIT_SECONDS", LONG)
        monkeypatch.setattr(model, "LONGEST_WAIT_SECONDS", 4 * LONG)
        job = await desk.start(WAVER, times=4)
        waits = []
        for _ in range(4):
            await job_loop.sweep(context)
            shown = await desk.look(job)
            assert (shown.status, shown.error_code) == ("running", "database_unavailable")
            assert "secret" not in (shown.error_message or "")
            waits.append(await owner.fetchval("SELECT next_attempt_at - now() FROM jobs WHERE id = $1", job.id))
            await job_loop.sweep(context)
            assert (await desk.look(job)).attempts == shown.attempts, "it waits"
            await end_wait(owner, job)
        for factor, wait in zip((1, 2, 4, 4), waits, strict=True):
            assert factor * LONG / 2 - 60 < wait.total_seconds() <= factor * LONG
        await job_loop.sweep(context)
        shown = await desk.look(job)
        assert (shown.status, shown.error_code) == ("succeeded", None)

    async def test_a_postponed_step_counts_as_no_attempt(
        self, desk: Desk, context: WorkerContext, owner: asyncpg.Connection
    ) -> None:
        async def postpone(tx: Transaction, job: Job) -> StepResult:
            raise StepPostponed(StepRefused("It is too early."), timedelta(seconds=LONG))

        job = await desk.start(WAVER, times=1)
        await job_loop.sweep(context)
        failed = await desk.look(job)
        assert (failed.status, failed.attempts) == ("running", 1)
        for _ in range(MAX_ATTEMPTS):
            await end_wait(owner, job)
            await job_loop.sweep(replace(context, kinds={WAVER: postpone}))
            shown = await desk.look(job)
            assert (shown.status, shown.attempts, shown.error_message) == ("running", 1, "It is too early.")
        await end_wait(owner, job)
        await job_loop.sweep(context)
        assert (await desk.look(job)).status == "succeeded"

    async def test_a_step_that_can_never_succeed_fails_at_once(self, desk: Desk, context: WorkerContext) -> None:
        job = await desk.start(REFUSE)
        await job_loop.sweep(context)
        shown = await desk.look(job)
        assert (shown.status, shown.attempts, shown.error_code) == ("failed", 1, "invalid_input")
        assert shown.error_message == "It is not to be done."

    async def test_a_step_that_no_worker_survives_fails_in_the_end(
        self, desk: Desk, context: WorkerContext, bounds: JobBounds, owner: asyncpg.Connection
    ) -> None:
        job = await desk.start(COUNT, steps=1)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            assert (await claim(context, desk.caller, bounds)).attempts == attempt
            await end_lease(owner, job)
        await job_loop.sweep(context)
        shown = await desk.look(job)
        assert (shown.status, shown.error_code) == ("failed", "internal_error")
        assert shown.error_message == "Every worker that tried the next step stopped in the middle of it."

    async def test_a_step_that_outlasts_its_lease_is_cut_off(
        self, desk: Desk, context: WorkerContext, owner: asyncpg.Connection
    ) -> None:
        hasty = replace(context, settings=context.settings.model_copy(update={"job_lease_seconds": 0.2}))
        job = await desk.start(COUNT, steps=1, seconds=5)
        await job_loop.sweep(hasty)
        shown = await desk.look(job)
        assert (shown.status, shown.error_code, shown.attempts) == ("running", "busy", 1)
        assert await effects(owner, desk.caller.tenant_id) == []

    async def test_steps_are_in_the_trace_of_the_request(self, desk: Desk, context: WorkerContext) -> None:
        traces: list[str] = []

        async def note(tx: Transaction, job: Job) -> StepResult:
            traces.append(trace.format_trace_id(trace.get_current_span().get_span_context().trace_id))
            return StepResult({}, job.done + 1, finished=job.kind == REFUSE or job.done == 1)

        with continued_span("request", {"traceparent": TRACEPARENT}):
            job = await desk.start(COUNT)
        assert (job.traceparent or "").split("-")[1] == TRACEPARENT.split("-")[1]
        untraced = await desk.start(REFUSE)
        await job_loop.sweep(replace(context, kinds={COUNT: note, REFUSE: note}))
        assert untraced.traceparent is None
        assert sorted(traces) == sorted([TRACEPARENT.split("-")[1]] * 2 + ["0" * 32])

    async def test_a_job_of_an_unknown_kind_waits_for_a_worker_that_knows_it(
        self, desk: Desk, context: WorkerContext
    ) -> None:
        job = await desk.start("of_tomorrow")
        await job_loop.sweep(context)
        assert (await desk.look(job)).status == "queued"

    async def test_a_stopping_worker_releases_the_job_after_the_current_step(
        self, desk: Desk, context: WorkerContext, owner: asyncpg.Connection
    ) -> None:
        job = await desk.start(COUNT, steps=1_000, seconds=0.01)
        sweeping = asyncio.create_task(job_loop.sweep(context))
        await eventually(lambda: has_begun(desk, job))
        context.stopping.set()
        await asyncio.wait_for(sweeping, MAX_WAIT_SECONDS)
        shown = await desk.look(job)
        assert (shown.status, shown.attempts, shown.lease) == ("running", 0, None)
        assert await effects(owner, desk.caller.tenant_id) == list(range(shown.done))

    async def test_a_cancelled_sweep_leaves_no_turn_running(self, desk: Desk, context: WorkerContext) -> None:
        job = await desk.start(COUNT, steps=1_000, seconds=0.01)
        sweeping = asyncio.create_task(job_loop.sweep(context))
        await eventually(lambda: has_begun(desk, job))
        sweeping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sweeping
        done = (await desk.look(job)).done
        await asyncio.sleep(0.1)
        assert (await desk.look(job)).done == done


class TestPermissions:
    """A job may do no more than whoever started it."""

    @pytest.fixture
    async def of_key(self, desk: Desk, issue: NewApiKey) -> tuple[Desk, UUID]:
        """A desk where a key starts jobs, and the key."""
        key_id = (await issue(desk.caller)).key.id
        return Desk(desk.db, replace(desk.caller, subject=f"key:{key_id}")), key_id

    async def test_a_job_of_a_revoked_key_fails_before_its_next_step(
        self, of_key: tuple[Desk, UUID], context: WorkerContext, bounds: JobBounds, owner: asyncpg.Connection
    ) -> None:
        desk, key_id = of_key
        job = await desk.start(COUNT, steps=3, output=True)
        claimed = await step(context, desk.caller, await claim(context, desk.caller, bounds))
        async with desk.writing() as tx:
            await job_turns.release_job(tx, claimed, bounds)
            await identity.revoke_key(tx, key_id)
        await job_loop.sweep(context)
        shown = await desk.look(job)
        assert (shown.status, shown.error_code, shown.attempts) == ("failed", "unauthenticated", 1)
        assert shown.error_message == "The key that started this was revoked or has expired."
        assert await effects(owner, desk.caller.tenant_id) == [0], "what was done stays"
        assert shown.output_bytes == 0

    async def test_a_job_of_an_expired_key_fails_without_preparation(
        self, of_key: tuple[Desk, UUID], context: WorkerContext, owner: asyncpg.Connection
    ) -> None:
        desk, key_id = of_key
        prepared: list[Job] = []

        async def prepare(_: WorkerContext, __: Caller, job: Job) -> StepFunction:
            prepared.append(job)
            return count_steps

        job = await desk.start(COUNT, steps=2)
        await owner.execute("UPDATE api_keys SET expires_at = now() WHERE id = $1", key_id)
        await job_loop.sweep(replace(context, kinds={COUNT: PreparedKind(prepare)}))
        assert (await desk.look(job)).status == "failed"
        assert prepared == []
        assert await effects(owner, desk.caller.tenant_id) == []

    async def test_jobs_of_a_valid_key_and_of_the_service_continue(
        self, of_key: tuple[Desk, UUID], context: WorkerContext, owner: asyncpg.Connection
    ) -> None:
        desk, key_id = of_key
        held = await desk.start(COUNT, steps=1)
        await job_loop.sweep(context)
        finishing = await desk.start(FORGET_STATISTICS, steps=1)
        own = await Desk(desk.db, worker_caller(desk.caller.tenant_id)).start(COUNT, steps=1)
        async with desk.writing() as tx:
            await identity.revoke_key(tx, key_id)
        await job_loop.sweep(replace(context, kinds={COUNT: count_steps, FORGET_STATISTICS: count_steps}))
        assert {(await desk.look(job)).status for job in (held, finishing, own)} == {"succeeded"}

    @pytest.mark.parametrize("read_only", [True, False])
    async def test_a_job_of_a_suspended_tenant_waits_until_it_is_resumed(
        self,
        desk: Desk,
        context: WorkerContext,
        operator: Operator,
        bounds: JobBounds,
        owner: asyncpg.Connection,
        read_only: bool,
    ) -> None:
        job = await desk.start(COUNT, steps=2)
        claimed = await step(context, desk.caller, await claim(context, desk.caller, bounds))
        slug = desk.caller.tenant
        await tenants.suspend_tenant(operator, slug, read_only=read_only)
        await job_loop.run_slice(context, desk.caller.tenant_id, claimed)
        shown = await desk.look(job)
        assert (shown.status, shown.error_message, shown.lease) == ("running", "The tenant is suspended.", None)
        await job_loop.sweep(context)
        assert await effects(owner, desk.caller.tenant_id) == [0]
        await tenants.resume_tenant(operator, slug)
        await job_loop.sweep(context)
        assert (await desk.look(job)).status == "succeeded"

    @pytest.mark.parametrize("read_only", [True, False])
    async def test_a_step_during_a_suspension_is_rolled_back_and_repeated(
        self, desk: Desk, context: WorkerContext, operator: Operator, owner: asyncpg.Connection, read_only: bool
    ) -> None:
        job = await desk.start(COUNT, steps=1)

        async def suspended_meanwhile(tx: Transaction, job: Job) -> StepResult:
            result = await count_steps(tx, job)
            await tenants.suspend_tenant(operator, desk.caller.tenant, read_only=read_only)
            return result

        await job_loop.sweep(replace(context, kinds={COUNT: suspended_meanwhile}))
        assert await effects(owner, desk.caller.tenant_id) == []
        assert (await desk.look(job)).status == "running"
        await tenants.resume_tenant(operator, desk.caller.tenant)
        await job_loop.sweep(context)
        assert (await desk.look(job)).status == "succeeded"
        assert await effects(owner, desk.caller.tenant_id) == [0]


class TestLeases:
    @pytest.mark.proves("jobs: overtaken-workers-commit-nothing")
    async def test_a_stalled_worker_commits_nothing_once_another_has_the_job(
        self, desk: Desk, context: WorkerContext, bounds: JobBounds, owner: asyncpg.Connection
    ) -> None:
        job = await desk.start(COUNT, steps=2)
        stalled = await claim(context, desk.caller, bounds)
        await end_lease(owner, job)
        other = await claim(context, desk.caller, bounds)
        assert (other.id, other.attempts) == (stalled.id, 2)
        with pytest.raises(LeaseLost):
            await step(context, desk.caller, stalled)
        assert await effects(owner, desk.caller.tenant_id) == []
        await step(context, desk.caller, other)
        with pytest.raises(LeaseLost):
            await step(context, desk.caller, replace(stalled, cursor={"number": 1}))
        for end in (job_turns.release_job, job_turns.fail_lost_job):
            with pytest.raises(LeaseLost):
                async with desk.writing() as tx:
                    await end(tx, stalled, bounds)
        assert await effects(owner, desk.caller.tenant_id) == [0]

    async def test_a_worker_overtaken_during_a_step_commits_nothing(
        self, desk: Desk, context: WorkerContext, bounds: JobBounds, owner: asyncpg.Connection
    ) -> None:
        begun, overtaken = asyncio.Event(), asyncio.Event()

        async def stall(tx: Transaction, job: Job) -> StepResult:
            done = await count_steps(tx, job)
            begun.set()
            await overtaken.wait()
            return done

        job = await desk.start(COUNT, steps=1)
        stalled = await claim(context, desk.caller, bounds)
        stalling = replace(context, kinds={COUNT: stall})
        stepping = asyncio.create_task(step(stalling, desk.caller, stalled))
        await begun.wait()
        await end_lease(owner, job)
        other = await claim(context, desk.caller, bounds)
        overtaken.set()
        with pytest.raises(LeaseLost):
            await stepping
        assert (await step(context, desk.caller, other)).is_finished
        assert await effects(owner, desk.caller.tenant_id) == [0]

    async def test_a_late_worker_that_was_not_overtaken_continues(
        self, desk: Desk, context: WorkerContext, bounds: JobBounds, owner: asyncpg.Connection
    ) -> None:
        job = await desk.start(COUNT, steps=1)
        late = await claim(context, desk.caller, bounds)
        await end_lease(owner, job)
        assert (await step(context, desk.caller, late)).is_finished
        assert (await desk.look(job)).status == "succeeded"

    async def test_concurrent_workers_do_each_step_once(
        self, desk: Desk, context: WorkerContext, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(job_loop, "SLICE_SECONDS", 0)
        started = [await desk.start(COUNT, steps=6) for _ in range(4)]
        await asyncio.gather(*[job_loop.sweep(replace(context, jobs_due=asyncio.Event())) for _ in range(4)])
        await job_loop.sweep(context)
        assert [(await desk.look(job)).status for job in started] == ["succeeded"] * 4
        assert await effects(owner, desk.caller.tenant_id) == sorted([*range(6)] * 4)

    @pytest.mark.proves("jobs: fair-turns")
    async def test_number_of_running_jobs_of_a_tenant_is_limited(
        self, desk: Desk, context: WorkerContext, bounds: JobBounds, owner: asyncpg.Connection
    ) -> None:
        for _ in range(10):
            await desk.start(COUNT, steps=1)

        async def attempt() -> Job | None:
            async with context.database.transaction(worker_caller(desk.caller.tenant_id)) as tx:
                return await job_turns.claim_job(tx, context.kinds, bounds)

        claimed = await asyncio.gather(*[attempt() for _ in range(8)])
        assert len([job for job in claimed if job]) == bounds.most_running == 2


class TestFairness:
    @pytest.mark.proves("jobs: fair-turns")
    async def test_one_job_waits_for_a_turn_and_not_for_another_tenants_queue(
        self, context: WorkerContext, db: Database, new_tenant: NewTenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(job_loop, "SLICE_SECONDS", 0)
        order: list[UUID] = []

        async def note(tx: Transaction, job: Job) -> StepResult:
            order.append(tx.tenant_id)
            return StepResult({}, 1, finished=True)

        busy, quiet = [Desk(db, operator_caller(await new_tenant())) for _ in range(2)]
        async with busy.writing() as tx:
            for _ in range(100):
                await jobs.schedule(tx, NewJob(COUNT, unique=False))
        await quiet.start(COUNT, graph=None)
        narrow = context.settings.model_copy(update={"max_jobs": 1})
        await job_loop.sweep(replace(context, settings=narrow, kinds={COUNT: note}))
        assert len(order) == 101
        # It waits for two turns at most: the current one, and one that started with it.
        assert order.index(quiet.caller.tenant_id) <= 2
        assert {job.status for job in await busy.list()} == {"succeeded"}

    async def test_jobs_that_started_first_finish_first(
        self, desk: Desk, context: WorkerContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(job_loop, "SLICE_SECONDS", 0)
        started = [await desk.start(COUNT, steps=3) for _ in range(4)]
        narrow = context.settings.model_copy(update={"max_jobs": 1})
        await job_loop.sweep(replace(context, settings=narrow))
        ended = [(await desk.look(job)).finished_at for job in started]
        assert ended == sorted(filter(None, ended))

    async def test_a_failing_job_of_one_tenant_does_not_delay_others(
        self, context: WorkerContext, db: Database, new_tenant: NewTenant
    ) -> None:
        desks = [Desk(db, operator_caller(await new_tenant())) for _ in range(3)]
        started = [await desk.start(kind, steps=1) for desk, kind in zip(desks, (COUNT, BREAK, COUNT), strict=True)]
        await job_loop.sweep(context)
        statuses = [(await desk.look(job)).status for desk, job in zip(desks, started, strict=True)]
        assert statuses == ["succeeded", "running", "succeeded"]

    async def test_a_worker_that_stalls_in_a_claim_blocks_its_tenant_only(
        self, context: WorkerContext, settings: Settings, new_tenant: NewTenant
    ) -> None:
        hasty = settings.model_copy(update={"lock_timeout_seconds": 0.2})
        async with Database.connect(settings.database_url, settings=hasty) as db:
            desks = [Desk(db, operator_caller(await new_tenant())) for _ in range(3)]
            started = [await desk.start(COUNT, steps=1) for desk in desks]
            async with context.database.transaction(desks[1].caller) as stalled:
                await store.lock_claims(stalled)
                await job_loop.sweep(replace(context, database=db))
                statuses = [(await desk.look(job)).status for desk, job in zip(desks, started, strict=True)]
                assert statuses == ["succeeded", "queued", "succeeded"]
            await job_loop.sweep(replace(context, database=db))
            assert (await desks[1].look(started[1])).status == "succeeded"

    async def test_queued_jobs_of_a_suspended_tenant_wait(
        self, desk: Desk, context: WorkerContext, owner: asyncpg.Connection
    ) -> None:
        job = await desk.start(COUNT, steps=1)
        await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", desk.caller.tenant_id)
        await job_loop.sweep(context)
        assert (await desk.look(job)).status == "queued"
        await owner.execute("UPDATE tenants SET status = 'active' WHERE id = $1", desk.caller.tenant_id)
        await job_loop.sweep(context)
        assert (await desk.look(job)).status == "succeeded"


class TestCancelling:
    async def test_a_queued_job_is_cancelled_at_once(self, desk: Desk, context: WorkerContext) -> None:
        job = await desk.start(COUNT, steps=1)
        cancelled = await desk.cancel(job)
        assert (cancelled.status, cancelled.cancel_requested) == ("cancelled", True)
        assert cancelled.finished_at
        assert cancelled.expires_at
        await job_loop.sweep(context)
        assert await desk.look(job) == cancelled == await desk.cancel(job)

    async def test_a_running_job_is_cancelled_between_two_steps(
        self, desk: Desk, context: WorkerContext, owner: asyncpg.Connection
    ) -> None:
        job = await desk.start(COUNT, steps=1_000, seconds=0.02)
        sweeping = asyncio.create_task(job_loop.sweep(context))
        await eventually(lambda: has_begun(desk, job))
        assert (await desk.cancel(job)).status == "running"
        await asyncio.wait_for(sweeping, MAX_WAIT_SECONDS)
        shown = await desk.look(job)
        assert shown.status == "cancelled"
        assert 0 < shown.done < 1_000
        assert await effects(owner, desk.caller.tenant_id) == list(range(shown.done))

    async def test_a_job_of_a_dead_worker_is_cancelled_at_once(
        self, desk: Desk, context: WorkerContext, bounds: JobBounds, owner: asyncpg.Connection
    ) -> None:
        job = await desk.start(COUNT, steps=2)
        lost = await claim(context, desk.caller, bounds)
        await end_lease(owner, job)
        assert (await desk.cancel(job)).status == "cancelled"
        with pytest.raises(LeaseLost):
            await step(context, desk.caller, lost)

    async def test_a_job_cancelled_during_its_last_step_succeeds(
        self, desk: Desk, context: WorkerContext, bounds: JobBounds
    ) -> None:
        job = await desk.start(COUNT, steps=1)
        claimed = await claim(context, desk.caller, bounds)
        assert (await desk.cancel(job)).status == "running"
        await step(context, desk.caller, claimed)
        assert (await desk.look(job)).status == "succeeded" == (await desk.cancel(job)).status

    async def test_an_unknown_job_cannot_be_cancelled(self, desk: Desk) -> None:
        job = await desk.start(COUNT)
        with pytest.raises(NotFound) as refused:
            await desk.cancel(replace(job, id=uuid4()))
        assert refused.value.code is ErrorCode.JOB_NOT_FOUND


class TestInputAndOutput:
    async def held(self, desk: Desk, chunks: list[bytes], bounds: JobBounds) -> Job:
        async with desk.writing() as tx:
            job = await jobs.schedule(tx, NewJob(COPY, unique=False, is_held=True))
            await jobs.append_input(tx, job.id, chunks[:1], bounds)
        async with desk.writing() as tx:
            await jobs.append_input(tx, job.id, chunks[1:], bounds)
        return await desk.look(job)

    async def start(self, desk: Desk, job: Job) -> None:
        async with desk.writing() as tx:
            await jobs.start(tx, job.id)

    async def test_input_is_read_and_output_can_be_fetched(
        self, desk: Desk, context: WorkerContext, bounds: JobBounds
    ) -> None:
        chunks = [b"one ", b"two ", b"\x00\xff" * (MAX_CHUNK // 2)]
        job = await self.held(desk, chunks, bounds)
        assert job.input_bytes == sum(map(len, chunks))
        await job_loop.sweep(context)
        assert (await desk.look(job)).status == "queued", "its input may not be whole"
        with pytest.raises(Conflict, match="This job is queued") as refused:
            await desk.output(job)
        assert refused.value.code is ErrorCode.JOB_NOT_FINISHED
        await self.start(desk, job)
        await job_loop.sweep(context)
        assert await desk.output(job) == b"".join(chunks)
        shown = await desk.look(job)
        assert (shown.input_bytes, shown.output_bytes) == (0, sum(map(len, chunks)))

    async def test_a_started_job_accepts_no_more_input(self, desk: Desk, bounds: JobBounds) -> None:
        job = await self.held(desk, [b"x"], bounds)
        for _ in range(2):
            await self.start(desk, job)
        with pytest.raises(Conflict) as refused:
            async with desk.writing() as tx:
                await jobs.append_input(tx, job.id, [b"y"], bounds)
        assert refused.value.code is ErrorCode.JOB_TAKES_NO_INPUT

    async def test_output_of_a_job_without_any_is_an_error(self, desk: Desk, context: WorkerContext) -> None:
        job = await desk.start(COUNT, steps=1)
        await job_loop.sweep(context)
        with pytest.raises(NotFound) as refused:
            await desk.output(job)
        assert refused.value.code is ErrorCode.JOB_HAS_NO_OUTPUT

    @pytest.mark.proves("jobs: stored-jobs-are-bounded")
    async def test_storage_for_jobs_is_limited_by_tenant(
        self, desk: Desk, context: WorkerContext, bounds: JobBounds
    ) -> None:
        tight = replace(bounds, most_bytes=10)
        first = await self.held(desk, [b"12345", b"678"], tight)
        with pytest.raises(TooLarge) as refused:
            await self.held(desk, [b"123"], tight)
        assert refused.value.code is ErrorCode.JOB_STORAGE_FULL
        assert [job.id for job in await desk.list()] == [first.id], "nothing of it is left"
        await self.start(desk, first)
        narrow = context.settings.model_copy(update={"job_storage_bytes": 10})
        await job_loop.sweep(replace(context, settings=narrow))
        shown = await desk.look(first)
        assert (shown.status, shown.error_code, shown.error_message) == (
            "failed",
            "job_storage_full",
            "The job would exceed a limit.",
        )
        assert (shown.input_bytes, shown.output_bytes) == (0, 0)

    @pytest.mark.parametrize("chunk", [b"", b"x" * (MAX_CHUNK + 1)], ids=["empty", "too large"])
    async def test_size_of_a_chunk_is_limited(self, desk: Desk, bounds: JobBounds, chunk: bytes) -> None:
        with pytest.raises(ValueError, match="a chunk has 1 to"):
            await self.held(desk, [b"x", chunk], bounds)

    async def test_a_cancelled_job_stores_nothing(
        self, desk: Desk, context: WorkerContext, bounds: JobBounds, owner: asyncpg.Connection
    ) -> None:
        waiting = await self.held(desk, [b"abc"], bounds)
        running = await self.held(desk, [b"abc", b"def"], bounds)
        await self.start(desk, running)
        claimed = await step(context, desk.caller, await claim(context, desk.caller, bounds))
        for job in (waiting, running):
            await desk.cancel(job)
        async with desk.writing() as tx:
            await job_turns.release_job(tx, replace(claimed, cancel_requested=True), bounds)
        assert {job.status for job in await desk.list()} == {"cancelled"}
        assert await stored(owner, desk) == 0

    @pytest.mark.proves("jobs: stored-jobs-are-bounded")
    async def test_input_and_output_are_deleted_when_the_job_expires(
        self, desk: Desk, context: WorkerContext, bounds: JobBounds, owner: asyncpg.Connection
    ) -> None:
        done, abandoned, kept = [await self.held(desk, [b"abc"], bounds) for _ in range(3)]
        for job in (done, kept):
            await self.start(desk, job)
        await job_loop.sweep(context)
        for job in (done, abandoned):
            await owner.execute("UPDATE jobs SET expires_at = now() WHERE id = $1", job.id)
        await job_loop.sweep(context)
        assert [job.id for job in await desk.list()] == [kept.id]
        assert await stored(owner, desk) == 1

    async def test_erasure_deletes_stored_data_and_jobs_that_would_store_more(
        self, desk: Desk, context: WorkerContext, bounds: JobBounds, owner: asyncpg.Connection
    ) -> None:
        plain = await desk.start(COUNT, steps=1)
        await self.held(desk, [b"abc"], bounds)
        running = await self.held(desk, [b"abc"], bounds)
        await self.start(desk, running)
        await desk.cancel(plain)
        claimed = await claim(context, desk.caller, bounds)
        async with desk.writing() as tx:
            assert await jobs.erase(tx, uuid4()) == 0
            assert await jobs.erase(tx) == 2
        with pytest.raises(LeaseLost):
            await step(context, desk.caller, replace(claimed, cursor={"place": 1}))
        assert [job.id for job in await desk.list()] == [plain.id]
        assert await stored(owner, desk) == 0


class TestReindexing:
    async def test_reindexing_reproduces_the_existing_passages(
        self,
        desk: Desk,
        agent: Agent,
        context: WorkerContext,
        owner: asyncpg.Connection,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(reindexing, "NODES_PER_STEP", 2)
        await remember_much(agent)
        await agent.embed()
        before, revision = await live(owner, desk), (await agent.head()).revision
        job = await desk.start(REINDEX_PASSAGES)
        await job_loop.sweep(context)
        shown = await desk.look(job)
        assert (shown.status, shown.done, shown.total, shown.result) == ("succeeded", 5, 5, {"nodes": 5})
        assert await live(owner, desk) == before, "the same texts, with the same vectors"
        assert (await agent.head()).revision == revision
        assert await agent.recalled("Which beverage does Ada like?") != []

    async def test_reindexing_repairs_damaged_passages(
        self, desk: Desk, agent: Agent, context: WorkerContext, owner: asyncpg.Connection
    ) -> None:
        await remember_much(agent)
        before = await live(owner, desk)
        await owner.execute("DELETE FROM passages WHERE tenant_id = $1 AND text LIKE '%tea%'", desk.caller.tenant_id)
        await owner.execute("UPDATE passages SET tsv = '' WHERE tenant_id = $1", desk.caller.tenant_id)
        await owner.execute(
            "INSERT INTO passages (tenant_id, graph_id, id, node_id, memory_id, source, place, thread, sequence, "
            "said_at, expires_at, text, tsv, added_revision) "
            "SELECT tenant_id, graph_id, gen_random_uuid(), node_id, memory_id, "
            "source, place, thread, sequence, said_at, expires_at, text, tsv, added_revision "
            "FROM passages WHERE tenant_id = $1",
            desk.caller.tenant_id,
        )
        assert await live(owner, desk) != before
        for _ in range(2):
            await desk.start(REINDEX_PASSAGES)
            await job_loop.sweep(context)
            assert await live(owner, desk) == before

    async def test_reindexing_keeps_the_past(
        self, desk: Desk, agent: Agent, context: WorkerContext, owner: asyncpg.Connection
    ) -> None:
        await observed(agent, "Ada", "likes tea")
        past = (await agent.head()).revision
        await agent.observe("Ada", "likes coffee")
        before = [await as_of(owner, desk, revision) for revision in (past, past + 1)]
        await desk.start(REINDEX_PASSAGES)
        await job_loop.sweep(context)
        assert [await as_of(owner, desk, revision) for revision in (past, past + 1)] == before

    async def test_a_job_without_a_graph_is_refused(self, desk: Desk, context: WorkerContext) -> None:
        job = await desk.start(REINDEX_PASSAGES, graph=None)
        await job_loop.sweep(context)
        assert (await desk.look(job)).error_message == "This job has no graph: one graph is reindexed at a time."


async def observed(agent: Agent, name: str, *observations: str) -> None:
    await agent.create(NewEntity(name, "person", observations))


async def remember_much(agent: Agent) -> None:
    """Three entities, one of them without observations, and two facts, one of several passages."""
    await observed(agent, "Ada", "likes tea", "writes programs")
    await observed(agent, "Grace", "found a moth")
    await agent.create("Silent")
    await agent.remember("the engine was never built", " ".join(f"word{number}" for number in range(200)))


async def live(owner: asyncpg.Connection, desk: Desk) -> list[Any]:
    """The tenant's search data, without the ids and revisions of passages."""
    return await owner.fetch(
        "SELECT node_id, memory_id, source, place, thread, said_at, expires_at, text, tsv::text, v.embedding::text, "
        "embedding_model FROM passages p "
        "LEFT JOIN searched_vectors v ON v.tenant_id = p.tenant_id AND v.passage_id = p.id AND v.live "
        "WHERE p.tenant_id = $1 AND removed_revision IS NULL ORDER BY 1, 2, 3, 4, text",
        desk.caller.tenant_id,
    )


async def as_of(owner: asyncpg.Connection, desk: Desk, revision: int) -> list[str]:
    """The texts that could be found at a revision."""
    rows = await owner.fetch(
        "SELECT text FROM passages WHERE tenant_id = $1 AND added_revision <= $2 "
        "AND (removed_revision IS NULL OR removed_revision > $2) ORDER BY text",
        desk.caller.tenant_id,
        revision,
    )
    return [row["text"] for row in rows]


async def stored(owner: asyncpg.Connection, desk: Desk) -> int:
    """The number of chunks that the tenant's jobs store."""
    count: int = await owner.fetchval(
        "SELECT (SELECT count(*) FROM job_inputs WHERE tenant_id = $1) "
        "+ (SELECT count(*) FROM job_outputs WHERE tenant_id = $1)",
        desk.caller.tenant_id,
    )
    return count
