"""A graph with two forms of one name, as an import of old made them: what a name means, and what deletes it."""

import json
import unicodedata
from collections.abc import Sequence
from typing import Any

import asyncpg
import pytest
from mcp import Client

from recollect.caller import Caller
from tests.contract.conftest import ConnectedClient
from tests.support.gateway import LEGACY, answer, texts_of

COMPOSED = "Zoë"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)
SPACED = f"{COMPOSED} "


@pytest.fixture
async def client(connected: ConnectedClient, key: str) -> Client:
    return await connected(key, "/mcp/x/all", LEGACY)


async def test_the_living_form_is_what_every_form_means(
    client: Client, caller: Caller, owner: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    """An expired, archived, forgotten or merely named form hides no entity that holds, now or in the past."""
    for hidden, living in ((COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)):
        for state in ("expired", "archived", "outdated", "placeholder"):
            with subtests.test(state=state, hidden=hidden):
                graph = f"{state}-{len(hidden)}"
                if state == "placeholder":
                    await store(client, graph, living, related=[hidden])
                else:
                    await store(client, graph, hidden, living)
                    await hide(owner, caller, graph, hidden, state)
                for form in (hidden, living, SPACED):
                    for moment in ({}, {"as_of": "1"}):
                        opened = await answer(client, "open_nodes", graph=graph, names=[form], **moment)
                        assert [e["observations"] for e in opened["entities"]] == [[f"said of {living!r}"]]
                        assert opened["entities"][0].get("status") is None
                        found = await answer(client, "get_entity", graph=graph, name=form, **moment)
                        assert found["name"] == living


async def test_a_write_reaches_the_living_form(client: Client, caller: Caller, owner: asyncpg.Connection) -> None:
    await store(client, "default", DECOMPOSED, COMPOSED)
    await hide(owner, caller, "default", COMPOSED, "archived")
    await answer(client, "remember", items=[{"text": "paints barns", "about": [COMPOSED]}])
    entities = {e["name"]: e for e in (await answer(client, "read_graph"))["entities"]}
    assert entities[DECOMPOSED]["observations"] == [f"said of {DECOMPOSED!r}", "paints barns"]
    assert entities[COMPOSED]["status"] == "archived"


async def test_a_write_of_an_expired_form_reaches_the_living_one(
    client: Client, caller: Caller, owner: asyncpg.Connection
) -> None:
    for graph in ("created", "imported"):
        await store(client, graph, DECOMPOSED, COMPOSED)
        await hide(owner, caller, graph, COMPOSED, "expired")
    made = await answer(client, "create_entities", graph="created", entities=[entity(COMPOSED)])
    assert made["entities"] == []
    await store(client, "imported", COMPOSED)  # A file that the graph came from has the name of each form.
    graph = await answer(client, "read_graph", graph="imported")
    assert [e["name"] for e in graph["entities"]] == [DECOMPOSED, COMPOSED]


async def test_a_deletion_takes_all_forms_and_tells_them(client: Client, subtests: pytest.Subtests) -> None:
    """So that the same call again finds nothing to delete, whichever form it names."""
    for form in (COMPOSED, DECOMPOSED, SPACED):
        for tool, arguments in (
            ("delete_entities", {"entityNames": [form]}),
            ("forget", {"names": [form], "mode": "delete"}),
        ):
            with subtests.test(tool=tool, form=form):
                graph = f"{tool}-{[COMPOSED, DECOMPOSED, SPACED].index(form)}"
                await store(client, graph, COMPOSED, DECOMPOSED)
                text = texts_of(await client.call_tool(tool, {"graph": graph, **arguments}))[-1]
                assert repr(COMPOSED) in text
                assert repr(DECOMPOSED) in text
                assert (await answer(client, "read_graph", graph=graph))["entities"] == []
                await answer(client, "create_entities", graph=graph, entities=[entity("Somebody else")])
                await client.call_tool(tool, {"graph": graph, **arguments})
                assert len((await answer(client, "read_graph", graph=graph))["entities"]) == 1


async def test_forgetting_a_name_twice_hides_no_more_than_once(client: Client, subtests: pytest.Subtests) -> None:
    calls: dict[str, dict[str, Any]] = {
        "forget": {"names": [DECOMPOSED]},
        "revise": {"name": DECOMPOSED, "status": "outdated"},
    }
    for tool, arguments in calls.items():
        with subtests.test(tool):
            await store(client, tool, COMPOSED, DECOMPOSED)
            await answer(client, tool, graph=tool, **arguments)
            hidden = await answer(client, "read_graph", graph=tool)
            assert [e.get("status") for e in hidden["entities"]] == ["outdated", "outdated"]
            await answer(client, tool, graph=tool, **arguments)
            assert await answer(client, "read_graph", graph=tool) == hidden


async def test_the_text_of_a_deletion_of_one_form_stays(client: Client) -> None:
    await store(client, "default", DECOMPOSED)
    deleted = await client.call_tool("delete_entities", {"entityNames": [COMPOSED]})
    assert texts_of(deleted) == ["Entities deleted successfully"]


async def test_an_entity_of_two_names_is_told_once(client: Client) -> None:
    await store(client, "default", COMPOSED)
    forms = [COMPOSED, DECOMPOSED, SPACED, "Nobody", COMPOSED, "No one"]
    found = await answer(client, "batch_get_entities", names=forms)
    assert [e and e["name"] for e in found["entities"]] == [
        COMPOSED,
        None,
        COMPOSED,
        None,
    ]  # A name that comes twice has its entity in both places.
    for tool in ("open_nodes", "extract_subgraph"):
        assert [e["name"] for e in (await answer(client, tool, names=forms))["entities"]] == [COMPOSED]
    forgotten = await answer(client, "forget", names=[COMPOSED, DECOMPOSED, SPACED])
    assert len(forgotten["forgotten"]) == 1
    assert "not_found" not in forgotten


async def test_a_relation_of_a_form_that_no_entity_has_comes_back_and_hides_nothing(client: Client) -> None:
    """The file of the official server has such ends: it comes back byte for byte, and its entity is found."""
    lines = "\n".join(
        json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        for line in (
            {"type": "entity", "name": DECOMPOSED, "entityType": "person", "observations": ["sails"]},
            {"type": "relation", "from": COMPOSED, "to": "Paul", "relationType": "knows"},
        )
    )
    await answer(client, "import_graph", format="jsonl", data=lines)
    assert (await answer(client, "export_graph", format="jsonl"))["data"] == lines
    assert [e["name"] for e in (await answer(client, "open_nodes", names=[COMPOSED]))["entities"]] == [DECOMPOSED]
    for form in (COMPOSED, DECOMPOSED):
        found = await answer(client, "search_relations", **{"from": form})
        assert [relation["from"] for relation in found["relations"]] == [COMPOSED]
    triple = {"from": COMPOSED, "to": "Paul", "relationType": "knows"}
    await answer(client, "delete_relations", relations=[triple])
    assert (await answer(client, "read_graph"))["relations"] == []


async def test_a_hidden_form_of_a_file_keeps_what_is_said_of_it(client: Client) -> None:
    """The observations of a form that the file has as archived are not those of the active one."""
    entities = [{**entity(COMPOSED), "status": "archived"}, entity(DECOMPOSED)]
    for strategy in ("skip", "merge", "replace"):
        data = json.dumps({"entities": entities})
        await answer(client, "import_graph", graph=strategy, format="json", data=data, mergeStrategy=strategy)
        graph = await answer(client, "read_graph", graph=strategy)
        assert {e["name"]: e["observations"] for e in graph["entities"]} == {
            name: [f"said of {name!r}"] for name in (COMPOSED, DECOMPOSED)
        }


def entity(name: str) -> dict[str, Any]:
    return {"name": name, "entityType": "person", "observations": [f"said of {name!r}"]}


async def store(client: Client, graph: str, *names: str, related: Sequence[str] = ()) -> None:
    """Import entities under exactly these names, with relations from other forms of the first: a file's stay apart."""
    lines = [{"type": "entity", **entity(name)} for name in names]
    lines += [{"type": "relation", "from": other, "to": names[0], "relationType": "is"} for other in related]
    await answer(client, "import_graph", graph=graph, format="jsonl", data="\n".join(map(json.dumps, lines)))


async def hide(owner: asyncpg.Connection, caller: Caller, graph: str, name: str, state: str) -> None:
    """Have an entity be outdated or archived, or expired, as it is and as it was."""
    change = "expires_at = '2020-01-01'" if state == "expired" else f"status = '{state}'"
    for table in ("nodes", "node_versions"):
        await owner.execute(
            f"UPDATE {table} SET {change} WHERE tenant_id = $1 AND name = $2"
            " AND graph_id = (SELECT id FROM graphs WHERE tenant_id = $1 AND name = $3)",
            caller.tenant_id,
            name,
            graph,
        )
