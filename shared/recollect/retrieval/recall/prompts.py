"""The part of a long question that counts: hooks of agents send whole prompts, with the question somewhere in them.

By its words, the whole is searched. What is embedded, and looked through for names and times, is the part that asks: a
vector of a pasted log with a question below it is that of the log (measured: docs/lab/recall-quality.md).
"""

import re
from collections.abc import Iterator
from itertools import chain

from recollect.words.stop_words import STOP_WORDS

MAX_QUESTION = 8_000
"""Characters of a question, at most."""

MAX_PART = 1_000
"""Characters of the part that counts, at most: about as many as `minilm` reads."""

SHORT_QUESTION = 300
"""Characters of a question that counts as a whole, at most: people's questions have fewer."""

_MIN_CONTENT = 3
"""Content words of sentences that say by themselves what they ask for, at least: "Can you check?" has one."""

_REFERRING = frozenset(
    word
    for words in ("he she it they them him her his hers its their theirs", "this that these those one ones")
    for word in words.split()
)
"""Words that may stand for what was said before."""

_SENTENCE = re.compile(r"[^.!?…。！？؟\n]+[.!?…。！？؟\n]*\s*")
_ASKING = re.compile(r"[?？؟]")
_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？؟])|\n+")
_MARKS = ("?", "？", "؟")
_CLOSING = "\"'”’»)]* \t"
_WORD = re.compile(r"\w+(?:['’]\w+)?")


def part_that_counts(text: str) -> str:
    """A short text as it is; of a longer one, the questions in it, if they say by themselves what they ask for.

    Otherwise, up to MAX_PART characters: the sentences that ask, the last and the first.
    """
    if len(text) <= SHORT_QUESTION:
        return text
    questions = _questions(text)
    if _say_what_they_ask_for(questions):
        return questions
    return text if len(text) <= MAX_PART else _sentences_that_count(text)


def _questions(text: str) -> str:
    """The sentences that end with a question mark, the last ones, up to MAX_PART characters."""
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
    """As many as there is room for, in the order of the text: those that ask, the last and the first; else the end."""
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
