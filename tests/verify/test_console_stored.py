"""What is stored stays text in every page of the console, in headless Chromium.

Everything that people, agents and clients name or write is markup, a link that runs, a text that turns around what
stands beside it, or a word wider than a window. Routes are those of tests/tenancy/test_console.py.
"""

from collections.abc import Sequence
from dataclasses import replace

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.graph.entities.model import NewEntity
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.support.memories import Agent, at_work
from tests.support.people import joined
from tests.tenancy.conftest import settled
from tests.tenancy.test_console import ROUTES, names_of_victim
from tests.verify.browser import NARROW, Chromium
from tests.verify.processes import DeployedGateway
from tests.verify.test_console import WIDE, signed_in
from tests.verify.test_console_people import NO_PAGES, address_of

MARKUP = "<script>document.title='gone'</script><img src=x onerror=alert(1)>"
TURNED, LONG, RUNS = "\N{RIGHT-TO-LEFT OVERRIDE}detrevni", "Donaudampfschiff" * 12, "javascript:alert(1)"
TEXTS = (MARKUP, TURNED, LONG, RUNS)

OF_TENANT = "tenant_id = $1"
WRITTEN = {
    "tenants SET name": "id = $1",
    "people SET name": "id IN (SELECT person_id FROM members WHERE tenant_id = $1)",
    "api_keys SET name": OF_TENANT,
    "oauth_grants SET client_name": OF_TENANT,
    "identity_providers SET name": OF_TENANT,
    "trusted_issuers SET name": OF_TENANT,
    "webhooks SET description": OF_TENANT,
    "webhook_deliveries SET last_error": OF_TENANT,
    "usage_hourly SET hour = date_trunc('hour', now()), name": OF_TENANT,
    "jobs SET status = 'failed', lease = NULL, claimed_until = NULL, finished_at = now(), error_message": OF_TENANT,
    "passages SET refused_at = now(), refused": OF_TENANT,
    "sessions SET user_agent": "person_id IN (SELECT person_id FROM members WHERE tenant_id = $1)",
}
"""Texts of an organisation, and the rows that have them: all in one are written at once."""

ADDRESSES = {
    "webhooks SET url": OF_TENANT,
    "identity_providers SET issuer": OF_TENANT,
    "trusted_issuers SET issuer": OF_TENANT,
}
"""Addresses, which are no links unless they begin as one does."""

UNSAFE = """(() => {
    const found = [];
    const note = (what, element) => found.push(`${what}: ${element.outerHTML.slice(0, 160)}`);
    const made = "script, img, iframe, object, embed, style, base, meta, link";
    const leads = ["href", "src", "action", "formaction", "xlink:href"];
    const runs = /^\\s*javascript:/i;
    for (const element of document.body.querySelectorAll("*")) {
        const isOurs = element.matches("script[src^='/assets/'], img[src^='/assets/']");
        if (element.matches(made) && !isOurs) note("markup", element);
        for (const { name, value } of element.attributes)
            if (name.startsWith("on") || (leads.includes(name) && runs.test(value))) note(name, element);
    }
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const text = texts.currentNode;
        if (!text.data.includes("\\u202e")) continue;
        let at = text.parentElement;
        const isAlone = (element) => element.textContent.trim() === text.data.trim();
        const isolates = (element) => /isolate|plaintext/.test(getComputedStyle(element).unicodeBidi);
        while (isAlone(at) && !isolates(at) && getComputedStyle(at).display === "inline") at = at.parentElement;
        const after = text.data.replace(/^.*\\u202edetrevni( <script>.*onerror=alert\\(1\\)>)?/s, "").trim();
        if (!isolates(at) && (after || !isAlone(at))) note("turns what is beside it", at);
    }
    return found;
})()"""
"""Elements and attributes that stored text made or that run it, and texts that turn others around."""

TOLD = """(() => {
    const main = document.querySelector("main") ?? document.body;
    const fields = [...main.querySelectorAll("input, textarea, option")].map(({ value, text }) => `${value} ${text}`);
    return [main.innerText, ...fields].join(" ");
})()"""
"""What a page tells without its frame, which always has the name of the organisation; with its fields."""

SHOWN = {
    "GET /ask",
    "GET /audit",
    "GET /care",
    "GET /care/aside",
    "GET /care/expiring",
    "GET /care/merge/{node:uuid}/{other_id:uuid}",
    "GET /care/problems",
    "GET /commands",
    "GET /connect",
    "GET /graph",
    "GET /jobs",
    "GET /jobs/{job_id:uuid}",
    "GET /memory",
    "GET /memory/said",
    "GET /node/{node:str}",
    "GET /node/{node:str}/edit",
    "GET /node/{node:str}/forget",
    "GET /people",
    "GET /people/{person_id:uuid}/remove",
    "GET /people/providers",
    "GET /settings",
    "GET /settings/issuers",
    "GET /timeline",
    "GET /timeline/take-back",
    "GET /timeline/{revision:int}",
    "GET /usage",
    "GET /webhooks",
    "GET /webhooks/{webhook_id:uuid}",
    "GET /webhooks/{webhook_id:uuid}/edit",
}
"""Pages that must show some of these texts: else this would test nothing."""


@pytest.fixture
async def victim(
    db: Database, databases: Databases, owner: asyncpg.Connection, new_tenant: NewTenant, pepper: bytes
) -> tuple[Caller, Person, dict[str, str]]:
    """A tenant where every text is one of these, its owner, and the ids of what it has."""
    caller = operator_caller(await new_tenant())
    async with at_work(db, caller) as agent:
        neighbour = await settled(agent, owner)
        await write_memories(agent)
        person = await joined(databases, caller, Role.OWNER, pepper=pepper)
        await write_texts(owner, caller, person)
        names = await names_of_victim(owner, neighbour)
        nodes = await owner.fetch(
            "SELECT id FROM nodes WHERE tenant_id = $1 AND name = ANY ($2) ORDER BY id", caller.tenant_id, list(TEXTS)
        )
        await owner.execute(
            "UPDATE duplicates SET node_id = $2, other_id = $3 WHERE tenant_id = $1",
            *(caller.tenant_id, nodes[0]["id"], nodes[1]["id"]),
        )
    names |= {"node": str(nodes[0]["id"]), "other_id": str(nodes[1]["id"])}
    return caller, person, names


async def write_memories(agent: Agent) -> None:
    """Memories whose names, kinds, texts, tags, threads and sources are these texts, some expiring and outdated."""
    kinds = (MARKUP, MARKUP, RUNS, LONG)  # Those of one kind may be duplicates.
    await agent.create(*(NewEntity(text, kind, TEXTS, TEXTS[:2]) for text, kind in zip(TEXTS, kinds, strict=True)))
    await agent.relate((MARKUP, TURNED, MARKUP), (TURNED, LONG, TURNED), (LONG, MARKUP, RUNS), (MARKUP, "nobody", LONG))
    new = NewMemory(MARKUP, about=(MARKUP,), thread=MARKUP, ttl_days=2)
    await agent.remember(
        *(replace(new, text=f"{text} {text}", thread=text, tags=TEXTS[:2], source=text) for text in TEXTS)
    )
    await agent.remember(*(NewMemory(f"fact {text}", ttl_days=3) for text in TEXTS))
    await agent.create(NewEntity(f"{MARKUP} old", MARKUP, TEXTS))
    await agent.let_go(f"{MARKUP} old")


async def write_texts(owner: asyncpg.Connection, caller: Caller, person: Person) -> None:
    """Make texts of the organisation these texts, and the person the author of everything."""
    both = f"{TURNED} {MARKUP}"
    for column, rows in WRITTEN.items():
        await owner.execute(f"UPDATE {column} = $2 WHERE {rows}", caller.tenant_id, both)
    for column, rows in ADDRESSES.items():
        await owner.execute(f"UPDATE {column} = $2 WHERE {rows}", caller.tenant_id, RUNS)
    by = f"person:{person.id}"
    await owner.execute("UPDATE changes SET actor = $2 WHERE tenant_id = $1", caller.tenant_id, by)
    await owner.execute("UPDATE nodes SET created_by = $2 WHERE tenant_id = $1", caller.tenant_id, by)


def pages_of(names: dict[str, str]) -> list[tuple[str, str]]:
    """Each page with its route, some of them with more than one query."""
    queries: dict[str, Sequence[str]] = {
        "GET /ask": (f"?q={MARKUP}", f"?q=fact&kind={MARKUP}"),
        "GET /care/problems": ("?check=yes",),
        "GET /commands": ("?q=%3Cscript",),
        "GET /graph": (f"?node={names['node']}",),
        "GET /memory": ("", f"?kind={MARKUP}&tag={TURNED}", "?as_of=5"),
        "GET /memory/said": ("", f"?thread={MARKUP}"),
        "GET /node/{node:str}": tuple(f"?part={part}" for part in ("observations", "relations", "versions", "close")),
        "GET /timeline/take-back": ("?since=0",),
    }
    routes = [route for route in ROUTES if route.startswith("GET") and route not in NO_PAGES]
    named = names | {"revision": "5"}
    return [(route, address_of(route, named) + query) for route in routes for query in queries.get(route, ("",))]


async def test_what_is_stored_stays_text_on_every_page(
    deployed: DeployedGateway,
    page: Chromium,
    victim: tuple[Caller, Person, dict[str, str]],
    subtests: pytest.Subtests,
) -> None:
    caller, person, names = victim
    await page.do("page.setViewportSize", WIDE)
    await signed_in(page, deployed, person)
    shown = set()
    for route, address in pages_of(names):
        with subtests.test(address.replace(caller.tenant, "…")):
            await page.open(deployed.gateway.url + address)
            await stays_text(page)
            told = await page.do("page.evaluate", TOLD)
            shown |= {route} if any(text in told for text in TEXTS) else set()
    assert SHOWN - shown == set()
    for address in ("/account", "/app?choose=1", f"/app/{caller.tenant}/default/erasure"):
        await page.open(deployed.gateway.url + address)
        await stays_text(page)
    await page.do("page.fill", "#field-name", MARKUP)
    await page.do("page.click", "text=Show what would go")
    await page.do("page.waitForSelector", "text=Would stay")
    await stays_text(page)
    assert deployed.faults() == []


async def stays_text(page: Chromium) -> None:
    """Nothing of what is shown has become an element, an attribute or a script, or is wider than a small window."""
    assert await page.do("page.evaluate", UNSAFE) == []
    title = await page.do("page.title")
    assert title != "gone"
    icon = "status of 404"  # The icon that a browser looks for beside a part of a page, which names none.
    assert [fault for fault in await page.faults() if icon not in fault] == [], title
    assert await page.narrow_width() == NARROW, title
