"""The differences between toolset `memory` and the official memory server, with reasons. All else is equal."""

from dataclasses import dataclass
from typing import Any

from tests.verify.side_by_side import Step

Graph = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One step, after others with equal answers. `official` and `recollect` are the gist of the two answers."""

    reason: str
    before: tuple[Step, ...]
    step: Step
    official: Any
    recollect: Any


def entity(name: str, kind: str = "thing", *observations: str) -> dict[str, Any]:
    """An entity in the official shape."""
    return {"name": name, "entityType": kind, "observations": list(observations)}


def relation(source: str, target: str, type_: str = "knows") -> dict[str, Any]:
    """A relation in the official shape."""
    return {"from": source, "to": target, "relationType": type_}


def create(*entities: dict[str, Any]) -> Step:
    """Create entities."""
    return "create_entities", {"entities": list(entities)}


def relate(*relations: dict[str, Any]) -> Step:
    """Create relations."""
    return "create_relations", {"relations": list(relations)}


def observe(name: str, *contents: str) -> Step:
    """Add observations to one entity."""
    return "add_observations", {"observations": [{"entityName": name, "contents": list(contents)}]}


def search(query: str) -> Step:
    """Search for a substring."""
    return "search_nodes", {"query": query}


def graph(*entities: dict[str, Any]) -> Graph:
    """The result of a reading tool, without relations."""
    return {"entities": list(entities), "relations": []}


A, B, TEA = entity("A"), entity("B"), entity("C", "drink", "B likes it")
MANY = [entity(f"e{number}") for number in range(1001)]
INVALID = "MCP error -32602: Input validation error: Invalid arguments for tool"

DECIDED: tuple[Difference, ...] = (
    Difference(
        "open_nodes keeps the input's order",
        (create(A, B),),
        ("open_nodes", {"names": ["B", "A"]}),
        graph(A, B),
        graph(B, A),
    ),
    Difference(
        "search_nodes ranks: name before type before observation",
        (create(TEA, B),),
        search("b"),
        graph(TEA, B),
        graph(B, TEA),
    ),
    Difference(
        "a name given twice in one call is one entity: names are unique",
        (),
        create(A, entity("A", "other")),
        {"entities": [A, entity("A", "other")]},
        {"entities": [A]},
    ),
    Difference(
        "the same memory is known, not doubled: an observation given twice with its entity",
        (),
        create(entity("A", "thing", "x", "x")),
        {"entities": [entity("A", "thing", "x", "x")]},
        {"entities": [entity("A", "thing", "x")]},
    ),
    Difference(
        "the same memory is known, not doubled: an observation given twice in one call",
        (create(A),),
        observe("A", "x", "x"),
        {"results": [{"entityName": "A", "addedObservations": ["x", "x"]}]},
        {"results": [{"entityName": "A", "addedObservations": ["x"]}]},
    ),
    Difference(
        "duplicate relations are skipped, in one call too",
        (),
        relate(relation("A", "B"), relation("A", "B")),
        {"relations": [relation("A", "B"), relation("A", "B")]},
        {"relations": [relation("A", "B")]},
    ),
    Difference(
        "a bad argument names its path: one that is missing",
        (),
        ("create_entities", {"entities": [{"name": "A", "observations": []}]}),
        f"{INVALID} create_entities: Invalid input: expected string, received undefined at entities[0].entityType",
        "entities.0.entityType: Required",
    ),
    Difference(
        "a bad argument names its path: one of the wrong type",
        (),
        ("open_nodes", {"names": [1]}),
        f"{INVALID} open_nodes: Invalid input: expected string, received number at names[0]",
        "names.0: Expected `str`, got `int`",
    ),
    Difference(
        "names are compared in one normal form: the same letters are the same name",
        (create(entity("\u00e9", "letter")),),
        create(entity("e\u0301", "letters")),
        {"entities": [entity("e\u0301", "letters")]},
        {"entities": []},
    ),
    Difference(
        "texts are searched in every normal form",
        (create(entity("\u00e9", "letter")),),
        search("e\u0301"),
        graph(),
        graph(entity("\u00e9", "letter")),
    ),
    Difference(
        "names that look like the name of a new entity are told",
        (create(A),),
        create(entity("a")),
        {"entities": [entity("a")]},
        {"entities": [entity("a")], "close": [{"name": "a", "entities": ["A"]}]},
    ),
    Difference(
        "texts are bounded",
        (),
        search("x" * 1001),
        graph(),
        "query: String must contain at most 1000 characters",
    ),
    Difference(
        "lists that are taken are bounded",
        (),
        create(*MANY),
        {"entities": MANY},
        "entities: Array must contain at most 1000 elements",
    ),
    Difference(
        "lists that are given back are bounded, and say when they were cut",
        (create(*MANY[:1000]), create(MANY[1000])),
        search("E"),
        graph(*MANY),
        graph(*MANY[:100]) | {"nextOffset": 100},
    ),
    Difference(
        "PostgreSQL holds no NUL",
        (),
        create(entity("A\0")),
        {"entities": [entity("A\0")]},
        "entities.0.name: Holds a NUL or half a character (a lone surrogate), which cannot be stored",
    ),
    Difference(
        "what shows nothing is refused",
        (),
        create(entity("A", "thing", "\u200b")),
        {"entities": [entity("A", "thing", "\u200b")]},
        "entities.0.observations.0: Must contain a visible character",
    ),
    Difference(
        "an unknown tool is a protocol error, as MCP says",
        (),
        ("forget_all", {}),
        "MCP error -32602: Tool forget_all not found",
        "Unknown tool: forget_all",
    ),
)
"""Differences by TOOLS.md, DESIGN.md or the protocol."""

OPEN: tuple[Difference, ...] = (
    Difference(
        "names have a character: creating one without",
        (),
        create(entity("")),
        {"entities": [entity("")]},
        "entities.0.name: String must contain at least 1 character",
    ),
    Difference(
        "types of entities have a character",
        (),
        create(entity("A", "")),
        {"entities": [entity("A", "")]},
        "entities.0.entityType: String must contain at least 1 character",
    ),
    Difference(
        "relation types have a character",
        (),
        relate(relation("A", "B", "")),
        {"relations": [relation("A", "B", "")]},
        "relations.0.relationType: String must contain at least 1 character",
    ),
    Difference(
        "PostgreSQL folds case character by character: a dotted capital I is an i",
        (create(entity("min")),),
        search("İ"),
        graph(),
        graph(entity("min")),
    ),
    Difference(
        "PostgreSQL folds case character by character: a sigma at a word's end is another letter",
        (create(entity("ΟΔΟΣ")),),
        search("οδος"),
        graph(entity("ΟΔΟΣ")),
        graph(),
    ),
)
"""Small known differences that nobody decided: to be removed or decided."""
