"""The tools `export_graph` and `start_export`: a graph as text, in eight formats.

A small graph is exported by the call itself, a large one by a job, which `get_job` watches and whose output it reads.
"""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.errors import TooLarge
from recollect.jobs import kinds
from recollect.jobs.model import JobBounds
from recollect.transfer import exports, file_jobs
from recollect.transfer.formats import FormatName, format_named
from recollect.transfer.model import ExportSelection
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import LongWork, ReadArguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.job_answers import JobOut, output_hint, started_job, succeeded_job
from recollect_gateway.mcp_endpoint.tools.organize.shapes import moment, organize_error
from recollect_http.requests.argument_types import Tag

MAX_PAGES = 100
"""The maximum number of steps of an export in one call. It may read 50,000 items, or 100 MB of texts: items that a
filter leaves out are read, too."""


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


class ExportedGraph(Struct, rename="camel", frozen=True):
    """Result of `export_graph`: the file, and the revision of the graph that it shows."""

    format: str
    media_type: str
    data: str
    revision: int
    facts_left_out: int


async def export_graph(call: Call, arguments: ExportGraph) -> Reply:
    """Write a small graph as text; raises TooLarge for a large one."""
    selection = _selection(arguments.filter)
    async with call.searching(arguments.graph, arguments.as_of) as view:
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
    await exports.record_export(call.db, call.caller, export)
    return _exported(arguments.format, text, export.snapshot.revision, export.facts_left_out)


EXPORT_GRAPH = ToolSpec(
    description="Return the knowledge graph as text. For a graph too large for a reply, use start_export.",
    toolsets=frozenset({"memory", "organize"}),
    result=ExportedGraph,
    handler=export_graph,
    read_only=True,
    large=True,
    render_error=organize_error,
)


async def start_export(call: Call, arguments: StartExport) -> Reply:
    """Start a job that writes a graph of any size to a file, or find an equal one under way."""
    async with call.transaction() as tx:
        name = call.graph_name(arguments.graph)
        export = await exports.open_export(
            tx, name, arguments.format, selection=_selection(arguments.filter), as_of=arguments.as_of
        )
        job = await file_jobs.start_export(tx, export, JobBounds.of(call.settings))
    return started_job(job, note=output_hint(job))


START_EXPORT = ToolSpec(
    description="Start a job that exports a graph of any size to a file. Use it where a graph is too large for "
    "export_graph. Returns the job; if an equal job is under way, that one. get_job waits for it and reads the "
    "file.",
    toolsets=frozenset({"organize", "admin"}),
    result=JobOut,
    handler=start_export,
    work=LongWork(kinds.EXPORT_GRAPH, succeeded_job),
    idempotent=True,
)


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
