"""The list of memories: what it shows, and that its filters are in the address."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.graph.entities.model import NewEntity
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.support.console import Visitor, visiting
from tests.support.gateway import RunningGateway
from tests.support.memories import Agent

MARKUP = "<script>alert(1)</script>"


@pytest.fixture
async def owner_visit(
    gateway: RunningGateway, db: Database, databases: Databases, settings: Settings, caller: Caller
) -> AsyncIterator[Visitor]:
    """The owner of a tenant whose graph has three entities."""
    agent = Agent(db, caller)
    await agent.create(
        NewEntity("Ada", "person", ("Ada likes tea",)),
        NewEntity("Recollect", "project", ()),
        NewEntity(MARKUP, "person", ()),
    )
    async with visiting(gateway, databases, settings, caller) as visitor:
        yield visitor


async def test_nodes_are_listed_and_filtered_by_the_address(owner_visit: Visitor) -> None:
    page = await owner_visit.open("memory")
    assert "Ada" in page.links()
    assert MARKUP in page.links()
    assert [element.text for element in page.all("script") if not element.attributes.get("src")] == []
    projects = await owner_visit.open("memory", kind="project")
    assert "Ada" not in projects.links()
    assert "Recollect" in projects.links()
    without = next(e for e in projects.all("a", class_="chip") if "Remove the filter" in e.attributes["aria-label"])
    assert "Ada" in (await owner_visit.open_address(without.attributes["href"])).links()


async def test_nodes_are_filtered_by_who_wrote_them(owner_visit: Visitor, caller: Caller) -> None:
    """By the newest version, as the list shows it, now and in the past."""
    me = f"person:{owner_visit.person.id}"
    ada = (await owner_visit.open("memory")).links()["Ada"]
    await owner_visit.send(await owner_visit.open_address(f"{ada}/edit"), "/edit", tags="poet")
    mine = await owner_visit.open("memory", author=me)
    listed = {"Ada", "Recollect", MARKUP}
    assert listed & set(mine.links()) == {"Ada"}
    (chosen,) = mine.all("option", selected="", value=me)
    assert chosen.text == owner_visit.person.name
    assert any(e.text == f"author {owner_visit.person.name}" for e in mine.all("a", class_="chip"))
    assert listed & set((await owner_visit.open("memory", author=caller.subject)).links()) == {"Recollect", MARKUP}
    then = await owner_visit.open("memory", author=caller.subject, as_of="1")
    assert listed & set(then.links()) == listed
    nobody = await owner_visit.open("memory", author="person:<b>")
    assert "Nothing passes these filters" in nobody.text
    assert not nobody.all("b")


async def test_no_stored_text_turns_the_words_of_titles_and_labels_around(
    owner_visit: Visitor, db: Database, caller: Caller
) -> None:
    turning = "abc\u202egnp.\u2066exe"
    await Agent(db, caller).create(NewEntity(turning, turning, (), tags=(turning,)))
    listed = await owner_visit.open("memory", kind=turning)
    node = await owner_visit.open_address(listed.links()[turning])
    forget = await owner_visit.open_address(node.links()["Forget"])
    for page in (listed, node, forget):
        labels = [e.attributes.get(name, "") for e in page.elements for name in ("title", "aria-label")]
        shown = [*labels, *(e.text for e in (*page.all("title"), *page.all("h1")))]
        assert any("abcgnp.exe" in text for text in shown), page.address
        assert not [text for text in shown if {"\u202e", "\u2066"} & set(text)], page.address


async def test_a_part_is_rendered_alone_for_htmx(owner_visit: Visitor) -> None:
    part = await owner_visit.part("memory", "results", prefix="reco")
    assert part.all("html") == []
    assert part.elements[0].attributes["id"] == "results"
    assert "Recollect" in part.links()
    assert part.headers["vary"] == "HX-Request, HX-Target"


async def test_an_error_of_a_part_leaves_the_page_as_it_is(owner_visit: Visitor) -> None:
    for target, shown in (("results", "#toasts"), ("dialog", "#dialog")):
        headers = {"HX-Request": "true", "HX-Target": target}
        answer = await owner_visit.http.get(owner_visit.path("memory?as_of=nonsense"), headers=headers)
        assert (answer.status_code, answer.headers["hx-retarget"]) == (400, shown)
        assert "<html" not in answer.text
    stranger = await owner_visit.http.get("/app/nobodys-name/default/memory", headers=headers)
    assert (stranger.status_code, stranger.headers["hx-refresh"]) == (204, "true")
    page = await owner_visit.open("memory", status=400, as_of="nonsense")
    assert "Invalid request" in page.all("h1")[0].text


async def test_the_past_is_shown_and_read_only(owner_visit: Visitor, db: Database, caller: Caller) -> None:
    await Agent(db, caller).create(NewEntity("Grace", "person", ()))
    now, then = await owner_visit.open("memory"), await owner_visit.open("memory", as_of="1")
    assert "Grace" in now.links()
    assert "Grace" not in then.links()
    assert "Viewing" in then.text
    assert "Back to now" in then.links()
    node = await owner_visit.open_address(then.links()["Ada"])
    assert "as_of=1" in then.links()["Ada"]
    assert "Edit" not in node.links()
    edit = (await owner_visit.open_address(now.links()["Ada"])).links()["Edit"]
    form = await owner_visit.open_address(edit)
    form.form("/edit").action += "?as_of=1"
    refused = await owner_visit.send(form, "/edit", status=409, text="changed")
    assert "The past cannot be changed" in refused.text


async def test_what_was_said_is_listed_by_author_time_and_importance(
    owner_visit: Visitor, db: Database, caller: Caller
) -> None:
    agent = Agent(db, caller)
    await agent.remember(
        NewMemory("Grace ships on Tuesdays", about=("Grace",), thread="standup", importance=8.0, tags=("release",)),
        NewMemory("A fact that stands alone", kind="rule"),
    )
    page = await owner_visit.open("memory/said")
    for said in ("Ada likes tea", "Grace ships on Tuesdays", "A fact that stands alone"):
        assert said in page.text
    assert MARKUP not in [cell.text for cell in page.all("td", class_="free-text")], "a name is nothing that was said"
    for filters in ({"thread": "standup"}, {"importance": "7"}, {"tag": "RELEASE"}, {"about": "Grace"}):
        found = await owner_visit.part("memory/said", "results", **filters)
        assert "Grace ships on Tuesdays" in found.text
        assert "Ada likes tea" not in found.text
    other = replace(caller, subject="key:other")
    await Agent(db, other).remember(NewMemory("Ada likes coffee, too", about=("Ada",)))
    others = await owner_visit.part("memory/said", "results", author=other.subject)
    assert [e.text for e in others.all("div", class_="clamped")] == ["Ada likes coffee, too"]
    theirs = await owner_visit.open("memory/said", author=caller.subject)
    assert "Ada likes tea" in theirs.text
    assert "Ada likes coffee, too" not in theirs.text
    assert theirs.all("option", selected="", value=caller.subject)
    assert "Ada likes tea" in (await owner_visit.open("memory/said", author=caller.subject, as_of="1")).text
    assert "Nothing like this was said" in (await owner_visit.open("memory/said", until="2001-01-01")).text
    refused = await owner_visit.open("memory/said", status=400, since="yesterday", thread="standup")
    assert "like 2026-11-28" in refused.all("div", role="alert")[0].text
    assert refused.all("input", name="thread")[0].attributes["value"] == "standup"
