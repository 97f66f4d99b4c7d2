"""The arithmetic of rate limits: what is left, when it is restored, and what a gateway grants by itself."""

import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.valkey.rate_limits.model import LimitState, RateLimit, RateLimited, SlidingWindow
from recollect.valkey.rate_limits.process_counters import REMEMBERED, TokenBuckets

LIMIT = RateLimit("tenant", "someone", quota=10)
LENGTH = LIMIT.seconds


@st.composite
def windows(draw: st.DrawFn) -> SlidingWindow:
    """A sliding window at some moment after it began."""
    left = draw(st.floats(0.001, LENGTH))
    previous = draw(st.integers(0, 30))
    return SlidingWindow(previous, left if previous else 0.0, draw(st.integers(0, 30)), LENGTH + left)


def later(window: SlidingWindow, seconds: float) -> SlidingWindow:
    """The same window some seconds later, if no more requests came."""
    if seconds < window.current_ttl - LENGTH:
        fading = max(window.previous_ttl - seconds, 0.0)
        return replace(window, previous_ttl=fading, current_ttl=window.current_ttl - seconds)
    left = max(window.current_ttl - seconds, 0.0)
    return SlidingWindow(window.current, left, 0, left + LENGTH)


class TestSlidingWindow:
    @given(windows())
    def test_one_more_request_is_left_after_the_reported_reset(self, window: SlidingWindow) -> None:
        now = window.state(LIMIT)
        then = later(window, now.reset_seconds).state(LIMIT)
        used = window.previous * window.previous_ttl / LENGTH + window.current >= 1
        assert then.remaining > now.remaining or not used
        assert (now.reset > 0) == used

    @given(windows())
    def test_no_more_requests_are_left_before_the_reported_reset(self, window: SlidingWindow) -> None:
        now = window.state(LIMIT)
        assert later(window, now.reset * 0.99).state(LIMIT).remaining == now.remaining

    def test_requests_of_the_previous_window_count_less_and_less(self) -> None:
        half = SlidingWindow(previous=8, previous_ttl=LENGTH / 2, current=3, current_ttl=LENGTH * 1.5)
        assert half.state(LIMIT).remaining == LIMIT.quota - 3 - 4
        assert later(half, LENGTH / 8).state(LIMIT).remaining == LIMIT.quota - 3 - 3

    def test_a_full_window_resets_after_its_end(self) -> None:
        full = SlidingWindow(previous=0, previous_ttl=0, current=10, current_ttl=LENGTH + 20)
        assert full.state(LIMIT).reset_seconds == 21  # Whole seconds, after which it has surely ended.


class TestTokenBuckets:
    def test_a_bucket_grants_a_share_that_refills_evenly(self) -> None:
        now = 0.0
        buckets = TokenBuckets(0.4, lambda: now)
        granted = [buckets.ask([LIMIT], take=True) for _ in range(6)]
        assert [answer.reached is None for answer in granted] == [True] * 4 + [False] * 2
        [state] = granted[-1].states
        assert (state.limit.quota, state.remaining, state.reset) == (4, 0, 15.0)
        now = 15.0
        assert buckets.ask([LIMIT], take=True).reached is None
        assert buckets.ask([LIMIT], take=True).reached is not None

    def test_looking_at_a_bucket_takes_nothing(self) -> None:
        buckets = TokenBuckets(1.0, lambda: 0.0)
        for _ in range(20):
            assert buckets.ask([LIMIT], take=False).states[0].remaining == LIMIT.quota

    def test_a_request_counts_for_all_of_its_limits_or_for_none(self) -> None:
        buckets = TokenBuckets(1.0, lambda: 0.0)
        narrow = RateLimit("key", "one of several", quota=2)
        for _ in range(10):
            buckets.ask([narrow, LIMIT], take=True)
        assert buckets.ask([LIMIT], take=False).states[0].remaining == LIMIT.quota - narrow.quota

    def test_the_number_of_buckets_is_bounded(self) -> None:
        buckets = TokenBuckets(1.0, lambda: 0.0)
        for number in range(3 * REMEMBERED):
            buckets.ask([RateLimit("address", str(number), quota=5)], take=True)
        assert len(buckets) == REMEMBERED
        assert sys.getsizeof(buckets._buckets) < 1_000_000


@pytest.mark.parametrize(
    ("reset", "end"), [(0.2, "Try again in 1 second."), (12.5, "Try again in 13 seconds.")], ids=["one", "several"]
)
def test_the_error_names_the_limit_its_quota_and_the_time_to_wait(reset: float, end: str) -> None:
    reached = LimitState(LIMIT, 0, reset)
    error = RateLimited(reached, [reached])
    assert error.message == f"All 10 requests that this tenant may send in 60 seconds are used. {end}"
    assert error.code == "rate_limited"
    assert str(error.seconds) in end
