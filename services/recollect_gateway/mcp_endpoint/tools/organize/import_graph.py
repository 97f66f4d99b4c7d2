"""The tool `import_graph`: a file of one of four formats. A large one is imported by a job, which `get_job` watches."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, structs

from recollect.errors import ErrorCode, TooLarge
from recollect.jobs import kinds
from recollect.jobs import service as jobs
from recollect.jobs.model import MAX_CHUNK, Job, JobBounds
from recollect.transfer import file_jobs
from recollect.transfer import service as transfer
from recollect.transfer.batches import read_small
from recollect.transfer.formats import ReadableName
from recollect.transfer.formats.decoding import in_chunks
from recollect.transfer.model import TOO_LARGE_ADVICE, ImportResult, Strategy
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, LongWork, Reply
from recollect_gateway.mcp_endpoint.tools.job_answers import JobOut, job_out, output_hint
from recollect_gateway.mcp_endpoint.tools.organize.shapes import organize_tool

MAX_ITEMS = 5_000
MAX_OBSERVATIONS = 20_000
"""The maximum size of what one call imports: it is one transaction, for which other writers of the graph wait."""
MAX_CHARACTERS = 2_000_000
SHOWN_ERRORS = 100
SHOWN_BYTES = 100_000
"""The maximum number of bytes of a job's list of errors that are read to show the first SHOWN_ERRORS."""


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


class NotImported(Struct, omit_defaults=True, frozen=True):
    """An item that was not imported: where it stands in the data, and the reason."""

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


async def import_graph(call: Call, arguments: ImportGraph) -> Reply:
    """Import a file, or nothing of it where an item is broken; a large file is imported by a job."""
    if len(arguments.data) > MAX_CHARACTERS:
        message = f"More than {MAX_CHARACTERS} characters. {TOO_LARGE_ADVICE}"
        raise TooLarge(message, code=ErrorCode.REQUEST_TOO_LARGE, path="data")
    try:
        reading = read_small(
            arguments.format, list(in_chunks(arguments.data)), max_items=MAX_ITEMS, max_observations=MAX_OBSERVATIONS
        )
        items, problems = await call.compute(reading, advice=TOO_LARGE_ADVICE)
    except TooLarge as error:
        if error.code is not ErrorCode.REQUEST_TOO_LARGE:
            raise
        return await _start_import(call, arguments)
    if not arguments.dry_run:
        transfer.require_sound(problems, field="data")
    result = ImportResult(problems=tuple(problems))
    async with call.writing(arguments.graph, commit=not arguments.dry_run) as (tx, revision):
        result += await transfer.import_items(tx, revision, items, Strategy(arguments.merge_strategy), is_call=True)
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
        job = await file_jobs.create_held_import(
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


IMPORT_GRAPH = organize_tool(
    description="Import entities, their observations and relations from json, jsonl, csv or graphml. If the data "
    "is too much for one call, a job imports it, and the job is returned.",
    result=ImportedGraph,
    handler=import_graph,
    work=LongWork(kinds.IMPORT_GRAPH, imported),
    destructive=True,
    idempotent=True,
)


def _imported_graph(result: ImportResult, dry_run: bool) -> ImportedGraph:
    names = (name for name in ImportedGraph.__struct_fields__ if name != "problems")
    counts = {name: getattr(result, name) for name in names if hasattr(result, name)}
    errors = [NotImported(f"data.{problem.where}", problem.reason) for problem in result.problems[:SHOWN_ERRORS]]
    return ImportedGraph(**counts, dry_run=dry_run, problems=len(result.problems), errors=errors)
