"""Callers that are remembered: for so long, until word comes, and never beyond their own end."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from recollect.caller import Caller, Scope
from recollect.platform.caller_changes import EVERYBODY
from recollect_gateway import remembered
from recollect_gateway.remembered import CallerListener, RememberedCallers

SECONDS = 5.0
CALLER = Caller(uuid4(), "acme", "key:1", frozenset({Scope.MEMORY_READ}))
PRESENTED = (b"hash", None, None)


class Clock:
    """Time that passes when it is told to."""

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


def looked_up(callers: RememberedCallers, clock: Clock, caller: Caller = CALLER) -> None:
    """A look-up that took a moment."""
    asked_at = callers.now()
    clock.now += 0.25
    callers.keep(PRESENTED, caller, asked_at)


def test_so_long_after_the_look_up_began_and_no_longer(callers: RememberedCallers, clock: Clock) -> None:
    looked_up(callers, clock)
    clock.now += SECONDS - 0.5
    assert callers.find(PRESENTED) is CALLER
    clock.now += 0.25
    assert callers.find(PRESENTED) is None


def test_a_look_up_that_took_longer_is_not_kept(callers: RememberedCallers, clock: Clock) -> None:
    asked_at = callers.now()
    clock.now += SECONDS
    callers.keep(PRESENTED, CALLER, asked_at)
    assert callers.find(PRESENTED) is None


@pytest.mark.parametrize("presented", [(b"other", None, None), (b"hash", "acme", None), (b"hash", None, "https://r")])
def test_what_is_presented_otherwise_is_looked_up(
    callers: RememberedCallers, clock: Clock, presented: tuple[bytes, str | None, str | None]
) -> None:
    looked_up(callers, clock)
    assert callers.find(presented) is None


@pytest.mark.parametrize("told", [CALLER.tenant_id, EVERYBODY])
def test_word_of_a_change_has_all_of_the_tenant_looked_up(callers: RememberedCallers, clock: Clock, told: UUID) -> None:
    looked_up(callers, clock)
    callers.forget(told)
    assert callers.find(PRESENTED) is None
    clock.now += 0.25
    looked_up(callers, clock)
    assert callers.find(PRESENTED) is CALLER


def test_what_was_being_looked_up_when_word_came_is_not_kept(callers: RememberedCallers, clock: Clock) -> None:
    asked_at = callers.now()
    clock.now += 0.25
    callers.forget(CALLER.tenant_id)
    callers.keep(PRESENTED, CALLER, asked_at)
    assert callers.find(PRESENTED) is None


def test_while_no_word_can_come_nobody_is_remembered(callers: RememberedCallers, clock: Clock) -> None:
    looked_up(callers, clock)
    clock.is_told = False
    assert callers.find(PRESENTED) is None
    looked_up(callers, clock)
    clock.is_told = True
    assert callers.find(PRESENTED) is None


def test_where_words_may_have_been_missed_everybody_is_forgotten(callers: RememberedCallers, clock: Clock) -> None:
    looked_up(callers, clock)
    CallerListener(callers).wake()
    assert callers.find(PRESENTED) is None


def test_the_end_of_a_credential_is_looked_at_each_time(callers: RememberedCallers, clock: Clock) -> None:
    for ends_in, is_served in ((timedelta(hours=1), True), (timedelta(seconds=-1), False)):
        caller = replace(CALLER, expires_at=datetime.now(UTC) + ends_in)
        looked_up(callers, clock, caller)
        assert (callers.find(PRESENTED) is caller) is is_served


def test_with_no_seconds_nobody_is_remembered(clock: Clock) -> None:
    callers = RememberedCallers(0, lambda: True, clock)
    callers.keep(PRESENTED, CALLER, callers.now())
    assert callers.find(PRESENTED) is None


def test_it_holds_so_many_and_forgets_nothing_of_a_change_for_it(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setattr(remembered, "REMEMBERED_CALLERS", 3)
    callers = RememberedCallers(SECONDS, lambda: True, clock)
    for number in range(5):
        callers.keep((bytes([number]), None, None), CALLER, callers.now())
    assert [callers.find((bytes([number]), None, None)) is not None for number in range(5)] == [False] * 2 + [True] * 3
    asked_at = callers.now()
    clock.now += 0.25
    for tenant_id in (CALLER.tenant_id, *(uuid4() for _ in range(10))):
        callers.forget(tenant_id)
    callers.keep(PRESENTED, CALLER, asked_at)
    assert callers.find(PRESENTED) is None
