"""The console in headless Chromium as each role, as a person of another tenant, and from pages of other sites.

Routes are those of tests/tenancy/test_console.py, so that a new one is tried here, too.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import ROLE_SCOPES, Role
from recollect.postgres.database import Database
from recollect_console.navigation import ENTRIES
from tests.conftest import NewTenant
from tests.support.attacks import lasting
from tests.support.gateway import eventually
from tests.support.memories import Agent, at_work
from tests.support.people import joined
from tests.support.web_server import plain, web_server
from tests.support.workers import WorkerProcess
from tests.tenancy.conftest import Neighbour, contents, settled
from tests.tenancy.test_console import ADMIN, PREFIX, ROUTES, names_of_victim
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

SENT = """async ([addresses, fields, kind]) => {
    const form = () => new URLSearchParams(fields);
    const options = {
        own: () => ({ body: form(), redirect: "manual" }),
        form: () => ({ body: form(), mode: "no-cors" }),
        text: () => ({ body: form().toString(), mode: "no-cors" }),
    }[kind];
    const send = (address) => fetch(address, { method: "POST", credentials: "include", ...options() });
    const statuses = [];
    for (const address of addresses) statuses.push(await send(address).then(({ status }) => status, () => 0));
    return statuses;
}"""
"""The statuses of forms that a page sends: of our own page, or as another site can, which sees no status."""

FRAMED = """async (address) => {
    document.querySelector("iframe")?.remove();
    const frame = document.createElement("iframe");
    const loaded = new Promise((done) => frame.addEventListener("load", done));
    frame.src = address;
    document.body.append(frame);
    await loaded;
}"""
EVIL = b'<!doctype html><html lang="en"><title>Win a prize</title><link rel="icon" href="data:,"><body>'


class QuickWalk(Walk):
    """A person of whom it is known what the pages look like: they are the owner's."""

    async def look(self, name: str) -> None:
        del name


async def entered(page: Chromium, deployed: DeployedGateway, victim: Agent, role: Role, pepper: bytes) -> None:
    """Sign a new person in, in place of the one before."""
    await page.do("context.clearCookies")
    await page.do("page.setViewportSize", WIDE)
    await signed_in(page, deployed, await joined(victim.db, victim.caller, role, pepper=pepper))


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


@dataclass(frozen=True)
class Victim:
    """A tenant with something of everything, and the names of what it has."""

    neighbour: Neighbour
    names: Mapping[str, str]
    owner: asyncpg.Connection

    async def rows(self) -> list[str]:
        return lasting(await contents(self.owner, self.neighbour))


@pytest.fixture
async def victim(db: Database, owner: asyncpg.Connection, new_tenant: NewTenant) -> Victim:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        neighbour = await settled(agent, owner)
    return Victim(neighbour, await names_of_victim(owner, neighbour), owner)


def address_of(route: str, names: Mapping[str, str]) -> str:
    """The path of a route; names that are not given are those of nothing."""
    nothing = dict.fromkeys(re.findall(r"\{(\w+):", PREFIX + route), "01a220d6-0000-7000-8000-000000000000")
    path = re.sub(r"\{(\w+):\w+\}", r"{\1}", PREFIX + route.partition(" ")[2])
    return path.format(**(nothing | {"revision": "1"} | dict(names)))


def routes(method: str) -> list[str]:
    return [route for route in ROUTES if route.startswith(method)]


async def test_pages_of_a_tenant_look_like_nothing_to_a_person_of_another(
    victim: Victim, deployed: DeployedGateway, page: Chromium, db: Database, new_tenant: NewTenant, pepper: bytes
) -> None:
    """To an owner, on every page and for every form, with the token of their own browser."""
    attacker = Agent(db, operator_caller(await new_tenant()))
    await entered(page, deployed, attacker, Role.OWNER, pepper)
    token = await page.do("page.inputValue", "[name=form_token] >> nth=0")
    before = await victim.rows()
    await page.open(f"{deployed.gateway.url}/app/nobodys-name/default/memory")
    nothing = await page.text()
    for route in routes("GET"):
        await page.open(deployed.gateway.url + address_of(route, victim.names))
        assert (await page.do("page.evaluate", STATUS), await page.text()) == (404, nothing), route
    assert victim.names["tenant"] not in nothing.lower()
    await page.faults()  # That answers were 404.
    await examine(page)
    addresses = [address_of(route, victim.names) for route in routes("POST")]
    statuses = await page.do("page.evaluate", called(SENT, addresses, {"form_token": token}, "own"))
    assert statuses == [404] * len(addresses)
    assert await victim.rows() == before


async def test_other_sites_neither_show_pages_nor_send_forms(
    victim: Victim, deployed: DeployedGateway, page: Chromium, pepper: bytes
) -> None:
    """While an owner is signed in: from another host, and from another port of the same one, which cookies go to."""
    await entered(page, deployed, victim.neighbour, Role.OWNER, pepper)
    before = await victim.rows()
    shown, sent = (
        [deployed.gateway.url + address_of(route, victim.names) for route in routes(method) if route not in NO_PAGES]
        for method in ("GET", "POST")
    )
    async with web_server(plain(EVIL, "Content-Type: text/html")) as evil:
        for host in ("localhost", "127.0.0.1"):
            await page.open(f"http://{host}:{evil.port}/")
            for address in shown:
                await page.do("page.evaluate", f"({FRAMED})({address!r})")
                assert (await framed(page)).startswith("chrome-error:"), address
            for kind in ("form", "text"):
                await page.do("page.evaluate", called(SENT, sent, {"form_token": "0" * 64}, kind))
    assert await victim.rows() == before
    await page.open(shown[0])
    assert await page.do("page.evaluate", STATUS) == 200, "the owner is still signed in"


async def framed(page: Chromium) -> str:
    """The address that the newest frame shows, once it shows one."""

    async def is_shown() -> bool:
        return bool(await page.do("frame.url"))

    await eventually(is_shown)
    found: str = await page.do("frame.url")
    return found


def called(function: str, *given: object) -> str:
    """A call of a function of the page with a list of values."""
    return f"({function})({json.dumps(given)})"
