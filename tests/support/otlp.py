"""A collector for tests: receives OTLP/HTTP and keeps the spans and the metrics."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.timeouts import MAX_WAIT_SECONDS


class Collector(ThreadingHTTPServer):
    """`endpoint` is for RECOLLECT_OTLP_ENDPOINT; `spans` and `metrics` are all that arrived; `raw` is every byte."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.endpoint = f"http://127.0.0.1:{self.server_address[1]}"
        self.spans: list[Span] = []
        self.metrics: list[Metric] = []
        self.raw = b""

    def points(self, name: str) -> dict[frozenset[tuple[str, Any]], Any]:
        """The newest number or histogram point of a metric, by attributes."""
        points: dict[frozenset[tuple[str, Any]], Any] = {}
        for metric in self.metrics:
            if metric.name == name:
                told = getattr(metric, str(metric.WhichOneof("data")))
                points |= {_attributes(point): point for point in told.data_points}
        return points

    def named(self, name: str, *, seconds: float = MAX_WAIT_SECONDS) -> Span:
        """Wait for a span of that name, and return the first."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for span in list(self.spans):
                if span.name == name:
                    return span
            time.sleep(0.05)
        raise AssertionError(f"no span {name!r} among {sorted({span.name for span in self.spans})}")


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.raw += body
        if self.path == "/v1/traces":
            request = ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                self.server.spans += [span for scope in resource.scope_spans for span in scope.spans]
        if self.path == "/v1/metrics":
            measured = ExportMetricsServiceRequest.FromString(body)
            for source in measured.resource_metrics:
                self.server.metrics += [metric for scope in source.scope_metrics for metric in scope.metrics]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def _attributes(point: Any) -> frozenset[tuple[str, Any]]:
    return frozenset((item.key, getattr(item.value, item.value.WhichOneof("value"))) for item in point.attributes)


@contextmanager
def collecting() -> Iterator[Collector]:
    """A running collector on a free port."""
    with Collector() as collector:
        threading.Thread(target=collector.serve_forever, args=(0.01,), daemon=True).start()
        yield collector
        collector.shutdown()
