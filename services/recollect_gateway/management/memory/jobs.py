"""/v1/jobs: the tenant's jobs, and their outputs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, get_args

from litestar import Controller, Response
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.openapi.spec import OpenAPIResponse, Operation
from litestar.params import QueryParameter
from litestar.response import Stream
from msgspec import Meta, Struct

from recollect.caller import Scope
from recollect.graph.graphs import service as graphs
from recollect.jobs import service as jobs
from recollect.jobs.kinds import KINDS, known_kind
from recollect.jobs.model import Job, JobBounds, JobFilter, Status
from recollect.postgres.tenant_database import TenantDatabase
from recollect.transfer import file_jobs
from recollect.transfer.formats import FORMATS
from recollect_gateway.management.guards import SCOPE_OPT, CallerRequest, mirrors, while_authenticated
from recollect_gateway.management.memory.transfer import file_content
from recollect_http.fields import CreatedAt, CreatedBy, JobInPath
from recollect_http.openapi.headers import DISPOSITION, disposition_of
from recollect_http.openapi.routes import delete, get, post
from recollect_http.pages import IdCursor, Limit, Page, page_of
from recollect_http.preconditions import tagged
from recollect_http.problems import TAGGED_RESPONSES
from recollect_http.requests.argument_types import GRAPH_NAME

GraphFilter = Annotated[str | None, QueryParameter(pattern=GRAPH_NAME, description="Only jobs of this graph")]
KindFilter = Annotated[str | None, QueryParameter(description="Only jobs of this kind")]
StatusFilter = Annotated[Status | None, QueryParameter(description="Only jobs with this status")]
_KINDS = ", ".join(f"`{kind}`" for kind in KINDS)
_STATUSES = ", ".join(f"`{status}`" for status in get_args(Status))

OUTPUT = "application/octet-stream"


@dataclass
class OutputOperation(Operation):
    """Adds to the OpenAPI document that the answer is a file, whose media type depends on the kind of job."""

    def __post_init__(self) -> None:
        """Add the media types and the header."""
        answer = (self.responses or {}).get("200")
        if isinstance(answer, OpenAPIResponse):
            media_types = [OUTPUT, *sorted({file_format.media_type for file_format in FORMATS.values()})]
            answer.content = file_content(media_types, "The job's output")
            answer.headers = {DISPOSITION: disposition_of("01a2068b-5dd1-71c8-851c-a9dd347e9017")}


class JobErrorBody(Struct, frozen=True):
    """Why a job failed or, while it is running, why its current step has to be tried again."""

    code: Annotated[str, Meta(description="Stable code for programs, as in `Problem`")]
    message: Annotated[str, Meta(description="Sentence for people, without stored text")]


class JobBody(Struct, frozen=True):
    """A job: work that a worker does in steps."""

    id: Annotated[str, Meta(description="Id of the job, a UUID")]
    kind: Annotated[str, Meta(description=f"Kind of job: {_KINDS}")]
    graph: Annotated[str | None, Meta(description="Name of its graph; null: it belongs to no graph")]
    status: Annotated[str, Meta(description=f"{_STATUSES}; the last three are final")]
    done: Annotated[int, Meta(description="Progress in the unit of its kind, such as nodes and relations")]
    total: Annotated[int | None, Meta(description="Value of `done` at the end, in the same unit; null: not known")]
    result: Annotated[
        dict[str, Any] | None,
        Meta(description="Result in numbers and ids, which depends on the kind; null: the job has not succeeded"),
    ]
    error: Annotated[JobErrorBody | None, Meta(description="Error of the last step; null: none")]
    cancel_requested: Annotated[bool, Meta(description="Whether somebody has cancelled the job")]
    output_bytes: Annotated[int, Meta(description="Length of the output so far, in bytes")]
    created_by: CreatedBy
    created_at: CreatedAt
    started_at: Annotated[datetime | None, Meta(description="Time at which a worker began it; null: not yet")]
    finished_at: Annotated[datetime | None, Meta(description="Time at which it ended; null: not yet")]
    expires_at: Annotated[
        datetime | None, Meta(description="Time at which the job is deleted with its output; null: it has not ended")
    ]
    output_deleted: Annotated[bool, Meta(description="Whether the output was deleted before the job")]


class JobController(Controller):
    """List, read and cancel jobs, and fetch and delete their outputs."""

    path = "/jobs"
    tags = ("jobs",)

    @get("/", response_description="A page of jobs.", summary="List jobs", opt=mirrors("list_jobs"))
    async def list_jobs(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        graph: GraphFilter = None,
        kind: KindFilter = None,
        status: StatusFilter = None,
        cursor: IdCursor = None,
        limit: Limit = 50,
    ) -> Page[JobBody]:
        """List the jobs of the graphs that the credential may access, newest first."""
        request.user.require(Scope.MEMORY_READ)
        async with db.transaction(request.user, read_only=True) as tx:
            graph_id = None if graph is None else (await graphs.get_graph(tx, graph)).id
            filters = JobFilter(graph_id, known_kind(kind), status)
            found = await jobs.list_jobs(tx, filters, before=cursor, limit=limit + 1)
        return page_of(found, limit, job_body, lambda job: str(job.id))

    @get(
        "/{job_id:uuid}",
        responses=TAGGED_RESPONSES,
        response_description="The job, with its progress and result.",
        summary="Get a job",
        opt=mirrors("get_job"),
    )
    async def get_job(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], job_id: JobInPath
    ) -> Response[JobBody]:
        """Return a job's progress and result. Use the ETag to fetch it again only when it has changed."""
        request.user.require(Scope.MEMORY_READ)
        async with db.transaction(request.user, read_only=True) as tx:
            return tagged(request, job_body(await jobs.get_job(tx, job_id)))

    @post(
        "/{job_id:uuid}/cancel",
        response_description="The job, which is cancelled now, or will be after its current step.",
        summary="Cancel a job",
        opt=mirrors("cancel_job") | {SCOPE_OPT: Scope.MEMORY_READ},
        status_code=200,
    )
    async def cancel_job(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], state: State, job_id: JobInPath
    ) -> JobBody:
        """Cancel a job after its current step. What it has done stays. A job that has ended is left as it is.

        Without `memory:write`, a credential can cancel only exports that it started itself.
        """
        async with db.transaction(request.user) as tx:
            return job_body(await file_jobs.cancel_job(tx, job_id, JobBounds.of(state.settings)))

    @get(
        "/{job_id:uuid}/output",
        response_description="The output as a file, whose type depends on the job.",
        summary="Get a job's output",
        opt=mirrors("get_job"),
        operation_class=OutputOperation,
    )
    async def get_job_output(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], job_id: JobInPath
    ) -> Stream:
        """Return the output of a job that succeeded.

        The response is 409 `job_not_finished` while the job has not succeeded, and 404 `job_has_no_output` if it has no
        output. A response shorter than its `Content-Length` is incomplete.
        """
        request.user.require(Scope.MEMORY_READ)
        async with db.transaction(request.user, read_only=True) as tx:
            job = await jobs.open_output(tx, job_id, files=file_jobs.FILES)
        # A browser must neither guess the type of the output nor show it: it holds what people stored.
        headers = {
            "Content-Length": str(job.output_bytes),
            DISPOSITION: f'attachment; filename="{job.id}"',
            "X-Content-Type-Options": "nosniff",
        }
        media_type = file_jobs.media_type_of(job) or OUTPUT
        parts = while_authenticated(request, jobs.read_output(db, request.user, job))
        return Stream(parts, media_type=media_type, headers=headers)

    @delete(
        "/{job_id:uuid}/output",
        response_description="The job, whose output is deleted now.",
        summary="Delete a job's output",
        opt=mirrors("get_job"),
        status_code=200,
    )
    async def delete_job_output(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], job_id: JobInPath
    ) -> JobBody:
        """Delete a job's output after fetching it, to free storage for other jobs. Deleting it again changes nothing.

        The job itself stays. Without `memory:write`, a credential can delete only the outputs of its own jobs. The
        response is 409 `job_not_finished` while the job has not succeeded.
        """
        async with db.transaction(request.user) as tx:
            return job_body(await file_jobs.delete_output(tx, job_id))


def job_body(job: Job) -> JobBody:
    """A job as the API returns it."""
    return JobBody(
        str(job.id),
        job.kind,
        job.graph,
        job.status,
        job.done,
        job.total,
        job.result,
        JobErrorBody(job.error_code, job.error_message or "") if job.error_code else None,
        job.cancel_requested,
        job.output_bytes,
        job.created_by,
        job.created_at,
        job.started_at,
        job.finished_at,
        job.expires_at,
        job.output_deleted,
    )
