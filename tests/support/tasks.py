"""Clients with tasks: one that sends any request, and the official one, which polls until a task has ended."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx2
from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Request, RequestParams, Result

from recollect_gateway.mcp_endpoint.tasks.wire import EXTENSION
from tests.support.gateway import MODERN, MODES, RunningGateway, rpc_answer, rpc_headers

KNOWS_TASKS: dict[str, Any] = {"extensions": {EXTENSION: {}}}
NOBODYS = "019abcde-0000-7000-8000-000000000000"
"""An id of no existing job."""


@dataclass(frozen=True)
class TaskClient:
    """Sends plain requests of revision 2026-07-28."""

    http: httpx2.AsyncClient
    path: str = "/mcp/x/all"
    capabilities: dict[str, Any] = field(default_factory=lambda: KNOWS_TASKS)
    headers: dict[str, str] = field(default_factory=dict)

    async def send(self, method: str, name: str | None, /, **params: Any) -> httpx2.Response:
        """Send a request with that name in its header, and return the answer."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        }
        headers = rpc_headers(MODERN) | {"Mcp-Method": method} | self.headers
        headers |= {} if name is None else {"Mcp-Name": name}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        return await self.http.post(self.path, json=body, headers=headers)

    async def call(self, tool: str, /, *, more: Any = None, **arguments: Any) -> dict[str, Any]:
        """The result of a tool; `more`: the additional parameters of a second round."""
        response = await self.send("tools/call", tool, name=tool, arguments=arguments, **(more or {}))
        result: dict[str, Any] = rpc_answer(response.text)["result"]
        return result

    async def begin(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool that is answered by a task, and return the id of the task."""
        result = await self.call(tool, **arguments)
        assert result["resultType"] == "task", result
        return str(result["taskId"])

    async def ask(self, method: str, task_id: str) -> dict[str, Any]:
        """The whole answer to a request about a task."""
        answers: dict[str, Any] = {"inputResponses": {}} if method == "tasks/update" else {}
        answer: dict[str, Any] = rpc_answer((await self.send(method, task_id, taskId=task_id, **answers)).text)
        return answer

    async def get(self, task_id: str) -> dict[str, Any]:
        """A task."""
        task: dict[str, Any] = (await self.ask("tasks/get", task_id))["result"]
        return task

    async def refusal(self, method: str, task_id: str) -> dict[str, Any]:
        """The error that answers a request about a task."""
        error: dict[str, Any] = (await self.ask(method, task_id))["error"]
        return error


class _Handle(Result):
    result_type: Literal["task"] = "task"
    task_id: str
    poll_interval_ms: int | None = None


class _Detailed(Result):
    status: str
    result: dict[str, Any] | None = None


class _TaskParams(RequestParams):
    task_id: str


class _GetTask(Request[_TaskParams, Literal["tasks/get"]]):
    name_param = "taskId"

    method: Literal["tasks/get"] = "tasks/get"
    params: _TaskParams


class Patient(ClientExtension):
    """Lets the official client wait for tasks. `begun`: the ids of the tasks that it received."""

    identifier = EXTENSION

    def __init__(self) -> None:
        self.begun: list[str] = []

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=_Handle, resolve=self._resolve)]

    async def _resolve(self, handle: _Handle, context: ClaimContext) -> CallToolResult:
        self.begun.append(handle.task_id)
        while True:
            asked = _GetTask(params=_TaskParams(task_id=handle.task_id))
            task = await context.session.send_request(asked, _Detailed)
            if task.status != "working":
                assert task.status == "completed", task
                return CallToolResult.model_validate(task.result)
            await asyncio.sleep(0.05)  # Sooner than the task suggests, so that tests are fast.


@asynccontextmanager
async def patient(gateway: RunningGateway, key: str, path: str) -> AsyncIterator[tuple[Client, Patient]]:
    """The official client, which waits for the tasks that answer its tool calls."""
    waits = Patient()
    async with (
        gateway.http(key) as http,
        Client(
            streamable_http_client(gateway.url + path, http_client=http), mode=MODES[MODERN], extensions=[waits]
        ) as client,
    ):
        yield client, waits
