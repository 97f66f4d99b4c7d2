"""Bulk work takes a share of the time while calls of other tenants are served."""

import asyncio
from dataclasses import dataclass, field
from typing import cast
from uuid import UUID, uuid4

import pytest

from recollect.fairness.presence import Presence
from recollect_workers import pace
from recollect_workers.pace import Pace

TENANT = uuid4()


@dataclass(slots=True)
class Calls:
    """The tenants whose calls are served, as a worker sees them."""

    tenants: set[UUID] = field(default_factory=set)

    async def is_other_tenant_calling(self, tenant_id: UUID) -> bool:
        return bool(self.tenants - {tenant_id})


@dataclass(slots=True)
class Work:
    """Parts of bulk work, each of which takes a second, and how long the worker rested after each."""

    share: float
    calls: Calls = field(default_factory=Calls)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    rests: list[float] = field(default_factory=list)
    now: float = 0.0

    @property
    def pace(self) -> Pace:
        return Pace(cast(Presence, self.calls), self.share, self.stopping, clock=lambda: self.now)

    async def part(self) -> None:
        async with self.pace.part(TENANT):
            self.now += 1


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Bulk work whose rests are recorded, and end at once."""
    work = Work(share=0.5)
    timeout = asyncio.timeout

    def noted(seconds: float) -> asyncio.Timeout:
        work.rests.append(seconds)
        return timeout(0)

    monkeypatch.setattr(asyncio, "timeout", noted)
    return work


@pytest.mark.parametrize(("share", "rest"), [(0.5, 1.0), (0.4, 1.5), (0.01, pace.REST_SECONDS)])
async def test_bulk_work_rests_so_that_it_takes_its_share(work: Work, share: float, rest: float) -> None:
    work.share = share
    work.calls.tenants = {uuid4()}
    await work.part()
    assert work.rests == [pytest.approx(rest)]


async def test_bulk_work_rests_after_a_failure_too(work: Work) -> None:
    work.calls.tenants = {uuid4()}

    async def fail() -> None:
        async with work.pace.part(TENANT):
            work.now += 1
            raise ValueError("out of order")

    with pytest.raises(ValueError, match="out of order"):
        await fail()
    assert work.rests == [1.0]


async def test_bulk_work_does_not_rest_for_calls_of_its_own_tenant(work: Work) -> None:
    work.calls.tenants = {TENANT}
    await work.part()
    assert work.rests == []
    assert not await work.pace.is_slow(TENANT)


async def test_bulk_work_with_a_share_of_one_never_rests(work: Work) -> None:
    work.share, work.calls.tenants = 1.0, {uuid4()}
    await work.part()
    assert work.rests == []
    assert not await work.pace.is_slow(TENANT)


async def test_a_worker_that_stops_does_not_rest(work: Work) -> None:
    work.calls.tenants = {uuid4()}
    work.stopping.set()
    await work.part()
    assert work.rests == []
