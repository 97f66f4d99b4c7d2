"""Start exports and imports of any size as jobs. The worker does their steps.

The filter of an export holds words of the caller (a type, tags). So it is stored as the job's input, which is deleted
when the job ends.
"""

from dataclasses import replace
from uuid import UUID

import msgspec

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.caller import Scope
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph
from recollect.jobs import service as jobs
from recollect.jobs.kinds import EXPORT_GRAPH, IMPORT_GRAPH
from recollect.jobs.model import Job, JobBounds, NewJob
from recollect.postgres.transactions import Transaction
from recollect.transfer.exports import Cursor, Export
from recollect.transfer.formats import FORMATS, reader_named
from recollect.transfer.model import PROBLEMS_TYPE, Strategy

MAX_READERS_FILES = 2
"""Exports of a credential that may only read, at most, under way or stored."""

FILES = frozenset({EXPORT_GRAPH, IMPORT_GRAPH})
"""The kinds that always leave a file. It may be empty: for an empty graph, or an import without problems."""


async def delete_output(tx: Transaction, job_id: UUID) -> Job:
    """Delete the output of a job; doing it twice changes nothing. Raises as `jobs.delete_output` does."""
    job, deleted = await jobs.delete_output(tx, job_id)
    if deleted:
        await audit.record(tx, Action.JOB_OUTPUT_DELETED, named("job", job.id))
    return job


async def cancel_job(tx: Transaction, job_id: UUID, bounds: JobBounds) -> Job:
    """Ask a job to end, as `jobs.cancel_job` does. That needs MEMORY_WRITE, or an export that the caller started.

    Raises NotFound, or Forbidden.
    """
    job = await jobs.get_job(tx, job_id)
    if job.kind != EXPORT_GRAPH or job.created_by != tx.caller.subject:
        tx.caller.require(Scope.MEMORY_WRITE)
    return await jobs.cancel_job(tx, job_id, bounds)


async def start_export(tx: Transaction, export: Export, bounds: JobBounds) -> Job:
    """Start a job that writes the snapshot of an export to a file.

    An equal job (same revision, format and filter) that is under way is returned instead. Raises Forbidden, Conflict
    for too many jobs, TooLarge if the jobs of the tenant store too much already.

    Reading is enough. But the file is stored, so a caller that may not write has few exports at once, and readers
    cannot fill the storage that imports need.
    """
    arguments = {"format": export.format, "revision": export.snapshot.revision}
    tags = tuple(sorted({tag.casefold() for tag in export.selection.tags}))
    filter_json = msgspec.json.encode(replace(export.selection, tags=tags))
    new = NewJob(
        EXPORT_GRAPH,
        export.snapshot.graph_id,
        arguments,
        total=total_of(export),
        is_held=True,
        input_description=filter_json,
    )
    if not tx.caller.may(Scope.MEMORY_WRITE):
        await jobs.require_below_file_limit(tx, new, MAX_READERS_FILES)
    job = await jobs.schedule(tx, new)
    if job.input_bytes:
        return job
    objects = named("graph", export.snapshot.graph_id), named("job", job.id)
    await audit.record(tx, Action.GRAPH_EXPORTED, *objects, format=export.format)
    await jobs.append_input(tx, job.id, [msgspec.json.encode(export)], bounds)
    return await jobs.start(tx, job.id)


async def create_held_import(
    tx: Transaction,
    graph_name: str,
    format_name: str,
    strategy: Strategy,
    *,
    strict: bool = False,
    check: bool = False,
) -> Job:
    """Create the job of an import. It waits for its input (`jobs.append_input`) and for `jobs.start`.

    `check`: a dry run; if the graph is not there, the job belongs to no graph and reports what an empty one would get.
    `strict`: nothing is imported if anything in the file is broken. Without `check`, the graph is created if it is not
    there. Raises Forbidden, Conflict for too many jobs, InvalidInput for a format that cannot be read.
    """
    reader_named(format_name)
    graph = await (graphs.open_graph if check else _graph)(tx, graph_name)
    arguments: dict[str, object] = {"format": format_name, "strategy": str(strategy)}
    arguments |= {name: True for name, is_set in (("strict", strict), ("check", check)) if is_set}
    job = await jobs.schedule(tx, NewJob(IMPORT_GRAPH, graph.id if graph else None, arguments, is_held=True))
    if graph is not None and not check:
        objects = named("graph", graph.id), named("job", job.id)
        await audit.record(tx, Action.GRAPH_IMPORTED, *objects, format=format_name)
    return job


def needs_dry_run(job: Job) -> bool:
    """Whether an import tries the whole file before it writes any of it."""
    arguments = job.arguments
    return bool(arguments.get("check") or arguments.get("strict") or arguments["strategy"] == Strategy.FAIL)


async def read_export(tx: Transaction, job: Job) -> Export:
    """The export that a job writes."""
    stored = await jobs.read_input(tx, job, 0)
    return msgspec.json.decode(stored or b"", type=Export)


def cursor_of(stored: dict[str, object]) -> Cursor:
    """The cursor of an export, from the job's stored form."""
    return msgspec.convert(stored, Cursor) if stored else Cursor()


def stored_cursor(cursor: Cursor) -> dict[str, object]:
    """A cursor in the form that a job stores."""
    return {"stage": str(cursor.stage), "after": str(cursor.after), "begun": cursor.begun}


def total_of(export: Export) -> int | None:
    """How many nodes and relations the file will hold; None if that is not known in advance."""
    is_whole = export.selection == type(export.selection)()
    writer = FORMATS[export.format].writer
    if not is_whole or not writer.writes_facts:
        return None
    snapshot = export.snapshot
    return snapshot.entities + snapshot.facts + snapshot.relations + writer.writes_placeholders * snapshot.placeholders


def media_type_of(job: Job) -> str | None:
    """The media type of the output of an export's or import's job; None for other kinds."""
    if job.kind == IMPORT_GRAPH:
        return PROBLEMS_TYPE
    return FORMATS[job.arguments["format"]].media_type if job.kind == EXPORT_GRAPH else None


async def _graph(tx: Transaction, name: str) -> Graph:
    graph = await graphs.open_graph(tx, name)
    return await graphs.provide_graph(tx, name) if graph is None else graph
