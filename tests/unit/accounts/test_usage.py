"""Usage that is counted in memory, and the span and cursor of a usage query."""

import asyncio
from collections import Counter as Sums
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from litestar import Litestar, get
from litestar.datastructures import State
from litestar.middleware import ASGIMiddleware
from litestar.response import Stream
from litestar.types import ASGIApp, Message, Receive, Send
from litestar.types import Scope as AsgiScope

from recollect.accounts.usage.model import Counter, Counts, Per, TenantUsage, UsageRow, cursor_of, usage_span
from recollect.accounts.usage.tally import UsageTally
from recollect.caller import Caller, Scope
from recollect.errors import InvalidInput
from recollect.times import FIRST, LAST
from recollect_gateway.process.usage import UsageMiddleware
from tests.support.measured import Measured
from tests.support.timeouts import MAX_WAIT_SECONDS

TEA = Caller(UUID(int=1), "tea", "key:tea", frozenset(Scope))
NOW = datetime(2026, 11, 20, 20, 30, tzinfo=UTC)
TENANTS = [UUID(int=number) for number in range(1, 5)]

calls = st.tuples(st.sampled_from(TENANTS), st.sampled_from(["recall", "remember", "forget"]), st.booleans())
steps = st.lists(calls | st.just("flush") | st.just("fail"), max_size=60)


def test_the_metric_of_uncounted_calls_starts_at_zero(measured: Measured) -> None:
    tally = UsageTally(max_entries=0)
    assert [point.value for _, point in measured.of("recollect.usage.uncounted")] == [0]
    tally.count(TENANTS[0], "tool", "recall", Counts(calls=3))
    assert [point.value for _, point in measured.of("recollect.usage.uncounted")] == [3]


@given(steps)
def test_each_call_is_counted_once_although_writes_fail(steps: list[object]) -> None:
    tally, written, expected = UsageTally(), Sums[tuple[UUID, str]](), Sums[tuple[UUID, str]]()
    errors = 0

    def write(usage: TenantUsage, tenant_id: UUID) -> int:
        for counter, counts in usage.counted.items():
            written[tenant_id, counter.name] += counts.calls
        return sum(counts.errors for counts in usage.counted.values())

    found = 0
    for step in [*steps, "flush"]:
        if isinstance(step, tuple):
            tenant_id, name, failed = step
            tally.count(tenant_id, "tool", name, Counts(calls=1, errors=int(failed)))
            expected[tenant_id, name] += 1
            errors += failed
            continue
        for tenant_id in tally.tenants():
            usage = tally.take(tenant_id)
            tally.count(tenant_id, "tool", "meanwhile", Counts(calls=1))
            expected[tenant_id, "meanwhile"] += 1
            if step == "fail":
                tally.give_back(tenant_id, usage)
            else:
                found += write(usage, tenant_id)
    for tenant_id in tally.tenants():
        found += write(tally.take(tenant_id), tenant_id)
    assert written == expected
    assert found == errors


def test_a_full_tally_goes_on_counting_the_entries_that_it_has() -> None:
    tally = UsageTally(max_entries=2)
    for _ in range(3):
        for name in ("a", "b", "c"):
            tally.count(TENANTS[0], "tool", name, Counts(calls=1))
    tally.note_key(TENANTS[1], TENANTS[1], NOW)
    assert {counter.name: counts.calls for counter, counts in tally.take(TENANTS[0]).counted.items()} == {
        "a": 3,
        "b": 3,
    }
    assert tally.take(TENANTS[1]).keys == {}
    tally.count(TENANTS[0], "tool", "c", Counts(calls=1))
    assert len(tally.take(TENANTS[0]).counted) == 1, "what was taken made room"


def test_usage_that_is_given_back_does_not_exceed_the_bound() -> None:
    tally = UsageTally(max_entries=2)
    for name in ("a", "b"):
        tally.count(TENANTS[0], "tool", name, Counts(calls=1))
    usage = tally.take(TENANTS[0])
    for name in ("c", "d"):
        tally.count(TENANTS[1], "tool", name, Counts(calls=1))
    tally.give_back(TENANTS[0], usage)
    assert tally.take(TENANTS[0]).counted == {}
    assert len(tally.take(TENANTS[1]).counted) == 2


def test_a_tenant_whose_write_failed_comes_after_the_others() -> None:
    tally = UsageTally()
    for tenant_id in TENANTS:
        tally.count(tenant_id, "tool", "a", Counts(calls=1))
    tally.give_back(TENANTS[0], tally.take(TENANTS[0]))
    assert tally.tenants() == [*TENANTS[1:], TENANTS[0]]


def test_the_last_use_of_a_key_is_kept() -> None:
    tally, later = UsageTally(), NOW + timedelta(seconds=5)
    tally.note_key(TENANTS[0], TENANTS[1], NOW)
    older = tally.take(TENANTS[0])
    tally.note_key(TENANTS[0], TENANTS[1], later)
    tally.give_back(TENANTS[0], older)
    assert tally.take(TENANTS[0]).keys == {TENANTS[1]: later}


def test_an_hour_begins_in_utc() -> None:
    counter = Counter(int(NOW.timestamp()) // 3600, "tool", "recall")
    assert counter.since == datetime(2026, 11, 20, 20, tzinfo=UTC)


class TestSpan:
    def test_the_default_span_is_the_last_day(self) -> None:
        span = usage_span(None, None, "hour", now=NOW)
        assert (span.since, span.until) == (datetime(2026, 11, 19, 20, tzinfo=UTC), NOW)

    def test_a_span_begins_at_a_full_hour_of_utc(self) -> None:
        india = timezone(timedelta(hours=5, minutes=30))
        span = usage_span(datetime(2026, 1, 1, 12, 45, tzinfo=india), NOW, "day", now=NOW)
        assert span.since == datetime(2026, 1, 1, 7, tzinfo=UTC)

    @pytest.mark.parametrize(
        ("since", "until", "path"),
        [
            (NOW, NOW - timedelta(hours=1), "to"),
            (NOW - timedelta(days=367), None, "from"),
            (datetime(2026, 1, 1), None, "from"),
            (None, datetime(2026, 1, 1), "to"),
            (datetime.min.replace(tzinfo=timezone(timedelta(hours=1))), None, "from"),
            (None, datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))), "to"),
        ],
    )
    def test_an_impossible_span_is_refused_with_its_path(
        self, since: datetime | None, until: datetime | None, path: str
    ) -> None:
        with pytest.raises(InvalidInput) as refused:
            usage_span(since, until, "hour", now=NOW)
        assert refused.value.path == path

    @given(st.datetimes(timezones=st.just(UTC)), st.sampled_from(["hour", "day", "month", "all"]))
    def test_the_default_span_before_any_end_is_a_day_or_begins_at_the_first_moment(
        self, until: datetime, per: Per
    ) -> None:
        span = usage_span(None, until, per, now=NOW)
        assert timedelta(0) <= span.until - span.since < timedelta(days=1, hours=1)
        assert FIRST <= span.since <= span.until <= LAST


class TestCursor:
    @pytest.mark.parametrize("per", ["hour", "day", "month", "all"])
    def test_a_cursor_keeps_its_row_and_its_span_as_time_passes(self, per: Per) -> None:
        span = usage_span(None, None, per, now=NOW)
        cursor = cursor_of(span, UsageRow(NOW, "route", "GET /v1/graphs/{name}", 1, 0, 0, 0))
        rest = usage_span(None, None, per, now=NOW + timedelta(hours=2), cursor=cursor)
        assert rest == replace(span, after=(NOW, "route", "GET /v1/graphs/{name}"))

    @pytest.mark.parametrize(
        "cursor",
        [
            "",
            "x",
            "2026-01-01",
            "2026-01-01T00:00:00Z a b",
            "2026-01-01T00:00:00Z 2026-01-02T00:00:00Z 2026-01-01 a b",
            "2026-01-02T00:00:00Z 2026-01-01T00:00:00Z 2026-01-01T00:00:00Z a b",
            "2020-01-01T00:00:00Z 2026-01-01T00:00:00Z 2026-01-01T00:00:00Z a b",
            "2026-01-01T00:00:00Z 2026-01-02T00:00:00Z 9999-12-31T23:59:59-12:00 a b",
        ],
    )
    def test_a_malformed_cursor_is_refused(self, cursor: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            usage_span(None, None, "hour", now=NOW, cursor=cursor)
        assert refused.value.path == "cursor"


class AsTea(ASGIMiddleware):
    """Authenticates every request as one caller."""

    async def handle(self, scope: AsgiScope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        scope["user"] = TEA
        await next_app(scope, receive, send)


@get("/long")
async def stream_without_end() -> Stream:
    async def parts() -> AsyncIterator[bytes]:
        yield b"a part"
        await asyncio.Event().wait()

    return Stream(parts())


@get("/short")
async def stream_one_part() -> Stream:
    async def parts() -> AsyncIterator[bytes]:
        yield b"a part"

    return Stream(parts())


@pytest.mark.parametrize(("path", "errors"), [("/long", 1), ("/short", 0)])
async def test_an_answer_that_the_client_breaks_off_counts_as_an_error(path: str, errors: int) -> None:
    tally, gone = UsageTally(), asyncio.Event()
    app = Litestar(
        [stream_without_end, stream_one_part], middleware=[AsTea(), UsageMiddleware()], state=State({"tally": tally})
    )

    async def receive() -> Any:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body" and (path == "/long" or not message["more_body"]):
            gone.set()

    scope: Any = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
    scope |= {"headers": [], "root_path": "", "scheme": "http", "http_version": "1.1", "server": ("tea", 80)}
    await asyncio.wait_for(app(scope | {"client": None}, receive, send), MAX_WAIT_SECONDS)
    [counts] = tally.take(TEA.tenant_id).counted.values()
    assert (counts.calls, counts.errors) == (1, errors)
