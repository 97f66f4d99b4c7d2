"""The OpenTelemetry collector that `make verify` builds: it receives OTLP, and writes it to files."""

import base64
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped]
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from recollect_local.address import claimed_port
from recollect_local.process import start_process, stop_process
from tests.support.timeouts import MAX_WAIT_SECONDS

COLLECTOR = Path(__file__).parent / "collector" / ".built" / "collector"
_STOP_SECONDS = 20.0
_IDS = ("traceId", "spanId", "parentSpanId")

_CONFIGURATION = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{"file/traces": {{path: "{folder}/traces.jsonl"}}, "file/metrics": {{path: "{folder}/metrics.jsonl"}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [file/traces]}}
    metrics: {{receivers: [otlp], exporters: [file/metrics]}}
"""


@dataclass
class OpenTelemetryCollector:
    """A collector, running or finished. `endpoint` is the value of RECOLLECT_OTLP_ENDPOINT."""

    endpoint: str
    folder: Path

    @property
    def raw(self) -> str:
        """All received data."""
        return "".join(path.read_text() for path in self.folder.glob("*.jsonl"))

    def traces(self) -> TracesData:
        """The received spans with their resources. They are complete once the collector has ended."""
        traces = TracesData()
        for line in (self.folder / "traces.jsonl").read_text().splitlines():
            traces.MergeFrom(ParseDict(json.loads(line, object_hook=_in_base64), TracesData()))
        return traces


def _in_base64(fields: dict[str, Any]) -> dict[str, Any]:
    """Convert ids, which are hexadecimal in the JSON of OTLP and base64 in that of Protocol Buffers."""
    return fields | {name: base64.b64encode(bytes.fromhex(fields[name])).decode() for name in _IDS if name in fields}


@contextmanager
def collecting(folder: Path) -> Iterator[OpenTelemetryCollector]:
    """A running collector on a free port; fails if it has not been built."""
    if not COLLECTOR.exists():
        pytest.fail("The OpenTelemetry collector is missing. Run `make verify`, which builds it (Go is needed).")
    with claimed_port("127.0.0.1", 0) as port:
        configuration = folder / "collector.yaml"
        configuration.write_text(_CONFIGURATION.format(port=port, folder=folder))
        log = folder / "collector.log"
        process = start_process([str(COLLECTOR), "--config", f"file:{configuration}"], log=log)
        try:
            collector = OpenTelemetryCollector(f"http://127.0.0.1:{port}", folder)
            _wait_until_ready(process, collector.endpoint, log)
            yield collector
        finally:
            stop_process(process, grace_seconds=_STOP_SECONDS)


def _wait_until_ready(process: subprocess.Popen[bytes], endpoint: str, log: Path) -> None:
    give_up = time.monotonic() + MAX_WAIT_SECONDS
    while True:
        assert process.poll() is None, f"the collector ended: {log.read_text()}"
        assert time.monotonic() < give_up, f"the collector is not ready: {log.read_text()}"
        try:
            httpx2.post(f"{endpoint}/v1/traces", json={}, timeout=5).raise_for_status()
            return
        except httpx2.TransportError:
            time.sleep(0.05)
