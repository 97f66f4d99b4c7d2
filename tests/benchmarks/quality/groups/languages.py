"""Languages: facts and questions in ten of them, alone and beside English talk, in one language and across two.

Of the questions that nothing answers, half were written to choose the floors of other languages than English on, and
half to judge them.
"""

from collections.abc import Mapping, Sequence
from datetime import date

import msgspec

from tests.benchmarks.quality.groups.facts import ALONE
from tests.benchmarks.quality.groups.figures import (
    Figure,
    by_measure,
    empty_with_answer,
    empty_without_answer,
    recall_at,
)
from tests.benchmarks.quality.groups.files import read
from tests.benchmarks.quality.groups.notebooks import Answer, Asked, Note, Notebook
from tests.benchmarks.quality.groups.talk import talk_notes

ENGLISH = "en"

ALL, ALL_ALONE, FROM_ENGLISH, TO_ENGLISH = "all but en", "all but en, alone", "question in English", "memory in English"
MIXED = "memory in English, others not"

FIGURES = (
    Figure("recall@1", recall_at(1)),
    Figure("recall@5", recall_at(5), 0.90),
    Figure("empty", empty_with_answer),
    Figure("empty, unanswerable", empty_without_answer),
)

ACROSS_FIGURES = (Figure("recall@5", recall_at(5), 0.80), Figure("empty", empty_with_answer))

_TURNS = 100


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Facts with their questions, in the order of every language, and memories about which nobody asks.

    `unanswered`: questions that nothing answers, in the order of every language, too.
    """

    code: str
    facts: list[tuple[str, str]]
    distractors: list[str]
    unanswered: list[str]

    def notes(self) -> list[Note]:
        """What is remembered."""
        facts = [Note(str(index), text) for index, (text, _) in enumerate(self.facts)]
        return facts + [Note(f"distractor-{index}", text) for index, text in enumerate(self.distractors)]

    def questions(self, measure: str) -> list[Asked]:
        """The questions, which the fact at the same index answers, in whichever language."""
        return [Asked(measure, question, frozenset({str(index)})) for index, (_, question) in enumerate(self.facts)]

    def all_questions(self, measure: str) -> list[Asked]:
        """The questions, and those that nothing answers."""
        return self.questions(measure) + [Asked(measure, question) for question in self.unanswered]


class Languages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    languages: list[Language]


def read_languages() -> list[Language]:
    """All languages, English first."""
    return read("languages", Languages).languages


def open_notebooks(seed: int, _: date) -> list[Notebook]:
    """Two notebooks for each language, with its own questions: its memories beside talk, and alone."""
    languages = read_languages()
    beside_talk = [_notebook(language, language.all_questions(language.code), seed) for language in languages]
    alone = [
        Notebook(f"alone-{language.code}", [language.notes()], language.all_questions(f"{language.code}, {ALONE}"))
        for language in languages
    ]
    return [*beside_talk, *alone]


def by_language(answers: Sequence[Answer]) -> Mapping[str, Sequence[Answer]]:
    """The answers in all languages but English, which is only measured for comparison, and in each."""
    measured = by_measure(answers)
    alone = {measure for measure in measured if measure.endswith(f", {ALONE}")}
    of_all = {ALL: measured.keys() - alone - {ENGLISH}, ALL_ALONE: alone - {f"{ENGLISH}, {ALONE}"}}
    others = {name: [each for each in answers if each.asked.measure in of] for name, of in of_all.items()}
    return others | measured


def open_notebooks_across(seed: int, _: date) -> list[Notebook]:
    """The same memories: English ones with the questions of all others, and those with the English questions.

    And each language's memories, half of the facts in English instead, with its questions about these.
    """
    english, *others = read_languages()
    to_english = [question for language in others for question in language.questions(TO_ENGLISH)]
    from_english = [_notebook(language, english.questions(FROM_ENGLISH), seed) for language in others]
    mixed = [_mixed_notebook(english, language, half) for language in others for half in (0, 1)]
    return [_notebook(english, to_english, seed), *from_english, *mixed]


def _mixed_notebook(english: Language, language: Language, half: int) -> Notebook:
    """Every second fact is in English, from the one with the index `half` on."""
    in_english = {str(index) for index in range(half, len(english.facts), 2)}
    notes = [note for note in language.notes() if note.key not in in_english]
    foreign = [note for note in english.notes() if note.key in in_english]
    questions = [asked for asked in language.questions(MIXED) if asked.wanted <= in_english]
    return Notebook(f"mixed-{language.code}-{half}", [foreign, notes], questions)


def _notebook(language: Language, questions: Sequence[Asked], seed: int) -> Notebook:
    return Notebook(f"language-{language.code}-{seed}", [talk_notes(_TURNS, seed), language.notes()], questions)
