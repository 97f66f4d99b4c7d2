"""The measured calls, as data."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.benchmarks.corpus import MATCHES, Corpus

Arguments = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MeasuredCall:
    """A call of a tool. `arguments` returns those of one sample for a graph of so many entities.

    `found` counts results in the structured content of a reply; the number must be `expected` (which may depend on the
    arguments), so that no empty or wrong reply is measured. `rounds`: the number of samples, if not that of the run.
    """

    label: str
    tool: str
    toolset: str
    arguments: Callable[[Corpus, random.Random, int], Arguments]
    found: Callable[[Any], int]
    expected: int | Callable[[Arguments], int]
    writes: bool = False
    flat: bool = True
    rounds: int | None = None

    def wanted(self, arguments: Arguments) -> int:
        """The number that `found` must return for these arguments."""
        return self.expected if isinstance(self.expected, int) else self.expected(arguments)

    def matches(self, wanted: list[str]) -> bool:
        """Whether the names include its label or tool; without names, every call matches."""
        return not wanted or self.label in wanted or self.tool in wanted


def creation(count: int, *, rounds: int | None = None) -> MeasuredCall:
    """`create_entities` with so many entities."""
    return MeasuredCall(
        label=f"create_entities ({count})",
        tool="create_entities",
        toolset="memory",
        arguments=lambda corpus, _, __: {"entities": [corpus.new_entity() for _ in range(count)]},
        found=lambda reply: len(reply["entities"]),
        expected=count,
        writes=True,
        rounds=rounds,
    )


def mistyped(name: str) -> str:
    """The name with two letters swapped."""
    return name[0] + name[2] + name[1] + name[3:]


def _names(corpus: Corpus, chance: random.Random, size: int, count: int) -> list[str]:
    return [corpus.name(number) for number in chance.sample(range(size), count)]


SUBSTRING = MeasuredCall(
    label=f"search_nodes ({MATCHES} matches)",
    tool="search_nodes",
    toolset="memory",
    arguments=lambda corpus, chance, _: {"query": corpus.marker(chance.randrange(100))},
    found=lambda reply: len(reply["entities"]),
    expected=MATCHES,
)

SEARCHES = (
    SUBSTRING,
    MeasuredCall(
        label="search_nodes (2 letters)",
        tool="search_nodes",
        toolset="memory",
        arguments=lambda corpus, chance, _: {"query": corpus.marker(chance.randrange(100))[:2], "limit": 50},
        found=lambda reply: len(reply["entities"]),
        expected=50,
        flat=False,
    ),
    MeasuredCall(
        label=f"search_nodes_ranked ({MATCHES} matches)",
        tool="search_nodes_ranked",
        toolset="organize",
        arguments=lambda corpus, chance, _: {"query": corpus.marker(chance.randrange(100))},
        found=lambda reply: len(reply["results"]),
        expected=MATCHES,
    ),
    MeasuredCall(
        label="search_nodes_ranked (4 words)",
        tool="search_nodes_ranked",
        toolset="organize",
        arguments=lambda corpus, chance, size: {"query": corpus.question(chance.randrange(size)), "limit": 1},
        found=lambda reply: len(reply["results"]),
        expected=1,
        flat=False,
    ),
    MeasuredCall(
        label=f"boolean_search ({MATCHES} matches)",
        tool="boolean_search",
        toolset="organize",
        arguments=lambda corpus, chance, _: {
            "query": f"observation:{corpus.marker(chance.randrange(100))} AND NOT name:{corpus.marker(0)}"
        },
        found=lambda reply: len(reply["entities"]),
        expected=MATCHES,
    ),
    MeasuredCall(
        label="fuzzy_search (a name with a typo)",
        tool="fuzzy_search",
        toolset="organize",
        arguments=lambda corpus, chance, size: {"query": mistyped(corpus.name(chance.randrange(size))), "limit": 1},
        found=lambda reply: len(reply["entities"]),
        expected=1,
        flat=False,
    ),
)
"""The classic searches, in the order of measurement."""


CALLS = (
    MeasuredCall(
        label="open_nodes (5)",
        tool="open_nodes",
        toolset="memory",
        arguments=lambda corpus, chance, size: {"names": _names(corpus, chance, size, 5)},
        found=lambda reply: len(reply["entities"]),
        expected=5,
    ),
    SUBSTRING,
    MeasuredCall(
        label="recall (limit 10)",
        tool="recall",
        toolset="agent",
        arguments=lambda corpus, chance, size: {"query": corpus.question(chance.randrange(size)), "limit": 10},
        found=lambda reply: min(1, len(reply["memories"])),  # The number of memories is up to recall.
        expected=1,
        flat=False,
    ),
    MeasuredCall(
        label="add_observations (1)",
        tool="add_observations",
        toolset="memory",
        arguments=lambda corpus, chance, size: {
            "observations": [
                {"entityName": _names(corpus, chance, size, 1)[0], "contents": [corpus.new_sentence()]},
            ]
        },
        found=lambda reply: len(reply["results"][0]["addedObservations"]),
        expected=1,
        writes=True,
    ),
    creation(1),
    creation(100),
)
"""The calls in the order of measurement: reading ones first, on a graph of exactly the given size."""
