"""Spelling: words that the query writes in another way than the memory, or a part of what the memory writes as one."""

from datetime import date

import msgspec

from tests.benchmarks.quality.groups.facts import read_facts
from tests.benchmarks.quality.groups.figures import Figure, empty_with_answer, recall_at
from tests.benchmarks.quality.groups.files import read
from tests.benchmarks.quality.groups.notebooks import Asked, Note, Notebook
from tests.benchmarks.quality.groups.talk import talk_notes

FIGURES = (Figure("recall@5", recall_at(5)), Figure("empty", empty_with_answer))

_TURNS = 60


class Spelling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file: memories and queries, by what is different."""

    pairs: dict[str, list[tuple[str, str]]]


def open_notebooks(seed: int, _: date) -> list[Notebook]:
    """One notebook, among facts and talk."""
    pairs = read("spelling", Spelling).pairs
    spelt = [Note(f"{kind}-{index}", text) for kind, pair in pairs.items() for index, (text, _) in enumerate(pair)]
    others = [*(fact.note() for fact in read_facts().facts), *talk_notes(_TURNS, seed)]
    questions = [
        Asked(kind, query, frozenset({f"{kind}-{index}"}))
        for kind, pair in pairs.items()
        for index, (_, query) in enumerate(pair)
    ]
    return [Notebook(f"spelling-{seed}", [others, spelt], questions)]
