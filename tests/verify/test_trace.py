"""One trace from the span of a client to the job of a worker, as the OpenTelemetry collector receives it."""

from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from recollect.caller import Caller
from recollect.settings import Settings
from tests.e2e.test_trace import (
    CLIENT_SPAN,
    SECRET_TEXT,
    TRACE_ID,
    ancestors,
    named,
    remember_and_embed,
    text_attributes,
)
from tests.verify.opentelemetry_collector import OpenTelemetryCollector, collecting

GATEWAY, WORKER = "recollect-gateway", "recollect-worker"


@pytest.mark.usefixtures("no_backlog")
async def test_one_trace_reaches_from_the_client_to_the_job(
    settings: Settings, key: str, caller: Caller, tmp_path: Path
) -> None:
    with collecting(tmp_path) as collector:
        await remember_and_embed(settings, collector.endpoint, key, tmp_path, "header")
    spans, homes = received(collector)

    http = named(spans, "POST /mcp")
    assert http.parent_span_id.hex() == CLIENT_SPAN
    assert (homes[http.span_id.hex()], http.kind) == (GATEWAY, Span.SPAN_KIND_SERVER)
    assert text_attributes(http).items() >= {"http.request.method": "POST", "http.route": "/mcp"}.items()

    tool = named(spans, "tools/call remember")
    assert tool.parent_span_id == http.span_id
    assert (homes[tool.span_id.hex()], tool.kind) == (GATEWAY, Span.SPAN_KIND_SERVER)
    assert text_attributes(tool).items() >= {"mcp.method.name": "tools/call", "gen_ai.tool.name": "remember"}.items()

    locked = next(
        span for span in spans.values() if text_attributes(span).get("db.query.summary") == "SELECT graphs.lock_graph"
    )
    assert tool.span_id.hex() in ancestors(spans, locked)
    assert (homes[locked.span_id.hex()], locked.kind) == (GATEWAY, Span.SPAN_KIND_CLIENT)
    assert text_attributes(locked)["db.system.name"] == "postgresql"

    sent = named(spans, "send embed_passages")
    assert tool.span_id.hex() in ancestors(spans, sent)
    assert (homes[sent.span_id.hex()], sent.kind) == (GATEWAY, Span.SPAN_KIND_PRODUCER)
    redis = [
        span
        for span in spans.values()
        if "redis" in (text_attributes(span).get("db.system.name"), text_attributes(span).get("db.system"))
    ]
    woken = [span for span in redis if sent.span_id.hex() in ancestors(spans, span)]
    assert {homes[span.span_id.hex()] for span in woken} >= {GATEWAY}
    assert all(span.kind == Span.SPAN_KIND_CLIENT for span in redis)

    job = named(spans, "process embed_passages")
    assert job.parent_span_id == sent.span_id
    assert (homes[job.span_id.hex()], job.kind) == (WORKER, Span.SPAN_KIND_CONSUMER)
    assert text_attributes(job)["recollect.tenant.id"] == str(caller.tenant_id)
    below = [span for span in spans.values() if job.span_id.hex() in ancestors(spans, span)]
    assert {homes[span.span_id.hex()] for span in below} == {WORKER}
    assert any(text_attributes(span).get("db.system.name") == "postgresql" for span in below)
    assert any(span.name.startswith("embeddings ") for span in below)

    outer = [span for span in spans.values() if span.parent_span_id.hex() not in spans]
    assert outer == [http], "every other span hangs on one of the trace"
    for span in spans.values():
        assert span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.status.code != span.status.STATUS_CODE_ERROR, span.name
    assert SECRET_TEXT not in collector.raw


def received(collector: OpenTelemetryCollector) -> tuple[dict[str, Span], dict[str, str]]:
    """The spans of the client's trace by their ids, and the service that reported each."""
    spans: dict[str, Span] = {}
    homes: dict[str, str] = {}
    for resource in collector.traces().resource_spans:
        [home] = [item.value.string_value for item in resource.resource.attributes if item.key == "service.name"]
        for scope in resource.scope_spans:
            found = {span.span_id.hex(): span for span in scope.spans if span.trace_id.hex() == TRACE_ID}
            spans |= found
            homes |= dict.fromkeys(found, home)
    return spans, homes
