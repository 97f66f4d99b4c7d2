"""Which traces are exported."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, StatusCode, TraceFlags

from recollect.telemetry import sampling
from recollect.telemetry.sampling import KeepErrorsAndSlow

SECOND = 1_000_000_000
HIGH, LOW = (1 << 64) - 1, 1
"""The last 64 bits of trace ids beyond and within a share of a half."""


class Traces:
    """Makes spans, and lists the names of those that were exported."""

    def __init__(self, ratio: float) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        inner = SimpleSpanProcessor(self._exporter)
        self.provider.add_span_processor(KeepErrorsAndSlow(inner, ratio=ratio, slow_seconds=1))
        self.tracer = self.provider.get_tracer("test")

    def begin(self, name: str, trace_id: int = HIGH) -> trace.Span:
        """Begin a span as a request with a remote parent does."""
        caller = SpanContext((1 << 100) + trace_id, 7, is_remote=True, trace_flags=TraceFlags(1))
        within = trace.set_span_in_context(NonRecordingSpan(caller))
        return self.tracer.start_span(name, context=within, start_time=0)

    @property
    def exported(self) -> list[str]:
        return [span.name for span in self._exporter.get_finished_spans()]


@pytest.fixture
def traces() -> Traces:
    return Traces(0.5)


def test_of_traces_neither_slow_nor_failed_only_the_share_is_exported(traces: Traces) -> None:
    traces.begin("of the share", LOW).end(SECOND // 2)
    traces.begin("other", HIGH).end(SECOND // 2)
    assert traces.exported == ["of the share"]


@pytest.mark.parametrize(
    "end", [lambda span: span.end(SECOND), lambda span: (span.set_status(StatusCode.ERROR), span.end(1))]
)
def test_one_slow_or_failed_span_exports_its_whole_trace(traces: Traces, end: Callable[[trace.Span], object]) -> None:
    """Also the spans that ended before it, and those that end after it."""
    root, before, bad, after = (traces.begin(name) for name in ("root", "before", "bad", "after"))
    before.end(1)
    assert traces.exported == []
    end(bad)
    assert traces.exported == ["before", "bad"]
    after.end(1)
    root.end(1)
    traces.begin("in the background").end(1)
    assert traces.exported == ["before", "bad", "after", "root", "in the background"]


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=30))
def test_a_trace_is_exported_completely_or_not_at_all(spans: list[tuple[int, bool]]) -> None:
    """For any spans of six traces that are open at once, of which some failed."""
    traces = Traces(0)
    begun = [(number, failed, traces.begin(str(number), HIGH - number)) for number, failed in spans]
    for _, failed, span in begun:
        if failed:
            span.set_status(StatusCode.ERROR)
        span.end(1)
    kept = {number for number, failed in spans if failed}
    assert sorted(traces.exported) == sorted(str(number) for number, _ in spans if number in kept)


def test_the_buffered_spans_are_bounded(traces: Traces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MOST_TRACES", 2)
    monkeypatch.setattr(sampling, "MOST_SPANS", 3)
    monkeypatch.setattr(sampling, "MOST_DECIDED", 2)
    open_ = [traces.begin(f"root {n}", HIGH - n) for n in range(5)]
    for _ in range(5):
        traces.begin("child", HIGH - 4).end(1)
    processor = traces.provider._active_span_processor._span_processors[0]
    assert isinstance(processor, KeepErrorsAndSlow)
    assert (len(processor._pending), len(processor._decided)) == (2, 2)
    assert max(len(held.spans) for held in processor._pending.values()) == 3
    open_[0].set_status(StatusCode.ERROR)
    for span in open_:
        span.end(1)
    assert traces.exported == ["root 0"], "one that was pushed out is judged by itself"
    assert len(processor._pending) == 0


def test_shutdown_exports_the_ended_spans_of_kept_traces(traces: Traces) -> None:
    root = traces.begin("root", LOW)
    traces.begin("child", LOW).end(1)
    traces.begin("other child", HIGH).end(1)
    traces.provider.shutdown()
    assert traces.exported == ["child"]
    root.end(1)
