"""The access log: one line for each request, with ids and our own words only."""

import asyncio
from collections.abc import Iterator, MutableMapping
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from opentelemetry.sdk.trace import TracerProvider
from structlog.testing import capture_logs

from recollect.caller import Caller
from recollect.settings import Settings
from recollect_http.access_log import AccessLog, note_trace
from recollect_http.requests.urlencoded import FORM
from tests.support.gateway import RunningGateway, eventually, serving

SECRET = "Zebulon-quixote"
Lines = list[MutableMapping[str, Any]]


@pytest.fixture(scope="module")
def logging_gateway(settings: Settings) -> Iterator[RunningGateway]:
    with serving(settings.model_copy(update={"access_log": True})) as gateway:
        yield gateway


@pytest.fixture
def lines() -> Iterator[Lines]:
    with capture_logs() as captured:
        yield captured


async def written(lines: Lines, number: int) -> Lines:
    """The lines of the access log, once there are so many. Each is written after its answer."""

    async def are_there() -> bool:
        return len([line for line in lines if line["event"] == "request"]) == number

    await eventually(are_there, seconds=20)
    return [line for line in lines if line["event"] == "request"]


async def test_each_request_has_a_line_without_content(
    logging_gateway: RunningGateway, key: str, caller: Caller, lines: Lines
) -> None:
    async with logging_gateway.http(key, **{"User-Agent": SECRET}) as http:
        await http.get(f"/v1/graphs/{SECRET}")
        await http.get("/v1/graphs")
        await http.get(f"/{SECRET}")
        await http.get("/health/live")
        await http.get("/metrics")
    missing, found, nowhere, no_metrics = await written(lines, 4)
    assert (missing["route"], missing["status"], missing["code"]) == ("/v1/graphs/{name}", 404, "graph_not_found")
    assert (found["method"], found["route"], found["status"], found["code"]) == ("GET", "/v1/graphs", 200, "ok")
    assert found["tenant"] == str(caller.tenant_id)
    kind, _, credential = found["credential"].partition(":")
    assert (kind, UUID(credential).version) == ("key", 7)
    assert found["duration_ms"] > 0
    assert found["bytes_sent"] > 2
    assert (nowhere["status"], nowhere["code"], nowhere.get("tenant")) == (404, "not_found", None)
    assert (no_metrics["status"], no_metrics.get("route")) == (404, None), "metrics have a port of their own"
    told = str(lines)
    assert SECRET not in told
    assert key not in told


async def test_tool_calls_are_logged_with_tool_and_error_code(
    logging_gateway: RunningGateway, key: str, caller: Caller, lines: Lines
) -> None:
    async with logging_gateway.http(key) as http:
        await logging_gateway.call(http, "remember", {"items": [{"text": SECRET}]}, path="/mcp")
        await logging_gateway.call(http, "recall", {"query": SECRET, "limit": -1}, path="/mcp")
        await http.post("/mcp", content=b"[]")
        await http.post("/t/unknown/mcp", content=b"[]")
    kept, refused, broken, elsewhere = await written(lines, 4)
    assert (kept["route"], kept["tool"], kept["code"]) == ("/mcp", "remember", "ok")
    assert kept["bytes_received"] > len(SECRET)
    assert (refused["tool"], refused["status"], refused["code"]) == ("recall", 200, "invalid_input")
    assert {kept["tenant"], refused["tenant"], broken["tenant"]} == {str(caller.tenant_id)}
    assert broken["code"] == "-32600"
    assert (elsewhere["route"], elsewhere["code"]) == ("/t/{tenant}/mcp", "unauthenticated")
    assert SECRET not in str(lines)


async def test_requests_refused_by_the_public_edge_are_logged(logging_gateway: RunningGateway, lines: Lines) -> None:
    async with logging_gateway.http(Host="elsewhere.example") as http:
        await http.get("/v1/graphs")
        await http.request("TRACE", "/v1/graphs")
    misdirected, odd = await written(lines, 2)
    assert (misdirected["status"], misdirected["code"]) == (421, "host_not_allowed")
    assert (odd["method"], odd["code"]) == ("other", "method_not_allowed")


async def test_a_line_has_the_trace_of_its_request_and_says_if_the_client_left(lines: Lines) -> None:
    span = TracerProvider().get_tracer("test").start_span("work")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        note_trace(scope, span)

    await AccessLog(app)({"type": "http", "method": "GET", "path": f"/{SECRET}"}, None, None)
    [line] = lines
    assert int(line["trace_id"], 16) == span.get_span_context().trace_id
    assert int(line["span_id"], 16) == span.get_span_context().span_id
    assert (line["code"], "status" in line) == ("cancelled", False)
    assert SECRET not in str(line)


@pytest.mark.proves("security: departed-clients")
@pytest.mark.parametrize(
    "path", ["/oauth/token", "/oauth/register", "/oauth/authorize", "/sign-in", "/account/password", "/v1/keys/report"]
)
async def test_a_client_that_leaves_while_sending_is_not_an_error(
    logging_gateway: RunningGateway, lines: Lines, path: str
) -> None:
    """No key is needed for it: otherwise, anybody could fill the log and alarm operators."""
    address = urlsplit(logging_gateway.url)
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    headers = f"Host: localhost\r\nContent-Type: {FORM}\r\nContent-Length: 9\r\n"
    writer.write(f"POST {path} HTTP/1.1\r\n{headers}\r\na=".encode())
    await writer.drain()
    await asyncio.sleep(0.3)  # It is being read.
    writer.close()
    await writer.wait_closed()
    (line,) = await written(lines, 1)
    assert (line["code"], line.get("status")) == ("cancelled", None)
    assert [each["event"] for each in lines if each["log_level"] in ("error", "critical")] == []
