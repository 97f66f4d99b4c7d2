"""The console in headless Chromium: each page is looked at, in light and dark, and narrow, and gone through.

A new page adds its step to `STEPS`: what a person does there. Each step begins signed in, at the page of the step.
Pictures of the pages come to the folder of the variable CONSOLE_PICTURES, if there is one.
"""

import base64
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from recollect.accounts.people.model import Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.graph.entities.model import NewEntity
from recollect.postgres.database import Database
from recollect.transfer.formats import graphml
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.records import EntityRecord
from tests.support.memories import Agent
from tests.support.people import PASSWORD, joined
from tests.support.workers import WorkerProcess
from tests.verify.browser import Chromium, examine
from tests.verify.processes import DeployedGateway

HOSTILE = '<script>document.title="gone"</script><img src=x onerror=alert(1)>'
BIDI, LONG = "\N{RIGHT-TO-LEFT OVERRIDE}txet neddih", "Donaudampfschifffahrt" * 20
MARKUP = "document.querySelectorAll('main script, main img, [onerror], a[href^=javascript]').length"
PNG = b"\x89PNG\r\n\x1a\n"
IMPORTED = "\n".join(
    (
        json.dumps(
            {"type": "entity", "name": "Charles", "entityType": "person", "observations": ["Charles draws plans"]}
        ),
        "a broken line",
    )
)
"""A file with a line that cannot be read."""

WIDE = {"width": 1280, "height": 800}


class Walk:
    """A person at the console of one tenant."""

    def __init__(self, page: Chromium, url: str, tenant: str) -> None:
        self.page, self.url, self.tenant = page, url, tenant

    async def open(self, path: str) -> None:
        await self.page.open(f"{self.url}/app/{self.tenant}/default/{path}")

    async def look(self, name: str) -> None:
        """Examine the page in both schemes, and take its pictures, if they are wanted."""
        for scheme in ("dark", "light"):
            await self.page.do("page.emulateMedia", {"colorScheme": scheme, "reducedMotion": "reduce"})
            await examine(self.page)
            await self._picture(f"{name}-{scheme}")
        await self.page.do("page.setViewportSize", {"width": 390, "height": 844})
        await self._picture(f"{name}-narrow")
        await self.page.do("page.setViewportSize", WIDE)

    async def click(self, selector: str) -> None:
        await self.page.do("page.click", selector)

    async def fill(self, selector: str, text: str) -> None:
        await self.page.do("page.fill", selector, text)

    async def shows(self, selector: str, state: str = "visible") -> None:
        """Wait until an element is there."""
        await self.page.do("page.waitForSelector", selector, {"state": state})

    async def _picture(self, name: str) -> None:
        if folder := os.environ.get("CONSOLE_PICTURES"):
            await self.page.do("page.screenshot", {"path": str(Path(folder) / f"{name}.png")})


async def frame(walk: Walk) -> None:
    """Skip to the content, open each menu, and use commands and the sidebar of a narrow window by the keyboard."""
    await walk.page.press("Tab")
    assert await walk.page.do("page.evaluate", "document.activeElement.className") == "skip"
    await walk.page.press("Enter")
    assert await walk.page.do("page.evaluate", "document.activeElement.id") == "content"
    for summary in ("text=default", "summary >> text=Now", "[aria-label^='Ada:']"):
        await walk.click(summary)
        assert await walk.page.barriers() == []
        await walk.page.press("Escape")
    await walk.page.press("Control+k")
    await walk.shows("#command-list >> text=Connect")
    await walk.look("commands")
    await walk.page.press("Escape")
    await walk.page.do("page.setViewportSize", {"width": 390, "height": 844})
    await walk.click("button[aria-label='Pages']")
    await walk.shows("#sidebar >> text=Connect")
    assert await walk.page.barriers() == []
    await walk.page.press("Escape")
    await walk.page.do("page.setViewportSize", WIDE)


async def memory(walk: Walk) -> None:
    """Filter a list, open a node, look at the past, and use commands by the keyboard."""
    await walk.shows("text=Ada")
    await walk.fill("#field-kind", "project")
    await walk.page.press("Enter")
    await walk.shows("#results >> text=Ada", "detached")
    assert "kind=project" in await walk.page.address()
    await walk.page.do("page.goBack")
    await walk.shows("#results >> text=Ada")
    await walk.page.do("page.keyboard.press", "j")
    await walk.page.do("page.keyboard.press", "Enter")
    await walk.shows("#panel >> text=Ada likes tea")
    assert "/node/" in await walk.page.address()
    await walk.look("panel")
    await walk.click("[aria-label='Close the details']")
    await walk.shows("#panel >> text=Ada likes tea", "detached")
    await walk.shows("#results >> text=Ada")
    await walk.page.do("page.keyboard.press", "Control+k")
    await walk.page.do("page.keyboard.type", "conn")
    await walk.page.do("page.keyboard.press", "Enter")
    await walk.page.arrive("**/connect")
    await walk.open("memory?as_of=1")
    await walk.shows("text=Viewing")
    await walk.look("past")


async def node(walk: Walk) -> None:
    """Edit an observation, compare its versions, and forget it in a dialog."""
    await walk.click("#results >> text=Ada")
    await walk.click("#panel h2 a")
    await walk.shows("h1 >> text=Ada")
    await walk.look("node")
    assert await walk.page.do("page.getAttribute", "main time", "data-localized") == "", "it is in the reader's zone"
    await walk.click("[aria-label^='Edit: Ada likes tea']")
    await walk.fill("textarea", "Ada likes green tea")
    await walk.look("edit")
    await walk.click("text=Save")
    await walk.shows(".toast >> text=It is changed")
    await walk.click("nav >> text=Versions")
    await walk.shows("text=Version 1")
    await walk.look("versions")
    await walk.click("nav >> text=Observations")
    await walk.click("li >> text=Forget")
    await walk.shows("dialog[open] >> text=Forget this observation?")
    await walk.look("forget")
    await walk.page.do("page.keyboard.press", "Escape")
    await walk.click("li >> text=Forget")
    await walk.click("dialog[open] >> button >> text=Forget")
    await walk.shows(".toast >> text=It is outdated")


async def several(walk: Walk) -> None:
    """Choose two nodes by the keyboard and the mouse, see what a tag would do, give it, and list by author."""
    await walk.page.do("page.focus", "[aria-label='Choose Recollect']")
    await walk.page.press("Space")
    await walk.click("[aria-label='Choose Grace']")
    await walk.fill("#several [name=tags]", "checked")
    await walk.page.press("Enter")
    await walk.shows("text=2 will change")
    await walk.look("several")
    await walk.click("main button >> text=Tag")
    await walk.shows(".toast >> text=They have the tags")
    await walk.page.do("page.selectOption", "#field-author", {"label": "Ada"})
    await walk.shows("#results >> text=checked")
    await walk.shows("#results >> text=Analytical", "detached")
    await walk.look("memory-by-author")


async def said(walk: Walk) -> None:
    """Filter what was said, without a page of its own being loaded."""
    await walk.shows("#results >> text=Ada likes")
    await walk.fill("#field-about", "Recollect")
    await walk.page.press("Enter")
    await walk.shows("#results >> text=Ada likes", "detached")
    await walk.shows("#results >> text=It remembers")
    assert "about=Recollect" in await walk.page.address()


async def connect(walk: Walk) -> None:
    """Make a key, which waits for its first call, and revoke it."""
    await walk.fill("#field-name", "laptop of Ada")
    await walk.click("text=Make a key")
    await walk.shows("text=Waiting for the first call")
    await walk.look("key")
    key = await walk.page.do("page.innerText", "#new-key")
    code = "(key) => fetch('/v1/graphs', {headers: {Authorization: `Bearer ${key}`}}).then((answer) => answer.status)"
    assert await walk.page.do("page.evaluate", f"({code})({key!r})") == 200
    await walk.shows("text=A client has called with it")
    await walk.click("td >> text=Revoke")
    await walk.shows("dialog[open] >> text=Revoke the key")
    await walk.click("dialog[open] >> button >> text=Revoke")
    await walk.shows(".toast >> text=It is revoked")


async def graph(walk: Walk) -> None:
    """Choose nodes by keys and in the list, expand one, hide a relation, read the table, and save a picture."""
    await walk.shows("#graph[data-ready]")
    await walk.page.do("page.focus", "#graph-canvas")
    await walk.page.press("Home")
    await walk.shows("#graph-chosen >> text=Ada")
    await walk.click("#graph-nodes >> text=Recollect")
    await walk.shows("#graph-chosen h2 >> text=Recollect")
    await walk.page.do("page.focus", "#graph-canvas")
    await walk.page.press("Enter")
    await walk.shows("#graph-said >> text=0 nodes added", "attached")
    await walk.shows(f"#graph-types >> text={HOSTILE[:20]}")
    assert await walk.page.do("page.evaluate", MARKUP) == 0, "names and relations stay text"
    await walk.click("#graph-types label >> text=works on")
    await walk.shows("#graph-table >> text=works on", "detached")
    await walk.shows("#graph-nodes >> text=Recollect", "detached")
    await walk.look("graph-filtered")
    await walk.click("#graph-types label >> text=works on")
    await walk.shows("#graph-table >> text=works on")
    for form, begin in (("PNG", PNG), ("SVG", b"<?xml"), ("GraphML", b"<?xml")):
        saved = await walk.page.do("downloadedBy", f"[data-export={form}]")
        assert saved["name"] == f"default.{form.lower()}"
        content = base64.b64decode(saved["content"])
        assert content.startswith(begin), form
    read = list(graphml.read(iter([content.decode()])))
    records = [item.record for item in read if isinstance(item, ParsedRecord)]
    named = {record.name for record in records if isinstance(record, EntityRecord)}
    assert named == {"Ada", "Recollect", HOSTILE}
    assert len(read) == len(records) == 5, "with two relations, and without problems"
    await walk.click("#graph-nodes >> text=Ada")
    await walk.click("#graph-chosen >> text=Details")
    await walk.shows("#panel h2 >> text=Ada")
    await walk.look("graph-panel")
    await walk.click("[aria-label='Close the details']")
    await walk.shows("#panel h2", "detached")
    await walk.shows("#graph[data-ready]")


async def graph_commands(walk: Walk) -> None:
    """Open a node by its name from any page."""
    await walk.page.press("Control+k")
    await walk.page.type("recol")
    await walk.shows("#command-list >> text=Recollect Node")
    assert await walk.page.barriers() == []
    await walk.page.press("Enter")
    await walk.page.arrive("**/node/*")
    await walk.shows("h1 >> text=Recollect")
    await walk.open("commands?q=recol")
    await walk.look("command-page")
    await walk.click("main >> text=Recollect")
    await walk.shows("h1 >> text=Recollect")


async def transfer(walk: Walk) -> None:
    """Drop a file, which is tried at once, import it without choosing it again, and download an export."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "people.jsonl"
        file.write_text(IMPORTED)
        await walk.page.do("page.setInputFiles", "#file", str(file))
        await walk.click("text=Send the file")
        await walk.shows("text=It was tried")
        await walk.shows("text=line 2")
        await walk.look("tried")
        await walk.click("button >> text=Import it")
        await walk.page.arrive("**/jobs/**")
    await walk.shows("#state >> text=succeeded")
    await walk.look("job")
    await walk.click("text=Look at the memory")
    await walk.shows("#results >> text=Charles")


async def care(walk: Walk) -> None:
    """Let a job look for duplicates, compare them, try a merge in a dialog, and merge them."""
    await walk.click("text=Look for duplicates")
    await walk.click("text=Look at the duplicates")
    await walk.shows(".pair >> text=alike")
    await walk.shows("#sidebar >> .count")
    await walk.look("duplicates")
    await walk.click("text=They are different")
    await walk.shows(".toast >> text=They are different, for everybody")
    await walk.click("main nav >> text=Different")
    await walk.shows("td >> text=Analytical Engines")
    await walk.look("different")
    await walk.click("td >> text=Take back")
    await walk.shows(".toast >> text=It is taken back")
    await walk.click("main nav >> text=Duplicates")
    await walk.click("text=Merge into this one")
    await walk.shows("dialog[open] >> text=another name for it")
    await walk.look("merge")
    await walk.click("dialog[open] >> button >> text=Merge")
    await walk.shows(".toast >> text=They are one now")
    for tab in ("Expiring", "Outdated and archived", "Problems"):
        await walk.click(f"main nav >> text={tab}")
        await walk.shows(f"main nav >> [aria-current] >> text={tab}")
        await walk.look(tab.split()[0].lower())
    await walk.click("text=Look for them")
    await walk.shows("main >> text=Every link leads to something")


async def jobs(walk: Walk) -> None:
    """Start a job from the list, and ask what would go with old history."""
    await walk.click("text=Rebuild the search index")
    await walk.shows("#state >> text=succeeded")
    await walk.click("text=All jobs")
    await walk.click("text=Remove old history")
    await walk.shows("dialog[open] >> text=There is nothing to remove")
    await walk.look("compact")
    await walk.page.do("page.keyboard.press", "Escape")


async def erasure(walk: Walk) -> None:
    """See what would go with a person, type the name again, and get the receipt."""
    await walk.fill("#field-name", "Grace")
    await walk.click("text=Show what would go")
    await walk.shows("text=Would stay")
    await walk.look("erase")
    await walk.fill("#field-confirmed", "Grace")
    await walk.click("button >> text=Erase")
    await walk.shows("text=Download the receipt")
    await walk.look("receipt")
    receipt = await walk.page.do("page.inputValue", "input[name=receipt]")
    assert json.loads(receipt)["names"] == ["Grace"]


async def people(walk: Walk) -> None:
    """Invite somebody by a link, revoke the invitation, claim a domain, set up a provider, and nearly leave."""
    await walk.click("text=Invite somebody")
    await walk.fill("#field-email", "eve@example.com")
    await walk.click("button >> text=Invite")
    await walk.shows("#invitation-link")
    await walk.look("invitation")
    await walk.click("button >> text=Revoke")
    await walk.shows(".toast >> text=The invitation is revoked")
    await walk.click("nav >> text=E-mail domains")
    await walk.fill("#field-domain", f"{walk.tenant}.example")
    await walk.click("button >> text=Claim")
    await walk.shows("text=not verified")
    await walk.look("domains")
    await walk.click("nav >> text=Identity providers")
    for field, text in (("name", HOSTILE), ("issuer", "https://login.acme.example"), ("client_id", "recollect")):
        await walk.fill(f"#field-{field}", text)
    await walk.fill("#field-client_secret", "a-secret-of-theirs")
    await walk.click("button >> text=Set up")
    await walk.shows(".toast >> text=It is set up")
    await walk.look("providers")
    await walk.click("nav >> text=Members")
    await walk.click("td >> text=Leave")
    await walk.shows("dialog[open] >> text=loses the role")
    await walk.look("leave")
    await walk.page.press("Escape")


async def usage(walk: Walk) -> None:
    """Look at the charts, at another range, and at the same numbers as a table."""
    await walk.shows(".plot canvas")
    assert await walk.page.do("page.evaluate", "document.querySelectorAll('.plot canvas').length") == 5
    await walk.click("nav >> text=7 days")
    await walk.shows(".plot canvas")
    assert "range=week" in await walk.page.address()
    await walk.click("text=The same as a table")
    await walk.shows("tr[data-at]")
    await walk.look("usage-week")


async def audit(walk: Walk) -> None:
    """Filter the log, without a page of its own being loaded, and open the details of an entry."""
    await walk.page.do("page.selectOption", "#field-action", "session.started")
    await walk.shows("#results ul.chips >> text=session.started")
    assert "action=session.started" in await walk.page.address()
    await walk.click("#results summary")
    await walk.shows("#results dl.facts")
    await walk.look("audit-details")


async def webhooks(walk: Walk) -> None:
    """Add a webhook, see its secret once, send a test, pause it, and delete it in a dialog."""
    await walk.click("text=Add a webhook")
    await walk.fill("#field-url", "https://hooks.example.com/recollect")
    await walk.fill("#field-description", HOSTILE)
    await walk.click("text=graph.changed")
    await walk.look("webhook-form")
    await walk.click("button >> text=Add")
    await walk.shows("#webhook-secret")
    await walk.look("webhook-secret")
    await walk.click("text=Go on")
    await walk.click("text=Send a test")
    await walk.shows("td >> text=webhook.test")
    await walk.look("deliveries")
    await walk.click("main >> a >> text=Webhooks")
    await walk.click("button >> text=Pause")
    await walk.shows(".toast >> text=It is paused")
    await walk.look("webhook-list")
    await walk.click("td >> text=Delete")
    await walk.shows("dialog[open] >> text=Delete this webhook?")
    await walk.click("dialog[open] >> button >> text=Delete")
    await walk.shows("text=No webhook is set up")


async def settings(walk: Walk) -> None:
    """Change the time zone, make a graph and erase it, trust an issuer; ask for the deletion, and take it back."""
    await walk.fill("#field-time_zone", "Europe/Berlin")
    await walk.click("button >> text=Save")
    await walk.shows(".toast >> text=The settings are changed")
    await walk.click("nav >> text=Graphs")
    await walk.click("text=Make a graph")
    await walk.fill("#field-name", "people")
    await walk.look("graph-form")
    await walk.click("button >> text=Make")
    await walk.shows(".toast >> text=The graph is made")
    await walk.look("graphs")
    await walk.click("tr:has-text('people') >> text=Erase")
    await walk.shows("dialog[open] >> text=This cannot be undone")
    await walk.look("erase-graph")
    await walk.fill("dialog[open] #field-typed", "people")
    await walk.click("dialog[open] >> button >> text=Erase")
    await walk.shows(".toast >> text=The graph is erased")
    await walk.click("nav >> text=Trusted issuers")
    await walk.fill("#field-name", "Acme")
    await walk.fill("#field-issuer", "https://login.acme.example")
    await walk.click("button >> text=Trust")
    await walk.shows(".toast >> text=accepted from now on")
    await walk.look("issuers")
    await walk.click("nav >> text=Deletion")
    await walk.look("deletion")
    await walk.fill("#field-typed", walk.tenant)
    await walk.fill("#field-password", PASSWORD)
    await walk.click("button >> text=Request the deletion")
    await walk.shows(".past-banner >> text=is to be deleted from")
    await walk.look("deletion-requested")
    await walk.click("button >> text=Keep the organisation")
    await walk.shows(".toast >> text=The organisation is kept")


async def ask(walk: Walk) -> None:
    """Ask, look at why something was found, and at the call as code."""
    await walk.fill("#field-q", "What does Ada like?")
    await walk.page.press("Enter")
    await walk.shows(".hit mark")
    assert "q=What" in await walk.page.address()
    await walk.click(".hit >> nth=0 >> summary >> text=Score")
    await walk.click("summary >> text=As code")
    await walk.shows("#code-2")
    await walk.look("answer")
    assert await walk.page.do("page.evaluate", MARKUP) == 0


async def timeline(walk: Walk) -> None:
    """See a change come by itself, go back by the slider of the menu, and take the last change back."""
    await walk.shows("#live >> text=Live")
    code = (
        "(tenant) => fetch('/v1/graphs/default/memories', {method: 'POST', body: JSON.stringify({items: "
        "[{text: 'Ada likes jam', about: ['Ada']}]}), headers: {'Content-Type': 'application/json', "
        "'X-Recollect-Tenant': tenant}}).then((answer) => answer.ok)"
    )
    assert await walk.page.do("page.evaluate", f"({code})({walk.tenant!r})") is True
    await walk.shows("#news >> text=Ada likes jam")
    await walk.look("live")
    await walk.click("#news a.button >> nth=0")
    await walk.shows("text=This would be done")
    await walk.look("take-back")
    await walk.click("text=Take it back")
    await walk.shows("h1 >> text=It is taken back")
    await walk.look("receipt")
    await walk.click("summary >> text=Now")
    await walk.shows("#slider-menu")
    await walk.page.do("page.focus", "#slider-menu")
    await walk.page.press("Home")
    await walk.page.press("ArrowRight")
    await walk.click("details[open] >> button >> text=Show")
    await walk.shows("text=Viewing")
    assert "as_of=1" in await walk.page.address()
    await walk.click("text=Back to now")
    await walk.shows("text=Viewing", "detached")


Step = Callable[[Walk], Awaitable[None]]
STEPS: dict[str, tuple[str, Step]] = {
    "ask": ("ask", ask),
    "frame": ("memory", frame),
    "memory": ("memory", memory),
    "several": ("memory", several),
    "said": ("memory/said", said),
    "node": ("memory", node),
    "connect": ("connect", connect),
    "graph": ("graph", graph),
    "graph-commands": ("memory", graph_commands),
    "transfer": ("transfer", transfer),
    "care": ("care", care),
    "jobs": ("jobs", jobs),
    "erasure": ("erasure", erasure),
    "people": ("people", people),
    "usage": ("usage", usage),
    "audit": ("audit", audit),
    "webhooks": ("webhooks", webhooks),
    "settings": ("settings", settings),
    "timeline": ("timeline", timeline),
}
"""Each step, with the page at which it begins."""


async def signed_in(page: Chromium, deployed: DeployedGateway, person: Person) -> None:
    """Sign a person in, who comes from nowhere, and so to the first page of their only organisation."""
    await page.open(f"{deployed.gateway.url}/sign-in")
    await page.do("page.fill", "#email", person.email)
    await page.do("page.fill", "#password", PASSWORD)
    await page.press("Enter")
    await page.arrive("**/app/**/memory")


async def remember_some(agent: Agent) -> None:
    """What the steps begin with: some memories, of which two look like markup."""
    await agent.create(
        NewEntity("Ada", "person", ("Ada likes tea",), tags=("taste",), importance=7.0),
        NewEntity("Recollect", "project", ("It remembers",)),
        NewEntity("Analytical Engine", "machine", ("It computes",), tags=("brass",)),
        NewEntity("Analytical Engines", "machine", ("It computes",), tags=("brass",)),
        NewEntity("Grace", "person", ("Grace compiles",)),
        NewEntity(HOSTILE, "person", (HOSTILE, BIDI, LONG), tags=(HOSTILE[:40], BIDI)),
        NewEntity(LONG[:300], "javascript:alert(1)", ()),
    )
    await agent.relate(("Ada", "Recollect", "works on"), (HOSTILE, "Ada", HOSTILE[:60]))


@pytest.fixture
async def owner_of_tenant(db: Database, databases: Databases, caller: Caller, pepper: bytes) -> Person:
    """The owner of a tenant with memories."""
    await remember_some(Agent(db, caller))
    return await joined(databases, caller, Role.OWNER, pepper=pepper)


@pytest.fixture
async def walk(
    deployed: DeployedGateway, worker: WorkerProcess, page: Chromium, caller: Caller, owner_of_tenant: Person
) -> AsyncIterator[Walk]:
    await page.do("page.setViewportSize", WIDE)
    await signed_in(page, deployed, owner_of_tenant)
    yield Walk(page, deployed.gateway.url, caller.tenant)
    assert deployed.faults() == []


async def test_a_person_walks_through_the_console(walk: Walk, subtests: pytest.Subtests) -> None:
    for name, (path, step) in STEPS.items():
        with subtests.test(name):
            await walk.open(path)
            await walk.look(name)
            await step(walk)
            await examine(walk.page)


async def test_what_is_stored_stays_text(walk: Walk) -> None:
    await walk.open("memory")
    await walk.click(f"#results >> text={HOSTILE[:20]}")
    await walk.shows("#panel h2")
    for part in ("observations", "relations", "versions"):
        address = (await walk.page.address()).partition("?")[0]
        await walk.page.open(f"{address}?part={part}")
        assert (await walk.page.do("page.title")).endswith("Recollect")
        assert (
            await walk.page.do("page.evaluate", "document.querySelectorAll('main script, main img, [onerror]').length")
            == 0
        )
        assert await walk.page.do("page.evaluate", "document.querySelectorAll('a[href^=javascript]').length") == 0
        await examine(walk.page)


async def test_all_components_are_shown(deployed: DeployedGateway, page: Chromium) -> None:
    walk = Walk(page, deployed.gateway.url, "")
    await page.do("page.setViewportSize", WIDE)
    await page.open(f"{deployed.gateway.url}/app/components")
    await walk.look("components")


async def test_the_pages_beside_it_have_its_look(walk: Walk) -> None:
    for path, name in (("/account", "account"), ("/", "home"), ("/app?choose=1", "organisations")):
        await walk.page.open(f"{walk.url}{path}")
        await walk.look(name)
    await walk.page.open(f"{walk.url}/account")
    await walk.click("text=Sign out")
    await walk.page.arrive("**/sign-in")
    await walk.look("sign-in")


async def test_a_first_page_is_small(walk: Walk) -> None:
    """All that a browser loads for it, as it is transferred, but pictures."""
    await walk.open("memory")
    sizes = await walk.page.do(
        "page.evaluate",
        "performance.getEntriesByType('navigation').concat(performance.getEntriesByType('resource'))"
        ".map((entry) => entry.encodedBodySize).reduce((sum, size) => sum + size, 0)",
    )
    assert 0 < sizes < 100_000
