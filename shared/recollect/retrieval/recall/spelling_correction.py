"""Mistyped words of a question: each that nothing knows is replaced by the most likely word of the graph.

Nothing knows a word that no passage has and that is not English: a question may ask for a "release" where memories say
"deployment", and must not be changed. Of the words that are one or two edits away, the nearest is taken: of equals one
of the graph, and the most frequent. English words count where the question is English, and not for a word with a
capital: an unknown one is a name. Four of five misspellings are one edit (Damerau 1964), and the first and the last
letter are seldom both wrong.

Of other languages nothing tells which words are right. So in a question in one of them only words of six letters are
corrected: the short ones are near to too much ("jour" to "hour"), most of all where memories are in English. Function
words are known in the languages of `words/english_detection.py`.
"""

import re
from collections.abc import Mapping, Sequence
from unicodedata import normalize

from rapidfuzz.distance import OSA
from rapidfuzz.process import extractOne

from recollect.graph.passage_words.model import MAX_LETTERS, MIN_LETTERS
from recollect.retrieval.recall.english_words import english
from recollect.words.english_detection import is_english, is_function_word

MAX_UNUSUAL = 4
"""Words of the questions of a recall that are looked up, at most: the first ones that are not English."""

MAX_SIMILAR = 1_000
"""Words of the graph of one length and one first, or last, letter that one of these is compared with, at most: the
most frequent. A word is compared with 10,000 at most, in 1 ms or so (measured)."""

_LONG = 8
"""Letters from which a word may be two edits away."""

_MIN_LETTERS_IN_OTHER_SCRIPTS = 6
"""Letters of a word of a question that is not English from which it may be mistyped."""

_ENGLISH_SHARE = 0.6
"""Share of the words of an English question that are English, at least."""

_WORD = re.compile(r"(?<![\w.@/\\:#%+-])[A-Za-z\u00c0-\u058f]+(?![\w@/\\#%+]|[-.:][\w/\\]|['’](?!s\b)\w)")
"""A word of an alphabet with small letters (Latin, Greek, Cyrillic, Armenian), not a part of an identifier, an address,
a path, or of "hadn't" and the like."""


def unusual_words(questions: Sequence[str]) -> list[str]:
    """The words of questions, in small letters, that may be mistyped: those that English does not have."""
    found = (match[0] for question in questions for match in _WORD.finditer(_composed(question)))
    words = dict.fromkeys(word.lower() for word in found if not any(letter.isupper() for letter in word[1:]))
    least = MIN_LETTERS if all(map(is_english, questions)) else _MIN_LETTERS_IN_OTHER_SCRIPTS
    return [word for word in words if len(word) >= least and _may_be_mistyped(word)][:MAX_UNUSUAL]


def most_edits(word: str) -> int:
    """The number of edits that a mistyped word is away from the right one, at most."""
    return 2 if len(word) >= _LONG else 1


def nearest_words(similar: Mapping[str, Sequence[str]], questions: Sequence[str]) -> dict[str, str]:
    """For each mistyped word of the questions that has a near one: the nearest, of equals the first.

    `similar`: for words that nothing knows, words of the graph of about their length, the most frequent first.
    """
    words = [match[0] for question in questions for match in _WORD.finditer(_composed(question))]
    in_english = set(words) if _are_english(words) else set()
    found = {word: _nearest(word, others, in_english=word in in_english) for word, others in similar.items()}
    return {word: nearest for word, nearest in found.items() if nearest is not None}


def correct(question: str, right: Mapping[str, str]) -> str:
    """The question with its mistyped words, in small letters, replaced by the right ones."""
    return _WORD.sub(lambda match: right.get(match[0].lower(), match[0]), _composed(question))


def _nearest(word: str, others: Sequence[str], *, in_english: bool) -> str | None:
    edits = most_edits(word)
    choices = [*others, *english().similar(word, edits)] if in_english else others
    found = extractOne(word, choices, scorer=OSA.distance, score_cutoff=edits)
    return None if found is None else str(found[0])


def _are_english(words: Sequence[str]) -> bool:
    """Whether most of the words are English: other languages share some of them."""
    return sum(english().has(word.lower()) for word in words) >= _ENGLISH_SHARE * len(words)


def _may_be_mistyped(word: str) -> bool:
    return len(word) <= MAX_LETTERS and not english().has(word) and not is_function_word(word)


def _composed(text: str) -> str:
    return normalize("NFC", text)
