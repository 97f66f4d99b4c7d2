"""`tasks/get`, `tasks/update` and `tasks/cancel`: a task is looked at and ended as its job is by any other way."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from recollect.caller import Caller
from recollect.errors import ErrorCode, Forbidden, NotFound, RecollectError
from recollect.graph.graphs.model import spelled_id
from recollect.jobs import service as jobs
from recollect.jobs.model import Job, JobBounds
from recollect.platform.transactions import Transaction
from recollect.transfer import file_jobs
from recollect_gateway.calls import Call, Services
from recollect_gateway.mcp_endpoint.errors import as_protocol_errors
from recollect_gateway.mcp_endpoint.request import Context, McpRequest, request_of
from recollect_gateway.mcp_endpoint.results import dumped, render_result
from recollect_gateway.mcp_endpoint.tasks.wire import (
    EXTENSION,
    TaskParams,
    UpdateTaskParams,
    declares_tasks,
    may_have_tasks,
    require_named,
    require_tasks,
    task_of,
)
from recollect_gateway.mcp_endpoint.tool import Reply, ToolSpec

GET, UPDATE, CANCEL = "tasks/get", "tasks/update", "tasks/cancel"

NO_TASK = "There is no such task. One that has finished is removed after a while."

Count = Callable[[McpRequest, str, bool], None]
"""Counts a request for its tenant: of which method, and whether it failed."""


@dataclass(frozen=True, slots=True)
class TaskHandlers:
    """What the server answers of tasks. `tools`: those that start jobs are told of among them."""

    services: Services
    tools: Iterable[ToolSpec]
    count: Count

    def add_to(self, server: Server[Any]) -> None:
        """Serve the methods of tasks, and tell clients so."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler(GET, TaskParams, self.get)
        server.add_request_handler(UPDATE, UpdateTaskParams, self.update)
        server.add_request_handler(CANCEL, TaskParams, self.cancel)

    def begun(self, context: Context, answer: object) -> dict[str, Any] | None:
        """The handle that stands in place of a tool's result, where a job does its work and the client knows tasks.

        None where a client could not look at it, which is told what everybody is told.
        """
        if not isinstance(answer, Reply) or answer.job is None or not declares_tasks(context):
            return None
        if not may_have_tasks(request_of(context).caller):
            return None
        return {"resultType": "task", **self._task(answer.job)}

    async def get(self, context: Context, params: TaskParams) -> dict[str, Any]:
        """How a task is, and what came of it; raises MCPError."""
        with self._answering(context, params) as request:
            call = Call(request.caller, self.services, GET, read_only=True)
            async with call.transaction() as tx:
                job = await self._find(tx, params.task_id)
            return await self.detailed(request, request.caller, job)

    async def update(self, context: Context, params: UpdateTaskParams) -> dict[str, Any]:
        """Nothing: no task of ours asks anything, and answers to what was not asked are ignored. Raises MCPError."""
        with self._answering(context, params) as request:
            async with Call(request.caller, self.services, UPDATE, read_only=True).transaction() as tx:
                await self._find(tx, params.task_id)
            return {}

    async def cancel(self, context: Context, params: TaskParams) -> dict[str, Any]:
        """Ask a task to end, as `POST /v1/jobs/{id}/cancel` does; one that has ended is left. Raises MCPError."""
        with self._answering(context, params) as request:
            if request.selection.read_only:
                raise Forbidden("This request is for reading only, and this would end a task.")
            async with Call(request.caller, self.services, CANCEL).transaction() as tx:
                job = await self._find(tx, params.task_id)
                await file_jobs.cancel_job(tx, job.id, JobBounds.of(self.services.settings))
            return {}

    async def find_all(self, tx: Transaction, job_ids: Iterable[UUID]) -> dict[UUID, Job]:
        """Those of these that are tasks which the caller may look at."""
        if not may_have_tasks(tx.caller):
            return {}
        found = await jobs.find_jobs(tx, list(job_ids))
        return {job_id: job for job_id, job in found.items() if self._tool_of(job) is not None}

    async def detailed(self, request: McpRequest, caller: Caller, job: Job) -> dict[str, Any]:
        """A task with what came of it: its tool's result, or the error that the protocol would have answered."""
        told, tool = self._task(job), self._tool_of(job)
        if tool is None or tool.work is None or job.status not in ("succeeded", "failed"):
            return told
        if job.status == "failed":
            result = tool.render_error(_failure(job))
            return told | {"result": dumped(result)}
        try:
            call = Call(caller, self.services, GET, read_only=True)
            answer = await render_result(request, tool, await tool.work.tell(call, job))
            return told | {"result": answer if isinstance(answer, dict) else dumped(answer)}
        except MCPError as error:
            failed = {"status": "failed", "statusMessage": error.error.message}
            return told | failed | {"error": error.error.model_dump(mode="json", exclude_none=True)}

    async def _find(self, tx: Transaction, task_id: str) -> Job:
        """The job of a task; raises NotFound, alike for whatever it is that is not there for the caller."""
        job_id = spelled_id(task_id)
        found = {} if job_id is None else await self.find_all(tx, [job_id])
        if job_id not in found:
            raise NotFound(NO_TASK, code=ErrorCode.JOB_NOT_FOUND)
        return found[job_id]

    def _task(self, job: Job) -> dict[str, Any]:
        return task_of(job, JobBounds.of(self.services.settings).retention)

    def _tool_of(self, job: Job) -> ToolSpec | None:
        """The tool that starts such jobs."""
        return next((tool for tool in self.tools if tool.work is not None and tool.work.starts(job)), None)

    @contextmanager
    def _answering(self, context: Context, params: TaskParams) -> Iterator[McpRequest]:
        """The request, where it may ask after tasks at all. What is raised inside becomes errors of the protocol."""
        request, failed = request_of(context), True
        try:
            with as_protocol_errors():
                require_tasks(context)
                require_named(context, params.task_id)
                yield request
            failed = False
        finally:
            self.count(request, context.method, failed)


def _failure(job: Job) -> RecollectError:
    """Why a job failed, as the error that its tool would have told."""
    code = next((code for code in ErrorCode if code == job.error_code), None)
    return RecollectError(job.error_message or "", code=code)
