"""Jobs for tests: kinds whose effects can be counted, and a worker that knows them (`python -m tests.support.jobs`)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

import httpx2

from recollect.caller import Caller
from recollect.embedding import create_embedder
from recollect.errors import Unavailable
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.jobs import leases as job_turns
from recollect.jobs import service as jobs
from recollect.jobs.kinds import IMPORT_GRAPH
from recollect.jobs.model import Job, JobBounds, NewJob, StepRefused, StepResult
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Query
from recollect.postgres.transactions import AnyConnection, Transaction
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import Wakeups
from recollect_workers import job_loop, kinds
from recollect_workers.context import WorkerContext
from recollect_workers.jobs.import_readers import ImportReaders
from recollect_workers.jobs.transfer import Imports
from recollect_workers.main import main

COUNT = "count_steps"
COPY = "copy_input"
REFUSE = "refuse"
WAVER = "waver"
BREAK = "break_down"


async def count_steps(tx: Transaction, job: Job) -> StepResult:
    """Create one entity per step, with a new name and the step's number as kind: a step that is done twice shows."""
    number = job.cursor.get("number", 0)
    assert job.graph_id is not None
    async with graphs.write_graph_of(tx, job.graph_id, job.kind) as revision:
        await entities.create_entities(tx, revision, [NewEntity(str(uuid4()), str(number))])
    await asyncio.sleep(job.arguments.get("seconds", 0))
    total = job.arguments["steps"]
    finished = number + 1 == total
    output = (f"{number}\n".encode(),) if job.arguments.get("output") else ()
    result = {"steps": total} if finished else None
    return StepResult({"number": number + 1}, number + 1, total, finished, result, output)


async def copy_input(tx: Transaction, job: Job) -> StepResult:
    """Output the input, one chunk per step."""
    place = job.cursor.get("place", 0)
    chunk = await jobs.read_input(tx, job, place)
    if chunk is None:
        return StepResult({}, place, place, finished=True, result={"chunks": place})
    return StepResult({"place": place + 1}, place + 1, output=(chunk,))


async def refuse(tx: Transaction, job: Job) -> StepResult:
    """Never succeed."""
    raise StepRefused("It is not to be done.")


async def waver(tx: Transaction, job: Job) -> StepResult:
    """Fail as if something were away, as often as the arguments say."""
    if job.attempts <= job.arguments["times"]:
        raise Unavailable("A secret is away.")
    return StepResult({}, 1, 1, finished=True)


async def break_down(tx: Transaction, job: Job) -> StepResult:
    """Raise an internal error after a write."""
    await count_steps(tx, job)
    raise LookupError("secret")


KINDS = {COUNT: count_steps, COPY: copy_input, REFUSE: refuse, WAVER: waver, BREAK: break_down}


@dataclass(frozen=True)
class Desk:
    """Starts jobs for a caller and looks at them."""

    db: Database
    caller: Caller

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Transaction]:
        async with self.db.transaction(self.caller) as tx:
            yield tx

    async def start(self, kind: str, *, graph: str | None = "default", unique: bool = False, **arguments: Any) -> Job:
        """Start a job of a graph, or of none."""
        async with self.writing() as tx:
            graph_id = (await graphs.get_graph(tx, graph)).id if graph else None
            return await jobs.schedule(tx, NewJob(kind, graph_id, arguments, unique=unique))

    async def look(self, job: Job) -> Job:
        """The present state of the job."""
        async with self.db.transaction(self.caller, read_only=True) as tx:
            return await jobs.get_job(tx, job.id)

    async def cancel(self, job: Job) -> Job:
        async with self.writing() as tx:
            return await jobs.cancel_job(tx, job.id, JobBounds.of(Settings()))

    async def cancel_all(self) -> None:
        for job in await self.list():
            await self.cancel(job)

    async def list(self) -> list[Job]:
        async with self.db.transaction(self.caller, read_only=True) as tx:
            return await jobs.list_jobs(tx)

    async def output(self, job: Job) -> bytes:
        async with self.db.transaction(self.caller, read_only=True) as tx:
            opened = await jobs.open_output(tx, job.id)
        return b"".join([chunk async for chunk in jobs.read_output(self.db, self.caller, opened)])


async def has_begun(desk: Desk, job: Job) -> bool:
    """Whether a step of the job is done."""
    return (await desk.look(job)).done > 0


@asynccontextmanager
async def employed(settings: Settings, db: Database) -> AsyncIterator[WorkerContext]:
    """The context of a worker for every kind of job, without work of other tests: a sweep works for every tenant."""
    async with Operator.connect(settings.migration_url, settings) as operator:
        await operator.execute(Query.compile("DELETE FROM jobs"))
    async with connect_redis(settings) as redis:
        wakeups = Wakeups(redis)
        known = {**kinds.known_kinds(settings), **KINDS}
        yield WorkerContext(settings, db, create_embedder(settings), wakeups, asyncio.Event(), known)
        await wakeups.aclose()


async def started(response: httpx2.Response) -> dict[str, Any]:
    """The job that the answer of a route has started."""
    assert response.status_code == 202, response.text
    job: dict[str, Any] = response.json()
    return job


async def look(http: httpx2.AsyncClient, job: dict[str, Any]) -> dict[str, Any]:
    """The job as its route shows it."""
    shown: dict[str, Any] = (await http.get(f"/v1/jobs/{job['id']}")).json()
    return shown


async def import_by_another(context: WorkerContext, desk: Desk) -> None:
    """Do a step of the tenant's import as a worker that has no position in its file and reads it from the beginning."""
    await take_one_step(replace(context, kinds={IMPORT_GRAPH: Imports(ImportReaders(idle_seconds=60)).step}), desk)


async def take_one_step(context: WorkerContext, desk: Desk) -> None:
    """Do a step of the tenant's next job, which then waits for another turn."""
    claimed = await job_loop._attempt_claim(context, desk.caller.tenant_id)
    assert claimed is not None
    try:
        taken = await job_loop.take_step(context, desk.caller, claimed)
    except Exception as error:
        await job_loop._note_failure(context, desk.caller, claimed, error)
        return
    if not taken.is_finished:
        async with desk.writing() as tx:
            await job_turns.release_job(tx, taken, JobBounds.of(context.settings))


async def effects(connection: AnyConnection, tenant_id: UUID) -> list[int]:
    """The steps of the tenant's `count_steps` jobs, each as often as it had an effect."""
    rows = await connection.fetch(
        "SELECT kind::integer AS number FROM nodes WHERE tenant_id = $1 AND kind ~ '^[0-9]+$' ORDER BY 1", tenant_id
    )
    return [row["number"] for row in rows]


if __name__ == "__main__":
    main(KINDS)
