"""/v1/graphs/{name}/deduplicate, /reindex, /reembed, /exports and /imports: start jobs of a graph."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

import anyio
from litestar import Controller
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import Meta, Struct, field

from recollect.caller import Caller, Scope
from recollect.curation.duplicates import deduplication
from recollect.graph.passages import rebuild_jobs
from recollect.jobs import service as jobs
from recollect.jobs.model import MAX_CHUNK, Job, JobBounds
from recollect.postgres.tenant_database import TenantDatabase
from recollect.transfer import exports, file_jobs
from recollect.transfer.formats import FormatName
from recollect.transfer.model import MAX_KIND, ExportSelection, Strategy
from recollect_gateway.management.guards import SCOPE_OPT, CallerRequest, mirrors, while_authenticated
from recollect_gateway.management.memory.jobs import JobBody, job_body
from recollect_gateway.management.memory.transfer import (
    UNREAD,
    Check,
    ImportOperation,
    Policy,
    ReadAs,
    Strict,
    changed_within,
    read_format,
)
from recollect_gateway.requests.idempotency import TAKES_NO_KEY
from recollect_gateway.requests.validation import valid_body
from recollect_http.fields import GraphInPath
from recollect_http.openapi.routes import post
from recollect_http.problems import RESPONSES
from recollect_http.requests.argument_types import AsOf, as_text

OfKind = Annotated[
    str,
    Meta(
        max_length=MAX_KIND,
        description="Only entities and facts of this type; null: of all types",
        examples=["person"],
    ),
]
OfTags = Annotated[
    list[Annotated[str, Meta(max_length=MAX_KIND)]],
    Meta(max_length=100, description="Only entities and facts with one of these tags; empty: all", examples=[["vip"]]),
]
ChangedSince = Annotated[
    datetime,
    Meta(
        description="Only what was last changed at or after this time, with its offset from UTC; null: all",
        examples=["2027-01-01T00:00:00Z"],
    ),
]
ChangedUntil = Annotated[
    datetime,
    Meta(description="Only what was last changed at or before this time, with its offset from UTC; null: all"),
]
ModelName = Annotated[
    str,
    Meta(min_length=1, max_length=200, description="Name of the model to embed with; null: the model of the worker"),
]
_OF_MOMENT = "Revision, or time such as 2027-01-31T12:00:00Z, as of which the graph is exported; null: now"
_STARTED = "The job that was started, or the equal job that was under way already."


class ExportFilterBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Which entities and facts to export, as in the query of `GET …/export`. Relations among them are included."""

    kind: OfKind | None = None
    tags: OfTags = []
    since: ChangedSince | None = None
    until: ChangedUntil | None = None


class StartExportBody(Struct, frozen=True, forbid_unknown_fields=True):
    """An export to start."""

    format: Annotated[FormatName, Meta(description="Format of the file")] = "json"
    filter: Annotated[ExportFilterBody | None, Meta(description="Which entities and facts to export; null: all")] = None
    raw_as_of: Annotated[AsOf, Meta(description=_OF_MOMENT)] | None = field(default=None, name="as_of")

    @property
    def as_of(self) -> str | None:
        """The revision or time to read at; None for now."""
        return as_text(self.raw_as_of)


class ReembedRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """How to embed a graph anew."""

    model: ModelName | None = None
    drop_old: Annotated[bool, Meta(description="Whether to delete the vectors of other models afterwards")] = False


@dataclass(frozen=True, slots=True)
class WantedImport:
    """An import of a file into a graph. `strategy` None: the usual one of the format. Others: as the route has them."""

    graph: str
    read_as: str
    strategy: Strategy | None = None
    strict: bool = False
    check: bool = False
    announced_bytes: int = 0


class ImportJobOperation(ImportOperation):
    """Adds the body to the OpenAPI document: it may be of any length."""

    bound: ClassVar[str] = "At most as many bytes as the tenant's jobs may still store"


class GraphJobController(Controller):
    """Start jobs of a graph."""

    path = "/graphs/{name:str}"
    tags = ("jobs",)

    @post(
        "/deduplicate",
        response_description=_STARTED,
        summary="Start a deduplication job",
        opt=mirrors("propose_duplicates"),
        status_code=202,
    )
    async def deduplicate_graph(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], name: GraphInPath
    ) -> JobBody:
        """Start a job that compares what changed since the last such job. If one is under way, that job is returned.

        `dedup` in the graph's metadata decides whether the job proposes duplicates or merges them; the default is to
        propose.
        """
        request.user.require(Scope.MEMORY_WRITE)
        async with db.transaction(request.user) as tx:
            return job_body(await deduplication.start_pass(tx, name))

    @post(
        "/reindex",
        response_description=_STARTED,
        summary="Start a reindexing job",
        opt=mirrors("reindex"),
        status_code=202,
    )
    async def reindex_graph(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], name: GraphInPath
    ) -> JobBody:
        """Start a job that rebuilds the search index of a graph. If one is under way, that job is returned."""
        request.user.require(Scope.MEMORY_WRITE)
        async with db.transaction(request.user) as tx:
            return job_body(await rebuild_jobs.start_reindex(tx, name))

    @post(
        "/reembed",
        response_description=_STARTED,
        summary="Start a re-embedding job",
        opt=mirrors("reembed"),
        status_code=202,
        before_request=valid_body(ReembedRequest, needed=False),
    )
    async def reembed_graph(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        name: GraphInPath,
        data: JSONBody[ReembedRequest | None] = None,
    ) -> JobBody:
        """Start a job that embeds a graph with another model. If an equal job is under way, that job is returned.

        Searches use the old vectors until the new ones are complete.
        """
        request.user.require(Scope.MEMORY_WRITE)
        reembed = data or ReembedRequest()
        async with db.transaction(request.user) as tx:
            return job_body(await rebuild_jobs.start_reembed(tx, name, model=reembed.model, drop_old=reembed.drop_old))

    @post(
        "/exports",
        response_description=_STARTED,
        summary="Start an export job",
        opt=mirrors("start_export") | {SCOPE_OPT: Scope.MEMORY_READ},
        status_code=202,
        before_request=valid_body(StartExportBody),
    )
    async def start_export(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        state: State,
        name: GraphInPath,
        data: JSONBody[StartExportBody],
    ) -> JobBody:
        """Start a job that exports the graph, as it is now or was at `as_of`, to a file.

        Fetch the file from `GET /v1/jobs/{id}/output`. It counts towards what the tenant's jobs may store until it is
        deleted. A credential without write access may have two such jobs at once; a further one is refused with 409
        `too_many_jobs`.
        """
        async with db.transaction(request.user) as tx:
            export = await exports.open_export(
                tx, name, data.format, selection=_selection(data.filter or ExportFilterBody()), as_of=data.as_of
            )
            return job_body(await file_jobs.start_export(tx, export, JobBounds.of(state.settings)))

    @post(
        "/imports",
        responses=RESPONSES | {415: UNREAD},
        response_description="The job that was started.",
        summary="Start an import job",
        opt=mirrors("import_graph") | TAKES_NO_KEY,
        status_code=202,
        operation_class=ImportJobOperation,
        request_max_body_size=None,  # It is bounded by what the tenant's jobs may store.
    )
    async def start_import(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        state: State,
        name: GraphInPath,
        format: ReadAs = None,
        strategy: Policy = None,
        strict: Strict = False,
        check: Check = False,
    ) -> JobBody:
        """Start a job that imports the request body step by step, each step in its own revision. Broken lines are
        skipped.

        A graph that does not exist is created, except with `check`: its job then belongs to no graph. The job's output
        lists what was not imported, as one JSON object per line. With `strict`, `strategy=fail` or `check`, the whole
        file is checked before anything is written.
        """
        request.user.require(Scope.MEMORY_WRITE)
        read_as = read_format(request, format)
        wanted = WantedImport(name, read_as, strategy, strict, check, announced_bytes(request))
        chunks = while_authenticated(request, chunks_of(request.stream()))
        return job_body(await receive_import(db, request.user, wanted, chunks, JobBounds.of(state.settings)))


async def receive_import(
    db: TenantDatabase, caller: Caller, wanted: WantedImport, chunks: AsyncIterator[bytes], bounds: JobBounds
) -> Job:
    """Store a file that is being received as the input of an import's job, and start the job.

    No transaction waits for the sender. Where the file does not come to its end, the job is cancelled.
    """
    read_as = wanted.read_as
    strategy = wanted.strategy or (Strategy.MERGE if read_as == "jsonl" else Strategy.SKIP)
    async with db.writing(caller, wanted.graph) as tx:
        await jobs.require_room_for(tx, wanted.announced_bytes, bounds)
        job = await file_jobs.create_held_import(
            tx, wanted.graph, read_as, strategy, strict=wanted.strict, check=wanted.check
        )
    try:
        async for chunk in chunks:
            await _append(db, caller, job.id, chunk, bounds)
        async with db.transaction(caller) as tx:
            return await jobs.start(tx, job.id)
    except BaseException:  # Its sender may have left.
        with anyio.CancelScope(shield=True):
            async with db.transaction(caller) as tx:
                await jobs.cancel_job(tx, job.id, bounds)
        raise


def announced_bytes(request: CallerRequest) -> int:
    """The length of the body, where the sender says it: what has no room is refused before it is sent."""
    return int(request.headers.get("content-length", 0))


async def _append(db: TenantDatabase, caller: Caller, job_id: UUID, chunk: bytes, bounds: JobBounds) -> None:
    async with db.transaction(caller) as tx:
        await jobs.append_input(tx, job_id, [chunk], bounds)


async def chunks_of(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A file in chunks of MAX_CHUNK bytes; the last may be shorter."""
    buffer = bytearray()
    async for part in parts:
        buffer += part
        while len(buffer) >= MAX_CHUNK:
            yield bytes(buffer[:MAX_CHUNK])
            del buffer[:MAX_CHUNK]
    if buffer:
        yield bytes(buffer)


def _selection(body: ExportFilterBody) -> ExportSelection:
    return ExportSelection(body.kind, tuple(body.tags), *changed_within(body.since, body.until, "filter."))
