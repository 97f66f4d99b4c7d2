"""Handles `tasks/get`, `tasks/update` and `tasks/cancel`, by the rules that hold for the job of a task."""

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
from recollect.postgres.transactions import Transaction
from recollect.transfer import file_jobs
from recollect_gateway.calls import Call, Services
from recollect_gateway.mcp_endpoint.errors import as_protocol_errors
from recollect_gateway.mcp_endpoint.request import Context, McpRequest, request_of
from recollect_gateway.mcp_endpoint.results import dump_result, render_result
from recollect_gateway.mcp_endpoint.tasks.wire import (
    EXTENSION,
    TaskParams,
    UpdateTaskParams,
    declares_tasks,
    may_have_tasks,
    require_name_header,
    require_tasks,
    task_of,
)
from recollect_gateway.mcp_endpoint.tool import Reply, ToolSpec

GET, UPDATE, CANCEL = "tasks/get", "tasks/update", "tasks/cancel"

NO_TASK = "There is no such task. Finished tasks are removed after a while."

Count = Callable[[McpRequest, str, bool], None]
"""Counts a request for its tenant, with its method and whether it failed."""


@dataclass(frozen=True, slots=True)
class TaskHandlers:
    """Handlers of requests about tasks. `tools`: every tool, of which some start jobs."""

    services: Services
    tools: Iterable[ToolSpec]
    count: Count

    def add_to(self, server: Server[Any]) -> None:
        """Serve the methods of tasks, and announce the extension to clients."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler(GET, TaskParams, self.get)
        server.add_request_handler(UPDATE, UpdateTaskParams, self.update)
        server.add_request_handler(CANCEL, TaskParams, self.cancel)

    def task_for(self, context: Context, answer: object) -> dict[str, Any] | None:
        """The handle of a task, in place of a tool's result, if a job does the work and the client knows tasks.

        None where the caller may not read jobs: the client gets the tool's ordinary answer.
        """
        if not isinstance(answer, Reply) or answer.job is None or not declares_tasks(context):
            return None
        if not may_have_tasks(request_of(context).caller):
            return None
        return {"resultType": "task", **self._task(answer.job)}

    async def get(self, context: Context, params: TaskParams) -> dict[str, Any]:
        """The state of a task, and its result once it has one; raises MCPError."""
        with self._handling(context, params) as request:
            call = Call(request.caller, self.services, GET, read_only=True)
            async with call.transaction() as tx:
                job = await self._find(tx, params.task_id)
            return await self.detailed(request, request.caller, job)

    async def update(self, context: Context, params: UpdateTaskParams) -> dict[str, Any]:
        """Ignore the client's input, since no task asks for any. Raises MCPError."""
        with self._handling(context, params) as request:
            async with Call(request.caller, self.services, UPDATE, read_only=True).transaction() as tx:
                await self._find(tx, params.task_id)
            return {}

    async def cancel(self, context: Context, params: TaskParams) -> dict[str, Any]:
        """Ask a task to end, as `POST /v1/jobs/{id}/cancel` does, unless it has ended already. Raises MCPError."""
        with self._handling(context, params) as request:
            if request.selection.read_only:
                raise Forbidden("This request is read-only, so it cannot cancel a task.")
            async with Call(request.caller, self.services, CANCEL).transaction() as tx:
                job = await self._find(tx, params.task_id)
                await file_jobs.cancel_job(tx, job.id, JobBounds.of(self.services.settings))
            return {}

    async def find_all(self, tx: Transaction, job_ids: Iterable[UUID]) -> dict[UUID, Job]:
        """The jobs with these ids that are tasks and that the caller may read, by id."""
        if not may_have_tasks(tx.caller):
            return {}
        found = await jobs.find_jobs(tx, list(job_ids))
        return {job_id: job for job_id, job in found.items() if self._tool_of(job) is not None}

    async def detailed(self, request: McpRequest, caller: Caller, job: Job) -> dict[str, Any]:
        """A task with its outcome: the tool's result, or the error with which the call would have been answered."""
        task, tool = self._task(job), self._tool_of(job)
        if tool is None or tool.work is None or job.status not in ("succeeded", "failed"):
            return task
        if job.status == "failed":
            result = tool.render_error(_failure(job))
            return task | {"result": dump_result(result)}
        try:
            call = Call(caller, self.services, GET, read_only=True)
            answer = await render_result(request, tool, await tool.work.render(call, job))
            return task | {"result": answer if isinstance(answer, dict) else dump_result(answer)}
        except MCPError as error:
            failed = {"status": "failed", "statusMessage": error.error.message}
            return task | failed | {"error": error.error.model_dump(mode="json", exclude_none=True)}

    async def _find(self, tx: Transaction, task_id: str) -> Job:
        """The job of a task; raises the same NotFound if there is none and if the caller may not read it."""
        job_id = spelled_id(task_id)
        found = {} if job_id is None else await self.find_all(tx, [job_id])
        if job_id not in found:
            raise NotFound(NO_TASK, code=ErrorCode.JOB_NOT_FOUND)
        return found[job_id]

    def _task(self, job: Job) -> dict[str, Any]:
        return task_of(job, JobBounds.of(self.services.settings).retention)

    def _tool_of(self, job: Job) -> ToolSpec | None:
        """The tool that starts jobs like this one."""
        return next((tool for tool in self.tools if tool.work is not None and tool.work.starts(job)), None)

    @contextmanager
    def _handling(self, context: Context, params: TaskParams) -> Iterator[McpRequest]:
        """Check that the request may use tasks, and count it. Exceptions inside become errors of the protocol."""
        request, failed = request_of(context), True
        try:
            with as_protocol_errors():
                require_tasks(context)
                require_name_header(context, params.task_id)
                yield request
            failed = False
        finally:
            self.count(request, context.method, failed)


def _failure(job: Job) -> RecollectError:
    """Why a job failed, as the error that its tool would have raised."""
    code = next((code for code in ErrorCode if code == job.error_code), None)
    return RecollectError(job.error_message or "", code=code)
