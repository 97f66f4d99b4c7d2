"""The calls that walk a web, as data."""

import random
from collections.abc import Sequence

from tests.benchmarks.calls import Arguments, MeasuredCall, creation
from tests.benchmarks.web import DESCENDANTS, Web

CREATED = 10_000
BATCH = 500
"""The number of created entities, in total and per call."""


def walks(web: Web) -> Sequence[MeasuredCall]:
    """The walks, in the order of measurement."""

    def pair(chance: random.Random, size: int) -> Arguments:
        start, end = chance.sample(range(size), 2)
        return {"from": web.name(start), "to": web.name(end)}

    return (
        MeasuredCall(
            label="find_path",
            tool="find_path",
            toolset="memory",
            arguments=lambda _, chance, size: pair(chance, size),
            found=lambda reply: len(reply["path"]),
            expected=lambda asked: web.distance(web.number(asked["from"]), web.number(asked["to"])) + 1,
            flat=False,
        ),
        MeasuredCall(
            label="extract_subgraph (depth 2)",
            tool="extract_subgraph",
            toolset="memory",
            arguments=lambda _, chance, size: {"names": [web.name(chance.randrange(size))], "depth": 2},
            found=lambda reply: len(reply["entities"]),
            expected=lambda asked: web.within(web.number(asked["names"][0]), 2),
            flat=False,
        ),
        MeasuredCall(
            label="traverse (50 nodes)",
            tool="traverse",
            toolset="lineage",
            arguments=lambda _, chance, size: {
                "lineage_id": str(web.ids[chance.randrange(size)]),
                "direction": "both",
                "max_depth": 4,
                "max_nodes": 50,
            },
            found=lambda reply: len(reply["nodes"]),
            expected=50,
        ),
        MeasuredCall(
            label=f"get_descendants ({DESCENDANTS})",
            tool="get_descendants",
            toolset="organize",
            arguments=lambda _, chance, size: {"entityName": web.name(web.top(chance, size))},
            found=lambda reply: len(reply["entities"]),
            expected=DESCENDANTS,
        ),
        creation(BATCH, rounds=CREATED // BATCH),
    )
