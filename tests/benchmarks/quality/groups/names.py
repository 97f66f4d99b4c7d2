"""Names: bare names that are stop words or everyday words, among facts and talk."""

from datetime import date

import msgspec

from tests.benchmarks.quality.groups.facts import read_facts
from tests.benchmarks.quality.groups.figures import Figure, empty_with_answer, recall_at
from tests.benchmarks.quality.groups.files import read
from tests.benchmarks.quality.groups.notebooks import Asked, Note, Notebook
from tests.benchmarks.quality.groups.talk import talk_notes

FIGURES = (Figure("recall@5", recall_at(5), 0.95), Figure("empty", empty_with_answer))

_TURNS = 60


class Names(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file: for each name a memory that holds it."""

    names: dict[str, str]


def open_notebooks(seed: int, _: date) -> list[Notebook]:
    """The memories about the names, and the same that only mention them."""
    names = read("names", Names).names
    others = [*(fact.note() for fact in read_facts().facts), *talk_notes(_TURNS, seed)]
    about = [Note(name, text, (name,)) for name, text in names.items()]
    mentioned = [Note(name, text) for name, text in names.items()]
    return [
        Notebook(f"names-about-{seed}", [others, about], _questions(names, "memory about it")),
        Notebook(f"names-mentioned-{seed}", [others, mentioned], _questions(names, "memory mentions it")),
    ]


def _questions(names: dict[str, str], measure: str) -> list[Asked]:
    return [Asked(measure, name, frozenset({name})) for name in names]
