"""Calls of clients of 2025-11-25 and older: which get one JSON body, and which are left to the SDK's transport."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from mcp_types import CallToolResult, TextContent
from msgspec import Struct

from recollect.settings import Settings
from recollect_gateway.app import create_app
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.server_catalogue import RECOLLECT, ServerCatalogue
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.mcp_endpoint.transport import endpoint
from recollect_gateway.mcp_endpoint.transport.plain_calls import PlainCall, plain_call
from recollect_http.requests.bodies import LARGE
from recollect_http.server.disconnects import ClientDisconnect
from tests.support.gateway import LEGACY, MODERN, RunningGateway, rpc_answer, rpc_headers, serving, until
from tests.support.timeouts import MAX_WAIT_SECONDS

SILENT_SECONDS = 0.05
SECRET = "postgresql://owner@db.internal"
STREAM = "text/event-stream"


class Nothing(Struct, frozen=True):
    """No arguments."""


class Moments(Struct, frozen=True):
    """For how many silent moments a call takes; `ballast` makes it large."""

    moments: int
    ballast: str = ""


BEGUN: list[int] = []
"""The `moments` of each call that began."""

ENDED: list[int] = []
"""The `moments` of each call that was cancelled."""

LOOPS: set[asyncio.AbstractEventLoop] = set()
"""The event loop of the gateway, once a call has begun."""


async def _take(_: Call, arguments: Moments) -> CallToolResult:
    BEGUN.append(arguments.moments)
    LOOPS.add(asyncio.get_running_loop())
    try:
        await asyncio.sleep(arguments.moments * SILENT_SECONDS)
    except asyncio.CancelledError:
        ENDED.append(arguments.moments)
        raise
    return CallToolResult(content=[TextContent(type="text", text="done")])


async def _tell(call: Call, _: Nothing) -> CallToolResult:
    await call.progress(1, 2)
    return CallToolResult(content=[TextContent(type="text", text="done")])


async def _fail(_: Call, __: Nothing) -> CallToolResult:
    raise RuntimeError(SECRET)


def _fail_to_tell(error: Exception) -> Any:
    raise error


def _catalogue() -> ServerCatalogue:
    def tool(name: str, handler: Any) -> ToolSpec:
        return ToolSpec(name, RECOLLECT.default_toolsets, Nothing, handler, name, read_only=True)

    tools = [tool("take", _take), tool("tell", _tell), tool("fail", _fail)]
    tools[-1] = replace(tools[-1], render_error=_fail_to_tell)
    return replace(RECOLLECT, tools={**RECOLLECT.tools, **{tool.name: tool for tool in tools}})


@pytest.fixture(scope="module")
def offering(settings: Settings) -> Iterator[RunningGateway]:
    """A gateway with these tools, whose answers may be silent for a moment at most."""
    impatient = settings.model_copy(update={"stream_keep_alive_seconds": SILENT_SECONDS})
    with serving(impatient, create_app(impatient, catalogue=_catalogue())) as gateway:
        yield gateway


@pytest.fixture
async def client(offering: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with offering.http(admin_key, **rpc_headers()) as client:
        yield client


def message(tool: str, *, request_id: Any = 7, token: Any = None, **arguments: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    if token is not None:
        params["_meta"] = {"progressToken": token}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


async def call(client: httpx2.AsyncClient, said: dict[str, Any], **headers: str) -> httpx2.Response:
    return await client.post("/mcp", content=json.dumps(said), headers=headers)


@asynccontextmanager
async def sent_in_one_piece(
    client: httpx2.AsyncClient, loop: asyncio.AbstractEventLoop, body: bytes
) -> AsyncIterator[None]:
    """Send a body that the gateway reads at once: its event loop is blocked until all of it has arrived."""
    headers = {**client.headers, "Host": client.base_url.netloc.decode(), "Content-Length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    address, arrived = (str(client.base_url.host), client.base_url.port), threading.Event()
    with await asyncio.to_thread(socket.create_connection, address, MAX_WAIT_SECONDS) as connection:
        connection.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode())
        await asyncio.sleep(
            0.2
        )  # By then, the gateway waits for the body. If that takes longer, the body is no harder to read.
        loop.call_soon_threadsafe(arrived.wait, MAX_WAIT_SECONDS)
        await asyncio.to_thread(connection.sendall, body)
        arrived.set()
        yield


class TestPlainAnswers:
    @pytest.mark.parametrize("revision", [LEGACY, "2025-06-18", "2025-03-26"])
    async def test_a_call_is_answered_by_one_body(self, client: httpx2.AsyncClient, revision: str) -> None:
        answer = await call(client, message("take", moments=0), **{"MCP-Protocol-Version": revision})
        assert answer.headers["content-type"] == "application/json"
        assert answer.json() == {
            "jsonrpc": "2.0",
            "id": 7,
            "result": {"content": [{"type": "text", "text": "done"}], "isError": False},
        }

    async def test_a_call_with_a_charset_is_answered_by_one_body(self, client: httpx2.AsyncClient) -> None:
        answer = await call(client, message("take", moments=0), **{"Content-Type": "application/json; charset=utf-8"})
        assert answer.headers["content-type"] == "application/json"

    async def test_a_call_without_a_revision_is_answered_by_one_body(
        self, offering: RunningGateway, admin_key: str
    ) -> None:
        headers = {name: value for name, value in rpc_headers().items() if name != "MCP-Protocol-Version"}
        async with offering.http(admin_key, **headers) as client:
            answer = await call(client, message("take", moments=0))
        assert (answer.headers["content-type"], answer.json()["id"]) == ("application/json", 7)

    @pytest.mark.parametrize("request_id", ["seven", "7", 0, -1, ""])
    async def test_the_answer_has_the_id_as_sent(self, client: httpx2.AsyncClient, request_id: Any) -> None:
        answer = await call(client, message("take", request_id=request_id, moments=0))
        assert answer.json()["id"] == request_id

    @pytest.mark.parametrize(
        ("said", "code"),
        [
            (message("nothing"), -32602),
            ({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {}}, -32602),
            ({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "take", "arguments": []}}, -32602),
        ],
    )
    async def test_protocol_errors_equal_those_of_the_sdk(
        self, client: httpx2.AsyncClient, said: dict[str, Any], code: int
    ) -> None:
        plain = await call(client, said)
        streamed = await call(client, {**said, "params": {**said["params"], "_meta": {"progressToken": 1}}})
        assert (plain.headers["content-type"], plain.json()["error"]["code"]) == ("application/json", code)
        assert rpc_answer(streamed.text) == plain.json()

    async def test_an_error_outside_of_a_tool_does_not_show_its_message(
        self, client: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture
    ) -> None:
        answer = await call(client, message("fail"))
        assert answer.status_code == 200
        assert answer.json()["error"] == {"code": -32603, "message": "Internal server error"}
        assert SECRET in caplog.text
        assert (await call(client, message("take", moments=0))).json()["result"]


class TestLongCalls:
    async def test_a_long_call_gets_keep_alive_comments_and_one_answer(self, client: httpx2.AsyncClient) -> None:
        answer = await call(client, message("take", moments=4))
        assert answer.headers["content-type"].startswith(STREAM)
        silence, _, told = answer.text.rpartition("event: message\n")
        assert silence.count(":\n\n") >= 2
        assert not silence.replace(":\n\n", "")
        assert json.loads(told.removeprefix("data: "))["result"]["content"] == [{"type": "text", "text": "done"}]

    async def test_a_client_of_json_alone_gets_white_space_and_one_answer(self, client: httpx2.AsyncClient) -> None:
        """A proxy must not take the connection for a dead one; white space before JSON says nothing."""
        answer = await call(client, message("take", moments=4), Accept="application/json")
        assert answer.headers["content-type"] == "application/json"
        silence, _, told = answer.text.rpartition("\n")
        assert len(silence) >= 1
        assert not silence.strip()
        assert json.loads(told)["result"]["content"] == [{"type": "text", "text": "done"}]

    async def test_a_long_call_ends_when_its_client_leaves(self, client: httpx2.AsyncClient) -> None:
        endless = 10**6
        async with client.stream("POST", "/mcp", content=json.dumps(message("take", moments=endless))) as answer:
            parts = answer.aiter_bytes()
            assert await asyncio.wait_for(anext(parts), MAX_WAIT_SECONDS) == b":\n\n"
            assert endless not in ENDED
        await until(lambda: endless in ENDED)
        assert (await call(client, message("take", moments=0))).json()["result"]

    async def test_no_call_begins_for_a_client_that_left_during_parsing(
        self, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A large body is parsed in a thread, which does not notice a disconnect.

        The body arrives in one piece, after which uvicorn by itself reads no more of the connection.
        """
        await call(client, message("take", moments=0))
        parsing, left, said_goodbye = threading.Event(), threading.Event(), ClientDisconnect.note_lost

        def parse_slowly(*given: Any) -> PlainCall | None:
            parsing.set()
            assert left.wait(MAX_WAIT_SECONDS)
            return plain_call(*given)

        def leave(disconnect: ClientDisconnect) -> None:
            said_goodbye(disconnect)
            left.set()

        monkeypatch.setattr(endpoint, "plain_call", parse_slowly)
        monkeypatch.setattr(ClientDisconnect, "note_lost", leave)
        (loop,) = LOOPS
        BEGUN.clear()
        body = json.dumps(message("take", moments=0, ballast="x" * (LARGE + LARGE // 2))).encode()
        async with sent_in_one_piece(client, loop, body):
            await until(parsing.is_set)
        await until(left.is_set)
        monkeypatch.setattr(endpoint, "plain_call", plain_call)
        await call(client, message("take", moments=1))
        assert BEGUN == [1]


class TestCallsLeftToTheTransport:
    @pytest.mark.parametrize("token", ["mine", 0])
    async def test_a_call_with_a_progress_token_gets_progress(self, client: httpx2.AsyncClient, token: Any) -> None:
        answer = await call(client, message("tell", token=token))
        assert answer.headers["content-type"].startswith(STREAM)
        events = [json.loads(line.removeprefix("data: ")) for line in answer.text.splitlines() if "data: {" in line]
        assert events[0]["params"] == {"progressToken": token, "progress": 1, "total": 2}
        assert events[-1]["result"]["content"] == [{"type": "text", "text": "done"}]

    async def test_a_client_of_json_alone_gets_the_answer_without_progress(self, client: httpx2.AsyncClient) -> None:
        answer = await call(client, message("tell", token="mine"), Accept="application/json")
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["result"]["content"] == [{"type": "text", "text": "done"}]

    async def test_a_client_of_events_alone_gets_one(self, client: httpx2.AsyncClient) -> None:
        answer = await call(client, message("tell"), Accept=STREAM)
        assert answer.headers["content-type"].startswith(STREAM)
        assert answer.headers["cache-control"].startswith("no-cache")
        head, _, told = answer.text.removesuffix("\n\n").partition("data: ")
        assert head == "event: message\n"
        assert json.loads(told)["result"]["content"] == [{"type": "text", "text": "done"}]

    async def test_a_call_without_a_progress_token_gets_no_progress(self, client: httpx2.AsyncClient) -> None:
        assert (await call(client, message("tell"))).headers["content-type"] == "application/json"

    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            ({"Accept": "text/html"}, 406),
            ({"Content-Type": "text/plain"}, 400),
            ({"MCP-Protocol-Version": "1999-01-01"}, 400),
        ],
    )
    async def test_requests_that_the_transport_refuses_are_refused(
        self, client: httpx2.AsyncClient, headers: dict[str, str], status: int
    ) -> None:
        assert (await call(client, message("take", moments=0), **headers)).status_code == status

    async def test_newer_revisions_are_left_to_the_transport(self, client: httpx2.AsyncClient) -> None:
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "take"}
        said = message("take", moments=0)
        said["params"]["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        assert (await call(client, said, **headers)).json()["result"]["resultType"] == "complete"
