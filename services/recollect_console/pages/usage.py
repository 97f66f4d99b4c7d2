"""Usage: calls over time and how long they took, what is stored, and the plan with what is used of it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from litestar import Controller, Response, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from recollect.accounts.usage import service as usage
from recollect.accounts.usage.model import Step, UsagePoint, UsageRow, series_span, usage_span
from recollect_console.paging import PAGE, paging_of
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_gateway.management.memory.graphs import Cursor
from recollect_gateway.operations.plan import QuotaBody, read_plan
from recollect_http.web.quotas import QuotaRow

MAX_NAMES = 500
"""Tools, routes and kinds of work that the table by name sums up, at most."""

Range = Annotated[Literal["day", "week", "month", "quarter", "year"], QueryParameter(name="range")]
RANGES = {
    "day": ("24 hours", timedelta(days=1)),
    "week": ("7 days", timedelta(days=7)),
    "month": ("30 days", timedelta(days=30)),
    "quarter": ("90 days", timedelta(days=90)),
    "year": ("A year", timedelta(days=365)),
}
STEPS: Mapping[str, Step] = {"day": "hour", "week": "hour", "month": "day", "quarter": "day", "year": "week"}
"""How long the time of each point is. A year of days would make a page of more than 100 kB."""


class UsagePages(Controller):
    """What the organisation uses."""

    path = "/usage"

    @get("/")
    async def show(
        self,
        visit: NamedDependency[Visit],
        span: Range = "month",
        cursor: Cursor = "",
    ) -> Response[str]:
        """Calls of a range, sums by name, what the graphs store, and the plan."""
        now = datetime.now(UTC)
        per = STEPS[span]
        since = now - RANGES[span][1]
        async with visit.reading_tenant() as tx:
            points = await usage.read_series(tx, series_span(since, now, per, now=now))
            rows, _ = await usage.read_usage(tx, usage_span(since, now, "all", now=now), limit=MAX_NAMES)
            stored, has_more = await usage.list_stored(tx, after=cursor, limit=PAGE)
            plan = await read_plan(tx, now)
        return render(
            visit,
            "usage/show.html",
            points=points,
            per=per,
            total=_total(points, since),
            slowest=max((point.p95_ms for point in points if point.p95_ms is not None), default=None),
            rows=_by_calls(rows),
            stored=stored,
            paging=paging_of(visit, stored[-1].graph if has_more else None),
            plan=plan,
            quotas=[_quota(quota) for quota in plan.quotas],
            span=span,
            ranges=[(name, label) for name, (label, _) in RANGES.items()],
        )


def _total(points: Sequence[UsagePoint], since: datetime) -> UsagePoint:
    return UsagePoint(
        since,
        sum(point.calls for point in points),
        sum(point.errors for point in points),
        sum(point.passages for point in points),
        sum(point.bytes_received for point in points),
    )


def _by_calls(rows: Sequence[UsageRow]) -> list[UsageRow]:
    return sorted(rows, key=lambda row: (-row.calls, row.kind, row.name))


def _quota(quota: QuotaBody) -> QuotaRow:
    return QuotaRow(quota.quota, quota.used or 0, quota.limit)
