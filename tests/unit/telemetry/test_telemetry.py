"""Logs and traces. Settings of a whole process are tested in processes of their own."""

import json
import os
import socket
import subprocess
import sys

import pytest
from opentelemetry import trace
from opentelemetry.instrumentation.utils import is_instrumentation_enabled, suppress_instrumentation
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from recollect.errors import InvalidInput
from recollect.settings import Settings
from recollect.telemetry.otlp import TextFreeExporter
from recollect.telemetry.tracing import configure_tracing, continued_span, extracted_context, inject_context
from tests.support.otlp import collecting
from tests.support.ports import reserved_port
from tests.support.timeouts import MAX_WAIT_SECONDS

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE_ID = 0x0AF7651916CD43DD8448EB211C80319C

LOGGING = """
import logging, structlog
from opentelemetry.sdk.trace import TracerProvider
from recollect.telemetry.logs import configure_logging
from recollect.settings import Settings
configure_logging(Settings())
log = structlog.get_logger("recollect.test")
log.debug("not shown")
log.info("from structlog", passages=3)
with TracerProvider().get_tracer("test").start_as_current_span("work") as span:
    logging.getLogger("uvicorn.error").warning("from %s", "uvicorn")
logging.getLogger("arq.worker").info("chatter")
def divide(stored="text of a memory"):
    1 / 0
try:
    divide()
except ZeroDivisionError:
    log.exception("failed")
"""

TRACING = """
from opentelemetry import trace
from recollect.telemetry.tracing import configure_tracing, inject_context
from recollect.settings import Settings
import asyncpg, redis.asyncio
shutdown = configure_tracing(Settings(), "recollect-test")
with trace.get_tracer("test").start_as_current_span("work"):
    carried = inject_context()
print(type(trace.get_tracer_provider()).__name__, hasattr(asyncpg.Connection.execute, "__wrapped__"),
      hasattr(redis.asyncio.Redis.execute_command, "__wrapped__"), carried)
shutdown()
"""


SAMPLED = """
from opentelemetry import trace
from recollect.telemetry.tracing import configure_tracing, extracted_context
from recollect.settings import Settings
shutdown = configure_tracing(Settings(), "recollect-test")
for flags, fails in (("01", False), ("00", True)):
    asked = extracted_context({"traceparent": f"00-{'f' * 32}-b7ad6b7169203331-{flags}"})
    with trace.get_tracer("test").start_as_current_span("failed" if fails else "well", context=asked) as span:
        if fails:
            span.set_status(trace.StatusCode.ERROR)
shutdown()
"""

SERVED = """
import os, sys, urllib.error, urllib.request
from recollect.telemetry.metrics import record_tool
from recollect.telemetry.tracing import configure_tracing
from recollect.settings import Settings
shutdown = configure_tracing(Settings(), "recollect-test")
record_tool("recall", 0.2, "busy")
address = f"http://127.0.0.1:{os.environ['RECOLLECT_METRICS_PORT']}/metrics"
print(urllib.request.urlopen(address).read().decode())
shutdown()
try:
    urllib.request.urlopen(address)
except urllib.error.URLError:
    print("closed")
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=MAX_WAIT_SECONDS,
    )


def test_json_logs_of_every_library_have_one_form() -> None:
    lines = [json.loads(line) for line in run(LOGGING, RECOLLECT_LOG_FORMAT="json").stderr.splitlines()]
    ours, theirs, failure = lines
    assert (ours["event"], ours["passages"], ours["level"]) == ("from structlog", 3, "info")
    assert "trace_id" not in ours
    assert (theirs["event"], theirs["level"], theirs["logger"]) == ("from uvicorn", "warning", "uvicorn.error")
    assert (len(theirs["trace_id"]), len(theirs["span_id"])) == (32, 16)
    assert "ZeroDivisionError" in failure["exception"]
    assert "text of a memory" not in failure["exception"]


def test_console_logs_are_lines_without_colours_or_local_variables() -> None:
    output = run(LOGGING, RECOLLECT_LOG_FORMAT="console").stderr
    assert "from structlog" in output
    assert "ZeroDivisionError" in output
    assert "\x1b" not in output
    assert "stored = " not in output
    assert "stored=" not in output
    assert "chatter" not in output


def test_without_an_endpoint_tracing_is_not_installed() -> None:
    environment = {name: "" for name in os.environ if name.startswith("RECOLLECT_")}
    assert run(TRACING, **environment).stdout.strip() == "ProxyTracerProvider False False {}"


def test_with_an_endpoint_spans_are_exported_and_libraries_instrumented() -> None:
    with collecting() as collector:
        output = run(TRACING, RECOLLECT_OTLP_ENDPOINT=collector.endpoint).stdout
        span = collector.named("work")
    assert output.startswith("TracerProvider True True {'traceparent': '00-")
    assert span.trace_id.hex() in output
    assert b"recollect-test" in collector.raw


def test_a_collector_that_is_away_delays_shutdown_only_for_seconds() -> None:
    run(TRACING, RECOLLECT_OTLP_ENDPOINT="http://127.0.0.1:9")


@pytest.fixture
def exported() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exported: InMemorySpanExporter) -> trace.Tracer:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(TextFreeExporter(exported)))
    return provider.get_tracer("test")


def test_the_message_of_an_exception_is_not_exported(tracer: trace.Tracer, exported: InMemorySpanExporter) -> None:
    with pytest.raises(ValueError, match="Alice"), tracer.start_as_current_span("work", attributes={"kept": 1}):
        raise ValueError("Key (name)=(Alice) already exists.")
    [span] = exported.get_finished_spans()
    assert "Alice" not in span.to_json()
    assert span.status.status_code is trace.StatusCode.ERROR
    assert dict(span.events[0].attributes or {}) == {"exception.type": "ValueError", "exception.escaped": "False"}
    assert span.attributes == {"kept": 1}


def test_a_span_without_exceptions_is_exported_as_it_is(tracer: trace.Tracer, exported: InMemorySpanExporter) -> None:
    with tracer.start_as_current_span("work"):
        pass
    [span] = exported.get_finished_spans()
    assert span.name == "work"
    assert span.status.is_unset


def test_a_trace_is_propagated_by_the_w3c_header() -> None:
    with continued_span("job", {"traceparent": TRACEPARENT}):
        assert trace.get_current_span().get_span_context().trace_id == TRACE_ID
        assert inject_context()["traceparent"].startswith(TRACEPARENT[:36])
    assert inject_context() == {}


def test_a_carrier_without_a_trace_gives_an_empty_context() -> None:
    assert not trace.get_current_span(extracted_context({"traceparent": "nonsense"})).get_span_context().is_valid
    assert extracted_context({}) == {}


def test_a_continued_span_is_traced_although_the_polling_around_it_is_not() -> None:
    with suppress_instrumentation():
        with continued_span("job", {"traceparent": TRACEPARENT}):
            assert is_instrumentation_enabled()
        assert not is_instrumentation_enabled()


HOSTILE = """
import structlog
from recollect.telemetry.logs import configure_logging
from recollect.settings import Settings
configure_logging(Settings())
log = structlog.get_logger("recollect.test")
log.warning("refused \\x1b[2J", name="a\\x9bb\\nforged line")
try:
    raise ValueError("stored \\x1b]0;title\\x07")
except ValueError:
    log.exception("failed")
"""


@pytest.mark.proves("security: printable-names")
@pytest.mark.parametrize("form", ["json", "console"])
def test_logs_contain_no_control_characters(form: str) -> None:
    output = run(HOSTILE, RECOLLECT_LOG_FORMAT=form).stderr
    assert "forged line" in output
    assert "title" in output
    assert all(line.isprintable() for line in output.splitlines())
    assert not any(line.startswith("forged") for line in output.splitlines())


def test_a_failed_trace_is_exported_whatever_the_ratio_and_the_client_say() -> None:
    with collecting() as collector:
        run(SAMPLED, RECOLLECT_OTLP_ENDPOINT=collector.endpoint, RECOLLECT_TRACE_RATIO="0.1")
        assert [span.name for span in collector.spans] == ["failed"]


def test_prometheus_metrics_are_served_at_their_own_port_until_shutdown() -> None:
    with reserved_port() as port:
        output = run(SERVED, RECOLLECT_METRICS_PORT=str(port)).stdout
    labels = 'error_type="busy",gen_ai_tool_name="recall",mcp_method_name="tools/call"'
    assert f"mcp_server_operation_duration_seconds_count{{{labels}}} 1.0" in output
    assert 'service_name="recollect-test"' in output
    assert output.endswith("closed\n")


def test_a_taken_metrics_port_is_reported_with_its_setting() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings = Settings(metrics_port=taken.getsockname()[1])
        with pytest.raises(InvalidInput, match="port") as refused:
            configure_tracing(settings, "recollect-test")
    assert refused.value.path == "RECOLLECT_METRICS_PORT"
