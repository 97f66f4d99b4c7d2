"""A gateway whose clock is wrong serves as before, and says so."""

from datetime import UTC, datetime, timedelta

import pytest

from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.postgres.clock_difference import TOLERATED, difference, warning
from recollect.settings import Settings
from tests.support.clocks import clock_ahead
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.people import browser, joined, sign_in

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(("by", "told"), [(50 * HOUR, "ahead of"), (-50 * HOUR, "behind")])
async def test_a_wrong_clock_is_reported_and_ends_nothing(
    gateway: RunningGateway,
    databases: Databases,
    caller: Caller,
    issue: NewApiKey,
    settings: Settings,
    by: timedelta,
    told: str,
) -> None:
    lasting = (await issue(caller, expires_at=datetime.now(UTC) + HOUR)).secret
    person = await joined(databases, caller, Role.MEMBER, pepper=settings.pepper)
    async with gateway.http(lasting) as http, browser(gateway) as page:
        with clock_ahead(by):
            for _ in range(2):  # Looked up, and remembered.
                assert (await http.get("/v1/graphs")).status_code == 200
            assert (await sign_in(page, person.email)).status_code in (302, 303)
            assert (await page.get("/account")).status_code == 200
            said = (await http.get("/health/ready")).json()
            assert (said["status"], told in said["detail"]) == ("degraded", True)
        assert (await page.get("/account")).status_code == 200
        assert (await http.get("/health/ready")).json() == {"status": "ok"}


def test_a_difference_is_what_the_time_of_asking_does_not_explain(subtests: pytest.Subtests) -> None:
    before = datetime(2026, 1, 1, tzinfo=UTC)
    after = before + timedelta(seconds=4)
    for at, seconds in ((0, 0), (2, 0), (4, 0), (-3, 3), (9, -5)):
        with subtests.test(at=at):
            assert difference(before, before + timedelta(seconds=at), after) == timedelta(seconds=seconds)
    assert warning(TOLERATED) is warning(-TOLERATED) is None
    assert warning(TOLERATED * 2) == "The clock of this process is 20 s ahead of that of the database. Set both by NTP."
