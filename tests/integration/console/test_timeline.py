"""The timeline: its groups and filters, its slider, its live feed, and taking changes back."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
import pytest

from recollect.accounts.members import service as members
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.support.console import Page, Visitor, visiting
from tests.support.gateway import RunningGateway
from tests.support.memories import Agent


@pytest.fixture
async def visitor(
    gateway: RunningGateway, db: Database, databases: Databases, settings: Settings, caller: Caller
) -> AsyncIterator[Visitor]:
    """The owner of a tenant in whose graph a key and another author wrote, the key first and last."""
    first, second = Agent(db, caller), Agent(db, replace(caller, subject="user:grace"))
    await first.remember(NewMemory("Ada likes tea", about=("Ada",)))
    await second.remember(NewMemory("Grace likes coffee", about=("Grace",)))
    await first.remember(NewMemory("Ada likes cake", about=("Ada",)))
    async with visiting(gateway, databases, settings, caller) as visitor:
        yield visitor


def revisions(page: Page) -> list[int]:
    return [
        int(element.attributes["data-revision"]) for element in page.all("li") if "data-revision" in element.attributes
    ]


async def test_changes_are_grouped_filtered_and_shown_by_themselves(visitor: Visitor) -> None:
    page = await visitor.open("timeline")
    assert revisions(page) == [3, 2, 1]
    assert len(page.all("section", class_="change-group")) == 3
    assert "Ada likes cake" in page.text
    assert revisions(await visitor.open("timeline", actor="user:grace")) == [2]
    assert revisions(await visitor.open("timeline", operation="no such operation")) == []
    change = await visitor.open("timeline/2")
    assert "Grace likes coffee" in change.text
    before, after = [await visitor.open_address(change.links()[side]) for side in ("Before it", "After it")]
    assert "Grace" not in before.links()
    assert "Grace" in after.links()
    for missing in ("timeline/99", f"timeline/{10**30}", "timeline/0"):
        await visitor.open(missing, status=404)


async def test_a_page_of_the_past_ends_at_its_moment(visitor: Visitor) -> None:
    page = await visitor.open("timeline", as_of="2")
    assert revisions(page) == [2, 1]
    assert "Take back…" not in page.text
    assert page.all("div", id="news")[0].attributes.get("data-live") is None
    await visitor.open("timeline/3", status=404, as_of="2")
    await visitor.open("timeline/live", status=400, as_of="2")
    assert "Back to now" in page.links()


async def test_the_slider_goes_through_the_revisions(visitor: Visitor) -> None:
    page = await visitor.open("timeline", as_of="2")
    (slider,) = page.all("input", type="range", name="as_of")
    assert [slider.attributes[name] for name in ("min", "max", "value")] == ["0", "3", "2"]
    assert len([e for e in page.all("rect") if "data-at" in e.attributes]) == 3
    part = await visitor.part("timeline/slider", "slider")
    assert part.all("input", type="range")
    assert part.all("form") == []


async def test_long_logs_have_pages(visitor: Visitor, db: Database, caller: Caller) -> None:
    agent = Agent(db, caller)
    for number in range(50):
        await agent.remember(NewMemory(f"Fact number {number}"))
    first = await visitor.open("timeline")
    second = await visitor.open_address(first.links()["Next page"])
    assert revisions(first) + revisions(second) == list(range(53, 0, -1))
    assert "Next page" not in second.links()


@pytest.mark.proves("security: console-streams")
async def test_new_changes_come_by_themselves_until_the_membership_ends(
    visitor: Visitor, db: Database, databases: Databases, caller: Caller, gateway: RunningGateway, settings: Settings
) -> None:
    async with (
        visiting(gateway, databases, settings, caller, Role.READER) as reader,
        reader.http.stream("GET", reader.path("timeline/live?after=3")) as stream,
    ):
        assert stream.headers["content-type"].startswith("text/event-stream")
        events = _events(stream)
        await _remember(visitor, "Ada likes jam")
        name, data = await anext(events)
        assert (name, json.loads(data)["revision"]) == ("change", 4)
        part = await reader.part("timeline", "news", after=3)
        assert revisions(part) == [4]
        assert part.all("html") == []
        async with db.transaction(caller) as tx:
            await members.remove_member(tx, reader.person.id)
        await _remember(visitor, "Not for former members")
        name, data = await anext(events)
        assert name == "end"
        assert "Not for" not in data


async def test_what_an_author_wrote_is_taken_back_and_taken_back_again(visitor: Visitor) -> None:
    page = await visitor.open("timeline/take-back", actor="user:grace", since="0")
    assert "This would be done" in page.text
    assert [element.text for element in page.all("li", class_="free-text")] == ["Grace"]
    assert revisions(await visitor.open("timeline")) == [3, 2, 1], "a dry run changes nothing"
    receipt = await visitor.send(page, "timeline/take-back")
    assert "It is taken back" in receipt.text
    names = (await visitor.open("memory")).links()
    assert "Grace" not in names
    assert "Ada" in names
    again = await visitor.open_address(receipt.links()["Take this back, too…"])
    await visitor.send(again, "timeline/take-back")
    assert "Grace" in (await visitor.open("memory")).links()


async def test_conflicts_are_left_alone_and_told(visitor: Visitor, db: Database, caller: Caller) -> None:
    await Agent(db, caller).remember(NewMemory("Grace likes coffee in Paris", about=("Grace",)))
    page = await visitor.open("timeline/take-back", actor="user:grace", since="0")
    assert "Left alone" in page.text
    receipt = await visitor.send(page, "timeline/take-back")
    assert "Left alone" in receipt.text
    assert "Grace" in (await visitor.open("memory")).links()


@pytest.mark.proves("security: console-taking-back")
async def test_only_what_was_shown_is_taken_back_and_only_by_those_who_may(
    visitor: Visitor, gateway: RunningGateway, db: Database, databases: Databases, settings: Settings, caller: Caller
) -> None:
    page = await visitor.open("timeline/take-back", since="2")
    await Agent(db, caller).remember(NewMemory("Written after the dry run"))
    await visitor.send(page, "timeline/take-back")
    texts = (await visitor.open("memory/said")).text
    assert "Written after the dry run" in texts
    assert "Ada likes cake" not in texts
    for wrong in ({"since": "99"}, {"since": "nonsense"}, {"since": "2", "until": "1"}, {"since": "0", "actor": "x"}):
        refused = await visitor.open("timeline/take-back", status=400, **wrong)
        assert refused.form("take-back").fields["since"] == wrong["since"]
    past = await visitor.open("timeline/take-back", since="0", as_of="2")
    assert "The past cannot be changed" in past.text
    async with visiting(gateway, databases, settings, caller, Role.READER) as reader:
        await reader.open("timeline/take-back", status=403)
        assert "Take back…" not in (await reader.open("timeline")).text


async def _remember(visitor: Visitor, text: str) -> None:
    """Write through the gateway, which tells those who listen at once."""
    headers = {"X-Recollect-Tenant": visitor.tenant, "Origin": str(visitor.http.base_url).rstrip("/")}
    items = {"items": [{"text": text, "about": ["Ada"]}]}
    answer = await visitor.http.post("/v1/graphs/default/memories", json=items, headers=headers)
    assert answer.is_success, answer.text


async def _events(stream: httpx2.Response) -> AsyncIterator[tuple[str, str]]:
    """The named events of a stream."""
    name = ""
    async for line in stream.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, line.removeprefix("data: ")
