"""The console in headless Chromium as each role: what it sees, what it does, and what it may not open.

Routes are those of tests/tenancy/test_console.py, so that a new one is tried here, too.
"""

import re
from collections.abc import Mapping

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import ROLE_SCOPES, Role
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect_console.navigation import ENTRIES
from tests.conftest import NewTenant
from tests.support.memories import Agent
from tests.support.people import joined
from tests.support.workers import WorkerProcess
from tests.tenancy.test_console import ADMIN, PREFIX, ROUTES
from tests.verify.browser import Chromium, examine
from tests.verify.processes import DeployedGateway
from tests.verify.test_console import STEPS, WIDE, Walk, remember_some, signed_in

ACTS = {
    Role.ADMIN: ("connect", "timeline", "transfer", "care", "people", "erasure"),
    Role.MEMBER: ("ask", "graph", "timeline", "transfer", "care", "node"),
    Role.READER: ("ask", "graph", "memory"),
}
"""What each role does in the browser beside the owner, who does everything (test_console.py)."""

STATUS = "performance.getEntriesByType('navigation')[0].responseStatus"
CHANGES = "[...document.querySelectorAll('main form[method=post] button')].map((button) => button.innerText)"
"""The labels of the buttons of a page that change something."""

EXPORT = "Write it in the background"
"""What readers may start: what it writes is for them alone."""

NO_PAGES = {"GET /timeline/live", "GET /jobs/{job_id:uuid}/output", "GET /transfer/export"}
"""Streams and files: nothing that a browser shows."""


class QuickWalk(Walk):
    """A person of whom it is known what the pages look like: they are the owner's."""

    async def look(self, name: str) -> None:
        del name


async def entered(page: Chromium, deployed: DeployedGateway, victim: Agent, role: Role, pepper: bytes) -> None:
    """Sign a new person in, in place of the one before."""
    await page.do("context.clearCookies")
    await page.do("page.setViewportSize", WIDE)
    await signed_in(page, deployed, await joined(Databases(victim.db), victim.caller, role, pepper=pepper))


@pytest.mark.parametrize("role", list(ACTS))
async def test_each_role_sees_and_does_what_it_may_and_no_more(
    role: Role,
    deployed: DeployedGateway,
    worker: WorkerProcess,
    page: Chromium,
    db: Database,
    new_tenant: NewTenant,
    pepper: bytes,
    subtests: pytest.Subtests,
) -> None:
    agent = Agent(db, operator_caller(await new_tenant()))
    await remember_some(agent)
    await entered(page, deployed, agent, role, pepper)
    walk, quick = (kind(page, deployed.gateway.url, agent.caller.tenant) for kind in (Walk, QuickWalk))
    with subtests.test("pages"):
        await pages_of_the_sidebar(walk, role)
    with subtests.test("forbidden pages"):
        await forbidden_pages(walk, role)
    for name in ACTS[role]:
        with subtests.test(name):
            path, step = STEPS[name]
            await quick.open(path)
            await step(quick)
            await examine(page)
    assert deployed.faults() == []


async def pages_of_the_sidebar(walk: Walk, role: Role) -> None:
    """The sidebar leads to the pages of the role, and a reader finds nothing there that changes anything."""
    labels = [entry.label for entry in ENTRIES if entry.scope in ROLE_SCOPES[role]]
    shown = "[...document.querySelectorAll('#sidebar a[data-command]')].map((link) => link.innerText.split('\\n')[0])"
    assert await walk.page.do("page.evaluate", shown) == labels
    for entry in ENTRIES:
        if entry.scope in ROLE_SCOPES[role]:
            await walk.open(entry.page)
            assert await walk.page.do("page.evaluate", STATUS) == 200, entry
            if role is Role.READER:
                assert set(await walk.page.do("page.evaluate", CHANGES)) <= {EXPORT}, entry
                await walk.look(f"{role}-{entry.page}")
            else:
                await examine(walk.page)


async def forbidden_pages(walk: Walk, role: Role) -> None:
    """They say who may open them."""
    forbidden = [route for route, least in ROUTES.items() if least == ADMIN and route.startswith("GET")]
    for route in forbidden if role in (Role.MEMBER, Role.READER) else ():
        await walk.page.open(walk.url + address_of(route, {"tenant": walk.tenant, "graph": "default"}))
        assert await walk.page.do("page.evaluate", STATUS) == 403, route
        text = await walk.page.do("page.innerText", "main")
        assert f"Only admins and owners of this organisation may do this. Your role here is {role}" in text, route
    await walk.page.faults()  # That answers were 403.
    await walk.look(f"{role}-forbidden")


def address_of(route: str, names: Mapping[str, str]) -> str:
    """The path of a route; names that are not given are those of nothing."""
    nothing = dict.fromkeys(re.findall(r"\{(\w+):", PREFIX + route), "01a220d6-0000-7000-8000-000000000000")
    path = re.sub(r"\{(\w+):\w+\}", r"{\1}", PREFIX + route.partition(" ")[2])
    return path.format(**(nothing | {"revision": "1"} | dict(names)))
