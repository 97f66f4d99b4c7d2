"""One trace from the client's `traceparent` through gateway, SQL and Redis to the worker's job."""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import NewKey
from recollect.caller import Caller
from recollect.graph.passages.model import MAX_PREPARED_CHARACTERS
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.support import wakeup_worker, workers
from tests.support.otlp import Collector, collecting
from tests.support.ports import reserved_port
from tests.support.timeouts import MAX_WAIT_SECONDS

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
CLIENT_SPAN = "b7ad6b7169203331"
SECRET_TEXT = "the heron nests in the third alder"
SECRET_NAME = "Zebulon-quixote"
DB_SYSTEMS = {"db.system.name", "db.system"}  # The instrumentation of Redis may know the old name only.


@pytest.fixture
async def api_key(db: Database, caller: Caller, settings: Settings) -> str:
    pepper = settings.key_secret.get_secret_value().encode()
    async with db.transaction(caller) as tx:
        return (await identity.create_key(tx, NewKey("trace"), pepper=pepper)).secret


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running


@pytest.mark.parametrize("carrier", ["header", "_meta"])
@pytest.mark.usefixtures("no_backlog")
async def test_one_trace_from_the_client_to_the_job(
    settings: Settings,
    api_key: str,
    caller: Caller,
    collector: Collector,
    tmp_path: Path,
    carrier: str,
) -> None:
    await remember_and_embed(settings, collector.endpoint, api_key, tmp_path, carrier)
    spans = {span.span_id.hex(): span for span in collector.spans if span.trace_id.hex() == TRACE_ID}
    assert len([span for span in spans.values() if span.parent_span_id.hex() not in spans]) == 1
    tool, job = named(spans, "tools/call remember"), named(spans, "process embed_passages")
    assert CLIENT_SPAN in ancestors(spans, tool)
    assert tool.span_id.hex() in ancestors(spans, job)
    below_tool = [span for span in spans.values() if tool.span_id.hex() in ancestors(spans, span)]
    systems = {item.value.string_value for span in below_tool for item in span.attributes if item.key in DB_SYSTEMS}
    assert systems == {"postgresql", "redis"}
    assert any(job.span_id.hex() in ancestors(spans, span) for span in spans.values())
    assert [span.name for span in spans.values() if span.status.code == span.status.STATUS_CODE_ERROR] == []
    assert SECRET_TEXT.encode() not in collector.raw
    assert_conventions(spans, tool, job, caller)
    [http] = [span for span in collector.spans if span.name == "POST /mcp"]
    is_linked = [link.span_id for link in tool.links] == [http.span_id]
    assert is_linked == (carrier == "_meta"), "beside the client's own span, that of the HTTP request is told"
    assert (tool.parent_span_id == http.span_id) == (carrier == "header")


async def remember_and_embed(settings: Settings, endpoint: str, api_key: str, folder: Path, carrier: str) -> None:
    """Let a gateway store a memory and a worker embed it, both of which export spans to a collector.

    At the end both processes have ended, after they exported all of their spans.
    """
    traced = settings.model_copy(update={"otlp_endpoint": endpoint, "redis_timeout_seconds": MAX_WAIT_SECONDS})
    with workers.working(traced, folder, wakeup_worker.WORKER) as worker:
        with gateway(traced) as address:
            # The worker's only sweep is over: only the wake-up can announce this work.
            await asyncio.to_thread(worker.wait_for, wakeup_worker.has_swept("passages"))
            remember(address, api_key, carrier)
            await asyncio.to_thread(worker.wait_for, "passages embedded")
        assert await asyncio.to_thread(worker.stop) == 0


def assert_conventions(spans: dict[str, Span], tool: Span, job: Span, caller: Caller) -> None:
    """Require names and attributes by the conventions of OpenTelemetry."""
    sent = named(spans, "send embed_passages")
    assert sent.span_id.hex() in ancestors(spans, job)
    embedding = next(span for span in spans.values() if span.name.startswith("embeddings "))
    assert {tool.span_id.hex(), job.span_id.hex()} & set(ancestors(spans, embedding))
    for span in (tool, job, sent):
        assert text_attributes(span)["recollect.tenant.id"] == str(caller.tenant_id)
    assert text_attributes(tool)["mcp.method.name"] == "tools/call"
    assert text_attributes(tool)["gen_ai.tool.name"] == "remember"
    assert (
        text_attributes(job).items()
        >= {
            "messaging.system": "arq",
            "messaging.operation.type": "process",
            "messaging.destination.name": "embed_passages",
        }.items()
    )
    queries = [
        text_attributes(span) for span in spans.values() if text_attributes(span).get("db.system.name") == "postgresql"
    ]
    assert "SELECT graphs.lock_graph" in {query.get("db.query.summary") for query in queries}
    assert any(query.get("db.operation.name") == "INSERT" for query in queries)


def text_attributes(span: Span) -> dict[str, str]:
    """The attributes of a span that are texts."""
    return {item.key: item.value.string_value for item in span.attributes}


@pytest.mark.proves("security: traces")
async def test_spans_contain_no_names_chosen_by_users(settings: Settings, api_key: str, collector: Collector) -> None:
    """Neither names of graphs and tools in paths and queries, nor the name of the client."""
    traced = settings.model_copy(update={"otlp_endpoint": collector.endpoint})
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": SECRET_NAME, "arguments": {}}}
    headers = {"Authorization": f"Bearer {api_key}", "User-Agent": SECRET_NAME}
    mcp = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    with gateway(traced) as address, httpx2.Client(headers=headers, timeout=MAX_WAIT_SECONDS) as client:
        for path in (f"/v1/graphs/{SECRET_NAME}", f"/v1/graphs/{SECRET_NAME}/memories", f"/{SECRET_NAME}"):
            client.get(f"{address}{path}", params={"graph": SECRET_NAME})
        assert "Unknown tool" in client.post(f"{address}/mcp", json=message, headers=mcp).text
        for method in ("prompts/get", "tools/list", SECRET_NAME):
            odd = message | {"id": SECRET_NAME, "method": method, "params": {"name": SECRET_NAME}}
            client.post(f"{address}/mcp", json=odd, headers=mcp)
        client.post(f"{address}/t/{SECRET_NAME}/mcp", json=message, headers=mcp)
    routes = {"GET /v1/graphs/{name}", "GET /v1/graphs/{name}/memories", "GET unknown", "POST /mcp"}
    messages = {"tools/call", "prompts/get", "tools/list", "unknown"}
    assert routes | messages <= {span.name for span in collector.spans}
    assert SECRET_NAME.encode() not in collector.raw


def remember(address: str, api_key: str, carrier: str) -> None:
    traceparent = f"00-{TRACE_ID}-{CLIENT_SPAN}-01"
    text = f"{SECRET_TEXT}. {'It builds with twigs. ' * (MAX_PREPARED_CHARACTERS // 20)}"  # Left to the worker.
    params: dict[str, Any] = {"name": "remember", "arguments": {"items": [{"text": text, "about": ["Heron"]}]}}
    headers = {
        "Authorization": f"Bearer {api_key}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    if carrier == "header":
        headers["traceparent"] = traceparent
    else:
        params["_meta"] = {"traceparent": traceparent}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    response = httpx2.post(f"{address}/mcp", json=message, headers=headers, timeout=MAX_WAIT_SECONDS)
    assert response.status_code == 200, response.text
    assert '"isError":true' not in response.text


def named(spans: dict[str, Span], name: str) -> Span:
    found = [span for span in spans.values() if span.name == name]
    assert found, f"no span {name!r} in the trace, but {sorted(span.name for span in spans.values())}"
    return found[0]


def ancestors(spans: dict[str, Span], span: Span) -> list[str]:
    """Ids of the spans above, nearest first; the client's own span is the last."""
    parent = span.parent_span_id.hex()
    return [parent, *ancestors(spans, spans[parent])] if parent in spans else [parent]


@contextmanager
def gateway(settings: Settings) -> Iterator[str]:
    """The address of `python -m recollect_gateway`, forked from a process that has imported it as workers are."""
    with tempfile.TemporaryDirectory() as folder, reserved_port() as port:
        address, served = f"http://127.0.0.1:{port}", settings.model_copy(update={"port": port})
        with workers.working(served, Path(folder), "recollect_gateway") as process:
            wait_until_ready(address, process)
            yield address
            assert process.stop() == 0


def wait_until_ready(address: str, process: workers.WorkerProcess) -> None:
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    while time.monotonic() < deadline and process.is_running():
        try:
            if httpx2.get(f"{address}/health/ready", timeout=2).status_code == 200:
                return
        except httpx2.TransportError:
            time.sleep(0.1)
    raise AssertionError("the gateway did not get ready")
