"""Handlers and shapes of transfer: export of a graph as text, in eight formats, and import from four of them.

A small graph is transferred by the call itself, a large one by a job, which `get_job` watches and whose output it
reads.
"""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, structs

from recollect.errors import ErrorCode, TooLarge
from recollect.jobs import service as jobs
from recollect.jobs.model import MAX_CHUNK, Job, JobBounds
from recollect.transfer import exports, file_jobs
from recollect.transfer import service as transfer
from recollect.transfer.batches import read_small
from recollect.transfer.formats import FormatName, ReadableName, format_named
from recollect.transfer.formats.decoding import in_chunks
from recollect.transfer.model import ELSEWHERE, ExportSelection, ImportResult, Strategy
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.tools.jobs import JobOut, job_out, output_hint, started_job
from recollect_gateway.mcp_endpoint.tools.organize.shapes import moment
from recollect_http.requests.argument_types import Tag

MAX_ITEMS = 5_000
MAX_OBSERVATIONS = 20_000
"""What one call imports, at most: it is one transaction, and other writers of the graph wait for it."""
MAX_CHARACTERS = 2_000_000
SHOWN_ERRORS = 100
SHOWN_BYTES = 100_000
"""Bytes of a job's list of errors that are read for the first SHOWN_ERRORS of them, at most."""
MAX_PAGES = 100
"""Steps of an export in one call, at most: items that a filter leaves out are read too (50,000, or 100 MB of texts)."""


class ExportFilter(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """Which entities are exported, with the relations among them."""

    start_date: Annotated[str, Meta(max_length=40, description="Last changed at this time or day, or later")] | None = (
        None
    )
    end_date: Annotated[str, Meta(max_length=40, description="Last changed at this time or day, or earlier")] | None = (
        None
    )
    entity_type: Annotated[str, Meta(max_length=256, description="Of this type")] | None = None
    tags: Annotated[list[Tag], Meta(max_length=100, description="With one of these tags, ignoring case")] = []


class ExportGraph(ReadArguments, frozen=True):
    """Arguments of `export_graph`."""

    format: Annotated[
        FormatName,
        Meta(description="jsonl is the official memory server's format; json, jsonl, csv and graphml can be imported"),
    ] = "json"
    filter: ExportFilter | None = None


class StartExport(ExportGraph, frozen=True):
    """Arguments of `start_export`: those of `export_graph`."""


class ImportGraph(Arguments, frozen=True):
    """Arguments of `import_graph`."""

    files: ClassVar[frozenset[str]] = frozenset({"data"})

    format: Annotated[ReadableName, Meta(description="The format of the data")]
    data: Annotated[str, Meta(description="The text of the file, up to 2,000,000 characters")]
    merge_strategy: Annotated[
        Literal["skip", "replace", "merge", "fail"],
        Meta(description="For existing entities: leave, overwrite or add to them, or import nothing"),
    ] = "skip"
    dry_run: Annotated[bool, Meta(description="Report what would be imported, and write nothing")] = False


class ExportedGraph(Struct, rename="camel", frozen=True):
    """Result of `export_graph`: the file, and the revision of the graph that it shows."""

    format: str
    media_type: str
    data: str
    revision: int
    facts_left_out: int


class NotImported(Struct, omit_defaults=True, frozen=True):
    """Something that was not imported: where it stands in the data, and why."""

    path: str
    reason: str


class ImportedGraph(Struct, rename="camel", frozen=True):
    """Result of `import_graph`. `job`: there is too much for one call; nothing is written yet, the job does it.

    `problems` counts what cannot be imported, of which `errors` tells the first SHOWN_ERRORS.
    """

    entities_created: int
    entities_updated: int
    entities_skipped: int
    relations_created: int
    relations_updated: int
    relations_skipped: int
    facts_created: int
    facts_updated: int
    facts_skipped: int
    observations_added: int
    dry_run: bool
    problems: int
    errors: list[NotImported]
    job: JobOut | UnsetType = UNSET


async def export_graph(call: Call, arguments: ExportGraph) -> Reply:
    """Write a small graph as text; raises TooLarge for a large one."""
    selection = _selection(arguments.filter)
    async with call.reading(arguments.graph, arguments.as_of) as view:
        if not view.is_there:
            return _exported(arguments.format, exports.empty(arguments.format), 0, 0)
        export = await exports.export_of(view, arguments.format, selection=selection)
        item_count = export.snapshot.entities + export.snapshot.relations
        text = None
        if selection != ExportSelection() or item_count <= call.settings.max_reply_items:
            max_bytes = call.settings.max_reply_bytes - 1_000
            text = await exports.export_whole(view.tx, export, max_bytes=max_bytes, max_pages=MAX_PAGES)
    if text is None:
        name = call.graph_name(arguments.graph)
        raise TooLarge(
            "The graph is too large for one reply. Narrow the filter, or call start_export with the same arguments "
            f"(toolsets organize and admin). Outside MCP, use `recollect export --graph {name} --format "
            f"{arguments.format}` or GET /v1/graphs/{name}/export?format={arguments.format}"
        )
    await exports.record_export(call.services.db, call.caller, export)
    return _exported(arguments.format, text, export.snapshot.revision, export.facts_left_out)


async def start_export(call: Call, arguments: StartExport) -> Reply:
    """Start a job that writes a graph of any size to a file, or find an equal one under way."""
    async with call.transaction() as tx:
        name = call.graph_name(arguments.graph)
        export = await exports.open_export(
            tx, name, arguments.format, selection=_selection(arguments.filter), as_of=arguments.as_of
        )
        job = await file_jobs.start_export(tx, export, JobBounds.of(call.settings))
    return started_job(job, note=output_hint(job))


async def import_graph(call: Call, arguments: ImportGraph) -> Reply:
    """Import a file, or nothing of it where an item is broken; a large file is imported by a job."""
    if len(arguments.data) > MAX_CHARACTERS:
        message = f"More than {MAX_CHARACTERS} characters. {ELSEWHERE}"
        raise TooLarge(message, code=ErrorCode.REQUEST_TOO_LARGE, path="data")
    try:
        reading = read_small(
            arguments.format, list(in_chunks(arguments.data)), max_items=MAX_ITEMS, max_observations=MAX_OBSERVATIONS
        )
        items, problems = await call.compute(reading, advice=ELSEWHERE)
    except TooLarge as error:
        if error.code is not ErrorCode.REQUEST_TOO_LARGE:
            raise
        return await _start_import(call, arguments)
    if not arguments.dry_run:
        transfer.require_sound(problems, field="data")
    result = ImportResult(problems=tuple(problems))
    async with call.writing(arguments.graph, commit=not arguments.dry_run) as (tx, revision):
        result += await transfer.import_items(tx, revision, items, Strategy(arguments.merge_strategy))
        if not arguments.dry_run:
            transfer.require_sound(result.problems, field="data")
        await transfer.record_import(tx, revision.graph.name, arguments.format)
    return Reply(_imported_graph(result, arguments.dry_run))


async def _start_import(call: Call, arguments: ImportGraph) -> Reply:
    """Start a job that imports the file in batches; it looks for broken items before it writes the first batch."""
    bounds, strategy = JobBounds.of(call.settings), Strategy(arguments.merge_strategy)
    chunks = list(in_chunks(arguments.data, MAX_CHUNK // 4))  # a character takes four bytes at most
    async with call.changing(arguments.graph) as tx:
        name = call.graph_name(arguments.graph)
        job = await file_jobs.hold_import(
            tx, name, arguments.format, strategy, strict=not arguments.dry_run, check=arguments.dry_run
        )
        await jobs.append_input(tx, job.id, chunks, bounds)
        job = await jobs.start(tx, job.id)
    result = structs.replace(_imported_graph(ImportResult(), arguments.dry_run), job=job_out(job))
    return Reply(result, note=output_hint(job), job=job)


async def imported(call: Call, job: Job) -> Reply:
    """The result of an import's job, with the first items that were not imported."""
    async with call.transaction() as tx:
        output = await jobs.read_output_piece(tx, job, 0, SHOWN_BYTES)
    lines = output[: output.rfind(b"\n") + 1].splitlines()[:SHOWN_ERRORS]
    items = [msgspec.json.decode(line, type=NotImported) for line in lines]
    errors = [structs.replace(item, path=f"data.{item.path}") for item in items]
    counts = {name: count for name, count in (job.result or {}).items() if name in ImportedGraph.__struct_fields__}
    fields = {**counts, "dry_run": bool(job.arguments.get("check"))}
    return Reply(ImportedGraph(**fields, errors=errors))


def _selection(filter_: ExportFilter | None) -> ExportSelection:
    if filter_ is None:
        return ExportSelection()
    since = moment(filter_.start_date, "filter.startDate")
    until = moment(filter_.end_date, "filter.endDate", last=True)
    return ExportSelection(filter_.entity_type, tuple(filter_.tags), since, until)


def _exported(format_name: str, text: str, revision: int, facts: int) -> Reply:
    media_type = format_named(format_name).media_type
    left_out = "1 fact was" if facts == 1 else f"{facts} facts were"
    note = f"{left_out} left out: this format can hold entities only." if facts else None
    return Reply(ExportedGraph(format_name, media_type, text, revision, facts), text, note)


def _imported_graph(result: ImportResult, dry_run: bool) -> ImportedGraph:
    names = (name for name in ImportedGraph.__struct_fields__ if name != "problems")
    counts = {name: getattr(result, name) for name in names if hasattr(result, name)}
    errors = [NotImported(f"data.{problem.where}", problem.reason) for problem in result.problems[:SHOWN_ERRORS]]
    return ImportedGraph(**counts, dry_run=dry_run, problems=len(result.problems), errors=errors)
