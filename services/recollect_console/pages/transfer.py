"""Import and export: a file into a graph, tried first, and a graph into a file."""

from collections.abc import AsyncIterator
from pathlib import PurePath
from typing import Annotated, Literal, get_args

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import QueryParameter
from litestar.response import Redirect, Stream

from recollect.errors import InvalidInput
from recollect.jobs.model import JobBounds
from recollect.transfer import exports, file_jobs
from recollect.transfer.formats import FORMATS, IMPORTED, FormatName, ImportName, format_named
from recollect.transfer.model import Strategy
from recollect_console.access import FILE, READS, while_member
from recollect_console.pages.jobs import file_headers
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_gateway.management.memory.graph_jobs import WantedImport, announced_bytes, chunks_of, receive_import
from recollect_http.requests import AnyRequest

MAX_NAME = 255
"""Characters of the name of a file."""

Written = Annotated[FormatName, QueryParameter()]
ReadAs = Annotated[Literal["", ImportName], QueryParameter()]
Policy = Annotated[Literal["", "skip", "replace", "merge", "fail"], QueryParameter()]
Mode = Annotated[Literal["check", "import"], QueryParameter()]
FileName = Annotated[str, QueryParameter(max_length=MAX_NAME)]
MediaType = Annotated[str, QueryParameter(max_length=MAX_NAME)]

_BY_SUFFIX = {suffix: name for name in IMPORTED for suffix in FORMATS[name].suffixes} | {".xml": "graphml"}
_BY_TYPE = {FORMATS[name].media_type: name for name in IMPORTED} | {"application/xml": "graphml", "text/xml": "graphml"}


class TransferPages(Controller):
    """Files in and out of a graph."""

    path = "/transfer"

    @get("/")
    async def show(self, visit: NamedDependency[Visit]) -> Response[str]:
        """The forms for both."""
        return await _page(visit)

    @post("/import", opt={FILE: True}, status_code=200)
    async def import_form(self, visit: NamedDependency[Visit]) -> Response[str] | Redirect:
        """Try or import the file of a form. Larger files than a form may have are sent by scripts."""
        sent = visit.files.get("file")
        try:
            if sent is None:
                raise InvalidInput("Choose a file first", path="file")
            wanted = _wanted(
                visit,
                sent.name,
                sent.media_type,
                format=visit.value("format"),
                strategy=visit.value("strategy"),
                mode="import" if visit.value("mode") == "import" else "check",
                size=len(sent.content),
            )
        except InvalidInput as error:
            return await _page(visit, fault=error.message, status=400)
        bounds = JobBounds.of(visit.services.settings)
        job = await receive_import(visit.db, visit.caller, wanted, chunks_of(_parts(sent.content)), bounds)
        return visit.go(f"jobs/{job.id}", done="started")

    @post("/file", request_max_body_size=None, status_code=202)  # Bounded by what the tenant's jobs may store.
    async def import_file(
        self,
        request: AnyRequest,
        visit: NamedDependency[Visit],
        name: FileName = "",
        type: MediaType = "",
        format: ReadAs = "",
        strategy: Policy = "",
        mode: Mode = "check",
    ) -> dict[str, str]:
        """Try or import a file that is the whole body. Answers where its job is to be seen."""
        wanted = _wanted(visit, name, type, format=format, strategy=strategy, mode=mode, size=announced_bytes(request))
        chunks = while_member(visit, chunks_of(request.stream()))
        bounds = JobBounds.of(visit.services.settings)
        job = await receive_import(visit.db, visit.caller, wanted, chunks, bounds)
        return {"job": visit.address(f"jobs/{job.id}")}

    @get("/export")
    async def download(self, visit: NamedDependency[Visit], format: Written = "json") -> Stream:
        """The graph as a file, as it is or was."""
        db = visit.db
        async with visit.reading_tenant() as tx:
            export = await exports.open_export(tx, visit.graph, format, as_of=visit.as_of)
        await exports.record_export(db, visit.caller, export)
        file_format = format_named(format)
        parts = while_member(visit, exports.export_chunks(db, visit.caller, export))
        name = f"{visit.graph_name}-{export.snapshot.revision}{file_format.suffixes[0]}"
        return Stream(parts, media_type=file_format.media_type, headers=file_headers(name))

    @post("/export", opt=READS)
    async def start_export(self, visit: NamedDependency[Visit]) -> Redirect:
        """Start a job that writes the graph to a file."""
        bounds = JobBounds.of(visit.services.settings)
        async with visit.changing_tenant() as tx:
            export = await exports.open_export(tx, visit.graph, visit.value("format") or "json")
            job = await file_jobs.start_export(tx, export, bounds)
        return visit.go(f"jobs/{job.id}", done="started")


async def _page(visit: Visit, *, status: int = 200, fault: str = "") -> Response[str]:
    async with visit.reading_tenant():
        pass
    names = ("format", "strategy", "mode")
    return render(
        visit,
        "transfer/show.html",
        status=status,
        fault=fault,
        entered={name: visit.value(name) for name in names},
        formats=[("", "By the name of the file"), *((name, name) for name in get_args(ImportName))],
        written=[(name, name) for name in FORMATS],
        suffixes=",".join(_BY_SUFFIX),
    )


def _wanted(
    visit: Visit, name: str, media_type: str, *, format: str, strategy: str, mode: str, size: int
) -> WantedImport:
    """The import that is asked for. Raises InvalidInput for a format that is unknown, or not to be told."""
    read_as = format or _format_of(name, media_type)
    if read_as not in get_args(ImportName):
        raise InvalidInput(
            f"The name of the file does not tell its format. Choose one: {', '.join(get_args(ImportName))}"
        )
    if strategy not in ("", *Strategy):
        raise InvalidInput(f"What is there already is treated by one of {', '.join(Strategy)}", path="strategy")
    policy = Strategy(strategy) if strategy else None
    return WantedImport(visit.graph, read_as, policy, check=mode != "import", announced_bytes=size)


def _format_of(name: str, media_type: str) -> str:
    suffix = PurePath(name).suffix.lower()
    return _BY_SUFFIX.get(suffix) or _BY_TYPE.get(media_type.partition(";")[0].strip().lower(), "")


async def _parts(content: bytes) -> AsyncIterator[bytes]:
    yield content
