"""One name in several forms (NFC, NFD, white space at its ends) is one name, in every tool that takes names.

docs/glossary.md says what the key of a name is. The form first written is the one that answers and exports have.
"""

import json
import unicodedata
from typing import Any

import pytest
from mcp import Client

from tests.contract.conftest import ConnectedClient
from tests.support.gateway import LEGACY, answer, refused, texts_of
from tests.support.quick_embedder import OF_WORDLLAMA

NAME = "Zoë 각 Việt"
OTHER_FORMS = (unicodedata.normalize("NFD", NAME), f"{NAME} ", f"\u3000{unicodedata.normalize('NFD', NAME)}\u00a0")
SAID = "collects blue cheese"
NEW = "paints red barns"

READS: dict[str, tuple[dict[str, Any], str]] = {
    "open_nodes": ({"names": ["NAME"]}, SAID),
    "get_entity": ({"name": "NAME"}, SAID),
    "batch_get_entities": ({"names": ["NAME", "Nobody"]}, SAID),
    "describe_entity": ({"name": "NAME"}, SAID),
    "explore": ({"start": "NAME"}, SAID),
    "recall": ({"query": "blue cheese", "about": ["NAME"]}, SAID),
    "search_relations": ({"from": "NAME"}, "knows"),
    "get_neighbors": ({"name": "NAME"}, "Paul"),
    "find_path": ({"from": "Paul", "to": "NAME"}, NAME),
    "find_all_paths": ({"from": "NAME", "to": "Paul"}, NAME),
    "extract_subgraph": ({"names": ["NAME"]}, SAID),
    "get_parent": ({"entityName": "NAME"}, "Root"),
    "get_ancestors": ({"entityName": "NAME"}, "Root"),
    "get_children": ({"entityName": "NAME"}, "Leaf"),
    "get_descendants": ({"entityName": "NAME"}, "Leaf"),
    "get_subtree": ({"entityName": "NAME"}, SAID),
}
"""Reads that take names: `NAME` stands for a form of the name; and what each answers."""

STORED = "4"
"""The revision after the four calls of `store`."""

OF_THE_PAST = ("open_nodes", "get_entity", "explore", "recall", "search_relations", "find_path", "get_children")

WRITES: dict[str, dict[str, Any]] = {
    "remember": {"items": [{"text": NEW, "about": ["NAME"]}]},
    "create_entities": {"entities": [{"name": "NAME", "entityType": "painter", "observations": [NEW]}]},
    "upsert_entities": {"entities": [{"name": "NAME", "entityType": "painter", "observations": [NEW]}]},
    "add_observations": {"observations": [{"entityName": "NAME", "contents": [NEW]}]},
    "relate": {"triples": [{"subject": "NAME", "predicate": "paints", "object": "Paul"}]},
    "create_relations": {"relations": [{"from": "Paul", "to": "NAME", "relationType": "sees"}]},
    "create_triplet": {"subject": "NAME", "predicate": "paints", "object_value": "Paul"},
    "create_node": {"text": "NAME", "node_type": "Entity", "entity_type": "painter"},
    "add_tags": {"entityName": "NAME", "tags": ["filed"]},
    "set_importance": {"entityName": "NAME", "importance": 2},
    "set_entity_parent": {"entityName": "Paul", "parentName": "NAME"},
    "revise": {"name": "NAME", "text": NEW},
}
"""Writes to the entity: none makes another one."""

DELETIONS: dict[str, dict[str, Any]] = {
    "delete_observations": {"deletions": [{"entityName": "NAME", "observations": [SAID]}]},
    "delete_relations": {"relations": [{"from": "NAME", "to": "Paul", "relationType": "knows"}]},
    "forget": {"names": ["NAME"], "mode": "delete"},
    "delete_entities": {"entityNames": ["NAME"]},
}
"""And what each leaves undone where it finds nothing."""


@pytest.fixture
async def client(connected: ConnectedClient, key: str) -> Client:
    return await connected(key, "/mcp/x/all", LEGACY)


async def test_every_read_finds_an_entity_by_another_form_of_its_name(
    client: Client, subtests: pytest.Subtests
) -> None:
    await store(client, "default")
    for form in OTHER_FORMS:
        for tool, (arguments, expected) in READS.items():
            with subtests.test(tool=tool, form=form):
                told = json.dumps(await answer(client, tool, **filled(arguments, form)), ensure_ascii=False)
                assert expected in told
                assert form not in told
                assert neighbours_of(tool, told) == expected_neighbours(tool)


async def test_the_past_is_read_by_another_form_too(client: Client, subtests: pytest.Subtests) -> None:
    await store(client, "default")
    await answer(client, "delete_entities", entityNames=[NAME])
    for form in OTHER_FORMS:
        for tool in OF_THE_PAST:
            with subtests.test(tool=tool, form=form):
                arguments, expected = READS[tool]
                told = await answer(client, tool, **filled(arguments, form), as_of=STORED)
                assert expected in json.dumps(told, ensure_ascii=False)


async def test_no_write_makes_another_entity(client: Client, subtests: pytest.Subtests) -> None:
    for number, (tool, arguments) in enumerate(WRITES.items()):
        form = OTHER_FORMS[number % len(OTHER_FORMS)]
        with subtests.test(tool=tool, form=form):
            await store(client, tool)
            await answer(client, tool, graph=tool, **filled(arguments, form))
            graph = await answer(client, "read_graph", graph=tool)
            assert sorted(entity["name"] for entity in graph["entities"]) == sorted([NAME, "Leaf", "Paul", "Root"])
            ends = {end for relation in graph["relations"] for end in (relation["from"], relation["to"])}
            assert ends == {NAME, "Paul"}


async def test_deletions_find_what_they_name(client: Client, subtests: pytest.Subtests) -> None:
    for number, (tool, arguments) in enumerate(DELETIONS.items()):
        form = OTHER_FORMS[number % len(OTHER_FORMS)]
        with subtests.test(tool=tool, form=form):
            await store(client, tool)
            await answer(client, tool, graph=tool, **filled(arguments, form))
            graph = await answer(client, "read_graph", graph=tool)
            told = SAID in str(graph["entities"]), bool(graph["relations"])
            assert told == {"delete_observations": (False, True), "delete_relations": (True, False)}.get(
                tool, (False, False)
            )


async def test_forms_in_one_call_are_one_entity(client: Client) -> None:
    forms = [*OTHER_FORMS, NAME]
    new = [{"name": form, "entityType": "person", "observations": [SAID]} for form in forms]
    created = await answer(client, "create_entities", entities=new)
    assert [entity["name"] for entity in created["entities"]] == forms[:1]
    relations = [{"from": form, "to": f"{form}!", "relationType": "knows"} for form in forms]
    assert len((await answer(client, "create_relations", relations=relations))["relations"]) == 3
    graph = await answer(client, "read_graph")
    assert [entity["name"] for entity in graph["entities"]] == forms[:1]
    upserted = await answer(client, "upsert_entities", entities=[{**item, "observations": [NEW]} for item in new])
    assert [len(result["addedObservations"]) for result in upserted["results"]] == [1, 0, 0, 0]
    remembered = await answer(client, "remember", items=[{"text": "likes tea", "about": forms}])
    assert len({memory["node"] for memory in remembered["memories"]}) == 1
    opened = await answer(client, "open_nodes", names=forms)
    assert [entity["name"] for entity in opened["entities"]] == forms[:1]
    assert (await refused(client, "merge_entities", entityNames=forms))[0] == "invalid_input"
    await answer(client, "delete_entities", entityNames=forms)
    assert (await answer(client, "read_graph"))["entities"] == []


async def test_a_name_of_a_relation_becomes_the_entity_in_the_form_first_written(client: Client) -> None:
    relation = {"from": OTHER_FORMS[0], "to": "Paul", "relationType": "knows"}
    await answer(client, "create_relations", relations=[relation])
    await answer(client, "create_entities", entities=[{"name": NAME, "entityType": "person", "observations": [SAID]}])
    graph = await answer(client, "read_graph")
    assert [entity["name"] for entity in graph["entities"]] == [OTHER_FORMS[0]]
    assert [relation["from"] for relation in graph["relations"]] == [OTHER_FORMS[0]]
    assert (await answer(client, "search_nodes", query="blue cheese"))["entities"][0]["name"] == OTHER_FORMS[0]


@OF_WORDLLAMA
async def test_an_entity_is_named_by_a_question_in_another_form(client: Client) -> None:
    decomposed = unicodedata.normalize("NFD", "Zoë Ångström")
    await answer(client, "create_entities", entities=[new_entity(decomposed), new_entity("Åse")])
    former = unicodedata.normalize("NFD", "Ærø Øst Å")
    await answer(client, "create_entities", entities=[new_entity(former)])
    await answer(client, "merge_entities", entityNames=["Åse", former])
    found = await answer(client, "search", query="Where is ærø øst å?", node_types=["Entity"])
    assert [node["text"] for node in found["entities"]] == ["Åse"]
    for question in ("Where is Zoë Ångström?", "where is zoë ångström?", f"Where is {decomposed}?"):
        found = await answer(client, "search", query=question, node_types=["Entity"])
        assert [node["text"] for node in found["entities"]] == [decomposed]


async def test_both_forms_of_an_imported_file_stay_apart_and_come_back_byte_for_byte(client: Client) -> None:
    forms = [NAME, *OTHER_FORMS]
    entities = [{"type": "entity", "name": f, "entityType": "person", "observations": [f"said {f}"]} for f in forms]
    relations = [{"type": "relation", "from": f, "to": f"{f}?", "relationType": "knows"} for f in forms]
    lines = "\n".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in [*entities, *relations])
    for strategy in ("merge", "skip", "replace", "fail"):
        await answer(client, "import_graph", graph=strategy, format="jsonl", data=lines, mergeStrategy=strategy)
        exported = await answer(client, "export_graph", graph=strategy, format="jsonl")
        assert exported["data"] == lines
        opened = await answer(client, "open_nodes", graph=strategy, names=forms)
        assert [entity["name"] for entity in opened["entities"]] == forms


async def test_an_import_adds_to_an_entity_that_was_there_in_another_form(client: Client) -> None:
    await store(client, "default")
    entity = {"type": "entity", "name": OTHER_FORMS[0], "entityType": "person", "observations": [NEW]}
    relation = {"type": "relation", "from": OTHER_FORMS[1], "to": "Root", "relationType": "sees"}
    lines = "\n".join(map(json.dumps, [entity, {**entity, "name": OTHER_FORMS[1]}, relation]))
    await answer(client, "import_graph", format="jsonl", data=lines, mergeStrategy="merge")
    graph = await answer(client, "read_graph")
    [zoe] = [entity for entity in graph["entities"] if unicodedata.normalize("NFC", entity["name"]).strip() == NAME]
    assert zoe["name"] == NAME
    assert zoe["observations"] == [SAID, NEW]
    assert {"from": NAME, "to": "Root", "relationType": "sees"} in graph["relations"]


async def test_similar_names_are_told_when_one_is_created(client: Client) -> None:
    await answer(client, "create_entities", entities=[new_entity("Project Falcon"), new_entity("Other")])
    for name in ("project falcon", "Ｐｒｏｊｅｃｔ　Ｆａｌｃｏｎ", "PROJECT FALCON"):
        made = await client.call_tool("create_entities", {"entities": [new_entity(name)]})
        assert made.structured_content is not None
        [close] = made.structured_content["close"]
        assert close["name"] == name
        assert close["entities"][0] == "Project Falcon"
        first, *others = texts_of(made)
        assert json.loads(first) == made.structured_content["entities"]
        assert "Project Falcon" in others[0]
    remembered = await answer(client, "remember", items=[{"text": "flies", "about": ["Project FALCON"]}])
    close_texts = [close["text"] for close in remembered["memories"][0]["close"]]
    assert close_texts == ["Project Falcon", "project falcon", "Ｐｒｏｊｅｃｔ　Ｆａｌｃｏｎ"]
    upserted = await answer(client, "upsert_entities", entities=[new_entity("oTHER"), new_entity("Another")])
    assert [result.get("close") for result in upserted["results"]] == [["Other"], None]
    again = await answer(client, "create_entities", entities=[new_entity("project falcon"), new_entity("Quite new")])
    assert "close" not in again


async def store(client: Client, graph: str) -> None:
    """Make the entity, with a neighbour, a parent and a child."""
    names = [new_entity(NAME), new_entity("Paul"), new_entity("Root"), new_entity("Leaf")]
    names[0]["observations"] = [SAID]
    await answer(client, "create_entities", graph=graph, entities=names)
    await answer(
        client, "create_relations", graph=graph, relations=[{"from": NAME, "to": "Paul", "relationType": "knows"}]
    )
    await answer(client, "set_entity_parent", graph=graph, entityName=NAME, parentName="Root")
    await answer(client, "set_entity_parent", graph=graph, entityName="Leaf", parentName=NAME)


def new_entity(name: str) -> dict[str, Any]:
    return {"name": name, "entityType": "person", "observations": []}


def filled(value: Any, name: str) -> Any:
    """The arguments with a form of the name in the place of `NAME`."""
    if isinstance(value, dict):
        return {key: filled(item, name) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, name) for item in value]
    return name if value == "NAME" else value


def neighbours_of(tool: str, told: str) -> list[str] | None:
    return json.loads(told).get("neighbors") if tool == "describe_entity" else None


def expected_neighbours(tool: str) -> list[str] | None:
    return ["Paul"] if tool == "describe_entity" else None
