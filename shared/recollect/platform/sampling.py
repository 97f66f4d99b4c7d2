"""Which traces are told: all that failed or were slow, and a share of the others.

It is decided when this process's part of a trace is over, so its spans are held until then, in memory and bounded. Each
process decides for itself: that a job was slow keeps its part, and not the request that began it, unless the trace is
of the share, which is the same in every process.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import StatusCode

MOST_TRACES = 5_000
"""Traces whose spans are held at once; of more, the oldest is decided upon by what is known of it."""

MOST_SPANS = 500
"""Spans of a trace that are held; of more, the others are told only if it is kept already."""

MOST_DECIDED = 20_000
"""Traces whose decision is remembered, for spans that end after it."""

_NANOSECONDS = 1_000_000_000
_LOW_BITS = (1 << 64) - 1


@dataclass(slots=True)
class _Held:
    """This process's part of a trace, as far as it has ended."""

    open: int = 0
    kept: bool = False
    spans: list[ReadableSpan] = field(default_factory=list)


class KeepErrorsAndSlow(SpanProcessor):
    """Passes spans on to `inner` once their trace is to be kept.

    `ratio`: the share of traces that is kept whatever becomes of them, 0 to 1, chosen by the trace's id.
    `slow_seconds`: from which one of its spans keeps a trace.
    """

    def __init__(self, inner: SpanProcessor, *, ratio: float, slow_seconds: float) -> None:
        self._inner = inner
        self._bound = round(ratio * (_LOW_BITS + 1))
        self._slow = slow_seconds * _NANOSECONDS
        self._held: OrderedDict[int, _Held] = OrderedDict()
        self._decided: OrderedDict[int, bool] = OrderedDict()
        self._lock = Lock()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """See SpanProcessor."""
        self._inner.on_start(span, parent_context)
        trace_id = span.get_span_context().trace_id
        with self._lock:
            held = self._held.setdefault(trace_id, _Held(kept=self._of_the_share(trace_id)))
            held.open += 1
            excess = [self._decide(*self._held.popitem(last=False)) for _ in range(len(self._held) - MOST_TRACES)]
        self._tell([span for spans in excess for span in spans])

    def on_end(self, span: ReadableSpan) -> None:
        """See SpanProcessor."""
        with self._lock:
            told = self._ended(span)
        self._tell(told)

    def shutdown(self) -> None:
        """See SpanProcessor. What has not ended is decided upon by what is known of it."""
        with self._lock:
            told = [span for trace_id, held in self._held.items() for span in self._decide(trace_id, held)]
            self._held.clear()
        self._tell(told)
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """See SpanProcessor."""
        return self._inner.force_flush(timeout_millis)

    def _ended(self, span: ReadableSpan) -> list[ReadableSpan]:
        """What is to be told now that a span has ended."""
        trace_id = span.context.trace_id if span.context else 0
        held = self._held.get(trace_id)
        if held is None:  # Pushed out while it was open.
            return [span] if self._decided.get(trace_id) or self._keeps(span) else []
        held.open -= 1
        held.kept = held.kept or self._decided.get(trace_id, False) or self._keeps(span)
        if held.kept or len(held.spans) < MOST_SPANS:
            held.spans.append(span)
        if held.open:
            told, held.spans = (held.spans, []) if held.kept else ([], held.spans)
            return told
        del self._held[trace_id]
        return self._decide(trace_id, held)

    def _decide(self, trace_id: int, held: _Held) -> list[ReadableSpan]:
        self._decided[trace_id] = held.kept
        while len(self._decided) > MOST_DECIDED:
            self._decided.popitem(last=False)
        return held.spans if held.kept else []

    def _keeps(self, span: ReadableSpan) -> bool:
        failed = span.status.status_code is StatusCode.ERROR
        return failed or (span.end_time or 0) - (span.start_time or 0) >= self._slow

    def _of_the_share(self, trace_id: int) -> bool:
        return (trace_id & _LOW_BITS) < self._bound

    def _tell(self, spans: list[ReadableSpan]) -> None:
        for span in spans:
            self._inner.on_end(span)
