"""The pages of operators in headless Chromium: each is looked at, in light and dark, and narrow, and gone through.

A new page adds its step to `STEPS`, as for the console (test_console.py).
"""

from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from secrets import token_hex

import asyncpg
import pytest

from recollect.accounts.operator_keys import service as operator_keys
from recollect.accounts.tenants import service as tenants
from recollect.postgres.connections import OPERATOR_ROLE
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres
from recollect_operator.app import create_app
from tests.support.gateway import RunningGateway, serving
from tests.verify.browser import Chromium, examine
from tests.verify.test_console import BIDI, HOSTILE, LONG, MARKUP, WIDE, Walk


class OperatorWalk(Walk):
    """An operator at the pages; `tenant` is the slug of a tenant with hostile texts."""

    async def open(self, path: str) -> None:
        await self.page.open(f"{self.url}/operator/{path.format(tenant=self.tenant)}")


async def find_tenant(walk: OperatorWalk) -> None:
    """Find a tenant by the search of the top bar, and open it by the keyboard."""
    await walk.fill("#search", walk.tenant)
    await walk.page.press("Enter")
    await walk.shows(f"main >> text={walk.tenant}")
    await walk.page.do("page.focus", f"main a[href$='/{walk.tenant}']")
    await walk.page.press("Enter")
    await walk.shows("h2 >> text=Use against the plan")
    assert await walk.page.do("page.evaluate", MARKUP) == 0


async def change_tenant(walk: OperatorWalk) -> None:
    """Change its plan, suspend it once the slug is typed, and resume it."""
    await walk.page.do("page.selectOption", "#plan", "team")
    await walk.click("text=Change the plan")
    await walk.shows("text=The plan is changed")
    await walk.click("text=Suspend…")
    await walk.fill("#field-typed", "another")
    await walk.click("button >> text=Suspend the tenant")
    await walk.shows("text=to confirm")
    await walk.page.faults()  # That the answer was 400.
    await walk.look("operator-suspend")
    await walk.fill("#field-typed", walk.tenant)
    await walk.click("button >> text=Suspend the tenant")
    await walk.shows("text=The tenant is read-only")
    await walk.look("operator-tenant-read-only")
    await walk.click("button >> text=Resume")
    await walk.shows("text=The tenant is active again")


async def delete_tenant(walk: OperatorWalk) -> None:
    """Delete it and restore it."""
    await walk.fill("#field-typed", walk.tenant)
    await walk.click("button >> text=Delete the tenant")
    await walk.shows("text=It is deleted")
    await walk.look("operator-deleted")
    await walk.click("button >> text=Restore")
    await walk.shows("text=The tenant is kept")


async def make_plan(walk: OperatorWalk) -> None:
    """Make a plan; one that is refused keeps what was entered."""
    await walk.click("text=New plan")
    await walk.fill("#field-name", f"plan-{token_hex(4)}")
    await walk.fill("#field-graphs", "many")
    await walk.click("button >> text=Save the plan")
    await walk.shows("text=a whole number")
    await walk.page.faults()  # That the answer was 400.
    await walk.look("operator-plan")
    await walk.fill("#field-graphs", "3")
    await walk.click("button >> text=Save the plan")
    await walk.shows("text=The plan is saved")


async def look_only(walk: OperatorWalk) -> None:
    """Times are in the reader's zone, and the sidebar of a narrow window opens by the keyboard."""
    await walk.page.do("page.setViewportSize", {"width": 390, "height": 844})
    await walk.click("button[aria-label='Pages']")
    await walk.shows("#sidebar >> text=Health")
    assert await walk.page.barriers() == []
    await walk.page.press("Escape")
    await walk.page.do("page.setViewportSize", WIDE)


Step = Callable[[OperatorWalk], Awaitable[None]]
STEPS: dict[str, tuple[str, Step]] = {
    "tenants": ("tenants", find_tenant),
    "tenant": ("tenants/{tenant}", change_tenant),
    "delete": ("tenants/{tenant}/delete", delete_tenant),
    "plans": ("plans", make_plan),
    "cells": ("cells", look_only),
    "health": ("health", look_only),
    "log": ("log?subject=tenant:{tenant}", look_only),
}
"""Each step, with the page at which it begins."""


@pytest.fixture(scope="module")
def operator_api(settings: Settings, postgres: LocalPostgres) -> Iterator[RunningGateway]:
    """The operator API with its pages, with its own role."""
    own = settings.model_copy(update={"operator_database_url": postgres.url(OPERATOR_ROLE)})
    with serving(own, create_app(own)) as api:
        yield api


@pytest.fixture
async def walk(
    operator_api: RunningGateway, page: Chromium, operator: Operator, owner: asyncpg.Connection, pepper: bytes
) -> OperatorWalk:
    """An operator who signed in by the form."""
    _, key = await operator_keys.create_key(operator, HOSTILE[:60], lifetime=timedelta(hours=1), pepper=pepper)
    tenant = await tenants.create_tenant(operator, f"walked-{token_hex(4)}", "Acme", plan="free")
    await owner.execute("UPDATE tenants SET name = $2 WHERE id = $1", tenant.id, f"{HOSTILE} {BIDI} {LONG}"[:200])
    await owner.execute(
        "INSERT INTO deletion_requests (tenant_id, requested_by) VALUES ($1, gen_random_uuid())", tenant.id
    )
    walk = OperatorWalk(page, operator_api.url, tenant.slug)
    await page.do("page.setViewportSize", WIDE)
    await walk.open("tenants")
    await page.arrive("**/operator/sign-in**")
    await walk.look("operator-sign-in")
    await page.do("page.fill", "#field-key", key)
    await page.press("Enter")
    await page.arrive("**/operator/tenants")
    return walk


async def test_an_operator_walks_through_the_pages(walk: OperatorWalk, subtests: pytest.Subtests) -> None:
    for name, (path, step) in STEPS.items():
        with subtests.test(name):
            await walk.open(path)
            await walk.look(f"operator-{name}")
            assert await walk.page.do("page.evaluate", MARKUP) == 0
            await step(walk)
            await examine(walk.page)
    await walk.click("summary[aria-label$='sign out']")
    await walk.click("text=Sign out")
    await walk.page.arrive("**/operator/sign-in")
