"""The console in headless Chromium as a person of another tenant, and from pages of other sites.

No worker runs beside it: what the tenant has must stay as it is. Routes are those of tests/tenancy/test_console.py.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Role
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.support.attacks import lasting
from tests.support.gateway import eventually
from tests.support.memories import Agent, at_work
from tests.support.web_server import plain, web_server
from tests.tenancy.conftest import Neighbour, contents, settled
from tests.tenancy.test_console import ROUTES, names_of_victim
from tests.verify.browser import Chromium, examine
from tests.verify.processes import DeployedGateway
from tests.verify.test_console_people import NO_PAGES, STATUS, address_of, entered

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


@dataclass(frozen=True)
class Victim:
    """A tenant with something of everything, and the names of what it has."""

    neighbour: Neighbour
    names: Mapping[str, str]
    owner: asyncpg.Connection

    async def rows(self) -> list[str]:
        """Everything that it has, but what its own calls count."""
        return lasting(await contents(self.owner, self.neighbour))


@pytest.fixture
async def victim(db: Database, owner: asyncpg.Connection, new_tenant: NewTenant) -> Victim:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        neighbour = await settled(agent, owner)
    return Victim(neighbour, await names_of_victim(owner, neighbour), owner)


def routes(method: str) -> list[str]:
    """The routes of a tenant that this method asks for."""
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
