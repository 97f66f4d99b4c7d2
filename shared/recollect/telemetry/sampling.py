"""Tail sampling of traces: all that failed or were slow are exported, and a share of the others.

The decision is made when this process's part of a trace is over, so its spans are kept until then, in memory and
bounded. Each process decides for itself: a slow job keeps its own part, and not that of the request that started it,
unless the trace is in the share, which is the same in every process.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import StatusCode

MOST_TRACES = 5_000
"""Traces whose spans are kept at once; beyond that, the oldest is decided by the spans that have ended."""

MOST_SPANS = 500
"""Spans of a trace that are kept; further ones are exported only if the trace is already kept."""

MOST_DECIDED = 20_000
"""Traces whose decision is remembered, for spans that end after it."""

_NANOSECONDS = 1_000_000_000
_LOW_BITS = (1 << 64) - 1


@dataclass(slots=True)
class _PendingTrace:
    """The spans of this process's part of a trace that have ended, and how many are open."""

    open: int = 0
    is_sampled: bool = False
    spans: list[ReadableSpan] = field(default_factory=list)


class KeepErrorsAndSlow(SpanProcessor):
    """Passes spans on to `inner` once their trace is to be kept.

    `ratio`: the share of traces that is kept in any case, 0 to 1, chosen by the trace's id.
    `slow_seconds`: a trace is kept if one of its spans takes this long.
    """

    def __init__(self, inner: SpanProcessor, *, ratio: float, slow_seconds: float) -> None:
        self._inner = inner
        self._bound = round(ratio * (_LOW_BITS + 1))
        self._slow = slow_seconds * _NANOSECONDS
        self._pending: OrderedDict[int, _PendingTrace] = OrderedDict()
        self._decided: OrderedDict[int, bool] = OrderedDict()
        self._lock = Lock()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """See SpanProcessor."""
        self._inner.on_start(span, parent_context)
        trace_id = span.get_span_context().trace_id
        with self._lock:
            pending = self._pending.setdefault(trace_id, _PendingTrace(is_sampled=self._is_in_share(trace_id)))
            pending.open += 1
            excess = len(self._pending) - MOST_TRACES
            decided = [self._decide(*self._pending.popitem(last=False)) for _ in range(excess)]
        self._pass_on([span for spans in decided for span in spans])

    def on_end(self, span: ReadableSpan) -> None:
        """See SpanProcessor."""
        with self._lock:
            spans = self._add_ended(span)
        self._pass_on(spans)

    def shutdown(self) -> None:
        """See SpanProcessor. Traces that have not ended are decided by the spans that have."""
        with self._lock:
            spans = [span for trace_id, pending in self._pending.items() for span in self._decide(trace_id, pending)]
            self._pending.clear()
        self._pass_on(spans)
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """See SpanProcessor."""
        return self._inner.force_flush(timeout_millis)

    def _add_ended(self, span: ReadableSpan) -> list[ReadableSpan]:
        """Add a span that has ended to its trace; the spans to pass on now."""
        trace_id = span.context.trace_id if span.context else 0
        pending = self._pending.get(trace_id)
        if pending is None:  # The trace was decided while the span was open, because there were too many.
            return [span] if self._decided.get(trace_id) or self._is_failed_or_slow(span) else []
        pending.open -= 1
        pending.is_sampled = pending.is_sampled or self._decided.get(trace_id, False) or self._is_failed_or_slow(span)
        if pending.is_sampled or len(pending.spans) < MOST_SPANS:
            pending.spans.append(span)
        if pending.open:
            spans, pending.spans = (pending.spans, []) if pending.is_sampled else ([], pending.spans)
            return spans
        del self._pending[trace_id]
        return self._decide(trace_id, pending)

    def _decide(self, trace_id: int, pending: _PendingTrace) -> list[ReadableSpan]:
        self._decided[trace_id] = pending.is_sampled
        while len(self._decided) > MOST_DECIDED:
            self._decided.popitem(last=False)
        return pending.spans if pending.is_sampled else []

    def _is_failed_or_slow(self, span: ReadableSpan) -> bool:
        has_failed = span.status.status_code is StatusCode.ERROR
        return has_failed or (span.end_time or 0) - (span.start_time or 0) >= self._slow

    def _is_in_share(self, trace_id: int) -> bool:
        return (trace_id & _LOW_BITS) < self._bound

    def _pass_on(self, spans: list[ReadableSpan]) -> None:
        for span in spans:
            self._inner.on_end(span)
