"""Tasks that a stream of `subscriptions/listen` tells of: each as it is at first, and whenever that has changed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, Notification, SubscriptionFilter

from recollect.caller import Caller
from recollect.graph.graphs.model import spelled_id
from recollect.jobs.model import Job
from recollect.platform.transactions import Transaction
from recollect_gateway.mcp_endpoint.request import Context, McpRequest
from recollect_gateway.mcp_endpoint.tasks.handlers import TaskHandlers
from recollect_gateway.mcp_endpoint.tasks.wire import require_tasks, status_message

FIELD = "taskIds"

MAX_TASKS = 100
"""Tasks that one stream listens to, at most."""


class TaskStatus(Notification[dict[str, Any], Literal["notifications/tasks"]]):
    """What is told of a task: all that `tasks/get` would answer."""


@dataclass(slots=True)
class WatchedTasks:
    """The tasks of one stream that have not ended, or were not told of since. `told`: how each was when it was."""

    handlers: TaskHandlers
    request: McpRequest
    asked: Sequence[UUID]
    graphs: dict[UUID, UUID | None] = field(default_factory=dict)
    told: dict[UUID, tuple[str, str | None] | None] = field(default_factory=dict)

    async def begin(self, tx: Transaction) -> None:
        """Leave out what is no task that the caller may look at."""
        found = await self.handlers.find_all(tx, self.asked) if self.asked else {}
        self.graphs = {job_id: found[job_id].graph_id for job_id in self.asked if job_id in found}
        self.told = dict.fromkeys(self.graphs)

    async def look(self, tx: Transaction) -> list[Job | None]:
        """Of each that has not ended: how it is now; None where it is gone."""
        found = await self.handlers.find_all(tx, self.told) if self.told else {}
        return [found.get(job_id) for job_id in self.told]

    async def news(self, caller: Caller, found: Sequence[Job | None]) -> list[TaskStatus]:
        """What is told of those that are otherwise than they were told of, for the last time of one that has ended."""
        changed = [job for job, before in zip(found, self.told.values(), strict=True) if job and before != _state(job)]
        told = [await self.handlers.detailed(self.request, caller, job) for job in changed]
        # What raises before this is told at the next look.
        for job_id, job in zip(list(self.told), found, strict=True):
            if job is None or job.is_finished:
                del self.told[job_id], self.graphs[job_id]
            else:
                self.told[job_id] = _state(job)
        return [TaskStatus(method="notifications/tasks", params=each) for each in told]


def _state(job: Job) -> tuple[str, str | None]:
    return job.status, status_message(job)


def watched_tasks(
    handlers: TaskHandlers, context: Context, request: McpRequest, asked: SubscriptionFilter
) -> WatchedTasks:
    """The tasks that a stream is asked to tell of; raises MCPError for too many, or for a client that knows none."""
    given = (asked.model_extra or {}).get(FIELD)
    if given is None:
        return WatchedTasks(handlers, request, ())
    require_tasks(context)
    if not isinstance(given, list) or len(given) > MAX_TASKS or any(not isinstance(each, str) for each in given):
        raise MCPError(INVALID_PARAMS, f"{FIELD} is a list of {MAX_TASKS} ids at most")
    ids = dict.fromkeys(spelled_id(each) for each in given)
    return WatchedTasks(handlers, request, [each for each in ids if each is not None])
