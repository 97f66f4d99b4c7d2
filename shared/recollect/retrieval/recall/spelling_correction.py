"""Corrects mistyped words of a question: an unknown word is replaced by the most likely word of the graph.

A word is unknown if no passage has it and it is not English. English words are never changed: a question may ask for a
"release", while memories say "deployment". Of the words that are one or two edits away, the nearest is taken; of those
that are equally near, one of the graph, and the most frequent. English words are suggested only in English questions,
and not for a word with a capital, which is a name. Four of five misspellings are one edit (Damerau 1964), and the first
and the last letter are seldom both wrong.

For other languages, there is no list of correct words, and many are near to another one: "Wanderung" to "Änderung",
"servir" to "server". So in a question in another language only words of eight letters or more are corrected. There, and
where most words are not English, a correct word has the same first and last letter, and is one edit away. Function
words are known in the languages of `words/english_detection.py`.
"""

import re
from collections.abc import Mapping, Sequence, Set

from rapidfuzz.distance import OSA
from rapidfuzz.process import extractOne

from recollect.graph.passage_words.model import MAX_LETTERS, MIN_LETTERS
from recollect.retrieval.recall.english_words import english
from recollect.text.unicode_forms import normalize
from recollect.words.english_detection import is_english, is_function_word

MAX_UNUSUAL = 4
"""The maximum number of words of one recall's questions that are looked up: the first ones that are not English."""

MAX_SIMILAR = 1_000
"""The maximum number of words of the graph, for each length and each first or last letter, with which a word is
compared: the most frequent ones. So it is compared with 10,000 words at most, in about 1 ms (measured)."""

_LONG = 8
"""The number of letters from which a word may be two edits away."""

_MIN_LETTERS_IN_OTHER_LANGUAGES = 8
"""The minimum length of a word that is corrected in a question that is not English, in letters. With this and
`_with_same_ends`, a correct word that no memory has is replaced in 1 to 3 of 100 cases, where memories have 2,000 words
of its language, and in 20 to 45 without (measured; docs/lab/recall-quality.md)."""

_ENGLISH_SHARE = 0.6
"""The minimum share of English words in an English question."""

_WORD = re.compile(r"(?<![\w.@/\\:#%+-])[A-Za-z\u00c0-\u058f]+(?![\w@/\\#%+]|[-.:][\w/\\]|['’](?!s\b)\w)")
"""A word of an alphabet with small letters (Latin, Greek, Cyrillic, Armenian), not a part of an identifier, an address,
a path, or of "hadn't" and the like."""


def unusual_words(questions: Sequence[str]) -> list[str]:
    """Find the words of questions that may be mistyped, in small letters: those that are not English."""
    found = (match[0] for question in questions for match in _WORD.finditer(_composed(question)))
    words = dict.fromkeys(word.lower() for word in found if not any(letter.isupper() for letter in word[1:]))
    least = MIN_LETTERS if _are_english(questions) else _MIN_LETTERS_IN_OTHER_LANGUAGES
    return [word for word in words if len(word) >= least and _may_be_mistyped(word)][:MAX_UNUSUAL]


def most_edits(word: str) -> int:
    """The maximum number of edits between a mistyped word and the correct one."""
    return 2 if len(word) >= _LONG else 1


def nearest_words(similar: Mapping[str, Sequence[str]], questions: Sequence[str]) -> dict[str, str]:
    """Find the correction of each unknown word of the questions, if any: the nearest word, of equals the first.

    `similar`: for each unknown word, words of the graph of about its length, the most frequent first.
    """
    words = {match[0] for question in questions for match in _WORD.finditer(_composed(question))}
    if _are_english(questions) and _are_mostly_english(words):
        found = {word: _nearest_in_english(word, others, is_name=word not in words) for word, others in similar.items()}
    else:
        found = {word: _nearest(word, _with_same_ends(word, others), edits=1) for word, others in similar.items()}
    return {word: nearest for word, nearest in found.items() if nearest is not None}


def correct(question: str, right: Mapping[str, str]) -> str:
    """Replace the mistyped words of a question. `right`: the correct words, by mistyped ones in small letters."""
    return _WORD.sub(lambda match: right.get(match[0].lower(), match[0]), _composed(question))


def _nearest_in_english(word: str, others: Sequence[str], *, is_name: bool) -> str | None:
    edits = most_edits(word)
    return _nearest(word, others if is_name else [*others, *english().similar(word, edits)], edits)


def _nearest(word: str, others: Sequence[str], edits: int) -> str | None:
    found = extractOne(word, others, scorer=OSA.distance, score_cutoff=edits)
    return None if found is None else str(found[0])


def _with_same_ends(word: str, others: Sequence[str]) -> list[str]:
    return [other for other in others if other[0] == word[0] and other[-1] == word[-1]]


def _are_english(questions: Sequence[str]) -> bool:
    return all(map(is_english, questions))


def _are_mostly_english(words: Set[str]) -> bool:
    """Whether most of the words are English: other languages share some of them."""
    return sum(english().has(word.lower()) for word in words) >= _ENGLISH_SHARE * len(words)


def _may_be_mistyped(word: str) -> bool:
    return len(word) <= MAX_LETTERS and not english().has(word) and not is_function_word(word)


def _composed(text: str) -> str:
    return normalize("NFC", text)
