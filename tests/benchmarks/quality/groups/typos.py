"""Typos: questions about facts and talk, with no, one and two words mistyped. The right spelling is never given."""

import random
import re
import string
from collections.abc import Callable, Sequence
from datetime import date

from tests.benchmarks.quality.groups.facts import TURNS, beside_talk, read_facts
from tests.benchmarks.quality.groups.figures import Figure, empty_with_answer, recall_at
from tests.benchmarks.quality.groups.notebooks import Asked, Notebook
from tests.benchmarks.quality.groups.talk import talk_notes, talk_questions

_AIMS = {"facts, one typo": 0.82, "facts, two typos": 0.80}

FIGURES = (Figure("recall@10", recall_at(10), _AIMS), Figure("empty", empty_with_answer))

_AMOUNTS = {"no typo": 0, "one typo": 1, "two typos": 2}

_TURNS = 900
"""The number of turns of the talk whose questions are mistyped."""

_LEAST = 5
"""Shorter words are seldom content, and rarely to be recognised with a typo."""

_FUNCTION_WORDS = {"about", "after", "before", "could", "should", "their", "there", "these", "those", "user's", "where"}
_FUNCTION_WORDS |= {"which", "while", "whose", "would"}


def open_notebooks(seed: int, _: date) -> list[Notebook]:
    """The graph of facts beside talk, and one of talk alone, with their questions mistyped."""
    facts, talk, chance = read_facts().facts, talk_notes(_TURNS, seed), random.Random(f"typos {seed}")
    beside = [talk_notes(TURNS, seed), [fact.note() for fact in facts]]
    about_facts = [Asked("facts", fact.question, frozenset({fact.key})) for fact in facts]
    about_talk = talk_questions(talk, seed, "talk")
    return [
        Notebook(beside_talk(seed), beside, _mistyped(about_facts, chance)),
        Notebook(f"talk-{seed}", [talk], _mistyped(about_talk, chance)),
    ]


def _mistyped(questions: Sequence[Asked], chance: random.Random) -> list[Asked]:
    return [
        Asked(f"{one.measure}, {name}", mistype(one.query, amount, chance), one.wanted)
        for name, amount in _AMOUNTS.items()
        for one in questions
    ]


def mistype(text: str, amount: int, chance: random.Random) -> str:
    """The text with one edit in each of so many of its content words, or of all if there are fewer."""
    words = [match for match in re.finditer(r"[A-Za-z'’]+", text) if _is_content(match[0])]
    chosen = sorted(chance.sample(words, min(amount, len(words))), key=lambda match: match.start(), reverse=True)
    for match in chosen:
        text = text[: match.start()] + _edit(match[0], chance) + text[match.end() :]
    return text


def _is_content(word: str) -> bool:
    return len(word) >= _LEAST and word.lower() not in _FUNCTION_WORDS


def _edit(word: str, chance: random.Random) -> str:
    """The word after one edit of Damerau's: a letter left out, added or replaced, or two neighbours swapped."""
    while (edited := chance.choice(_EDITS)(word, chance.randrange(1, len(word) - 1), chance)) == word:
        pass
    return edited


def _omit(word: str, position: int, _: random.Random) -> str:
    return word[:position] + word[position + 1 :]


def _add(word: str, position: int, chance: random.Random) -> str:
    return word[:position] + chance.choice(string.ascii_lowercase) + word[position:]


def _replace(word: str, position: int, chance: random.Random) -> str:
    return word[:position] + chance.choice(string.ascii_lowercase) + word[position + 1 :]


def _swap(word: str, position: int, _: random.Random) -> str:
    return word[:position] + word[position + 1] + word[position] + word[position + 2 :]


_EDITS: Sequence[Callable[[str, int, random.Random], str]] = (_omit, _add, _replace, _swap)
