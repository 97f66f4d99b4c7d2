"""`recollect stdio` as a client's configuration starts it, through the official client, against a gateway."""

import asyncio
import json
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import asyncpg
import httpx2
import pytest
import uvicorn
from anyio.streams.memory import MemoryObjectSendStream
from litestar import Litestar, Request, asgi, post
from litestar.types import Receive, Scope, Send
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.message import SessionMessage
from mcp_types import (
    PROTOCOL_VERSION_META_KEY,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    TextContent,
    jsonrpc_message_adapter,
)

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect_cli.stdio import Bridge
from recollect_gateway.mcp_endpoint.tools import CATALOGUE
from recollect_local.address import Endpoint
from recollect_local.data_folder import DataFolder
from tests.conftest import NewTenant
from tests.support.commands import PROXIES, CommandOutput, Shell
from tests.support.gateway import (
    LEGACY,
    MODERN,
    MODES,
    NewApiKey,
    RunningGateway,
    error_of,
    eventually,
    in_one_task,
    revision_of,
    text_of,
)
from tests.support.timeouts import MAX_WAIT_SECONDS

ALICE = {"name": "Alice", "entityType": "person", "observations": ["likes tea", "naïve “quotes” 🫖"]}
SECONDS = MAX_WAIT_SECONDS
Run = Callable[..., CommandOutput]
PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
HELLO = {
    "jsonrpc": "2.0",
    "id": "first",
    "method": "initialize",
    "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "pipe", "version": "1"}},
}


@contextmanager
def logged(folder: Path) -> Iterator[Path]:
    """A file for the standard error of commands, which must not contain a traceback."""
    path = folder / "stderr"
    path.touch()
    yield path
    assert "Traceback" not in path.read_text(), path.read_text()


@pytest.fixture
def errors(tmp_path: Path) -> Iterator[Path]:
    """The standard error of the commands of a test."""
    with logged(tmp_path) as path:
        yield path


@asynccontextmanager
async def bridged(errors: Path, *words: str, revision: str = LEGACY, **variables: str) -> AsyncIterator[Client]:
    """The official client, connected to a bridge that it starts itself."""
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "recollect_cli.main", "stdio", *words],
        env={**PROXIES, "RECOLLECT_DATA_DIR": str(errors.parent / "data"), **variables},
    )
    with errors.open("a") as log:
        async with Client(stdio_client(command, errlog=log), mode=MODES[revision]) as client:
            yield client


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the bridge with an input to its end."""
    return lambda stdin, *words: Shell(tmp_path).start("stdio", *words).communicate(stdin)


@pytest.fixture(scope="module", params=MODES)
async def bridge(
    request: pytest.FixtureRequest,
    gateway: RunningGateway,
    new_tenant: NewTenant,
    issue: NewApiKey,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[Client, Caller]]:
    """A client, and the caller whose key the bridge has."""
    caller = operator_caller(await new_tenant())
    variables = {"RECOLLECT_URL": gateway.url, "RECOLLECT_API_KEY": (await issue(caller)).secret}
    with logged(tmp_path_factory.mktemp("bridge")) as errors:
        options = {"revision": request.param, **variables}
        async with in_one_task(bridged(errors, "--toolset", "memory", **options)) as client:
            assert client.protocol_version == request.param
            yield client, caller


@pytest.fixture
def client(bridge: tuple[Client, Caller]) -> Client:
    return bridge[0]


class TestForwarding:
    """One bridge for each revision of MCP, which all these tests use: to start one takes a second."""

    @pytest.mark.proves("crate: stdio")
    async def test_tools_results_and_resources_are_forwarded(self, client: Client) -> None:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert listed == [tool.name for tool in CATALOGUE if "memory" in tool.toolsets]
        made = await client.call_tool("create_entities", {"entities": [ALICE]})
        assert made.structured_content == {"entities": [ALICE]}
        assert text_of(made) == json.dumps([ALICE], ensure_ascii=False, separators=(",", ":"))
        graph = {"entities": [ALICE], "relations": []}
        assert (await client.call_tool("read_graph", {})).structured_content == graph
        read = await client.read_resource("memory://knowledge-graph")
        assert json.loads(read.contents[0].text) == graph  # type: ignore[union-attr]

    async def test_errors_are_forwarded(self, client: Client) -> None:
        result = await client.call_tool("get_entity", {"name": "Nobody"})
        assert error_of(result)["code"] == "entity_not_found"
        for name in ("nothing", "öde\n"):  # one that no header holds as it is
            with pytest.raises(MCPError, match=f"Unknown tool: {name}") as refused:
                await client.call_tool(name, {})
            assert refused.value.error.code == -32602

    async def test_many_concurrent_calls_and_a_large_answer_are_forwarded(self, client: Client) -> None:
        entities = [
            {"name": f"E{n}", "entityType": "t", "observations": [f"{m} " + "x" * 9_000 for m in range(5)]}
            for n in range(20)
        ]
        await asyncio.gather(*(client.call_tool("create_entities", {"entities": [entity]}) for entity in entities))
        read = (await client.call_tool("read_graph", {})).structured_content or {}
        found = {entity["name"]: entity for entity in read["entities"]}
        assert [found.get(entity["name"]) for entity in entities] == entities

    async def test_a_call_that_is_cancelled_ends_at_the_gateway(
        self, bridge: tuple[Client, Caller], db: Database, owner: asyncpg.Connection
    ) -> None:
        client, caller = bridge
        await client.call_tool("create_entities", {"entities": [ALICE]})
        before = await revision_of(db, caller)
        async with owner.transaction():
            await owner.execute("SELECT FROM graph_heads WHERE tenant_id = $1 FOR UPDATE", caller.tenant_id)
            with anyio.move_on_after(1):
                await client.call_tool("delete_entities", {"entityNames": ["Alice"]})
                raise AssertionError("it did not have to wait")
            await eventually(lambda: nobody_waits(owner))
        assert await revision_of(db, caller) == before
        assert (await client.call_tool("get_entity", {"name": "Alice"})).structured_content == ALICE


async def nobody_waits(owner: asyncpg.Connection) -> bool:
    """Whether no call waits for a lock that this connection holds."""
    waiting: int = await owner.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"
    )
    return waiting == 0


class TestProgress:
    """Progress from a server that reports it, because the gateway's tools are too quick."""

    @pytest.fixture(params=MODES)
    async def reporting(self, request: pytest.FixtureRequest, errors: Path) -> AsyncIterator[Client]:
        with listening(reporting_server()) as url:
            async with in_one_task(
                bridged(errors, "--url", url, "--api-key", "none", revision=request.param)
            ) as client:
                yield client

    async def test_progress_arrives_before_the_result(self, reporting: Client) -> None:
        seen: list[tuple[float, float | None, str | None]] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))

        result = await reporting.call_tool("count", {}, progress_callback=note)
        assert text_of(result) == "done"
        await eventually(lambda: _is(lambda: len(seen) == 3))
        assert seen == [(1, 3, "one"), (2, 3, "two"), (3, 3, "three")]


async def _is(holds: Callable[[], bool]) -> bool:
    return holds()


class TestEndOfInput:
    @pytest.mark.proves("crate: stdio")
    def test_pending_requests_are_answered_before_the_bridge_ends(
        self, run: Run, gateway: RunningGateway, key: str
    ) -> None:
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        lines = [json.dumps(HELLO), json.dumps(ready), json.dumps(PING)]
        done = run("\n".join(lines).encode(), "--url", gateway.url, "--api-key", key)
        answers = [json.loads(line) for line in done.out.splitlines()]
        assert [answer["id"] for answer in answers] == ["first", 7]
        assert answers[0]["result"]["protocolVersion"] == LEGACY
        assert answers[1]["result"] == {}
        assert (done.code, done.err) == (0, "")

    def test_no_input_is_no_error(self, run: Run, gateway: RunningGateway, key: str) -> None:
        done = run(b"", "--url", gateway.url, "--api-key", key)
        assert (done.code, done.out, done.err) == (0, b"", "")

    def test_a_broken_line_is_reported_and_skipped(self, run: Run, gateway: RunningGateway, key: str) -> None:
        done = run(b"{nonsense\n" + json.dumps(PING).encode() + b"\n", "--url", gateway.url, "--api-key", key)
        broken, pong = [json.loads(line) for line in done.out.splitlines()]
        assert (broken["id"], broken["error"]["code"]) == (None, -32700)
        assert pong["id"] == 7
        assert done.code == 0

    def test_half_a_character_is_refused_by_the_id_and_the_argument(
        self, run: Run, gateway: RunningGateway, key: str
    ) -> None:
        call = {"jsonrpc": "2.0", "id": 8, "method": "tools/call"}
        arguments = {"query": "half \ud83d", "limit": 1}
        lines = [HELLO, {**call, "params": {"name": "recall", "arguments": arguments}}, {"id": 9}, [PING]]
        done = run("\n".join(map(json.dumps, lines)).encode(), "--url", gateway.url, "--api-key", key)
        answers = {answer["id"]: answer for answer in map(json.loads, done.out.splitlines())}
        assert answers[8]["result"]["isError"]
        assert "query" in answers[8]["result"]["content"][0]["text"]
        assert "half a character" in answers[8]["result"]["content"][0]["text"]
        assert answers[9]["error"]["code"] == -32600
        assert answers[None]["error"]["code"] == -32700
        assert (done.code, done.err) == (0, "")

    def test_the_bridge_ends_with_its_input_before_initialize_is_answered(self, run: Run) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            lines = [json.dumps(HELLO), json.dumps(PING)]
            done = run("\n".join(lines).encode(), "--url", url, "--api-key", "none")
        assert (done.code, done.out, done.err) == (0, b"", "")


class TestNegotiation:
    """Negotiation of the revision, which messages after `initialize` carry."""

    async def test_messages_wait_for_initialize_and_can_be_cancelled_meanwhile(self) -> None:
        async with negotiating() as server:
            await server.send(HELLO, PING, PING | {"id": 8}, own_revision(9), cancelled(7))
            await server.answers(1)
            assert sorted(server.seen) == [("initialize first", None), ("ping 9", MODERN)]
            server.answering.set()
            await server.answers(3)
        assert server.seen[2:] == [("ping 8", LEGACY)]
        assert [answer.id for answer in server.answered] == [9, "first", 8]

    async def test_messages_go_on_if_initialize_is_cancelled(self) -> None:
        async with negotiating() as server:
            await server.send(HELLO, PING, cancelled("first"))
            await server.answers(1)
        assert [answer.id for answer in server.answered] == [7]
        assert ("ping 7", None) in server.seen

    async def test_a_request_that_replaced_another_can_be_cancelled_after_the_other_has_ended(self) -> None:
        """The second request with the id ends the first, and both wait for `initialize`."""
        async with negotiating() as server:
            await server.send(HELLO, PING, PING, own_revision(9))
            await server.answers(1)  # The first of the two has ended long before this answer has come.
            await server.send(cancelled(7), PING | {"id": 8})
            server.answering.set()
        assert sorted(map(str, (answer.id for answer in server.answered))) == ["8", "9", "first"]


def cancelled(request_id: str | int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}


def own_revision(request_id: int) -> dict[str, Any]:
    """A request that names its own revision."""
    return PING | {"id": request_id, "params": {"_meta": {PROTOCOL_VERSION_META_KEY: MODERN}}}


class TestGatewayAddress:
    async def test_the_stack_on_this_machine_is_found(self, gateway: RunningGateway, key: str, errors: Path) -> None:
        endpoint = Endpoint(f"{gateway.url}/mcp", f"{gateway.url}/v1", key, "tenant", key)
        folder = DataFolder(errors.parent / "data")
        folder.path.mkdir(parents=True)
        (folder.path / "local.json").write_text(
            json.dumps({name: getattr(endpoint, name) for name in endpoint.__slots__})
        )
        async with bridged(errors) as client:
            listed = [tool.name for tool in (await client.list_tools()).tools]
        assert listed == [tool.name for tool in CATALOGUE if "agent" in tool.toolsets]

    def test_a_missing_gateway_is_reported_in_a_sentence(self, run: Run) -> None:
        done = run(b"")
        assert (done.code, done.out) == (1, b"")
        assert "No gateway runs on this machine" in done.err

    def test_a_gateway_that_is_away_is_reported_in_the_answer(self, run: Run) -> None:
        done = run(json.dumps(PING).encode(), "--url", "http://127.0.0.1:9", "--api-key", "k")
        answer = json.loads(done.out)
        assert answer["id"] == 7
        assert "The gateway at http://127.0.0.1:9/mcp does not answer" in answer["error"]["message"]
        assert done.code == 0

    def test_an_invalid_key_is_reported_in_the_answer(self, run: Run, gateway: RunningGateway) -> None:
        done = run(json.dumps(PING).encode(), "--url", gateway.url, "--api-key", "rcl_agent_nonsense")
        assert json.loads(done.out)["error"]["message"].startswith("The gateway does not accept the API key.")

    def test_an_unknown_toolset_is_reported_in_the_answer(self, run: Run, gateway: RunningGateway, key: str) -> None:
        words = ("--url", gateway.url, "--api-key", key, "--toolset", "nothing")
        done = run(json.dumps(PING).encode(), *words)
        assert "Unknown toolset 'nothing'" in json.loads(done.out)["error"]["message"]


def reporting_server() -> Litestar:
    """A server of one tool, which counts to three."""

    async def count(context: ServerRequestContext[Any, Any], _: CallToolRequestParams) -> CallToolResult:
        for place, word in enumerate(("one", "two", "three"), start=1):
            await context.session.report_progress(place, 3, word)
        return CallToolResult(content=[TextContent(type="text", text="done")])

    async def nothing_to_list(*_: Any) -> ListToolsResult:
        return ListToolsResult(tools=[])

    server: Server[Any] = Server("reporting", on_call_tool=count, on_list_tools=nothing_to_list)
    sessions = StreamableHTTPSessionManager(server, stateless=True, json_response=False)

    @asgi("/mcp", is_mount=True, copy_scope=True)
    async def mcp(scope: Scope, receive: Receive, send: Send) -> None:
        await sessions.handle_request(cast(Any, scope), cast(Any, receive), cast(Any, send))

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncIterator[None]:
        async with sessions.run():
            yield

    return Litestar([mcp], lifespan=[lifespan], openapi_config=None, logging_config=None)


@dataclass(frozen=True)
class Negotiating:
    """A bridge to a server that answers `initialize` once it is `answering`.

    The server has `seen` requests, each with the revision in its header, and the bridge's client was `answered`.
    """

    to_bridge: MemoryObjectSendStream[SessionMessage | Exception]
    answering: threading.Event
    seen: list[tuple[str, str | None]]
    answered: list[Any]

    async def send(self, *messages: dict[str, Any]) -> None:
        """Send these messages to the bridge, one after the other."""
        for message in messages:
            await self.to_bridge.send(SessionMessage(jsonrpc_message_adapter.validate_python(message)))

    async def answers(self, number: int) -> None:
        """Wait for this number of answers."""
        await eventually(lambda: _is(lambda: len(self.answered) == number))


@asynccontextmanager
async def negotiating() -> AsyncIterator[Negotiating]:
    to_bridge, read = anyio.create_memory_object_stream[SessionMessage | Exception]()
    server = Negotiating(to_bridge, threading.Event(), [], [])

    @post("/mcp", status_code=200)
    async def mcp(request: Request[Any, Any, Any]) -> dict[str, Any]:
        message = await request.json()
        server.seen.append((f"{message['method']} {message['id']}", request.headers.get(MCP_PROTOCOL_VERSION_HEADER)))
        if message["method"] == "initialize":
            await asyncio.to_thread(server.answering.wait, SECONDS)
        return {"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": LEGACY}}

    async def note(answer: SessionMessage) -> None:
        server.answered.append(answer.message)

    with listening(Litestar([mcp], openapi_config=None, logging_config=None)) as url:
        try:
            async with read, httpx2.AsyncClient(trust_env=False) as http, anyio.create_task_group() as tasks:
                tasks.start_soon(Bridge(f"{url}/mcp", http, note).run, read)
                async with to_bridge:
                    yield server
        finally:
            server.answering.set()


@contextmanager
def listening(app: Litestar) -> Iterator[str]:
    """Serve an application from a thread of this process; yields its address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None))
        thread = threading.Thread(target=server.run, args=([listener],), name="reporting")
        thread.start()
        try:
            give_up = time.monotonic() + SECONDS
            while not server.started:
                assert thread.is_alive(), "the server did not start"
                assert time.monotonic() < give_up, "the server did not start in time"
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(SECONDS)
