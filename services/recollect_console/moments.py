"""The slider over the revisions of a graph: where it may stand, and marks of how fast the graph was written."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recollect.graph.graphs import history
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.history import Span
from recollect.graph.graphs.view import GraphView

HEIGHT = 20
"""Units of the highest mark."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark of a span: from where to where (of 100), how high (of HEIGHT), from which revision and time."""

    start: float
    width: float
    height: float
    revision: int
    at: datetime
    per_hour: float


@dataclass(frozen=True, slots=True)
class Slider:
    """A slider from the oldest revision that can be read to the newest one, where it stands, and its marks."""

    first: int
    newest: int
    value: int
    marks: Sequence[Mark]


async def slider_of(view: GraphView) -> Slider:
    """The slider of a graph; one that cannot be moved where there is nothing to go back to."""
    if not view.is_there:
        return Slider(0, 0, 0, ())
    newest = await graphs.newest_revision(view.tx, view.graph)
    spans = await history.spans_of(view.tx, view.graph, newest)
    first = spans[0].first if spans else newest
    value = newest if view.at is None else view.at.revision
    return Slider(first, newest, value, _marks(spans, first, newest))


def _marks(spans: Sequence[Span], first: int, newest: int) -> list[Mark]:
    """The marks; their height grows by the logarithm, so that fast times stay visible next to slow ones."""
    highest = max((math.log1p(span.per_hour) for span in spans), default=1.0) or 1.0
    length = max(newest - first, 1)
    return [
        Mark(
            round(100 * (span.first - first) / length, 2),
            round(100 * (span.last - span.first) / length, 2),
            round(max(1.0, HEIGHT * math.log1p(span.per_hour) / highest), 1),
            span.first,
            span.began_at,
            span.per_hour,
        )
        for span in spans
    ]
