"""How long calls took: counted in ranges, and estimated from these counts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from litestar import Litestar, Request, get
from litestar.datastructures import State
from litestar.middleware import ASGIMiddleware
from litestar.testing import AsyncTestClient
from litestar.types import ASGIApp, Receive, Send
from litestar.types import Scope as AsgiScope

from recollect.accounts.usage.model import DURATION_BOUNDS, Counts, count_duration, percentile_ms
from recollect.accounts.usage.tally import UsageTally
from recollect_gateway.process.usage import UsageMiddleware
from recollect_gateway.streaming.streams import OPEN_STREAM
from tests.unit.accounts.test_usage import TEA, AsTea

milliseconds = st.lists(st.floats(0, 9_999), min_size=1, max_size=200)


def summed(durations: list[float]) -> tuple[int, ...]:
    counts = Counts()
    for each in durations:
        counts += Counts(calls=1, durations=count_duration(each / 1_000))
    return counts.durations


@given(milliseconds, st.sampled_from([0.5, 0.95]))
def test_an_estimate_lies_in_the_range_of_the_true_percentile(durations: list[float], share: float) -> None:
    at = next(index for index in range(1, len(durations) + 1) if index >= len(durations) * share)
    true = sorted(durations)[at - 1]
    estimate = percentile_ms(summed(durations), share)
    assert estimate is not None
    upper = next(bound for bound in DURATION_BOUNDS if true / 1_000 * 1_000 <= bound)
    lower = max((bound for bound in DURATION_BOUNDS if bound < upper), default=0)
    assert lower <= estimate <= upper


@given(milliseconds, milliseconds)
def test_counts_of_durations_add_up(some: list[float], others: list[float]) -> None:
    added = Counts(durations=summed(some)) + Counts(durations=summed(others))
    assert added.durations == summed([*some, *others])
    assert sum(added.durations) == len(some) + len(others)
    assert (Counts() + added).durations == (added + Counts()).durations == added.durations


def test_what_took_longer_than_the_last_bound_counts_as_the_last_bound() -> None:
    assert percentile_ms(count_duration(600), 0.5) == DURATION_BOUNDS[-1]


@pytest.mark.parametrize("none", [(), (0, 0), (None,) * 16])
def test_without_timed_calls_there_is_no_percentile(none: tuple[int | None, ...]) -> None:
    assert percentile_ms(none, 0.5) is None


class AsStream(ASGIMiddleware):
    """Marks requests of one path as streams of events."""

    async def handle(self, scope: AsgiScope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        if scope["path"] == "/stream":
            scope["state"][OPEN_STREAM] = True
        await next_app(scope, receive, send)


@get(["/answer", "/stream"])
async def answer(request: Request[Any, Any, State]) -> str:
    return request.url.path


async def test_answers_are_timed_and_streams_are_not() -> None:
    tally = UsageTally()
    app = Litestar([answer], middleware=[AsTea(), AsStream(), UsageMiddleware()], state=State({"tally": tally}))
    async with AsyncTestClient(app) as client:
        for path in ("/answer", "/answer", "/stream"):
            assert (await client.get(path)).status_code == 200
    timed = {counter.name: sum(counts.durations) for counter, counts in tally.take(TEA.tenant_id).counted.items()}
    assert timed == {"GET /answer": 2, "GET /stream": 0}
