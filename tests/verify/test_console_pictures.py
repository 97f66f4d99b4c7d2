"""Pictures of the main pages of the console, as docs/console.md shows them.

`make console-pictures` writes them anew; without that, this only checks that the pages can be photographed and that the
documents show them all. What is seen is always the same: the memories, their times, the window and its colours.
"""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest
from PIL import Image

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import NewKey, operator_caller
from recollect.accounts.tenants import service as tenants
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.graph.entities.model import NewEntity
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from tests.support.memories import Agent, at_work
from tests.support.people import joined
from tests.verify.browser import Chromium
from tests.verify.processes import ROOT, DeployedGateway
from tests.verify.test_console import WIDE, Walk, signed_in

FOLDER = "CONSOLE_PICTURES_OF_DOCS"
"""The variable that names the folder for the pictures."""

DOCS = ROOT / "docs"
COLOURS = 128
MOST_BYTES = 80_000

MORNING = datetime(2026, 11, 23, 8, 52, tzinfo=UTC)
MINUTES = (0, 4, 9, 67, 71, 190, 1450, 1453, 1512, 2890, 2897, 2950)
"""When each revision was written, after that morning; those that follow, ten minutes after one another."""

PAGES = {
    "ask": "ask?q=When+do+we+ship%3F",
    "node": "memory?prefix=Checkout",
    "graph": "graph?node=Checkout&depth=2",
    "timeline": "timeline",
    "care": "care",
    "connect": "connect",
}
SAME_EACH_TIME = """(() => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode())
        texts.currentNode.data = texts.currentNode.data
            .replace(/127\\.0\\.0\\.1:\\d+/, "127.0.0.1:8787")
            .replace(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, "01a20b2e-5b80-7c11-9d3e-8f2a6c4b1e07");
})()"""
"""Ports and ids differ each time: pictures have the port of `make run`, and one id."""


@pytest.fixture
async def team(
    db: Database,
    databases: Databases,
    operator: Operator,
    owner: asyncpg.Connection,
    deployed: DeployedGateway,
    page: Chromium,
    pepper: bytes,
) -> AsyncIterator[Walk]:
    """The owner of an organisation where agents have kept what a team knows, at its console."""
    caller = operator_caller(await tenants.create_tenant(operator, "acme-team", "Acme"))
    person = await joined(databases, caller, Role.OWNER, pepper=pepper)
    async with at_work(db, caller) as agent:
        await remember_as_a_team(agent, pepper)
        await agent.embed()
        await date(owner, caller)
        await propose_duplicates(owner, caller)
        await page.do("page.setViewportSize", WIDE)
        await page.do("page.emulateMedia", {"colorScheme": "light", "reducedMotion": "reduce"})
        await signed_in(page, deployed, person)
        yield Walk(page, deployed.gateway.url, caller.tenant)


async def remember_as_a_team(agent: Agent, pepper: bytes) -> None:
    """What two agents write down, each with a key of its own."""
    clients = []
    for name in ("Claude Code", "Cursor"):
        async with agent.db.transaction(agent.caller) as tx:
            key = await identity.create_key(tx, NewKey(name), pepper=pepper)
        clients.append(Agent(agent.db, replace(agent.caller, subject=f"key:{key.key.id}")))
    claude, cursor = clients
    await claude.create(
        NewEntity("Checkout", "service", ("Checkout takes payments by card and by invoice",), ("payments",), 8.0),
        NewEntity("Ada", "person", ("Ada leads the payments team",), ("payments",)),
        NewEntity("Grace", "person", ("Grace looks after the database",)),
    )
    await claude.remember(
        NewMemory(
            "We ship on Tuesdays, never on a Friday.", about=("Release process",), kind="process", tags=("release",)
        ),
        NewMemory("A release needs the approval of two people.", about=("Release process",), tags=("release",)),
    )
    await cursor.create(
        NewEntity("Billing service", "service", ("Billing sends invoices on the first of the month",), ("payments",)),
        NewEntity("PostgreSQL", "database", ("The database is PostgreSQL 18",)),
        NewEntity("Search", "service", ("Search is rebuilt every night",)),
    )
    await cursor.relate(
        ("Ada", "Checkout", "owns"),
        ("Grace", "PostgreSQL", "operates"),
        ("Checkout", "Billing service", "calls"),
        ("Billing service", "PostgreSQL", "stores in"),
        ("Search", "PostgreSQL", "reads"),
        ("Checkout", "Release process", "follows"),
    )
    await claude.observe(
        "Checkout", "A payment is tried three times before it fails", "Refunds need an approval above 500 €"
    )
    await claude.create(
        NewEntity("Linus", "person", ("Linus is on call in odd weeks",)),
        NewEntity(
            "Search service", "service", ("Search is rebuilt every night", "It has its own cluster"), ("payments",)
        ),
        NewEntity("Web shop", "service", ("The web shop is written in TypeScript",)),
    )
    await cursor.relate(
        ("Linus", "Search", "owns"),
        ("Web shop", "Checkout", "calls"),
        ("Web shop", "Search", "calls"),
        ("Grace", "Release process", "approves"),
    )
    await cursor.observe(
        "Billing service", "Invoices are numbered without gaps", "Its tests need the sandbox of the bank"
    )
    await claude.observe("Release process", "The release of 24 November was taken back: a migration took too long")


async def date(owner: asyncpg.Connection, caller: Caller) -> None:
    """Give everything the time of its revision, and each change the name of the tool that an agent would use."""
    newest = await owner.fetchval("SELECT max(revision) FROM changes WHERE tenant_id = $1", caller.tenant_id)
    minutes = [*MINUTES, *(MINUTES[-1] + 10 * n for n in range(1, newest))][:newest]
    times = [MORNING + timedelta(minutes=each) for each in minutes]
    await owner.execute(
        "UPDATE changes SET at = ($2::timestamptz[])[revision] WHERE tenant_id = $1", caller.tenant_id, times
    )
    for table in ("nodes", "node_versions", "observations", "relations"):
        await owner.execute(
            f"UPDATE {table} SET created_at = ($2::timestamptz[])[added_revision] WHERE tenant_id = $1",
            *(caller.tenant_id, times),
        )
    await owner.execute(
        "UPDATE nodes SET updated_at = ($2::timestamptz[])[added_revision] WHERE tenant_id = $1",
        caller.tenant_id,
        times,
    )
    await owner.execute("UPDATE node_versions SET began_at = created_at WHERE tenant_id = $1", caller.tenant_id)
    await owner.execute(
        "UPDATE changes SET operation = CASE WHEN counts ? 'relations_added' THEN 'relate' ELSE 'remember' END "
        "WHERE tenant_id = $1",
        caller.tenant_id,
    )
    await owner.execute("UPDATE observations SET said_at = created_at WHERE tenant_id = $1", caller.tenant_id)
    await owner.execute(
        "UPDATE passages p SET said_at = o.said_at FROM observations o WHERE p.tenant_id = $1 AND o.tenant_id = $1 "
        "AND p.memory_id = o.id",
        caller.tenant_id,
    )


async def propose_duplicates(owner: asyncpg.Connection, caller: Caller) -> None:
    """As the job does that compares entities."""
    await owner.execute(
        """INSERT INTO duplicates (tenant_id, graph_id, node_id, other_id, likeness, found_at)
        SELECT $1, (array_agg(graph_id))[1], min(id::text)::uuid, max(id::text)::uuid, 0.94, now() FROM nodes
        WHERE tenant_id = $1 AND name IN ('Search', 'Search service')""",
        caller.tenant_id,
    )


async def test_the_main_pages_are_photographed(team: Walk, tmp_path: Path) -> None:
    folder = ROOT / os.environ[FOLDER] if FOLDER in os.environ else tmp_path
    for name, path in PAGES.items():
        await team.open(path)
        if name == "node":
            await team.click("#results td >> text=Checkout")
            await team.click("#panel h2 a")
            await team.shows("h1 >> text=Checkout")
        elif name == "graph":
            await team.shows("#graph[data-ready]")
        elif name == "timeline":
            await team.shows("#live >> text=Live")
        await team.page.do("page.evaluate", SAME_EACH_TIME)
        picture = folder / f"console-{name}.png"
        await team.page.do("page.screenshot", {"path": str(picture), "caret": "hide"})
        Image.open(picture).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)
        assert picture.stat().st_size < MOST_BYTES, name


def test_the_documents_show_each_picture() -> None:
    shown = (DOCS / "console.md").read_text()
    for name in PAGES:
        picture = DOCS / "assets" / f"console-{name}.png"
        assert f"](assets/{picture.name})" in shown
        assert picture.stat().st_size < MOST_BYTES
