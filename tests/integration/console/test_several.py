"""Several nodes of the list that are changed at once: what is tried, what is done, and where somebody was faster."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.graph.entities.model import NewEntity
from recollect.memory import changing_several
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.support.console import Page, Visitor, visiting
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.memories import Agent

TRY, CHANGE = "/memory/several/try", "/memory/several"
MARKUP = "<script>alert(1)</script>"


@pytest.fixture
async def agent(db: Database, caller: Caller) -> Agent:
    agent = Agent(db, caller)
    await agent.create(
        NewEntity("Ada", "person", ("Ada likes tea",), tags=("taste",)),
        NewEntity("Recollect", "project", ()),
        NewEntity(MARKUP, "person", ()),
    )
    return agent


@pytest.fixture
async def visitor(
    gateway: RunningGateway, databases: Databases, settings: Settings, agent: Agent
) -> AsyncIterator[Visitor]:
    async with visiting(gateway, databases, settings, agent.caller, Role.MEMBER) as visitor:
        yield visitor


def boxes(page: Page) -> dict[str, str]:
    """The values of the boxes of a list, by the name of the node."""
    found = page.all("input", name="node", type="checkbox")
    return {each.attributes["aria-label"].removeprefix("Choose "): each.attributes["value"] for each in found}


def listed(page: Page) -> str:
    """The names in the list, with their statuses."""
    return " ".join(element.text for element in page.all("td", class_="free-text"))


async def revisions(agent: Agent) -> int:
    return (await agent.head()).revision


async def test_chosen_nodes_are_tagged_archived_and_forgotten_once_it_was_shown(visitor: Visitor, agent: Agent) -> None:
    page = await visitor.open("memory", kind="person")
    before = await revisions(agent)
    steps: list[tuple[str, dict[str, Any], str]] = [
        ("tag", {"tags": "taste, poet"}, "Give these the tags taste, poet?"),
        ("archive", {"reason": "old"}, "Archive these?"),
        ("forget", {"reason": "wrong"}, "Forget these?"),
    ]
    for action, fields, said in steps:
        chosen = list(boxes(page).values())
        tried = await visitor.send(page, TRY, node=chosen, action=action, **fields)
        assert said in tried.text
        assert "2 will change" in tried.text
        assert MARKUP in tried.links()
        assert await revisions(agent) == before, "trying writes nothing"
        page = await visitor.send(tried, CHANGE, node=chosen, **fields)
        before += 1
        assert await revisions(agent) == before, "it is one revision"
        assert "kind=person" in page.address, "one comes back to the same list"
    assert listed(page).count("outdated") == 2
    assert page.text.count("poet") == 2
    again = await visitor.send(page, TRY, node=list(boxes(page).values()), action="forget")
    assert "Nothing would change" in again.text


async def test_nothing_is_written_where_somebody_was_faster_and_the_rest_can_be_done_then(
    visitor: Visitor, agent: Agent
) -> None:
    page = await visitor.open("memory")
    chosen = list(boxes(page).values())
    tried = await visitor.send(page, TRY, node=chosen, action="archive")
    await visitor.send(await visitor.open_address(f"{page.links()['Ada']}/edit"), "/edit", tags="poet")
    await agent.delete("Recollect")
    before = await revisions(agent)
    shown = await visitor.send(tried, CHANGE, status=409, node=chosen, reason="old")
    assert await revisions(agent) == before
    assert "1 of those that you chose was changed since" in shown.text
    assert "1 of those that you chose is no longer there" in shown.text
    assert "1 will change" in shown.text
    assert shown.form(CHANGE).fields["reason"] == "old", "what was entered stays"
    left = [element.attributes["value"] for element in shown.all("input", name="node")]
    assert left == [boxes(page)[MARKUP]]
    done = await visitor.send(shown, CHANGE, node=left)
    assert "They are archived" in done.text
    assert listed(done).count("archived") == 1


async def test_what_is_chosen_is_checked_and_bounded(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    page = await visitor.open("memory")
    assert not page.all("input", name="node", checked="")
    everything = await visitor.open_address(page.links()["Choose all on this page"])
    assert len(everything.all("input", name="node", checked="")) == 3
    assert "Choose none" in everything.links()
    chosen = list(boxes(page).values())
    refused: list[tuple[dict[str, Any], str]] = [
        ({"action": "forget"}, "Choose at least one"),
        ({"action": "tag", "node": chosen}, "Enter a tag"),
        ({"action": "burn", "node": chosen}, "The action is one of"),
        ({"action": "forget", "node": ["nonsense"]}, "Reload the list"),
        ({"action": "forget", "node": chosen * 40}, "Choose 100 at most"),
    ]
    for fields, said in refused:
        assert said in (await visitor.send(page, TRY, status=400, **fields)).text
    monkeypatch.setattr(changing_several, "MAX_CHOSEN", 2)
    assert "Choose 1 to 2 nodes" in (await visitor.send(page, TRY, status=400, action="forget", node=chosen)).text
    assert not (await visitor.open("memory", as_of="1")).all("input", name="node"), "the past is read-only"


async def test_readers_are_not_offered_a_choice(
    gateway: RunningGateway, databases: Databases, settings: Settings, agent: Agent
) -> None:
    async with visiting(gateway, databases, settings, agent.caller, Role.READER) as reader:
        page = await reader.open("memory")
        assert "Ada" in page.links()
        assert not page.all("input", name="node")


@pytest.mark.proves("security: pasted-secrets")
async def test_neither_blank_tags_nor_keys_are_stored(visitor: Visitor, agent: Agent, issue: NewApiKey) -> None:
    page, before = await visitor.open("memory"), await revisions(agent)
    key, chosen = (await issue(agent.caller)).secret, list(boxes(page).values())
    refused = ({"action": "tag", "tags": "\u200b"}, {"action": "tag", "tags": key}, {"action": "forget", "reason": key})
    for entered in refused:
        await visitor.send(page, TRY, status=400, node=chosen, **entered)
    assert await revisions(agent) == before
