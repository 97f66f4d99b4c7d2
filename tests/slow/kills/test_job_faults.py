"""Jobs when workers, Valkey and PostgreSQL go away at any moment: in the end each is done, and each step once.

Random choices follow from the seed: `make test` tries a few seeds, `make soak` many.
"""

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants import service as tenants
from recollect.curation.duplicates import deduplication
from recollect.curation.duplicates.service import MAX_MERGED
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.jobs import service as jobs
from recollect.jobs.kinds import REINDEX_PASSAGES
from recollect.jobs.model import Job, JobBounds
from recollect.postgres.database import Database
from recollect.postgres.migrate import migrate
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect.transfer import exports, file_jobs
from recollect.transfer.formats.jsonl import write_line
from recollect.transfer.model import Strategy
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import Wakeups
from recollect_local.postgres import LocalPostgres
from recollect_local.valkey import LocalValkey
from tests.support import wakeup_worker
from tests.support.gateway import eventually
from tests.support.jobs import COUNT, Desk, effects, has_begun
from tests.support.workers import WorkerProcess, begun, end_leases, killed, working

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("leaves_nothing")]

WORKER = "tests.support.jobs"
HASTY = {"sweep_seconds": 1, "job_lease_seconds": 20}
"""Short waits. A lease is long enough for a busy machine: those of killed workers are ended."""

FORSAKEN = HASTY | {"job_lease_seconds": 4, "statement_timeout_seconds": 2, "database_acquire_seconds": 2}
"""Settings for tests that stop a server: calls that hang end soon, and so do leases that could not be released."""


PAIRS = MAX_MERGED + 10
"""Of similar entities: a few more than one step merges."""


@pytest.fixture
def hasty(settings: Settings) -> Settings:
    return settings.model_copy(update=HASTY)


async def has_ended(desk: Desk, job: Job) -> bool:
    return (await desk.look(job)).is_finished


async def ended(desk: Desk, *started: Job) -> list[Job]:
    """Wait until each job has ended, and return the jobs."""
    for job in started:
        await eventually(partial(has_ended, desk, job))
    return [await desk.look(job) for job in started]


async def done_once(desk: Desk, started: list[Job]) -> None:
    """Require that each job succeeded, and that each of its steps had its effect once."""
    for job in await ended(desk, *started):
        assert (job.status, job.done) == ("succeeded", job.arguments["steps"]), job
    async with desk.db.transaction(desk.caller, read_only=True) as tx:
        assert await effects(tx._connection, desk.caller.tenant_id) == sorted(
            number for job in started for number in range(job.arguments["steps"])
        )
    for job in started:
        if job.arguments.get("output"):
            assert await desk.output(job) == "".join(f"{n}\n" for n in range(job.arguments["steps"])).encode()


class TestWorkers:
    @pytest.mark.proves("jobs: steps-commit-whole")
    async def test_jobs_survive_workers_that_are_killed_at_random_moments(
        self, hasty: Settings, desk: Desk, tmp_path: Path, seed: int
    ) -> None:
        chance = random.Random(seed)
        started = [
            await desk.start(COUNT, steps=chance.randint(20, 60), seconds=chance.choice((0, 0.02)), output=True)
            for _ in range(3)
        ]
        for _ in range(2):
            await killed(hasty, tmp_path, chance, seconds=0.8, module=WORKER)
        with working(hasty, tmp_path, WORKER), working(hasty, tmp_path, WORKER):
            await done_once(desk, started)

    async def test_reindexing_survives_killed_workers(
        self, hasty: Settings, desk: Desk, owner: asyncpg.Connection, tmp_path: Path, seed: int
    ) -> None:
        chance = random.Random(seed)
        async with desk.writing() as tx, graphs.write_graph(tx, None, "test") as revision:
            made = [NewEntity(f"e{number}", "thing", (f"says {number}",)) for number in range(2_000)]
            await entities.create_entities(tx, revision, made)
        tenant_id = desk.caller.tenant_id
        some = "DELETE FROM passages WHERE tenant_id = $1 AND hashtext(text) % 2 = $2"
        await owner.execute(some, tenant_id, seed % 2)
        job = await desk.start(REINDEX_PASSAGES)
        for _ in range(2):
            await killed(hasty, tmp_path, chance, seconds=0.5)
        with working(hasty, tmp_path):
            [shown] = await ended(desk, job)
        assert (shown.status, shown.done, shown.result) == ("succeeded", 2_000, {"nodes": 2_000})
        texts = await owner.fetch(
            "SELECT text FROM passages WHERE tenant_id = $1 AND removed_revision IS NULL", tenant_id
        )
        async with owner.transaction():  # In the order in which a session of a killed worker may still lock them.
            await owner.execute("SELECT 1 FROM graph_indexes WHERE tenant_id = $1 FOR UPDATE", tenant_id)
            await owner.execute("DELETE FROM passages WHERE tenant_id = $1", tenant_id)
        assert sorted(row["text"] for row in texts) == sorted(f"says {number}" for number in range(2_000))

    @pytest.mark.proves("jobs: transfer")
    async def test_imports_and_exports_survive_killed_workers(
        self, hasty: Settings, desk: Desk, owner: asyncpg.Connection, tmp_path: Path, seed: int
    ) -> None:
        chance = random.Random(seed)
        bounds, said = JobBounds.of(hasty), [f"says {number}" for number in range(2_000)]
        file = b"".join(write_line(NewEntity(f"e{number}", "thing", (text,))) for number, text in enumerate(said))
        async with desk.writing() as tx:
            held = await file_jobs.create_held_import(tx, "default", "jsonl", Strategy.MERGE)
            await jobs.append_input(tx, held.id, [file[at : at + 10_000] for at in range(0, len(file), 10_000)], bounds)
            await jobs.start(tx, held.id)
        imported = await self.outlives_kills(hasty, desk, held, tmp_path, chance)
        assert (imported.done, imported.result and imported.result["entities_created"]) == (2_000, 2_000)
        texts = await owner.fetch(
            "SELECT content FROM observations WHERE tenant_id = $1 AND removed_revision IS NULL", desk.caller.tenant_id
        )
        assert sorted(row["content"] for row in texts) == sorted(said)
        async with desk.writing() as tx:
            assert (await graphs.head_of(await graphs.view(tx, "default"))).revision == 4, "500 in each"
            export = await exports.open_export(tx, "default", "jsonl")
            started = await file_jobs.start_export(tx, export, bounds)
        await self.outlives_kills(hasty, desk, started, tmp_path, chance)
        assert await desk.output(started) == file.removesuffix(b"\n")
        await owner.execute("DELETE FROM passages WHERE tenant_id = $1", desk.caller.tenant_id)

    @pytest.mark.proves("jobs: duplicate-proposals")
    async def test_merging_duplicates_survives_killed_workers(
        self, hasty: Settings, desk: Desk, owner: asyncpg.Connection, tmp_path: Path, seed: int
    ) -> None:
        chance = random.Random(seed)
        dedup = {"dedup": {"mode": "merge", "threshold": 0.65}}
        async with desk.writing() as tx:
            await graphs.create_graph(tx, NewGraph("crowd", metadata=dedup))
            async with graphs.write_graph(tx, "crowd", "test") as revision:
                stems = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=16)) for _ in range(PAIRS)]
                made = [NewEntity(f"{stem}{end}", "x") for stem in stems for end in "01"]
                await entities.create_entities(tx, revision, made)
            job = await deduplication.start_pass(tx, "crowd")
        await self.outlives_kills(hasty, desk, job, tmp_path, chance)
        left = await owner.fetchval(
            "SELECT count(*) FROM nodes WHERE tenant_id = $1 AND removed_revision IS NULL AND name IS NOT NULL",
            desk.caller.tenant_id,
        )
        merges = await owner.fetchval(
            "SELECT count(*) FROM changes WHERE tenant_id = $1 AND counts ? 'nodes_removed'", desk.caller.tenant_id
        )
        assert (left, merges) == (PAIRS, PAIRS), "each merge once, in a revision of its own"
        await owner.execute("DELETE FROM passages WHERE tenant_id = $1", desk.caller.tenant_id)

    async def outlives_kills(self, hasty: Settings, desk: Desk, job: Job, tmp_path: Path, chance: random.Random) -> Job:
        """Kill two workers at the job, then let one succeed, and return the job."""
        for _ in range(2):
            await killed(hasty, tmp_path, chance, seconds=0.8)
        with working(hasty, tmp_path):
            [shown] = await ended(desk, job)
        assert shown.status == "succeeded", shown
        return shown

    async def test_a_worker_that_is_stopped_releases_its_jobs(
        self, hasty: Settings, desk: Desk, tmp_path: Path
    ) -> None:
        patient = hasty.model_copy(update={"job_lease_seconds": 600})
        job = await desk.start(COUNT, steps=100, seconds=0.02)
        with working(patient, tmp_path, WORKER) as worker:
            await eventually(lambda: has_begun(desk, job))
            assert await asyncio.to_thread(worker.stop) == 0
        assert 0 < (await desk.look(job)).done < 100
        with working(patient, tmp_path, WORKER):
            await done_once(desk, [job])

    @pytest.mark.proves("jobs: overtaken-workers-commit-nothing")
    async def test_a_stalled_worker_is_overtaken_and_commits_nothing_more(
        self, settings: Settings, desk: Desk, postgres: LocalPostgres, tmp_path: Path, seed: int
    ) -> None:
        chance, hasty = random.Random(seed), settings.model_copy(update=FORSAKEN)
        job = await desk.start(COUNT, steps=60, seconds=0.05)
        with working(hasty, tmp_path, WORKER) as stalled:
            await eventually(lambda: has_begun(desk, job))
            await asyncio.sleep(chance.uniform(0, 0.3))
            await stall(stalled, postgres)
            done = (await desk.look(job)).done
            with working(hasty, tmp_path, WORKER) as other:
                await begun(other)
                await eventually(lambda: is_past(desk, job, done + 2))
                stalled.send(signal.SIGCONT)
                await done_once(desk, [job])


async def stall(worker: WorkerProcess, postgres: LocalPostgres) -> None:
    """Suspend a worker, but not between the messages of one statement.

    PostgreSQL ends a session that idles in a transaction; one whose client has sent half of what makes a statement (the
    driver prepares one by itself first) keeps its locks until the connection ends.
    """
    superuser = await asyncpg.connect(postgres.url())
    try:
        while True:
            worker.send(signal.SIGSTOP)
            await asyncio.sleep(0.1)
            query = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND wait_event = 'ClientRead'"
            if not await superuser.fetchval(query):
                return
            worker.send(signal.SIGCONT)
            await asyncio.sleep(0.01)
    finally:
        await superuser.close()


class TestServers:
    """Servers of these tests, which keep what would survive a power cut."""

    @pytest.fixture
    def valkey(self, tmp_path: Path) -> Iterator[LocalValkey]:
        server = LocalValkey(tmp_path)
        server.start()
        yield server
        server.stop()

    @pytest.fixture
    def own_postgres(self, tmp_path: Path) -> Iterator[LocalPostgres]:
        server = LocalPostgres(tmp_path)
        server.start()
        yield server
        server.stop()

    @pytest.fixture
    async def own(self, settings: Settings, own_postgres: LocalPostgres, valkey: LocalValkey) -> Settings:
        await migrate(own_postgres.url())
        own: dict[str, Any] = {
            "database_url": own_postgres.url("recollect_app"),
            "owner_database_url": own_postgres.url("recollect_owner"),
            "redis_url": valkey.url,
            "redis_timeout_seconds": 10,
        }
        return settings.model_copy(update=FORSAKEN | own)

    @pytest.fixture
    async def desk(self, own: Settings) -> AsyncIterator[Desk]:
        async with Operator.connect(own.migration_url, own) as operator:
            caller = operator_caller(await tenants.create_tenant(operator, "fault", "Fault"))
        async with connect_redis(own) as redis:
            wakeups = Wakeups(redis)
            async with Database.connect(own.database_url, settings=own, on_commit=wakeups.notify) as db:
                yield Desk(db, caller)
            await wakeups.aclose()

    @pytest.mark.proves("jobs: steps-commit-whole")
    async def test_jobs_survive_faults_of_servers_and_workers_at_random_moments(
        self, own: Settings, desk: Desk, own_postgres: LocalPostgres, valkey: LocalValkey, tmp_path: Path, seed: int
    ) -> None:
        chance = random.Random(seed)
        started = [await desk.start(COUNT, steps=80, seconds=0.04, output=True) for _ in range(3)]
        with ExitStack() as stack:
            workers = [stack.enter_context(working(own, tmp_path, WORKER)) for _ in range(2)]
            for worker in workers:
                await begun(worker)
            happenings = ["flush", "valkey", "postgres", "worker"]
            chance.shuffle(happenings)
            for happening in happenings:
                await asyncio.sleep(chance.uniform(0.1, 1))
                match happening:
                    case "flush":
                        async with connect_redis(own) as redis:
                            await redis.flushall()
                    case "valkey":
                        await asyncio.to_thread(valkey.stop)
                        await asyncio.sleep(chance.uniform(0, 1))
                        await asyncio.to_thread(valkey.start)
                    case "postgres":
                        await asyncio.to_thread(own_postgres.stop)
                        await asyncio.sleep(chance.uniform(0, 1))
                        await asyncio.to_thread(own_postgres.start)
                    case "worker":
                        workers[0].stop(signal.SIGKILL)
                        await end_leases(own)
                        workers[0] = stack.enter_context(working(own, tmp_path, WORKER))
            await eventually(lambda: answers(desk))
            await done_once(desk, started)

    async def test_an_announced_job_begins_at_once(self, own: Settings, desk: Desk, tmp_path: Path) -> None:
        """The worker looks for jobs by itself only once, before there is any."""
        with working(own, tmp_path, wakeup_worker.WORKER) as worker:
            for event in ("listening for wake-ups", wakeup_worker.has_swept("jobs")):
                await asyncio.to_thread(worker.wait_for, event)
            started: list[Job] = []
            for _ in range(3):
                started.append(await desk.start(COUNT, steps=1))
                await done_once(desk, started)


async def is_past(desk: Desk, job: Job, done: int) -> bool:
    return (await desk.look(job)).done >= done


async def answers(desk: Desk) -> bool:
    """Whether PostgreSQL is back for the connections of the test."""
    try:
        await desk.db.ping()
    except Exception:
        return False
    return True
