"""The tools for tasks that the official conformance suite needs, and a worker that does their work.

`python -m tests.support.example_tasks` is that worker.
"""

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
    Tool,
)
from msgspec import Struct

from recollect.jobs import service as jobs
from recollect.jobs.model import Job, NewJob, StepRefused, StepResult
from recollect.postgres.transactions import Transaction
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.rounds import ElicitationRound
from recollect_gateway.mcp_endpoint.tasks.wire import EXTENSION
from recollect_gateway.mcp_endpoint.tool import Asker, Handler, JobRenderer, LongWork, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.job_answers import started_job
from recollect_workers.context import Kind
from recollect_workers.main import main

STEP_SECONDS = 0.2
COMPUTE, FAIL, BREAK, GREET = "example_compute", "example_fail", "example_break", "example_greet"

_user: ContextVar[str] = ContextVar("user")


class Greeting(Struct, frozen=True):
    """Whom to greet."""

    name: str


class Computation(Struct, frozen=True):
    """How long to be at work."""

    seconds: float
    label: str = ""


class Anything(Struct, frozen=True):
    """Arguments that are not read, or no structured content."""


def _text_result(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)])


async def _greet(_: Call, arguments: Greeting) -> CallToolResult:
    return _text_result(f"Hello, {arguments.name}!")


async def _answer_at_once(_: Call, __: Any) -> CallToolResult:
    return _text_result("It was done without a question: none is asked within a task.")


async def _start(call: Call, kind: str, **arguments: Any) -> Reply:
    async with call.transaction() as tx:
        return started_job(await jobs.schedule(tx, NewJob(kind, arguments=arguments, unique=False)))


async def _compute(call: Call, arguments: Computation) -> Reply | CallToolResult:
    if not arguments.seconds:
        return _text_result("Computed at once")
    return await _start(call, COMPUTE, steps=round(arguments.seconds / STEP_SECONDS))


def _starting(kind: str) -> Handler:
    async def start(call: Call, _: Any) -> Reply:
        return await _start(call, kind)

    return start


async def _greet_later(call: Call, _: Any) -> Reply:
    return await _start(call, GREET, name=_user.get())


async def _ask_for_a_name(_: Call, __: Any, round_: ElicitationRound) -> InputRequiredResult | None:
    answer = round_.answers.get("user_name")
    if isinstance(answer, ElicitResult):
        _user.set(str((answer.content or {}).get("name")))
        return None
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    asked = ElicitRequest(params=ElicitRequestFormParams(message="What is your name?", requested_schema=schema))
    return InputRequiredResult(input_requests={"user_name": asked})


async def _need_tasks(_: Call, __: Any, round_: ElicitationRound) -> None:
    if EXTENSION not in (round_.capabilities.extensions or {}):
        needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "This needs a client that knows tasks", needed)


async def _tell_computed(_: Call, job: Job) -> CallToolResult:
    return _text_result(f"Computed in {job.done} steps")


async def _tell_greeting(_: Call, job: Job) -> CallToolResult:
    return _text_result(f"Hello, {job.arguments['name']}!")


async def _tell_of_a_fault(_: Call, __: Job) -> CallToolResult:
    raise MCPError(INTERNAL_ERROR, "This tool intentionally ends in an error of the protocol")


def task_tools(toolset: str) -> list[ToolSpec]:
    """The tools as a toolset."""

    def tool(
        name: str,
        handler: Handler,
        *,
        arguments: type[Struct] = Anything,
        properties: Mapping[str, str] = {},
        work: tuple[str, JobRenderer] | None = None,
        ask: Asker | None = None,
    ) -> ToolSpec:
        told = f"For the conformance suite: {name}"
        schema = {"type": "object", "properties": {each: {"type": kind} for each, kind in properties.items()}}
        return ToolSpec(
            name=name,
            title=name,
            description=told,
            toolsets=frozenset({toolset}),
            arguments=arguments,
            result=Anything,
            handler=handler,
            ask=ask,
            work=LongWork(*work) if work else None,
            listed=Tool(name=name, title=name, description=told, input_schema=schema),
        )

    computation = {"seconds": "number", "label": "string"}
    return [
        tool("greet", _greet, arguments=Greeting, properties={"name": "string"}),
        tool(
            "slow_compute",
            _compute,
            arguments=Computation,
            properties=computation,
            work=(COMPUTE, _tell_computed),
        ),
        tool("failing_job", _starting(FAIL), work=(FAIL, _tell_computed), ask=_need_tasks),
        tool("protocol_error_job", _starting(BREAK), work=(BREAK, _tell_of_a_fault)),
        tool("test_tool_with_task", _greet_later, work=(GREET, _tell_greeting), ask=_ask_for_a_name),
        tool("confirm_delete", _answer_at_once, properties={"filename": "string"}),
        tool("multi_input", _answer_at_once),
    ]


async def compute(_: Transaction, job: Job) -> StepResult:
    """Work for a moment."""
    await asyncio.sleep(STEP_SECONDS)
    total = job.arguments["steps"]
    return StepResult({}, job.done + 1, total, finished=job.done + 1 >= total)


async def fail(_: Transaction, __: Job) -> StepResult:
    """A step that never succeeds."""
    raise StepRefused("This tool intentionally returns an error for testing")


async def finish(_: Transaction, __: Job) -> StepResult:
    """A step that has nothing to do."""
    return StepResult({}, 1, 1, finished=True)


KINDS: dict[str, Kind] = {COMPUTE: compute, FAIL: fail, BREAK: finish, GREET: finish}

if __name__ == "__main__":
    main(KINDS)
