"""Recognises questions that ask for everything: "everything", "What do you know about Bob?".

No memory matches their words, so they are answered by a list. The words with which people ask for everything
(`overviews.toml`) are removed from both ends of a question. If at most one name is left, and one of the removed words
asks by itself, the question is an overview: "tell me about Bob" is one, "who is Bob" is not.
"""

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Self

import msgspec

from recollect.retrieval.recall.pages import Order
from recollect.text.unicode_forms import normalize

MAX_OVERVIEW = 200
"""The maximum length of a question that may ask for everything, in characters."""

_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*", re.UNICODE)
_ANYTHING = re.compile(r"\s*(?:\.?\*{1,3}|%|\*\.\*)?\s*")
"""A wildcard, as in other search tools, or nothing at all. Other punctuation does not ask for anything."""
_POSSESSIVE = re.compile(r"(?:['’]s|(?<=s)['’])$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Overview:
    """The subject of a question that asks for everything.

    `subjects`: the possible names of the entity that it asks about; empty if it asks about all. `is_sure`: it asks for
    everything even if no entity has such a name. `order`: the order that it asks for, if any.
    """

    subjects: tuple[str, ...] = ()
    is_sure: bool = True
    order: Order | None = None


class Vocabulary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words of a language in questions that ask for everything, in small letters.

    `asks`: words that ask by themselves; `weak`: words that ask together with a filter or a name; `around`: words that
    may accompany those; `about`: words before or after a name. `important`, `newest`: words that ask, together with
    another word, for everything in that order. `joined`: the language puts no spaces between words.
    """

    asks: frozenset[str]
    weak: frozenset[str]
    around: frozenset[str]
    about: frozenset[str]
    important: frozenset[str]
    newest: frozenset[str]
    joined: bool = False

    def asks_for_all(self, words: Set[str]) -> bool:
        """Whether one of these words asks for everything by itself, or one beside others."""
        return not words.isdisjoint(self.asks) or (
            len(words) > 1 and not words.isdisjoint(self.important | self.newest)
        )


def overview_of(question: str, *, filtered: bool = False, values: Iterable[str] = ()) -> Overview | None:
    """What a question that asks for everything is about; None for any other question.

    `filtered`: whether a filter is given, and `values` are its names, tags and kinds. They say nothing beside it: "all
    notes tagged travel" of the tag travel asks for everything.
    """
    text = normalize("NFKC", question)
    if _ANYTHING.fullmatch(text):
        return Overview()
    if len(text) > MAX_OVERVIEW:
        return None
    spaced = _pieces(text)
    if not spaced:
        return None  # Emoji, or punctuation.
    values_in_filter = frozenset(word for value in values for word in _words(normalize("NFKC", value).casefold()))
    words = {piece.word for piece in spaced}
    for language in _languages():
        if language.may_ask(words, filtered, ascii_only=text.isascii()):
            pieces = _pieces_of_joined(text, language, values_in_filter) if language.vocabulary.joined else spaced
            overview = _read(text, pieces, language, values_in_filter, filtered)
            if overview is not None:
                return overview
    return None


@dataclass(frozen=True, slots=True)
class _Language:
    """A vocabulary with all of its words, the longest first, too, and those of which a question has one."""

    vocabulary: Vocabulary
    known: frozenset[str]
    longest_first: Sequence[str]
    telling: frozenset[str]

    @classmethod
    def of(cls, words: Vocabulary) -> Self:
        known = words.asks | words.weak | words.around | words.about | words.important | words.newest
        telling = known - words.around - words.about
        return cls(words, known, sorted(known, key=len, reverse=True), telling)

    def may_ask(self, words: Set[str], filtered: bool, *, ascii_only: bool) -> bool:
        """Whether a question of these words may ask for everything in this language: most questions do not."""
        return not ascii_only if self.vocabulary.joined else filtered or not self.telling.isdisjoint(words)


@cache
def _languages() -> Sequence[_Language]:
    text = (files(__package__) / "overviews.toml").read_bytes()
    vocabularies = msgspec.toml.decode(normalize("NFKC", text.decode()).casefold(), type=dict[str, Vocabulary])
    return tuple(map(_Language.of, vocabularies.values()))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A word of a question and where it stands."""

    word: str
    start: int
    end: int


def _read(
    text: str, pieces: Sequence[_Piece], language: _Language, values: frozenset[str], filtered: bool
) -> Overview | None:
    vocabulary, known = language.vocabulary, [p.word in language.known or p.word in values for p in pieces]
    first = known.index(False) if False in known else len(pieces)
    last = len(pieces) - known[::-1].index(False) if False in known else first
    frame = {piece.word for piece in (*pieces[:first], *pieces[last:])}
    begin, is_named = _begin_of_name(pieces[:first], vocabulary), first < last
    is_sure = vocabulary.asks_for_all(frame) or (filtered and not is_named)
    if not is_sure and frame.isdisjoint(vocabulary.weak):
        return None
    if is_named:
        names = [text[pieces[index].start : pieces[last - 1].end] for index in dict.fromkeys((begin, first))]
    else:  # A name may consist of known words: The Who, IT.
        names = [text[pieces[begin].start : pieces[-1].end]] if 0 < begin < len(pieces) else []
    if not is_sure and not names:
        return None
    order = None if frame.isdisjoint(vocabulary.important) else Order.IMPORTANCE
    return Overview(_forms(names), is_sure and not is_named, order)


def _begin_of_name(pieces: Sequence[_Piece], vocabulary: Vocabulary) -> int:
    """Where a name begins: after the last word that comes before names, and at the end where there is none."""
    indexes = (index + 1 for index in range(len(pieces) - 1, -1, -1) if pieces[index].word in vocabulary.about)
    return next(indexes, len(pieces))


def _forms(names: Sequence[str]) -> tuple[str, ...]:
    """The names, also without the sign of a possessive."""
    return tuple(dict.fromkeys(form for name in names for form in (name, _POSSESSIVE.sub("", name))))


def _words(text: str) -> list[str]:
    return [match.group() for match in _WORD.finditer(text)]


def _pieces(text: str) -> list[_Piece]:
    return [_Piece(match.group().casefold(), *match.span()) for match in _WORD.finditer(text)]


def _pieces_of_joined(text: str, language: _Language, values: frozenset[str]) -> list[_Piece]:
    """The known words at both ends of a text without spaces, the longest first, and what is left as one piece."""
    longest_first = [*values, *language.longest_first]
    begin, end = 0, len(text)
    before: list[_Piece] = []
    after: list[_Piece] = []
    while begin < end:
        rest = text[begin:end]
        if not rest[0].isalnum():
            begin += 1
        elif not rest[-1].isalnum():
            end -= 1
        elif word := next(filter(rest.startswith, longest_first), None):
            before.append(_Piece(word, begin, begin + len(word)))
            begin += len(word)
        elif word := next(filter(rest.endswith, longest_first), None):
            after.append(_Piece(word, end - len(word), end))
            end -= len(word)
        else:
            break
    middle = [_Piece(text[begin:end].casefold(), begin, end)] if begin < end else []
    return [*before, *middle, *reversed(after)]
