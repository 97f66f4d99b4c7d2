"""Facts: short ones as an assistant stores them, asked for in other words, alone and beside talk."""

from datetime import date

import msgspec

from tests.benchmarks.quality.groups.figures import (
    Figure,
    empty_with_answer,
    empty_without_answer,
    precise_with_answer,
    recall_at,
)
from tests.benchmarks.quality.groups.files import read
from tests.benchmarks.quality.groups.notebooks import Asked, Note, Notebook
from tests.benchmarks.quality.groups.talk import talk_notes

TURNS = 300
"""The number of turns of talk beside the facts."""

ALONE, BESIDE_TALK = "alone", "beside talk"

FIGURES = (
    Figure("recall@1", recall_at(1)),
    Figure("recall@5", recall_at(5), {ALONE: 0.92, BESIDE_TALK: 0.92}),
    Figure("precision", precise_with_answer),
    Figure("empty", empty_with_answer),
    Figure("empty, unanswerable", empty_without_answer, {ALONE: 0.65, BESIDE_TALK: 0.65}),
)


class Fact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact, and two questions that it answers: in other words, and in words that have next to nothing in common."""

    key: str
    text: str
    question: str
    remote: str
    about: list[str] = []
    tags: list[str] = []
    kind: str | None = None

    def note(self) -> Note:
        """The fact as it is remembered."""
        return Note(self.key, self.text, self.about, self.tags, self.kind)


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    unanswered: list[str]
    facts: list[Fact]


def read_facts() -> Facts:
    """The facts and their questions."""
    return read("facts", Facts)


def open_notebooks(seed: int, _: date) -> list[Notebook]:
    """The facts alone, and beside talk."""
    facts = read_facts()
    notes = [fact.note() for fact in facts.facts]
    return [
        Notebook("facts", [notes], _questions(facts, ALONE)),
        Notebook(beside_talk(seed), [talk_notes(TURNS, seed), notes], _questions(facts, BESIDE_TALK)),
    ]


def beside_talk(seed: int) -> str:
    """The notebook of facts beside talk, which the group of typos asks, too."""
    return f"facts-beside-talk-{seed}"


def _questions(facts: Facts, measure: str) -> list[Asked]:
    reworded = [Asked(measure, fact.question, frozenset({fact.key})) for fact in facts.facts]
    remote = [Asked(f"{measure}, remote", fact.remote, frozenset({fact.key})) for fact in facts.facts]
    return [*reworded, *(Asked(measure, question) for question in facts.unanswered), *remote]
