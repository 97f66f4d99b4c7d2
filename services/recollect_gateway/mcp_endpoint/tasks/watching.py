"""Tasks that a stream of `subscriptions/listen` reports: the state of each at first, and whenever it has changed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, Notification, SubscriptionFilter

from recollect.caller import Caller
from recollect.graph.graphs.model import spelled_id
from recollect.jobs.model import Job
from recollect.postgres.transactions import Transaction
from recollect_gateway.mcp_endpoint.request import Context, McpRequest
from recollect_gateway.mcp_endpoint.tasks.handlers import TaskHandlers
from recollect_gateway.mcp_endpoint.tasks.wire import require_tasks, status_message

FIELD = "taskIds"

MAX_TASKS = 100
"""The maximum number of tasks that one stream listens to."""


class TaskStatus(Notification[dict[str, Any], Literal["notifications/tasks"]]):
    """The notification of a task's state: all that `tasks/get` would answer."""


@dataclass(slots=True)
class WatchedTasks:
    """The tasks of one stream, until each has ended and its end was reported.

    `requested`: the ids that the client asked for. `reported`: the state of each task that was reported last.
    """

    handlers: TaskHandlers
    request: McpRequest
    requested: Sequence[UUID]
    graphs: dict[UUID, UUID | None] = field(default_factory=dict)
    reported: dict[UUID, tuple[str, str | None] | None] = field(default_factory=dict)

    async def begin(self, tx: Transaction) -> None:
        """Drop the ids of tasks that do not exist, or that the caller may not read."""
        found = await self.handlers.find_all(tx, self.requested) if self.requested else {}
        self.graphs = {job_id: found[job_id].graph_id for job_id in self.requested if job_id in found}
        self.reported = dict.fromkeys(self.graphs)

    async def read_states(self, tx: Transaction) -> list[Job | None]:
        """The job of each watched task as it is now; None where it was deleted."""
        found = await self.handlers.find_all(tx, self.reported) if self.reported else {}
        return [found.get(job_id) for job_id in self.reported]

    async def news(self, caller: Caller, found: Sequence[Job | None]) -> list[TaskStatus]:
        """The notifications of tasks whose state has changed; one that has ended is no longer watched after that."""
        changed = [
            job for job, before in zip(found, self.reported.values(), strict=True) if job and before != _state(job)
        ]
        payloads = [await self.handlers.detailed(self.request, caller, job) for job in changed]
        # If anything above raises, the next look reports the change.
        for job_id, job in zip(list(self.reported), found, strict=True):
            if job is None or job.is_finished:
                del self.reported[job_id], self.graphs[job_id]
            else:
                self.reported[job_id] = _state(job)
        return [TaskStatus(method="notifications/tasks", params=payload) for payload in payloads]


def _state(job: Job) -> tuple[str, str | None]:
    return job.status, status_message(job)


def watched_tasks(
    handlers: TaskHandlers, context: Context, request: McpRequest, requested: SubscriptionFilter
) -> WatchedTasks:
    """The tasks that a client asked to watch; raises MCPError for too many, or if the client does not know tasks."""
    task_ids = (requested.model_extra or {}).get(FIELD)
    if task_ids is None:
        return WatchedTasks(handlers, request, ())
    require_tasks(context)
    is_list = isinstance(task_ids, list)
    if not is_list or len(task_ids) > MAX_TASKS or any(not isinstance(task_id, str) for task_id in task_ids):
        raise MCPError(INVALID_PARAMS, f"{FIELD} must be a list of at most {MAX_TASKS} ids")
    job_ids = dict.fromkeys(spelled_id(task_id) for task_id in task_ids)
    return WatchedTasks(handlers, request, [job_id for job_id in job_ids if job_id is not None])
