"""Jobs: what runs in the background, how far it is, and what came of it."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter
from litestar.response import Redirect, Stream

from recollect.accounts.tenants import service as tenants
from recollect.curation.duplicates import deduplication
from recollect.errors import InvalidInput
from recollect.graph.graphs import service as graphs
from recollect.graph.passages import rebuild_jobs
from recollect.jobs import service as jobs
from recollect.jobs.kinds import (
    COMPACT_GRAPH,
    DEDUPLICATE,
    IMPORT_GRAPH,
    REEMBED_PASSAGES,
    REINDEX_PASSAGES,
    known_kind,
)
from recollect.jobs.model import Job, JobBounds, JobFilter, NewJob, Status
from recollect.postgres.transactions import Transaction
from recollect.retention.compaction import service as compaction
from recollect.transfer import file_jobs
from recollect_console.access import READS, WRITES, while_member
from recollect_console.authors import authors_of
from recollect_console.paging import PAGE, paging_of
from recollect_console.rendering import POLICY, render
from recollect_console.visit import Visit
from recollect_gateway.management.memory.jobs import OUTPUT
from recollect_http.pages import IdCursor

MAX_POLLS = 100
"""How often a page asks for a job's progress by itself: then it says to reload."""

QUICK_POLLS, QUICK_SECONDS, SLOW_SECONDS = 30, 2, 10
"""The first polls, and the seconds before each of them; and before each of the others."""

MAX_LINES, MAX_LINE_BYTES = 100, 65_536
"""Lines of an import's problems that are shown, and the bytes in which they are."""

Polls = Annotated[int, QueryParameter(ge=0, le=MAX_POLLS)]
StatusFilter = Annotated[Literal["", Status], QueryParameter()]
KindFilter = Annotated[str, QueryParameter(max_length=40)]
LABELS = {
    "compact_graph": "Remove old history",
    "deduplicate": "Look for duplicates",
    "export_graph": "Export",
    "forget_statistics": "Finish an erasure",
    "import_graph": "Import",
    "reembed_passages": "Make vectors anew",
    "reindex_passages": "Rebuild the search index",
}
BADGES = {"queued": "", "running": "warn", "succeeded": "good", "failed": "bad", "cancelled": ""}
DONE = {
    "started": "It is started.",
    "cancelled": "It ends after its current step.",
    "deleted": "Its file is deleted.",
}


@dataclass(frozen=True, slots=True)
class Poll:
    """The next time at which a page asks for a job: its number, and after how many seconds."""

    number: int
    seconds: int


class JobsPages(Controller):
    """The jobs of a tenant, and those that people start for a graph."""

    path = "/jobs"

    @get("/")
    async def show(
        self,
        visit: NamedDependency[Visit],
        status: StatusFilter = "",
        kind: KindFilter = "",
        cursor: IdCursor = None,
    ) -> Response[str]:
        """One page of the jobs of all graphs, newest first."""
        filters = JobFilter(None, known_kind(kind or None), status or None)
        async with visit.reading_tenant() as tx:
            found = await jobs.list_jobs(tx, filters, before=cursor, limit=PAGE + 1)
            authors = await authors_of(tx, (job.created_by for job in found))
        following = str(found[PAGE - 1].id) if len(found) > PAGE else None
        return render(
            visit,
            "jobs/list.html",
            done=DONE,
            jobs=[(job, poll_of(job, 0)) for job in found[:PAGE]],
            authors=authors,
            labels=LABELS,
            badges=BADGES,
            statuses=[("", "All"), *((each, each.capitalize()) for each in get_args(Status))],
            kinds=[("", "All"), *LABELS.items()],
            filters={"status": status, "kind": kind},
            paging=paging_of(visit, following),
        )

    @post("/start")
    async def start(self, visit: NamedDependency[Visit]) -> Redirect:
        """Start a job of the graph."""
        kind = visit.value("kind")
        if kind not in _STARTS:
            raise InvalidInput(f"The kind is one of {', '.join(_STARTS)}", path="kind")
        async with visit.changing_tenant() as tx:
            job = await _STARTS[kind](tx, visit)
        return visit.go(f"jobs/{job.id}", done="started")

    @get("/compact", opt=WRITES)
    async def ask_to_compact(self, visit: NamedDependency[Visit]) -> Response[str]:
        """How much history would go."""
        async with visit.reading("compact") as view:
            retention = await _retention(view.tx, visit)
            before = await compaction.retained_since(view.tx, retention)
            freed = await compaction.preview(view.tx, view.graph, before=before) if view.is_there else None
        return render(visit, "jobs/compact.html", freed=freed, before=before)

    @get("/{job_id:uuid}")
    async def show_job(self, visit: NamedDependency[Visit], job_id: FromPath[UUID], polls: Polls = 0) -> Response[str]:
        """A job, with its progress and its result."""
        async with visit.reading_tenant() as tx:
            job = await jobs.get_job(tx, job_id)
            authors = await authors_of(tx, [job.created_by])
            problems = await _problems(tx, job)
        return render(
            visit,
            "jobs/show.html",
            done=DONE,
            job=job,
            poll=poll_of(job, polls),
            authors=authors,
            problems=problems,
            has_file=_has_file(job),
            labels=LABELS,
            badges=BADGES,
        )

    @get("/{job_id:uuid}/row")
    async def show_row(self, visit: NamedDependency[Visit], job_id: FromPath[UUID], polls: Polls = 0) -> Response[str]:
        """A job as a row of the list, which asks for it anew until the job has ended."""
        async with visit.reading_tenant() as tx:
            job = await jobs.get_job(tx, job_id)
            authors = await authors_of(tx, [job.created_by])
        return render(
            visit,
            "jobs/row.html",
            job=job,
            poll=poll_of(job, polls),
            authors=authors,
            labels=LABELS,
            badges=BADGES,
        )

    @post("/{job_id:uuid}/cancel", opt=READS)
    async def cancel(self, visit: NamedDependency[Visit], job_id: FromPath[UUID]) -> Redirect:
        """Let a job end after its current step. Who may only read can cancel only their own exports."""
        async with visit.changing_tenant() as tx:
            await file_jobs.cancel_job(tx, job_id, JobBounds.of(visit.services.settings))
        return visit.go(f"jobs/{job_id}", done="cancelled")

    @get("/{job_id:uuid}/output")
    async def download(self, visit: NamedDependency[Visit], job_id: FromPath[UUID]) -> Stream:
        """The file of a job."""
        async with visit.reading_tenant() as tx:
            job = await jobs.open_output(tx, job_id, files=file_jobs.FILES)
        parts = while_member(visit, jobs.read_output(visit.db, visit.caller, job))
        headers = file_headers(str(job.id)) | {"Content-Length": str(job.output_bytes)}
        return Stream(parts, media_type=file_jobs.media_type_of(job) or OUTPUT, headers=headers)

    @post("/{job_id:uuid}/delete", opt=READS)
    async def delete(self, visit: NamedDependency[Visit], job_id: FromPath[UUID]) -> Redirect:
        """Delete the file of a job, so that others have room. Who may only read can delete only their own."""
        async with visit.changing_tenant() as tx:
            await file_jobs.delete_output(tx, job_id)
        return visit.go(f"jobs/{job_id}", done="deleted")


def poll_of(job: Job, polls: int) -> Poll | None:
    """When to ask for a job again, after so many times; None where it has ended, or was asked for often enough."""
    if job.is_finished or polls >= MAX_POLLS:
        return None
    return Poll(polls + 1, QUICK_SECONDS if polls < QUICK_POLLS else SLOW_SECONDS)


def file_headers(name: str) -> dict[str, str]:
    """The headers of a file to store: no browser guesses its type, or shows it as a page of this server."""
    return {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
    }


def _has_file(job: Job) -> bool:
    has_output = job.output_bytes > 0 or job.kind in file_jobs.FILES
    return job.status == "succeeded" and has_output and not job.output_deleted


async def _problems(tx: Transaction, job: Job) -> list[dict[str, Any]]:
    """What an import has not taken, or would not take: the first lines of its output."""
    if job.kind != IMPORT_GRAPH or not _has_file(job) or not job.output_bytes:
        return []
    lines = (await jobs.read_output_piece(tx, job, 0, MAX_LINE_BYTES)).split(b"\n")
    whole = lines[:-1] if job.output_bytes > MAX_LINE_BYTES else lines
    return [json.loads(line) for line in whole[:MAX_LINES] if line.strip()]


async def _retention(tx: Transaction, visit: Visit) -> timedelta:
    return await tenants.retention_of(tx, timedelta(days=visit.services.settings.retention_days))


async def _deduplicate(tx: Transaction, visit: Visit) -> Job:
    return await deduplication.start_pass(tx, visit.graph)


async def _compact(tx: Transaction, visit: Visit) -> Job:
    graph = await graphs.get_graph(tx, visit.graph)
    arguments = {"retention_days": await _retention(tx, visit) / timedelta(days=1)}
    return await jobs.schedule(tx, NewJob(COMPACT_GRAPH, graph.id, arguments))


async def _reindex(tx: Transaction, visit: Visit) -> Job:
    return await rebuild_jobs.start_reindex(tx, visit.graph)


async def _reembed(tx: Transaction, visit: Visit) -> Job:
    return await rebuild_jobs.start_reembed(tx, visit.graph, model=None, drop_old=False)


_STARTS: dict[str, Callable[[Transaction, Visit], Awaitable[Job]]] = {
    COMPACT_GRAPH: _compact,
    DEDUPLICATE: _deduplicate,
    REEMBED_PASSAGES: _reembed,
    REINDEX_PASSAGES: _reindex,
}
"""The jobs that are started from this page, by kind."""
