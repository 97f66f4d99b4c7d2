"""The calls whose cost is measured, as data."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.benchmarks.calls import CALLS, SEARCHES, SUBSTRING, Arguments, MeasuredCall, creation
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.cost.stock import Stock

_PAGE = 100
_NODES = 20

MakesArguments = Callable[[Corpus, random.Random, int], Arguments]


def _reading(
    toolset: str, label: str, arguments: MakesArguments, found: Callable[[Any], int], expected: int = 1
) -> MeasuredCall:
    return MeasuredCall(label, label.split(" (")[0], toolset, arguments, found, expected)


def _writing(toolset: str, tool: str, arguments: MakesArguments, found: Callable[[Any], int]) -> MeasuredCall:
    return MeasuredCall(tool, tool, toolset, arguments, found, expected=1, writes=True)


def _any(*path: str) -> Callable[[Any], int]:
    """1 if that part of a reply is not empty; its length depends on the arguments."""

    def found(reply: Any) -> int:
        for key in path:
            reply = reply[key]
        return 1 if reply else 0

    return found


def _name(corpus: Corpus, chance: random.Random, size: int) -> str:
    return corpus.name(chance.randrange(size))


def _pair(corpus: Corpus, chance: random.Random, size: int) -> list[str]:
    return [corpus.name(number) for number in chance.sample(range(size), 2)]


def _question(corpus: Corpus, chance: random.Random, size: int) -> str:
    """Four words of an observation, rarely the same ones twice, so that no cache contains the answer."""
    words = corpus.entity(chance.randrange(size)).observations[0].removesuffix(".").lower().split()
    return " ".join(chance.sample(words, 4))


def _way(corpus: Corpus, chance: random.Random, size: int) -> Arguments:
    """Two entities with a path of two relations."""
    number = chance.randrange(4, size)
    return {"from": corpus.name(number), "to": corpus.name(number // 4)}


RECALL = _reading(
    "agent",
    "recall (limit 10)",
    lambda corpus, chance, size: {"query": _question(corpus, chance, size), "limit": 10},
    _any("memories"),
)
GET_ENTITY = _reading(
    "memory", "get_entity", lambda corpus, chance, size: {"name": _name(corpus, chance, size)}, _any("name")
)
OPEN_NODES = _reading(
    "memory",
    "open_nodes (3)",
    lambda corpus, chance, size: {"names": [corpus.name(number) for number in chance.sample(range(size), 3)]},
    lambda reply: len(reply["entities"]),
    expected=3,
)
ADD_OBSERVATIONS = next(call for call in CALLS if call.tool == "add_observations")

MIX_READS = (GET_ENTITY, OPEN_NODES, SUBSTRING, RECALL)
MIX_WRITE = ADD_OBSERVATIONS
"""The calls in the mix of reading and writing."""


def reading_calls(stock: Stock) -> Sequence[MeasuredCall]:
    """The reading calls, in the order of measurement."""
    return (
        RECALL,
        _reading(
            "agent", "explore", lambda corpus, chance, size: {"start": _name(corpus, chance, size)}, _any("relations")
        ),
        GET_ENTITY,
        OPEN_NODES,
        SUBSTRING,
        _reading(
            "memory",
            f"read_graph (page of {_PAGE})",
            lambda _, chance, size: {"limit": _PAGE, "offset": chance.randrange(size - _PAGE)},
            lambda reply: len(reply["entities"]),
            expected=_PAGE,
        ),
        _reading(
            "memory",
            "get_neighbors",
            lambda corpus, chance, size: {"name": _name(corpus, chance, size)},
            _any("entities"),
        ),
        _reading(
            "memory",
            "search_relations",
            lambda corpus, chance, size: {"to": corpus.name(chance.randrange(1, size // 2))},
            _any("relations"),
        ),
        _reading("memory", "find_path (2 relations)", _way, _any("path")),
        _reading("memory", "graph_stats", lambda *_: {}, _any("entities")),
        *(call for call in SEARCHES if call.toolset == "organize" and "words" not in call.label),
        _reading("facts", "get_node", lambda _, chance, __: {"node_id": chance.choice(stock.ids)}, _any("node")),
        _reading(
            "facts",
            "search",
            lambda corpus, chance, size: {"query": _question(corpus, chance, size)},
            _any("results"),
        ),
        _reading("facts", "get_context", lambda _, chance, __: {"node_id": chance.choice(stock.ids)}, _any("nodes")),
        _reading(
            "facts",
            "search_triplets",
            lambda corpus, chance, size: {"subject": corpus.name(chance.randrange(1, size))},
            _any("triplets"),
        ),
        _reading(
            "lineage",
            "get_node_by_lineage",
            lambda _, chance, __: {"lineage_id": chance.choice(stock.ids)},
            _any("node"),
        ),
        _reading(
            "lineage",
            f"list_nodes ({_NODES})",
            lambda _, chance, size: {"limit": _NODES, "offset": chance.randrange(size - _NODES)},
            lambda reply: len(reply["nodes"]),
            expected=_NODES,
        ),
        _reading(
            "lineage",
            "outgoing",
            lambda _, chance, __: {"lineage_id": chance.choice(stock.ids[1:])},
            _any("edges"),
        ),
        _reading(
            "lineage",
            f"traverse ({_NODES} nodes)",
            lambda _, chance, __: {
                "lineage_id": chance.choice(stock.ids),
                "direction": "both",
                "max_depth": 6,
                "max_nodes": _NODES,
            },
            lambda reply: len(reply["nodes"]),
            expected=_NODES,
        ),
        _reading(
            "lineage",
            "search_graph",
            lambda corpus, chance, size: {"text": _question(corpus, chance, size), "limit": 10},
            _any("hits"),
        ),
        _reading(
            "admin", f"recent_changes ({_NODES})", lambda *_: {"since_revision": 0, "limit": _NODES}, _any("changes")
        ),
    )


def writing_calls(stock: Stock) -> Sequence[MeasuredCall]:
    """The writing calls, in the order of measurement, after the others, because their writes remain."""
    return (
        _writing(
            "agent",
            "remember",
            lambda corpus, chance, size: {
                "items": [{"text": corpus.new_sentence(), "about": [_name(corpus, chance, size)]}]
            },
            _any("memories"),
        ),
        _writing(
            "agent",
            "relate",
            lambda corpus, chance, size: {
                "triples": [dict(zip(("subject", "object"), _pair(corpus, chance, size), strict=True), predicate="met")]
            },
            _any("relations"),
        ),
        _writing("agent", "revise", lambda corpus, *_: {"id": stock.take(), "text": corpus.new_sentence()}, _any("id")),
        _writing("agent", "forget", lambda *_: {"ids": [stock.take()]}, _any("forgotten")),
        ADD_OBSERVATIONS,
        creation(1),
        _writing(
            "memory",
            "create_relations",
            lambda corpus, chance, size: {
                "relations": [dict(zip(("from", "to"), _pair(corpus, chance, size), strict=True), relationType="knows")]
            },
            _any("relations"),
        ),
        _writing("memory", "delete_entities", lambda *_: {"entityNames": [stock.take()]}, _any("success")),
        _writing(
            "organize",
            "add_tags",
            lambda corpus, chance, size: {
                "entityName": _name(corpus, chance, size),
                "tags": [f"tag {chance.randrange(10**6)}"],
            },
            _any("addedTags"),
        ),
        _writing(
            "organize",
            "set_importance",
            lambda corpus, chance, size: {
                "entityName": _name(corpus, chance, size),
                "importance": chance.randrange(1, 100) / 10,
            },
            _any("importance"),
        ),
        _writing("facts", "create_node", lambda corpus, *_: {"text": corpus.new_sentence()}, _any("node", "id")),
        _writing(
            "facts",
            "update_node",
            lambda corpus, *_: {"node_id": stock.take(), "text": corpus.new_sentence()},
            _any("node", "id"),
        ),
        _writing(
            "facts",
            "create_triplet",
            lambda corpus, chance, size: {
                **dict(zip(("subject", "object_value"), _pair(corpus, chance, size), strict=True)),
                "predicate": "admires",
            },
            _any("triplet", "id"),
        ),
        _writing(
            "lineage",
            "put_node",
            lambda corpus, *_: {"kind": "note", "content": corpus.new_sentence()},
            _any("node", "id"),
        ),
        _writing(
            "lineage",
            "put_edge",
            lambda _, chance, __: {
                **dict(zip(("from_lineage", "to_lineage"), chance.sample(stock.ids, 2), strict=True)),
                "kind": "cites",
            },
            _any("edge"),
        ),
    )
