"""The extension on the wire: which clients declare it, and the task that represents a job.

A task is a job, under its id, for callers that may read that job by `get_job`; nothing more is stored for it. The
specification is the extension's own (modelcontextprotocol/ext-tasks); the SDK does not implement it, but has the means
to do so.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import HEADER_MISMATCH, METHOD_NOT_FOUND, MISSING_REQUIRED_CLIENT_CAPABILITY, RequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from recollect.caller import Caller, Scope
from recollect.jobs.model import Job
from recollect_gateway.mcp_endpoint.request import Context
from recollect_gateway.mcp_endpoint.tools import TOOLS

EXTENSION = "io.modelcontextprotocol/tasks"

POLL_MS = 1_000
"""The number of milliseconds that a client is asked to wait between two polls of a task."""

STATUSES = {
    "queued": "working",
    "running": "working",
    "succeeded": "completed",
    "failed": "completed",
    "cancelled": "cancelled",
}
"""The status of a task, by that of its job. A failed job is a task completed by a tool error: `failed` is kept for
errors of the protocol."""

_MILLISECOND = timedelta(milliseconds=1)


class TaskParams(RequestParams):
    """Parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str


class UpdateTaskParams(TaskParams):
    """Parameters of `tasks/update`."""

    input_responses: dict[str, Any]


def declares_tasks(context: Context) -> bool:
    """Whether the client declares the extension, at a revision that has it."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return False
    capabilities = context.session.client_capabilities
    return capabilities is not None and EXTENSION in (capabilities.extensions or {})


def require_tasks(context: Context) -> None:
    """Raise MCPError for a client that did not declare the extension, or a revision that does not have it."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(METHOD_NOT_FOUND, "Method not found", context.method)
    if not declares_tasks(context):
        needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, f"This needs a client that declares {EXTENSION}", needed)


def require_name_header(context: Context, task_id: str) -> None:
    """Raise MCPError unless the name header has the task's id: proxies that route requests read only headers."""
    header = context.request.headers.get(MCP_NAME_HEADER) if context.request is not None else None
    if header is None or decode_header_value(header) != task_id:
        raise MCPError(HEADER_MISMATCH, f"{MCP_NAME_HEADER} header does not match the parameter 'taskId'")


def may_have_tasks(caller: Caller) -> bool:
    """Whether the caller may read jobs, by the rule that holds for `get_job` and its route."""
    is_reached = caller.toolsets is None or bool(caller.toolsets & TOOLS["get_job"].toolsets)
    return is_reached and caller.may(Scope.MEMORY_READ)


def task_of(job: Job, retention: timedelta) -> dict[str, Any]:
    """The task that represents a job, without its result."""
    task = {
        "taskId": str(job.id),
        "status": STATUSES[job.status],
        "createdAt": _time(job.created_at),
        "lastUpdatedAt": _time(job.finished_at or job.started_at or job.created_at),
        # A job is kept until it has ended, and for `retention` after that.
        "ttlMs": ((job.expires_at or datetime.now(UTC) + retention) - job.created_at) // _MILLISECOND,
    }
    if message := status_message(job):
        task["statusMessage"] = message
    return task if job.is_finished else task | {"pollIntervalMs": POLL_MS}


def status_message(job: Job) -> str | None:
    """How far a job is, in numbers and fixed sentences."""
    if job.is_finished:
        return job.error_message
    if job.cancel_requested:
        return "It will end after its current step."
    done = f"{job.done} done" if job.total is None else f"{job.done} of {job.total} done"
    return f"{done}. A step failed and is tried again: {job.error_message}" if job.error_message else done


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
