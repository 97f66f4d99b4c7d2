"""Callers are cached for some seconds, until a change is announced, and never beyond the expiry of their credential."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from recollect.caller import Caller, Scope
from recollect.valkey.caller_changes import EVERYBODY
from recollect_gateway.callers import remembered_callers
from recollect_gateway.callers.remembered_callers import CallerListener, RememberedCallers

SECONDS = 5.0
CALLER = Caller(uuid4(), "acme", "key:1", frozenset({Scope.MEMORY_READ}))
PRESENTED = (b"hash", None, None)


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now, self.is_told = 1000.0, True

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def callers(clock: Clock) -> RememberedCallers:
    return RememberedCallers(SECONDS, lambda: clock.is_told, clock)


def look_up(callers: RememberedCallers, clock: Clock, caller: Caller = CALLER) -> None:
    """Keep a caller whose look-up took a quarter of a second."""
    asked_at = callers.now()
    clock.now += 0.25
    callers.remember(PRESENTED, caller, asked_at)


def test_a_caller_is_cached_for_some_seconds_from_the_start_of_its_look_up(
    callers: RememberedCallers, clock: Clock
) -> None:
    look_up(callers, clock)
    clock.now += SECONDS - 0.5
    assert callers.find(PRESENTED) is CALLER
    clock.now += 0.25
    assert callers.find(PRESENTED) is None


def test_a_look_up_that_took_longer_than_that_is_not_cached(callers: RememberedCallers, clock: Clock) -> None:
    asked_at = callers.now()
    clock.now += SECONDS
    callers.remember(PRESENTED, CALLER, asked_at)
    assert callers.find(PRESENTED) is None


@pytest.mark.parametrize("presented", [(b"other", None, None), (b"hash", "acme", None), (b"hash", None, "https://r")])
def test_another_credential_tenant_or_resource_is_looked_up(
    callers: RememberedCallers, clock: Clock, presented: tuple[bytes, str | None, str | None]
) -> None:
    look_up(callers, clock)
    assert callers.find(presented) is None


@pytest.mark.parametrize("changed", [CALLER.tenant_id, EVERYBODY])
def test_a_change_evicts_the_callers_of_its_tenant(callers: RememberedCallers, clock: Clock, changed: UUID) -> None:
    look_up(callers, clock)
    callers.forget(changed)
    assert callers.find(PRESENTED) is None
    clock.now += 0.25
    look_up(callers, clock)
    assert callers.find(PRESENTED) is CALLER


def test_a_look_up_that_began_before_a_change_is_not_cached(callers: RememberedCallers, clock: Clock) -> None:
    asked_at = callers.now()
    clock.now += 0.25
    callers.forget(CALLER.tenant_id)
    callers.remember(PRESENTED, CALLER, asked_at)
    assert callers.find(PRESENTED) is None


def test_no_caller_is_cached_while_changes_cannot_be_received(callers: RememberedCallers, clock: Clock) -> None:
    look_up(callers, clock)
    clock.is_told = False
    assert callers.find(PRESENTED) is None
    look_up(callers, clock)
    clock.is_told = True
    assert callers.find(PRESENTED) is None


def test_every_caller_is_evicted_when_changes_may_have_been_missed(callers: RememberedCallers, clock: Clock) -> None:
    look_up(callers, clock)
    CallerListener(callers).wake()
    assert callers.find(PRESENTED) is None


@pytest.mark.proves("security: remembered-credentials")
def test_the_expiry_of_a_cached_credential_is_checked_each_time(callers: RememberedCallers, clock: Clock) -> None:
    for ends_in, is_served in ((timedelta(hours=1), True), (timedelta(seconds=-1), False)):
        caller = replace(CALLER, expires_at=datetime.now(UTC) + ends_in)
        look_up(callers, clock, caller)
        assert (callers.find(PRESENTED) is caller) is is_served


def test_zero_seconds_turn_the_cache_off(clock: Clock) -> None:
    callers = RememberedCallers(0, lambda: True, clock)
    callers.remember(PRESENTED, CALLER, callers.now())
    assert callers.find(PRESENTED) is None


def test_the_cache_is_bounded_and_loses_no_change_by_that(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setattr(remembered_callers, "REMEMBERED_CALLERS", 3)
    callers = RememberedCallers(SECONDS, lambda: True, clock)
    for number in range(5):
        callers.remember((bytes([number]), None, None), CALLER, callers.now())
    assert [callers.find((bytes([number]), None, None)) is not None for number in range(5)] == [False] * 2 + [True] * 3
    asked_at = callers.now()
    clock.now += 0.25
    for tenant_id in (CALLER.tenant_id, *(uuid4() for _ in range(10))):
        callers.forget(tenant_id)
    callers.remember(PRESENTED, CALLER, asked_at)
    assert callers.find(PRESENTED) is None
