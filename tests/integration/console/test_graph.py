"""The picture of a graph as data and as a table, and what commands find."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.graph.entities.model import NewEntity
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import NewEdge
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_console.pages import graph
from recollect_console.paging import PAGE
from tests.support.console import Visitor, visiting
from tests.support.gateway import RunningGateway
from tests.support.memories import Agent

MARKUP = "</td><script>alert(1)</script>"
SPOKES = 60


@pytest.fixture
async def visit(
    gateway: RunningGateway, db: Database, databases: Databases, settings: Settings, caller: Caller
) -> AsyncIterator[Visitor]:
    """A person at a graph with a hub, a chain that leads away from it, and a relation to a name that nothing has."""
    agent = Agent(db, caller)
    spokes = [f"Spoke {n:02}" for n in range(SPOKES)]
    await agent.create(*(NewEntity(name, "thing", ()) for name in ("Hub", "Far", MARKUP, *spokes)))
    await agent.relate(*((name, "Hub", "touches") for name in spokes))
    await agent.relate(("Far", "Spoke 00", MARKUP), ("Far", "Undescribed", "names"))
    async with visiting(gateway, databases, settings, caller) as visitor:
        yield visitor


async def data(visitor: Visitor, *, status: int = 200, **query: Any) -> dict[str, Any]:
    answer = await visitor.http.get(visitor.path("graph/data"), params=query)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json() if status == 200 else {}
    return found


def labels(found: dict[str, Any]) -> list[str]:
    return [node["label"] for node in found["nodes"]]


async def test_it_begins_at_the_most_connected_node_and_is_bounded(visit: Visitor) -> None:
    found = await data(visit)
    assert labels(found)[0] == "Hub"
    assert (len(found["nodes"]), len(found["edges"]), found["cut"]) == (SPOKES + 1, SPOKES, None)
    few = await data(visit, size=10)
    assert (len(few["nodes"]), few["cut"]) == (10, "nodes")
    assert {edge["type"] for edge in few["edges"]} == {"touches"}
    for wrong in ({"size": 2_001}, {"size": 0}, {"depth": 4}, {"node": "x" * 513}):
        await data(visit, status=400, **wrong)
    await data(visit, status=404, node="Nobody")


async def test_a_node_is_expanded_by_its_id_and_its_edges_end_in_the_picture(visit: Visitor) -> None:
    spoke = next(node for node in (await data(visit))["nodes"] if node["label"] == "Spoke 00")
    around = await data(visit, node=spoke["id"])
    assert set(labels(around)) == {"Spoke 00", "Hub", "Far"}
    assert MARKUP in {edge["type"] for edge in around["edges"]}
    far = await data(visit, node="Far", depth=2)
    assert next(node for node in far["nodes"] if node["label"] == "Undescribed")["href"] == "", "it has no page"
    ids = {node["id"] for node in far["nodes"]}
    assert all({edge["source"], edge["target"]} <= ids for edge in far["edges"])


async def test_edges_beyond_the_bound_are_said_to_be_left_out(visit: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MAX_EDGES", 5)
    found = await data(visit)
    assert (len(found["edges"]), found["cut"]) == (5, "edges")


@pytest.mark.proves("security: console-stored-text")
async def test_the_table_has_the_same_without_scripts(visit: Visitor) -> None:
    page = await visit.open("graph", depth=1)
    assert f"{SPOKES + 1} nodes, {SPOKES} relations around Hub" in page.text
    assert "Spoke 00" in page.links()
    assert len(page.all("tr")) == 1 + PAGE
    rest = await visit.open_address(page.links()["Next page"])
    assert len(rest.all("tr")) == 1 + SPOKES - PAGE
    assert "Next page" not in rest.links()
    near = await visit.open("graph", node="Far", depth=1)
    assert MARKUP in near.text
    assert [element.text for element in near.all("script") if not element.attributes.get("src")] == []
    assert "Undescribed" not in near.links()
    alone = await visit.open("graph", node=MARKUP)
    assert "1 node, 0 relations" in alone.text
    assert alone.links()[MARKUP].startswith("/app/")
    nobody = await visit.open("graph", status=404, node="Nobody")
    assert "Nothing in this graph has this name" in nobody.text
    assert nobody.all("input", name="node")[0].attributes["value"] == "Nobody"


async def test_the_past_is_drawn_as_it_was(visit: Visitor, db: Database, caller: Caller) -> None:
    agent = Agent(db, caller)
    found = await visit.open("graph")
    before = (await agent.head()).revision
    await agent.relate(*((f"Spoke {n:02}", "Later", "knows") for n in range(SPOKES)))
    await agent.relate(("Later", "Hub", "knows"), ("Later", "Far", "knows"))
    assert labels(await data(visit))[0] == "Later"
    then = await data(visit, as_of=before)
    assert labels(then)[0] == "Hub"
    assert "Later" not in labels(then)
    assert all("as_of=" in node["href"] for node in then["nodes"])
    assert f"as_of={before}" in (await visit.open("graph", as_of=before)).links()["Spoke 00"]
    assert "as_of" not in found.links()["Spoke 00"]


async def test_facts_are_drawn_by_the_beginning_of_their_text(visit: Visitor, db: Database, caller: Caller) -> None:
    agent = Agent(db, caller)
    (fact,) = await agent.remember(NewMemory("Hub was oiled " + "again and " * 50 + "again"))
    hub = (await data(visit))["nodes"][0]["id"]
    async with agent.writing() as (tx, revision):
        await relations.add_edges(tx, revision, [NewEdge(fact.id, UUID(hub), "tells of")])
    facts = [node for node in (await data(visit))["nodes"] if node["fact"]]
    assert [fact["label"][:13] for fact in facts] == ["Hub was oiled"]
    assert len(facts[0]["label"]) == 120


async def test_an_empty_graph_says_what_to_do(
    gateway: RunningGateway, databases: Databases, settings: Settings, caller: Caller
) -> None:
    async with visiting(gateway, databases, settings, caller) as visitor:
        assert "Nothing is related here yet" in (await visitor.open("graph")).text
        assert await data(visitor) == {"nodes": [], "edges": [], "cut": None}
        await visitor.open("graph", graph="nowhere", status=404)


async def test_commands_find_pages_graphs_and_nodes(visit: Visitor, db: Database, caller: Caller) -> None:
    async def found(q: str, **query: Any) -> list[tuple[str, str]]:
        answer = await visit.http.get(visit.path("commands/found"), params={"q": q, **query})
        assert answer.status_code == 200, answer.text
        return [(command["label"], command["what"]) for command in answer.json()]

    assert ("Connect", "Page") in await found("")
    assert await found("hU") == [("Hub", "Node")]
    assert await found("</td") == [(MARKUP, "Node")]
    assert await found("gra") == [("Graph", "Page")]
    assert ("default", "Graph") in await found("def")
    assert await found("Undesc") == [], "nothing is known of it"
    assert len(await found("spoke")) == 20
    page = await visit.open("commands", q="hub")
    node = await visit.open_address(page.links()["Hub"])
    assert node.all("h1")[0].text == "Hub"
    assert "Nothing begins like this" in (await visit.open("commands", q="zzz")).text
    assert "as_of=1" in (await visit.open("commands", q="hub", as_of=1)).links()["Hub"]
