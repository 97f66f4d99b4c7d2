"""/v1/graphs/{name}/import and /export: whole graphs in and out, in each of the formats."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar

from litestar import Controller
from litestar.di import NamedDependency
from litestar.exceptions import ClientException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import OpenAPIMediaType, OpenAPIResponse, OpenAPIType, Operation, RequestBody, Schema
from litestar.params import QueryParameter
from litestar.response import Stream
from msgspec import Meta, Struct

from recollect.caller import Scope
from recollect.errors import ErrorCode, InvalidInput, TooLarge
from recollect.postgres.tenant_database import TenantDatabase
from recollect.times import NEEDED
from recollect.transfer import exports
from recollect.transfer import service as transfer
from recollect.transfer.batches import read_small
from recollect.transfer.formats import FORMATS, IMPORTED, FormatName, ImportName, format_named
from recollect.transfer.model import (
    FACTS_HEADER,
    MAX_LINES,
    MAX_OBSERVATIONS,
    REVISION_HEADER,
    TOO_LARGE_ADVICE,
    ExportSelection,
    ImportResult,
    Strategy,
)
from recollect_gateway.calls import Call, Services
from recollect_gateway.management.guards import CallerRequest, mirrors, while_authenticated
from recollect_gateway.management.memory.times import require_written_times
from recollect_http.fields import GraphInPath
from recollect_http.openapi.headers import header_of
from recollect_http.openapi.routes import get, post
from recollect_http.problems import ACT_RESPONSES, MEDIA_TYPE, Problem
from recollect_http.requests.parsing import check_text, utc, utc_through

FORM = "application/x-www-form-urlencoded"
Strict = Annotated[bool, QueryParameter(description="Refuse the whole request with 400 if any line is broken")]
AsOf = Annotated[
    str | None, QueryParameter(description="Export the graph as of this revision or time. Default: its current state")
]
Check = Annotated[bool, QueryParameter(description="Report what would be imported, and write nothing")]
Written = Annotated[FormatName, QueryParameter(description="The format to write")]
ReadAs = Annotated[
    ImportName | None,
    QueryParameter(
        description="The format of the body; `mem0` and `zep` are exports of those systems. Default: that of the "
        "Content-Type"
    ),
]
Policy = Annotated[
    Strategy | None,
    QueryParameter(
        description="What to do with entities and facts that exist already: `skip`, `replace`, `merge`, or `fail` with "
        "409. Default: `merge` for JSON lines, otherwise `skip`"
    ),
]
Kind = Annotated[str | None, QueryParameter(description="Only entities and facts of this type")]
AnyTag = Annotated[
    list[str] | None, QueryParameter(description="Only those with this tag; repeat the parameter to allow several")
]
Since = Annotated[datetime | None, QueryParameter(description="Only those last changed at or after this time")]
Until = Annotated[datetime | None, QueryParameter(description="Only those last changed at or before this time")]

UNREAD = ResponseSpec(
    Problem, description="The format is not supported.", media_type=MEDIA_TYPE, generate_examples=False
)

_BY_TYPE = {FORMATS[name].media_type: name for name in IMPORTED} | {"application/xml": "graphml", "text/xml": "graphml"}


class BrokenLineBody(Struct, omit_defaults=True, frozen=True):
    """An item, or a part of one, that was not imported."""

    reason: Annotated[str, Meta(description="Why it was not imported")]
    line: Annotated[int | None, Meta(description="Line of the body, from 1; omitted if the format has no lines")] = None
    path: Annotated[
        str | None,
        Meta(description="Place in the line or the body, such as `observations.1`; omitted: the whole line"),
    ] = None


class ImportBody(Struct, frozen=True):
    """The result of an import or, with `check`, what it would be."""

    entities_created: Annotated[int, Meta(description="Number of new entities")]
    entities_updated: Annotated[int, Meta(description="Number of existing entities that changed")]
    entities_skipped: Annotated[int, Meta(description="Number of existing entities that stayed as they were")]
    observations_added: Annotated[int, Meta(description="Number of new observations")]
    facts_created: Annotated[int, Meta(description="Number of new facts")]
    facts_updated: Annotated[int, Meta(description="Number of existing facts that changed")]
    facts_skipped: Annotated[int, Meta(description="Number of existing facts that stayed as they were")]
    relations_created: Annotated[int, Meta(description="Number of new relations")]
    relations_updated: Annotated[int, Meta(description="Number of existing relations that changed")]
    relations_skipped: Annotated[int, Meta(description="Number of existing relations that stayed as they were")]
    lines_skipped: Annotated[int, Meta(description="Number of entities, facts and relations that changed nothing")]
    problems: Annotated[int, Meta(description="Number of entries of `errors`")]
    errors: Annotated[list[BrokenLineBody], Meta(description="Items, and parts of items, that were not imported")]


@dataclass
class ImportOperation(Operation):
    """Adds the body to the OpenAPI document: no Python type describes it."""

    bound: ClassVar[str] = f"At most {MAX_LINES} lines, or entities, facts and relations"

    def __post_init__(self) -> None:
        """Add the body."""
        content = file_content((FORMATS[name].media_type for name in IMPORTED), self.bound)
        self.request_body = RequestBody(content=content, required=True)


def file_content(media_types: Iterable[str], description: str) -> dict[str, OpenAPIMediaType]:
    """The OpenAPI content of files of these types: JSON is an object, anything else is text."""
    return {
        media_type: OpenAPIMediaType(
            schema=Schema(
                type=OpenAPIType.OBJECT if media_type == "application/json" else OpenAPIType.STRING,
                additional_properties=True if media_type == "application/json" else None,
                description=description,
            )
        )
        for media_type in media_types
    }


_EXPORT_HEADERS = {
    REVISION_HEADER: header_of(OpenAPIType.INTEGER, "Revision of the graph that the file holds", 17),
    FACTS_HEADER: header_of(OpenAPIType.INTEGER, "Number of facts that the format cannot hold", 0),
}


@dataclass
class ExportOperation(Operation):
    """Adds the headers and media types of the answer to the OpenAPI document: the types depend on the format."""

    def __post_init__(self) -> None:
        """Add the headers and media types."""
        answer = (self.responses or {}).get("200")
        if isinstance(answer, OpenAPIResponse):
            media_types = [file_format.media_type for file_format in FORMATS.values()]
            answer.content = file_content(media_types, "The graph in the requested format")
            answer.headers = dict(_EXPORT_HEADERS)


class TransferController(Controller):
    """Import and export a graph."""

    path = "/graphs/{name:str}"
    tags = ("transfer",)

    @post(
        "/import",
        responses=ACT_RESPONSES | {415: UNREAD},
        response_description="The counts of what was imported, and what was not.",
        summary="Import into a graph",
        opt=mirrors("import_graph"),
        status_code=200,
        operation_class=ImportOperation,
    )
    async def import_graph(
        self,
        request: CallerRequest,
        services: NamedDependency[Services],
        name: GraphInPath,
        format: ReadAs = None,
        strategy: Policy = None,
        strict: Strict = False,
        check: Check = False,
    ) -> ImportBody:
        """Import the request body in one revision. Broken lines are skipped and reported.

        A graph that does not exist is created. Relations may name entities that do not exist. Importing the same body
        again with `skip` or `merge` changes nothing.
        """
        request.user.require(Scope.MEMORY_WRITE)
        read_as = read_format(request, format)
        if strategy is None:
            strategy = Strategy.MERGE if read_as == "jsonl" else Strategy.SKIP
        call = Call(request.user, services, "import")
        return await _import(call, name, await _body(request), read_as, strategy, strict, check)

    @get(
        "/export",
        response_description="The graph as a file in the requested format.",
        summary="Export a graph",
        opt=mirrors("export_graph"),
        operation_class=ExportOperation,
    )
    async def export_graph(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        name: GraphInPath,
        format: Written = "jsonl",
        as_of: AsOf = None,
        kind: Kind = None,
        tag: AnyTag = None,
        since: Since = None,
        until: Until = None,
    ) -> Stream:
        """Export a graph as of one revision: every entity, then every relation, oldest first.

        The header `Recollect-Revision` holds the revision, and `Recollect-Facts-Left-Out` the number of facts that the
        format cannot hold. A response that ends before its last chunk is incomplete.
        """
        request.user.require(Scope.MEMORY_READ)
        check_text({"kind": kind, "tag": tag})
        require_written_times(request, "since", "until")
        selection = ExportSelection(kind, tuple(tag or ()), *changed_within(since, until))
        async with db.transaction(request.user, read_only=True) as tx:
            export = await exports.open_export(tx, name, format, selection=selection, as_of=as_of)
        await exports.record_export(db, request.user, export)
        headers = {
            REVISION_HEADER: str(export.snapshot.revision),
            FACTS_HEADER: str(export.facts_left_out),
            # The body is text for programs: browsers must not guess another type.
            "X-Content-Type-Options": "nosniff",
        }
        media_type = format_named(format).media_type
        parts = while_authenticated(request, exports.export_chunks(db, request.user, export))
        return Stream(parts, media_type=media_type, headers=headers)


def read_format(request: CallerRequest, format: str | None) -> str:
    """The format of a request's body: `format` if given, else the one of its type. Raises 415 for other types.

    Where a format is given, the type of a form is ignored: curl sends it with any body.
    """
    content_type = request.content_type[0]
    if format is not None and content_type == FORM:
        return format
    if content_type not in _BY_TYPE:
        raise ClientException(status_code=415, detail=f"Send it as Content-Type: {', '.join(_BY_TYPE)}")
    return format or _BY_TYPE[content_type]


def changed_within(since: datetime | None, until: datetime | None, path: str = "") -> tuple[datetime | None, ...]:
    """Both times in UTC, the second through its millisecond.

    Raises InvalidInput for a time without an offset, or outside the calendar; `path` is the prefix of their names.
    """
    for name, time in (("since", since), ("until", until)):
        if time is not None and time.tzinfo is None:
            raise InvalidInput(NEEDED, path=f"{path}{name}")
    return utc(since, f"{path}since"), utc_through(until, f"{path}until")


async def _body(request: CallerRequest) -> bytes:
    """The request's body; raises TooLarge, which names the alternative, for one longer than any request may be."""
    try:
        return await request.body()
    except RequestEntityTooLarge:
        message = f"The body is larger than a request may be. {TOO_LARGE_ADVICE}"
        raise TooLarge(message, code=ErrorCode.REQUEST_TOO_LARGE) from None


async def _import(
    call: Call, name: str, body: bytes, read_as: str, strategy: Strategy, strict: bool, check: bool
) -> ImportBody:
    reading = read_small(read_as, [body], max_items=MAX_LINES, max_observations=MAX_OBSERVATIONS)
    items, problems = await call.compute(reading, advice=TOO_LARGE_ADVICE)
    async with call.changing(name, commit=not check) as tx:
        if strict:
            transfer.require_sound(problems)
        imported = await transfer.import_batch(tx, name, items, strategy)
        if strict:
            transfer.require_sound(imported.problems)
        await transfer.record_import(tx, name, read_as)
    return _answer(ImportResult(problems=tuple(problems)) + imported)


def _answer(imported: ImportResult) -> ImportBody:
    counts = {
        field: getattr(imported, field)
        for field in ImportBody.__struct_fields__
        if field not in ("lines_skipped", "problems", "errors")
    }
    errors = [_error(problem.where, problem.reason) for problem in imported.problems]
    errors.sort(key=lambda error: error.line or 0)
    return ImportBody(**counts, lines_skipped=imported.skipped, problems=len(errors), errors=errors)


def _error(where: str, reason: str) -> BrokenLineBody:
    line, _, path = where.removeprefix("line ").partition(".")
    if where.startswith("line ") and line.isdecimal():
        return BrokenLineBody(reason, int(line), path or None)
    return BrokenLineBody(reason, path=where)
