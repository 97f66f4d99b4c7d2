"""Updates: of two facts that say nearly the same, the newer one comes first.

"Lives in Oslo" and, a year later, "lives in Bergen" score alike for "where does she live?", and only the second is
true. In talk the same rule does harm: there a later turn answers, comments or repeats what was said (measured). Nor is
a fact of the same form about something else an update: "The staging API listens on port 8080" stays true when the
production API moves to port 9090.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from itertools import chain
from uuid import UUID

from msgspec import structs
from rapidfuzz.distance import Indel, Prefix

from recollect.retrieval.recall.ranking import Hit
from recollect.text.unicode_forms import normalize
from recollect.words.stemming import forms

_MAX_COMPARED = 20
"""Hits that are compared with each other: the first ones."""


@dataclass(frozen=True, slots=True)
class _Margins:
    """How nearly the same two facts say, so that one replaces the other.

    `min_shared`: the share of the words of the shorter text that the other must have, `min_content` that of those that
    tell what it is about. `min_score`: the share of the better fact's score that the other must have.
    `min_meaning`: the share of its cosine that is enough as well: scores are scaled within an answer, and of two facts
    alone the second has the least of all terms. `max_less_covered`: how much less of the question's words it may have,
    by their weights, or with `by_number` by their number, where that is less: among few memories weights say little.
    """

    min_shared: float
    min_content: float
    min_score: float
    min_meaning: float
    max_less_covered: float
    by_number: bool = False


_USUAL = _Margins(min_shared=0.5, min_content=0.0, min_score=0.7, min_meaning=0.8, max_less_covered=0.15)
_TELLING_CHANGE = _Margins(
    min_shared=0.4, min_content=0.25, min_score=0.7, min_meaning=0.6, max_less_covered=0.5, by_number=True
)
"""Where the newer fact tells of a change."""

_FOR_THE_NEWEST = _Margins(min_shared=0.34, min_content=0.4, min_score=0.3, min_meaning=0.6, max_less_covered=0.45)
"""Where a question asks for what is so now. Scores are scaled within an answer: among few they are far apart."""

_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|first|second|third|fourth|fifth)\b"
)

_FIRST = re.compile(
    r"\b(?:first|initial(?:ly)?|original(?:ly)?|earlier|earliest|previous(?:ly)?|former(?:ly)?|before|used to|oldest|"
    r"at the beginning|in the past|back then)\b",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"\b(?:these days|nowadays|current(?:ly)?|latest|newest|now|still|at the moment|at present|most recent(?:ly)?|"
    r"lately|up[- ]to[- ]date|"
    r"derzeit|zurzeit|aktuell\w*|jetzt|momentan|inzwischen|mittlerweile|heutzutage|neueste\w*|immer noch|"
    r"actuellement|maintenant|en ce moment|désormais|de nos jours|actualmente|ahora|hoy en día|todavía|"
    r"atualmente|agora|hoje em dia|ainda|attualmente|adesso|al momento|oggigiorno|momenteel|tegenwoordig|nieuwste|"
    r"obecnie|aktualnie|teraz|сейчас|теперь|в настоящее время|şu anda|şimdi)\b"
    r"|现在|目前|最新|当前|現在|最近|今は|지금|현재|최신|요즘",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_](?:[^\W_]|[^\w\s!-~\u0964\u0965\u2000-\u206f\u3000-\u303f])*")
"""A word, with the marks within it that are no letters by themselves, as in Devanagari."""

_FORM_WORDS_BY_LANGUAGE = """
    a an the this that these those my your our their his her its is are was were be been has have had do does did will
    would can could now still at in on of to for from by with as and or not no it he she they we you i
    der die das den dem des ein eine ist sind war waren hat haben im am auf von mit zu und
    le la les l un une des du de est sont au aux et en el los las del es son y o os da do um uma il lo gli di
"""
_FORM_WORDS = frozenset(_FORM_WORDS_BY_LANGUAGE.split())
"""Words that tell nothing of what a fact is about, in some languages."""

_LONGEST_ASKING = 120
"""Characters of a question that may ask for what is so now, at most."""

_IDENTIFIER = re.compile(r"(?=.*\d)(?=.*[^\W\d])|\d{5}")
"""A word with letters and digits, or many digits, is no value that may have changed, but says which thing is meant."""

_SHORTEST_STEM = 4
_LONGEST_ENDING = 3


def asks_for_first(question: str) -> bool:
    """Whether a question (in English) asks for what was so at first, and not for what is so now."""
    return _FIRST.search(question) is not None


def asks_for_newest(question: str) -> bool:
    """Whether a question asks for what is so now: "these days", "currently", "latest", "still", …

    In a longer message these words stand beside what it asks for.
    """
    return len(question) <= _LONGEST_ASKING and _NOW.search(question) is not None and not asks_for_first(question)


def change_words_in(text: str) -> Set[str]:
    """The words by which a text says that something has changed: "upgraded", "no longer", "since", …"""
    return _ChangeWords.load().found_in(text, _words(text))


@dataclass(frozen=True, slots=True)
class _ChangeWords:
    """Words of change: `phrases` of one word or more by their first words, and `parts` of texts without spaces.

    Looked up word by word: as one regular expression they would take a millisecond and a half for each text.
    """

    phrases: Mapping[str, Sequence[Sequence[str]]]
    parts: Sequence[str]

    @staticmethod
    @cache
    def load() -> "_ChangeWords":
        """The words of the file."""
        text = (files(__package__) / "change_words.toml").read_text("utf-8")
        words = {language: _listed(listed) for language, listed in tomllib.loads(normalize("NFC", text)).items()}
        parts = words.pop("unspaced")
        phrases = defaultdict[str, list[Sequence[str]]](list)
        for phrase in map(_words, chain.from_iterable(words.values())):
            phrases[phrase[0]].append(phrase)
        return _ChangeWords(phrases, parts)

    def found_in(self, text: str, words: Sequence[str]) -> Set[str]:
        """Those of a text with these words."""
        found = {
            " ".join(phrase)
            for index, word in enumerate(words)
            for phrase in self.phrases.get(word, ())
            if words[index : index + len(phrase)] == phrase
        }
        return found if text.isascii() else found | {part for part in self.parts if part in text}


def _listed(words: str) -> list[str]:
    return [word.strip() for word in words.split(",")]


def in_order_of_time(hits: Sequence[Hit], facts: Set[UUID], question: str) -> list[Hit]:
    """A ranking, best first, in which of facts that tell nearly the same the newest comes first, or else the oldest.

    It takes the place and the score of the best of these, which moves down by one place. The oldest comes first where
    the question asks for it; where it asks for what is so now, facts may differ more. Facts about two things of which
    the question names one stay in their order. `facts`: the passages that belong to no thread.
    """
    first_of = min if asks_for_first(question) else max
    margins = _FOR_THE_NEWEST if asks_for_newest(question) else _USUAL
    asked = frozenset(_content(question))
    ordered = list(hits)
    compared = {
        hit.key: _Comparison(hit, asked) for hit in hits[:_MAX_COMPARED] if hit.passage_id in facts and not hit.outdated
    }
    for index in range(min(len(ordered), _MAX_COMPARED)):
        best = compared.get(ordered[index].key)
        if best is None:
            continue
        others = (compared.get(hit.key) for hit in ordered[index + 1 : _MAX_COMPARED])
        alike = [best, *(other for other in others if other is not None and other.replaces(best, margins, asked))]
        first = first_of(alike, key=lambda each: each.when)
        if first is not best:
            ordered.remove(first.hit)
            ordered.insert(index, structs.replace(first.hit, score=best.hit.score))
    return ordered


def probably_replaces(new: str, old: str) -> bool:
    """Whether a new fact probably replaces an older one: it begins alike, has the same form, and another value."""
    new_words, old_words = _words(new), _words(old)
    if not _share_enough(frozenset(new_words), frozenset(old_words), _USUAL.min_shared):
        return False
    steps = _steps(_content(old), _content(new))
    return bool(steps) and steps[0].is_equal and any(step.replaces for step in steps)


class _Comparison:
    """A fact with its words, the share of the question's words that it has, and the moment at which it was told."""

    def __init__(self, hit: Hit, asked: Set[str]) -> None:
        self.hit = hit
        words = _words(hit.text)
        self.words = frozenset(map(_stem, words))
        self.content = frozenset(_stem(word) for word in words if word not in _FORM_WORDS)
        self.covered = len(self.words & set(map(_stem, asked))) / (len(asked) or 1)
        self.changes = _ChangeWords.load().found_in(hit.text, words)
        self.has_number = _NUMBER.search(hit.text.casefold()) is not None
        self.when: tuple[datetime, UUID] = hit.at or datetime.min.replace(tzinfo=UTC), hit.memory_id

    def replaces(self, better: "_Comparison", margins: _Margins, asked: Set[str]) -> bool:
        """Whether this fact says nearly the same as one with a better score, about the same entity or none."""
        older, newer = sorted((self, better), key=lambda each: each.when)
        if (older.has_number and not newer.has_number) or self._lacks_identifier_of(better):
            return False
        if self.hit.name is not None and better.hit.name is not None and self.hit.node_id != better.hit.node_id:
            return False
        is_alike = self._is_within(margins, better) or (
            not newer.changes <= older.changes and self._is_within(_TELLING_CHANGE, better)
        )
        return is_alike and not _names_only(asked, better.hit.text, self.hit.text)

    def _less_covered_than(self, better: "_Comparison", margins: _Margins) -> float:
        """How much less of the question's words it has."""
        by_weight = better.hit.terms["coverage"] - self.hit.terms["coverage"]
        return min(by_weight, better.covered - self.covered) if margins.by_number else by_weight

    def _lacks_identifier_of(self, better: "_Comparison") -> bool:
        """Whether a fact with a better score has an identifier that the question names, and this one has not."""
        return self.hit.terms.get("identified", 0.0) < better.hit.terms.get("identified", 0.0)

    def _is_within(self, margins: _Margins, better: "_Comparison") -> bool:
        """Whether this fact says nearly the same by these margins."""
        return (
            (
                self.hit.score >= margins.min_score * better.hit.score
                or self.hit.meaning >= margins.min_meaning * better.hit.meaning > 0
            )
            and self._less_covered_than(better, margins) <= margins.max_less_covered
            and _share_enough(self.words, better.words, margins.min_shared)
            and _share_enough(self.content, better.content, margins.min_content)
        )


@dataclass(frozen=True, slots=True)
class _Step:
    """A step from one text to another: words that stay, or that others take the place of."""

    before: Sequence[str]
    after: Sequence[str]
    is_equal: bool

    @property
    def replaces(self) -> bool:
        """Whether words take the place of others."""
        return not self.is_equal and bool(self.before and self.after)


def _names_only(asked: Set[str], better: str, other: str) -> bool:
    """Whether a question has words of what one text is about, which the other text lacks and has others for.

    The last words that differ are the value, which a question may name as it was ("still in Oslo?"); so are numbers.
    Only where two places differ, or in an identifier, a text may end in what it is about.
    """
    words, others = _content(better), _content(other)
    steps = _steps(words, others)
    replacing = [step for step in steps if step.replaces]
    return any(
        _has_form(asked, word) and not _has_form(others, word)
        for step in replacing
        if not change_words_in(" ".join(step.after))
        for word in step.before
        if _IDENTIFIER.match(word) or (not word.isdecimal() and (len(replacing) > 1 or step is not steps[-1]))
    )


def _steps(before: Sequence[str], after: Sequence[str]) -> list[_Step]:
    """How one text became the other: words of both, and what stands between these in one and in the other.

    The time grows with the product of the words by 64, and not with their cube, as that of difflib does.
    """
    steps: list[_Step] = []
    start = new_start = 0
    equal = [step for step in Indel.opcodes(before, after) if step.tag == "equal"]
    for step in equal:
        steps += _changed(before[start : step.src_start], after[new_start : step.dest_start])
        start, new_start = step.src_end, step.dest_end
        steps.append(_Step(before[step.src_start : start], after[step.dest_start : new_start], is_equal=True))
    return steps + _changed(before[start:], after[new_start:])


def _changed(before: Sequence[str], after: Sequence[str]) -> list[_Step]:
    return [_Step(before, after, is_equal=False)] if before or after else []


def _has_form(words: Iterable[str], word: str) -> bool:
    return any(_are_forms(word, other) for other in words)


def _are_forms(word: str, other: str) -> bool:
    """Whether two words are the same, or differ in their endings alone; with a digit, they must be the same."""
    if word == other or not word.isalpha() or not other.isalpha():
        return word == other
    stem = Prefix.similarity(word, other)
    return stem >= _SHORTEST_STEM and max(len(word), len(other)) - stem <= _LONGEST_ENDING


def _stem(word: str) -> str:
    """A word as English inflects none; in other languages, nearly as it is."""
    return forms(word)[0]


def _share_enough(words: Set[str], others: Set[str], min_shared: float) -> bool:
    least = min_shared * min(len(words), len(others))
    return not min_shared or 0 < least <= len(words & others)


def _words(text: str) -> list[str]:
    return _WORD.findall(normalize("NFC", text.casefold()))


def _content(text: str) -> list[str]:
    """The words of a text that tell what it is about, in order."""
    return [word for word in _words(text) if word not in _FORM_WORDS]
