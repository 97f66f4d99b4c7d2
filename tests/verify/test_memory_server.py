"""Toolset `memory` is a drop-in for the official memory server: to equal calls, both give equal answers.

memory_server_differences.py lists the differences; one that no longer exists fails until it is removed there.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ToolAnnotations

from recollect_gateway.mcp_endpoint.schema import json_schema
from recollect_gateway.mcp_endpoint.tools import TOOLS
from tests.support.gateway import LEGACY, MODERN, MODES
from tests.verify.memory_server_differences import (
    DECIDED,
    OPEN,
    Difference,
    create,
    entity,
    observe,
    relate,
    relation,
    search,
)
from tests.verify.processes import DeployedGateway
from tests.verify.side_by_side import Pair, Step, ToolAnswer, side_by_side

READ: Step = ("read_graph", {})
ANY_ORDER = ("search_nodes", "open_nodes")
"""Tools for whose results the order is a decided difference."""

ALICE, BOB = entity("Alice", "person", "likes tea", "lives in Ósló"), entity("Bob", "person")
ODD = entity(" tab\t\nline ", "\u202eé", "x\x01\b\f\x1f\x7f\x85\u2028", "a\\b\"c'/<>&", "e\u0301", "é", "🧠")
PROTO = entity("__proto__", "constructor", "toString")
ACCENTS = [entity(name) for name in ("école", "Straße", "ПРИВЕТ", "ﬀi", "Ⅷ", "ǆ", "ẞ", "数据", "%", "_", "\\")]

SEQUENCES: dict[str, list[Step]] = {
    "empty graph": [search(""), search("x"), ("open_nodes", {"names": []}), ("open_nodes", {"names": ["x"]})],
    "empty arrays": [
        create(),
        relate(),
        ("add_observations", {"observations": []}),
        ("delete_entities", {"entityNames": []}),
        ("delete_observations", {"deletions": []}),
        ("delete_relations", {"relations": []}),
        create(ALICE),
        observe("Alice"),
        ("delete_observations", {"deletions": [{"entityName": "Alice", "observations": []}]}),
    ],
    "duplicates": [
        create(ALICE, BOB),
        create(ALICE),
        create(entity("Alice", "cat", "purrs"), entity("alice", "person")),
        relate(relation("Alice", "Bob")),
        relate(relation("Alice", "Bob"), relation("Alice", "Bob", "likes"), relation("Bob", "Alice")),
        observe("Alice", "likes tea", "plays chess"),
        observe("Alice", "likes tea", "plays chess"),
        (
            "add_observations",
            {"observations": [{"entityName": "Alice", "contents": ["x"]}, {"entityName": "Alice", "contents": ["x"]}]},
        ),
        search("ALICE"),
        ("open_nodes", {"names": ["Alice", "Alice"]}),
    ],
    "unknown names": [
        create(ALICE),
        observe("Nobody", "x"),
        (
            "add_observations",
            {"observations": [{"entityName": "Alice", "contents": ["y"]}, {"entityName": "Nobody", "contents": ["x"]}]},
        ),
        ("delete_entities", {"entityNames": ["Nobody", "Alice", "Alice"]}),
        ("delete_entities", {"entityNames": ["Alice"]}),
        ("delete_observations", {"deletions": [{"entityName": "Alice", "observations": ["likes tea"]}]}),
        ("delete_relations", {"relations": [relation("Nobody", "Alice")]}),
        ("open_nodes", {"names": ["Alice", "Nobody"]}),
    ],
    "deferred relations": [
        relate(relation("Alice", "Bob"), relation("Xi", "Yan", "self"), relation("Zed", "Zed", "self")),
        search("Alice"),
        ("open_nodes", {"names": ["Alice", "Bob"]}),
        observe("Bob", "x"),
        ("delete_observations", {"deletions": [{"entityName": "Bob", "observations": ["x"]}]}),
        create(ALICE),
        search("tea"),
        ("open_nodes", {"names": ["Bob", "Alice"]}),
        create(BOB),
        ("delete_entities", {"entityNames": ["Yan", "Zed"]}),
        ("delete_relations", {"relations": [relation("Alice", "Bob")]}),
        create(entity("Yan", "late")),
    ],
    "deletions": [
        create(ALICE, BOB, entity("Carol")),
        relate(relation("Alice", "Bob"), relation("Bob", "Carol"), relation("Carol", "Alice"), relation("Bob", "Bob")),
        (
            "delete_observations",
            {
                "deletions": [
                    {"entityName": "Alice", "observations": ["likes tea", "never said"]},
                    {"entityName": "Bob", "observations": ["never said"]},
                ]
            },
        ),
        observe("Alice", "likes tea"),
        ("delete_relations", {"relations": [relation("Bob", "Bob"), relation("Bob", "Bob", "unheard of")]}),
        relate(relation("Bob", "Bob")),
        ("delete_entities", {"entityNames": ["Carol"]}),
        create(entity("Carol", "again")),
        ("open_nodes", {"names": ["Carol"]}),
        ("delete_entities", {"entityNames": ["Bob", "Alice", "Carol"]}),
    ],
    "texts": [
        create(ODD, PROTO, entity("é", "letter")),
        ("read_graph", {"what": 1}),
        relate(relation(" tab\t\nline ", "__proto__", "x\u2028"), relation("🧠", "数据", "→")),
        *[search(query) for query in ("é", "🧠", " ", "\n", "\\", '"', "PROTO", "constructor", "%", "_")],
        observe("__proto__", "constructor", "🧠" * 100),
        ("open_nodes", {"names": ["__proto__"]}),
    ],
    "letters of either case": [
        create(*ACCENTS),
        *[
            search(query)
            for query in ("ÉCOLE", "STRASSE", "straße", "привет", "ﬀI", "ⅷ", "Ǆ", "ß", "数", "%", "_", "\\")
        ],
    ],
}


@pytest.mark.parametrize("revision", MODES)
@pytest.mark.parametrize("name", SEQUENCES)
async def test_both_servers_answer_alike(
    name: str, revision: str, deployed: DeployedGateway, key: str, tmp_path: Path
) -> None:
    async with side_by_side(deployed.gateway, key, tmp_path, revision) as pair:
        for step in [READ, *SEQUENCES[name]]:
            await assert_answers_alike(pair, step, any_order=step[0] in ANY_ORDER)
            await assert_answers_alike(pair, READ)
        await assert_resource_alike(pair)
    assert deployed.faults() == []


@pytest.mark.parametrize(("seed", "revision"), [(1, LEGACY), (2, MODERN), (3, LEGACY), (4, MODERN)])
async def test_both_servers_answer_random_calls_alike(
    seed: int, revision: str, deployed: DeployedGateway, key: str, tmp_path: Path
) -> None:
    async with side_by_side(deployed.gateway, key, tmp_path, revision) as pair:
        for step in random_steps(seed, 150):
            await assert_answers_alike(pair, step, any_order=step[0] not in ("create_entities", "create_relations"))
            await assert_answers_alike(pair, READ, any_order=True)


@pytest.mark.parametrize("difference", DECIDED + OPEN, ids=lambda difference: difference.reason)
async def test_every_listed_difference_exists(
    difference: Difference, deployed: DeployedGateway, key: str, tmp_path: Path
) -> None:
    async with side_by_side(deployed.gateway, key, tmp_path, MODERN) as pair:
        for step in difference.before:
            await assert_answers_alike(pair, step)
        official, recollect = await pair.ask(difference.step)
        if official == recollect:  # it shows only in the graph
            official, recollect = await pair.ask(READ)
    assert official.gist == difference.official
    assert recollect.gist == difference.recollect
    assert official.gist != recollect.gist


async def test_both_servers_offer_the_same_tools(deployed: DeployedGateway, key: str, tmp_path: Path) -> None:
    """Recollect may accept and return more, never less; an idempotent tool of the official server is so in ours."""
    async with side_by_side(deployed.gateway, key, tmp_path, LEGACY) as pair:
        official = {tool.name: tool for tool in (await pair.official.list_tools()).tools}
        recollect = {tool.name: tool for tool in (await pair.recollect.list_tools()).tools}
    assert len(official) == 9
    for name, theirs in official.items():
        ours = recollect[name]
        assert ours.title == theirs.title
        assert list(uncovered(ours.input_schema, theirs.input_schema, name)) == []
        assert list(uncovered(json_schema(TOOLS[name].result), theirs.output_schema, name)) == []
        assert ours.annotations is not None
        assert theirs.annotations is not None
        for hint in ("read_only_hint", "destructive_hint", "open_world_hint"):
            assert hint_or_default(ours.annotations, hint) == hint_or_default(theirs.annotations, hint), (name, hint)
        assert hint_or_default(ours.annotations, "idempotent_hint") >= hint_or_default(
            theirs.annotations, "idempotent_hint"
        ), name


def hint_or_default(annotations: ToolAnnotations, hint: str) -> bool:
    """The value of a hint, or its default in MCP. A read-only tool is idempotent and not destructive."""
    if annotations.read_only_hint and hint in ("destructive_hint", "idempotent_hint"):
        return hint == "idempotent_hint"
    value: bool | None = getattr(annotations, hint)
    return hint in ("destructive_hint", "open_world_hint") if value is None else value


async def test_the_resources_of_the_official_server_are_listed_before_our_own(
    deployed: DeployedGateway, key: str, tmp_path: Path
) -> None:
    async with side_by_side(deployed.gateway, key, tmp_path, LEGACY) as pair:
        official = (await pair.official.list_resources()).resources
        assert (await pair.recollect.list_resources()).resources[: len(official)] == official


async def assert_answers_alike(pair: Pair, step: Step, *, any_order: bool = False) -> None:
    """Fail unless text, structured content and outcome are equal; with `any_order`, entities may be in any order."""
    official, recollect = await pair.ask(step)
    if any_order:
        official, recollect = official.with_entities_in_any_order, recollect.with_entities_in_any_order
    assert recollect.without_close_names.with_deletions_untold == official.with_deletions_untold, step


async def assert_resource_alike(pair: Pair) -> None:
    uri = "memory://knowledge-graph"
    [official] = (await pair.official.read_resource(uri)).contents
    [recollect] = (await pair.recollect.read_resource(uri)).contents
    assert recollect == official


def uncovered(ours: Any, theirs: Any, path: str) -> Iterator[str]:
    """The places where our schema lacks something of theirs, or requires something that theirs does not."""
    if ours.get("type") != theirs["type"]:
        yield f"{path}: {ours.get('type')} for {theirs['type']}"
    if set(ours.get("required", [])) != set(theirs.get("required", [])):
        yield f"{path}: requires {ours.get('required')} for {theirs.get('required')}"
    for name, schema in theirs.get("properties", {}).items():
        yield from uncovered(ours.get("properties", {}).get(name, {}), schema, f"{path}.{name}")
    if "items" in theirs:
        yield from uncovered(ours.get("items", {}), theirs["items"], f"{path}[]")


def random_steps(seed: int, count: int) -> Iterator[Step]:
    """Random calls with a few names, which often coincide: duplicates, unknown names, deletions, re-creations.

    No call contains anything twice: that is a decided difference.
    """
    chance = random.Random(seed)
    names, kinds, texts, types = ["a", "B", "ç", "d d", "🧠", "A"], ["t", "ü", "Ωt"], ["x", "Y", "ç is"], ["r", "s"]

    def some(values: list[str]) -> list[str]:
        return chance.sample(values, chance.randint(0, min(4, len(values))))

    def relations() -> list[dict[str, Any]]:
        return [relation(source, chance.choice(names), chance.choice(types)) for source in some(names)]

    for _ in range(count):
        match chance.choice(["create", "create", "relate", "relate", "add", "add", "delete", "search", "open"]):
            case "create":
                yield create(*[entity(name, chance.choice(kinds), *some(texts)) for name in some(names)])
            case "relate":
                yield relate(*relations())
            case "add":
                additions = [{"entityName": name, "contents": some(texts)} for name in some(names)]
                yield "add_observations", {"observations": additions}
            case "search":
                yield search(chance.choice([*names, *texts, "none"]))
            case "open":
                yield "open_nodes", {"names": some(names)}
            case _:
                yield random_deletion(chance, names, texts, relations())


def random_deletion(chance: random.Random, names: list[str], texts: list[str], relations: list[dict[str, Any]]) -> Step:
    """One of the three deletions; few entities, or the graph would not grow."""
    deletions = [{"entityName": name, "observations": chance.sample(texts, 2)} for name in chance.sample(names, 2)]
    steps: list[Step] = [
        ("delete_entities", {"entityNames": chance.sample(names, 1)}),
        ("delete_relations", {"relations": relations}),
        ("delete_observations", {"deletions": deletions}),
    ]
    return chance.choice(steps)


def test_a_text_that_differs_from_the_structured_content_fails() -> None:
    answer = ToolAnswer('{"entities": [], "relations": []}', {"entities": [], "relations": []})
    with pytest.raises(AssertionError):
        _ = answer.with_entities_in_any_order
