"""Finds the part of a long question that asks: hooks of agents send whole prompts, with a question somewhere in them.

All words of the prompt are searched for. But only the part that asks is embedded, and only in it names and times are
looked for: the vector of a log with a question below it would be that of the log (measured:
docs/lab/recall-quality.md).
"""

import re
from collections.abc import Iterator
from itertools import chain

from recollect.words.stop_words import STOP_WORDS

MAX_QUESTION = 8_000
"""The maximum length of a question, in characters."""

MAX_PART = 1_000
"""The maximum length of the part that asks, in characters: about as many as `minilm` reads."""

SHORT_QUESTION = 300
"""The maximum length of a question that is taken as a whole, in characters: people's questions are shorter."""

_MIN_CONTENT = 3
"""The minimum number of content words of sentences that say what they ask for: "Can you check?" has only one."""

_REFERRING = frozenset(
    word
    for words in ("he she it they them him her his hers its their theirs", "this that these those one ones")
    for word in words.split()
)
"""Words that may refer to what was said before."""

_SENTENCE = re.compile(r"[^.!?…。！？؟\n]+[.!?…。！？؟\n]*\s*")
_ASKING = re.compile(r"[?？؟]")
_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？؟])|\n+")
_MARKS = ("?", "？", "؟")
_CLOSING = "\"'”’»)]* \t"
_WORD = re.compile(r"\w+(?:['’]\w+)?")


def part_that_counts(text: str) -> str:
    """Find the part of a text that asks: all of a short text, and otherwise the questions in it.

    If the questions do not say by themselves what they ask for, other sentences are added, up to MAX_PART characters:
    first the last ones and the first ones.
    """
    if len(text) <= SHORT_QUESTION:
        return text
    questions = _questions(text)
    if _say_what_they_ask_for(questions):
        return questions
    return text if len(text) <= MAX_PART else _sentences_that_count(text)


def _questions(text: str) -> str:
    """The last sentences that end with a question mark, up to MAX_PART characters."""
    questions = [sentence for sentence in _END.split(text) if sentence.rstrip(_CLOSING).endswith(_MARKS)]
    return " ".join(reversed(list(_within_a_part(reversed(questions)))))


def _within_a_part(sentences: Iterator[str]) -> Iterator[str]:
    room = MAX_PART
    for sentence in sentences:
        if len(sentence) < room:
            yield sentence.strip()
            room -= len(sentence) + 1


def _say_what_they_ask_for(questions: str) -> bool:
    words = [word.casefold() for word in _WORD.findall(questions)]
    content = {word for word in words if word not in STOP_WORDS}
    return len(content) >= _MIN_CONTENT and _REFERRING.isdisjoint(words)


def _sentences_that_count(text: str) -> str:
    """The sentences that ask, then the last and the first, as many as fit, in the order of the text; else its end."""
    sentences = _SENTENCE.findall(text)
    indexes = range(len(sentences))
    asking = [index for index in reversed(indexes) if _ASKING.search(sentences[index])]
    ends = chain.from_iterable(zip(reversed(indexes), indexes, strict=True))
    taken: list[int] = []
    room = MAX_PART
    for index in dict.fromkeys(chain(asking, ends)):
        if len(sentences[index]) <= room:
            taken.append(index)
            room -= len(sentences[index])
    return "".join(sentences[index] for index in sorted(taken)) or text[-MAX_PART:]
