"""The page of a node: what is said of it, how it is changed, and what is shown where somebody else was faster."""

from collections.abc import AsyncIterator

import pytest

from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import GraphPatch
from recollect.graph.nodes import service as nodes
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.support.console import Page, Visitor, visiting
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.memories import Agent

TEXT = "Ada likes tea"


@pytest.fixture
async def visitor(
    gateway: RunningGateway, db: Database, databases: Databases, settings: Settings, caller: Caller
) -> AsyncIterator[Visitor]:
    """The owner of a tenant whose graph has two entities, an observation and a relation."""
    agent = Agent(db, caller)
    await agent.create(NewEntity("Ada", "person", (TEXT,)), NewEntity("Recollect", "project", ()))
    await agent.relate(("Ada", "Recollect", "works on"))
    async with visiting(gateway, databases, settings, caller) as visitor:
        yield visitor


async def page_of(visitor: Visitor, name: str = "Ada") -> Page:
    return await visitor.open_address((await visitor.open("memory")).links()[name])


async def test_a_node_has_observations_relations_and_versions(visitor: Visitor) -> None:
    page = await page_of(visitor)
    assert TEXT in page.text
    relations = await visitor.open_address(page.links()["Relations"])
    assert "works on" in relations.text
    other = await visitor.open_address(relations.links()["Recollect"])
    assert other.all("h1")[0].text == "Recollect"
    versions = await visitor.open_address(page.links()["Versions"])
    assert "Version 1" in versions.text
    then = await visitor.open_address(versions.links()["As it was"])
    assert "Viewing" in then.text


async def test_an_observation_is_edited_and_its_former_text_outdated(visitor: Visitor) -> None:
    form = await visitor.open_address(edit_link(await page_of(visitor)))
    assert form.form("/edit").fields["text"] == TEXT
    saved = await visitor.send(form, "/edit", text="Ada likes green tea", tags="taste, drink", reason="She said so")
    assert "Ada likes green tea" in saved.text
    assert "It is changed" in saved.text
    assert "She said so" in saved.text
    assert saved.text.count("drink") == 1
    assert "Ada" in saved.text


async def test_what_is_left_as_it_was_shown_stays_as_it_is_stored(
    visitor: Visitor, db: Database, caller: Caller, subtests: pytest.Subtests
) -> None:
    """A browser sends other ends of lines than it got, and a tag may hold a comma: nobody changed either."""
    text, tags = "  def tea():\n    pass\n", ("tea, green", "drink")
    for case, told in {"the end of a memory": text, "ends of lines of its own": text.replace("\n", "\r\n")}.items():
        with subtests.test(case):
            [made] = await Agent(db, caller).remember(NewMemory(told, tags=tags, thread=case))
            form = await visitor.open_address(visitor.path(f"node/{made.node_id}/edit"))
            sent = told.replace("\r\n", "\n").replace("\n", "\r\n")
            await visitor.send(form, "/edit", text=sent, importance="3")
            async with db.transaction(caller, read_only=True) as tx:
                graph = await graphs.get_graph(tx, "default")
                head = (await nodes.read_heads(tx, graph, [made.node_id]))[made.node_id]
            assert (head.content, head.tags, head.importance) == (told, tags, 3)


@pytest.mark.proves("security: pasted-secrets")
async def test_neither_blank_texts_nor_keys_are_stored(visitor: Visitor, issue: NewApiKey, caller: Caller) -> None:
    key = (await issue(caller)).secret
    form = await visitor.open_address(edit_link(await page_of(visitor)))
    for entered, fault in (
        ({"text": "\u200b\u2060"}, "visible"),
        ({"tags": "taste, \u200b"}, "visible"),
        ({"text": f"The key is {key}"}, "a key or a token"),
        ({"tags": key}, "a key or a token"),
        ({"reason": key}, "a key or a token"),
    ):
        refused = await visitor.send(form, "/edit", status=400, **entered)
        assert fault in refused.text, entered
    assert TEXT in (await page_of(visitor)).text


async def test_a_faster_change_is_shown_and_nothing_entered_is_lost(visitor: Visitor) -> None:
    link = edit_link(await page_of(visitor))
    slow, fast = await visitor.open_address(link), await visitor.open_address(link)
    await visitor.send(fast, "/edit", text="Ada likes coffee")
    conflict = await visitor.send(slow, "/edit", status=409, text="Ada likes cocoa")
    assert "Somebody changed this while you were writing" in conflict.text
    assert "Ada likes coffee" in conflict.text
    assert conflict.form("/edit").fields["text"] == "Ada likes cocoa"
    assert "Ada likes cocoa" not in (await page_of(visitor)).text
    saved = await visitor.send(conflict, "/edit")
    assert "Ada likes cocoa" in saved.text


async def test_errors_of_input_keep_what_was_entered(visitor: Visitor) -> None:
    form = await visitor.open_address(edit_link(await page_of(visitor)))
    refused = await visitor.send(form, "/edit", status=400, text="Ada likes milk", importance="11")
    assert "from 0 to 10" in refused.all("div", role="alert")[0].text
    assert refused.form("/edit").fields["text"] == "Ada likes milk"
    assert refused.form("/edit").fields["importance"] == "11"


async def test_memories_are_forgotten_after_a_question(visitor: Visitor) -> None:
    page = await page_of(visitor)
    forget = next(e.attributes["href"] for e in page.all("a") if e.text == "Forget" and e.attributes["href"] != "")
    question = await visitor.open_address(forget)
    assert "Recall leaves it out" in question.text
    assert "with 1 observation and 1 relation" in question.text
    done = await visitor.send(question, "/forget", mode="delete")
    assert "Ada" not in done.links()
    assert "It is deleted" in done.text


async def test_readers_see_no_way_to_change_anything(
    visitor: Visitor, gateway: RunningGateway, databases: Databases, settings: Settings, caller: Caller
) -> None:
    edit = edit_link(await page_of(visitor))
    async with visiting(gateway, databases, settings, caller, Role.READER) as reader:
        page = await page_of(reader)
        assert TEXT in page.text
        assert "Edit" not in page.links()
        refused = await reader.send(await reader.open_address(edit), "/edit", status=403, text="changed")
        assert "Only members, admins and owners of this organisation may do this" in refused.text


def edit_link(page: Page) -> str:
    """The address of the form of the first observation."""
    return next(e.attributes["href"] for e in page.all("a") if e.attributes.get("aria-label", "").startswith("Edit: "))


async def test_versions_in_conflict_stand_beside_each_other_until_one_is_saved(
    visitor: Visitor, db: Database, caller: Caller
) -> None:
    async with db.writing(caller, "default") as tx:
        await graphs.configure_graph(tx, "default", GraphPatch(conflict_policy="manual"), "test")
    made = await Agent(db, caller).remember("A fact of two")
    address = visitor.path(f"node/{made[0].node_id}/edit")
    slow, fast = await visitor.open_address(address), await visitor.open_address(address)
    await visitor.send(fast, "/edit", text="A fact of three")
    both = await visitor.send(slow, "/edit", text="A fact of four")
    assert "In conflict with" in both.text
    assert {"three", "four"} <= {element.text for element in [*both.all("ins"), *both.all("del")]}
    settled = await visitor.send(await visitor.open_address(address), "/edit", text="A fact of five")
    assert "In conflict with" not in settled.text


async def test_what_is_close_is_shown(visitor: Visitor, db: Database, caller: Caller) -> None:
    agent = Agent(db, caller)
    made = await agent.remember("The release is on Tuesday", "The release is on Tuesday morning")
    await agent.embed()
    page = await visitor.open(f"node/{made[0].node_id}", part="close")
    assert "The release is on Tuesday morning" in page.links()
    assert "% alike" in page.text
