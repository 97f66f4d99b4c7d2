"""Exports and imports of any size as jobs: how they are started. The worker does their steps.

What is exported holds words of whoever asked (a type, tags): it is kept as the job's input, and goes when the job ends.
"""

from dataclasses import replace

import msgspec

from recollect.errors import InvalidInput
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph
from recollect.jobs import service as jobs
from recollect.jobs.kinds import EXPORT_GRAPH, IMPORT_GRAPH
from recollect.jobs.model import Job, JobBounds, NewJob
from recollect.platform.db import Transaction
from recollect.transfer.exports import Cursor, Export
from recollect.transfer.formats import FORMATS, IMPORTED
from recollect.transfer.model import PROBLEMS_TYPE, Strategy

FILES = frozenset({EXPORT_GRAPH, IMPORT_GRAPH})
"""The kinds that leave a file in any case: of a graph that holds nothing, or of no problems, it may be empty."""


async def start_export(tx: Transaction, export: Export, bounds: JobBounds) -> Job:
    """Start a job that writes a graph to a file, in the state that the graph has now (or had, `as_of`).

    Where one of the same revision, format and filter is under way, that one. Raises Forbidden,
    Conflict for too many jobs, TooLarge where jobs store too much already.
    """
    arguments = {"format": export.format, "revision": export.snapshot.revision}
    asked = msgspec.json.encode(replace(export.only, tags=tuple(sorted({tag.casefold() for tag in export.only.tags}))))
    new = NewJob(EXPORT_GRAPH, export.snapshot.graph_id, arguments, total=total_of(export), held=True, asked=asked)
    job = await jobs.schedule(tx, new)
    if job.input_bytes:
        return job
    await jobs.append_input(tx, job.id, [msgspec.json.encode(export)], bounds)
    return await jobs.start(tx, job.id)


async def hold_import(
    tx: Transaction,
    graph_name: str,
    format_name: str,
    strategy: Strategy,
    *,
    strict: bool = False,
    check: bool = False,
) -> Job:
    """Make the job of an import, which waits for its input (`jobs.append_input`, `jobs.start`).

    `check`: a dry run; where the graph is not there it is a job of none, and tells what would become of an empty one.
    `strict`: nothing is imported where something of the file is broken. Else the graph is made where it is not there.
    Raises Forbidden, Conflict for too many jobs, InvalidInput for a format that cannot be read.
    """
    if format_name not in IMPORTED:
        raise InvalidInput(f"This format cannot be imported. Those that can: {', '.join(IMPORTED)}", path="format")
    graph = await (graphs.open_graph if check else _graph)(tx, graph_name)
    arguments: dict[str, object] = {"format": format_name, "strategy": str(strategy)}
    arguments |= {name: True for name, given in (("strict", strict), ("check", check)) if given}
    return await jobs.schedule(tx, NewJob(IMPORT_GRAPH, graph.id if graph else None, arguments, held=True))


def needs_dry_run(job: Job) -> bool:
    """Whether an import's file is gone through once before anything of it is written."""
    asked = job.arguments
    return bool(asked.get("check") or asked.get("strict") or asked["strategy"] == Strategy.FAIL)


async def read_export(tx: Transaction, job: Job) -> Export:
    """What an export's job is to write."""
    described = await jobs.read_input(tx, job, 0)
    return msgspec.json.decode(described or b"", type=Export)


def cursor_of(stored: dict[str, object]) -> Cursor:
    """Where an export's next step begins, as its job keeps it."""
    return msgspec.convert(stored, Cursor) if stored else Cursor()


def stored_cursor(cursor: Cursor) -> dict[str, object]:
    """A cursor as a job keeps it."""
    return {"stage": str(cursor.stage), "after": str(cursor.after), "begun": cursor.begun}


def total_of(export: Export) -> int | None:
    """How many nodes and relations the file will hold; None where that is not known before."""
    whole = export.only == type(export.only)()
    writer = FORMATS[export.format].writer
    if not whole or not writer.holds_facts:
        return None
    snapshot = export.snapshot
    return snapshot.entities + snapshot.facts + snapshot.relations + writer.holds_placeholders * snapshot.placeholders


def media_type_of(job: Job) -> str | None:
    """The type of what a job of transfer left to be fetched; None for one of another kind."""
    if job.kind == IMPORT_GRAPH:
        return PROBLEMS_TYPE
    return FORMATS[job.arguments["format"]].media_type if job.kind == EXPORT_GRAPH else None


async def _graph(tx: Transaction, name: str) -> Graph:
    graph = await graphs.open_graph(tx, name)
    return await graphs.provide_graph(tx, name) if graph is None else graph
