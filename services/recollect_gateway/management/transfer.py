"""/v1/graphs/{name}/import and /export: whole graphs in and out, as the official memory server's JSON lines."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any

from litestar import Controller, Request, get, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.exceptions import ClientException
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import OpenAPIMediaType, OpenAPIType, Operation, RequestBody, Schema
from litestar.params import FromPath, QueryParameter
from litestar.response import Stream
from msgspec import Struct

from recollect.caller import Caller, Scope
from recollect.platform.db import Database
from recollect.transfer import jsonl
from recollect.transfer import service as transfer
from recollect.transfer.model import MAX_LINES, Imported, Snapshot
from recollect_gateway.errors import MEDIA_TYPE, RESPONSES, Problem

AnyRequest = Request[Caller, Any, State]
Strict = Annotated[bool, QueryParameter(description="Refuse the request whole, with 400, if one line is broken")]
AsOf = Annotated[
    str | None, QueryParameter(description="Export the graph as it was: a revision, or a time. Default: as it is")
]
Check = Annotated[bool, QueryParameter(description="Say which lines are broken and write nothing")]


NOT_LINES = ResponseSpec(Problem, description="Not JSON lines", media_type=MEDIA_TYPE, generate_examples=False)


class BrokenLineBody(Struct, frozen=True):
    """A line that was not imported; `line` counts from 1 in the request's body."""

    line: int
    reason: str


class ImportBody(Struct, frozen=True):
    """What became of the lines. `lines_skipped` said only what was known already."""

    entities_created: int
    observations_added: int
    relations_created: int
    lines_skipped: int
    errors: list[BrokenLineBody]


@dataclass
class ImportOperation(Operation):
    """Tells OpenAPI of the body, which no type of ours describes."""

    def __post_init__(self) -> None:
        """Add the body."""
        schema = Schema(type=OpenAPIType.STRING, description=f"At most {MAX_LINES} lines, each one JSON object")
        self.request_body = RequestBody(content={jsonl.MEDIA_TYPE: OpenAPIMediaType(schema=schema)}, required=True)


class TransferController(Controller):
    """Import and export a graph."""

    path = "/graphs/{name:str}"
    tags = ("transfer",)

    @post(
        "/import",
        responses=RESPONSES | {415: NOT_LINES},
        summary="Import lines into a graph",
        status_code=200,
        operation_class=ImportOperation,
    )
    async def import_lines(
        self,
        request: AnyRequest,
        db: NamedDependency[Database],
        name: FromPath[str],
        strict: Strict = False,
        check: Check = False,
    ) -> ImportBody:
        """Write the lines in one revision; broken ones are passed over and told. Importing again changes nothing more.

        The graph is made where it is not there. An entity that exists gains the observations that it lacks, and a
        relation may name entities that are not there.
        """
        request.user.require(Scope.MEMORY_WRITE)
        chunk = jsonl.read_chunk(await _body(request))
        use = transfer.check_chunk if check else transfer.import_chunk
        async with db.transaction(request.user, read_only=check) as tx:
            return _answer(await use(tx, name, chunk, strict=strict))

    @get("/export", responses=RESPONSES, summary="Export a graph", media_type=jsonl.MEDIA_TYPE)
    async def export_lines(
        self, request: AnyRequest, db: NamedDependency[Database], name: FromPath[str], as_of: AsOf = None
    ) -> Stream:
        """The graph as of one revision (Recollect-Revision): every entity, then every relation, oldest first.

        Facts are not part of this format; Recollect-Facts-Left-Out counts them. An answer that ends before its last
        chunk is not whole.
        """
        request.user.require(Scope.MEMORY_READ)
        async with db.transaction(request.user, read_only=True) as tx:
            snapshot = await transfer.open_snapshot(tx, name, as_of=as_of)
        headers = {jsonl.REVISION_HEADER: str(snapshot.revision), jsonl.FACTS_HEADER: str(snapshot.facts)}
        return Stream(_lines(db, request.user, snapshot), media_type=jsonl.MEDIA_TYPE, headers=headers)


async def _body(request: AnyRequest) -> bytes:
    if request.content_type[0] != jsonl.MEDIA_TYPE:
        raise ClientException(status_code=415, detail=f"Send the lines as Content-Type: {jsonl.MEDIA_TYPE}")
    return await request.body()


async def _lines(db: Database, caller: Caller, snapshot: Snapshot) -> AsyncIterator[bytes]:
    async for page in transfer.export_items(db, caller, snapshot):
        yield b"".join(jsonl.write_line(item) for item in page)


def _answer(imported: Imported) -> ImportBody:
    return ImportBody(
        imported.entities_created,
        imported.observations_added,
        imported.relations_created,
        imported.lines_skipped,
        [BrokenLineBody(line.number, line.reason) for line in imported.broken],
    )
