"""Days that a question names, as a source of candidates: what was said on them, and what is about them.

"What happened yesterday?" shares no word with the answer. Where a question asks for nothing else, the answer is all of
these days, newest first; else they are candidates among others, and their date is evidence (`ranking_weights.py`).
"""

import math
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import chain
from typing import Any
from uuid import UUID

from msgspec import structs

from recollect.retrieval.recall.matching import PassageEvidence, day_of_saying
from recollect.retrieval.recall.model import Question
from recollect.retrieval.recall.prompts import SHORT_QUESTION
from recollect.retrieval.recall.ranking import Candidate, Hit
from recollect.text.unicode_forms import normalize
from recollect.times import FIRST, LAST, zone_of
from recollect.words.dates.day_numbers import asked_days
from recollect.words.dates.phrase_tables import ENGLISH, LANGUAGES, NUMBERS
from recollect.words.dates.phrases import Language, SurroundingWords, TimePhrase, times_in
from recollect.words.dates.ranges import DateRange

MAX_DATED = 100
"""The maximum number of candidates that were said on the days that a question names, and of those that name them."""

MAX_SHORT = 31
"""The maximum length, in days, of a range for which everything said in it is found. For a longer one, other evidence is
needed, too."""

MAX_RANGES = 8
"""The maximum number of ranges of days of one question."""

LISTED_SCORE = 1.0
"""The score of hits that are listed by their days alone: none of them answers better than another."""

_LONGEST_QUESTION = 1_000
"""The number of characters of a question in which times are looked for."""

_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|['’\u0300-\u036f\u0900-\u0963])*")

_AND = frozenset({"and", "und", "et", "y", "e", "en", "i", "ve", "и", "和", "と", "과", "와", "و", "और"})
_LONGEST_ARTICLE = 3
"""The maximum number of letters of a word between "since" and a time, which may be an article: desde el lunes."""

_CLOCK = re.compile(r"[T ,]{0,2}\d{1,2}:\d{2}:\d{2}")
"""The time of day, with seconds, that follows the day in a time stamp."""

_WEEK = 7

_BETWEEN = frozenset({"between", "zwischen", "entre", "tra", "fra", "tussen", "między", "между", "بين"})
"""The words before two times without which "and" does not join them to a range."""


def _any_context() -> SurroundingWords:
    contexts = [language.context for language in LANGUAGES if language.spaced]
    since, to = (
        frozenset(chain.from_iterable(words)) for words in zip(*((c.since, c.to) for c in contexts), strict=True)
    )
    return SurroundingWords(since, to)


_ANY_CONTEXT = _any_context()


@dataclass(frozen=True, slots=True)
class NamedDays:
    """The ranges of days that a question names, in the zone of the caller. `alone`: it asks for nothing else."""

    ranges: Sequence[DateRange] = ()
    zone: tzinfo = UTC
    alone: bool = False

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the queries that find passages by these days."""
        return {
            "range_starts": [_moment(days.first, time.min, self.zone) for days in self.ranges],
            "range_ends": [_next_moment(days.last, self.zone) for days in self.ranges],
            "first_days": [days.first for days in self.ranges],
            "last_days": [days.last for days in self.ranges],
            "named_days": asked_days(self.ranges),
            "max_dated": MAX_DATED,
        }

    @property
    def is_short(self) -> bool:
        """Whether no range is longer than a month. Then any passage that was said in it is evidence."""
        return all(days.days <= MAX_SHORT for days in self.ranges)

    def members(self, candidates: Sequence[Candidate], evidence: dict[UUID, PassageEvidence]) -> Set[UUID]:
        """The ids of the candidates that were said on one of the days, or that name one."""
        if not self.ranges:
            return frozenset()
        asked = frozenset(asked_days(self.ranges))
        return {
            candidate.id
            for candidate in candidates
            if (found := evidence.get(candidate.id)) is not None
            and (self._has_said(candidate.at, found.said_offset) or not asked.isdisjoint(found.named_days or ()))
        }

    def answering(
        self, candidates: Sequence[Candidate], members: Set[UUID], min_best: float | None
    ) -> Sequence[Candidate]:
        """The candidates that may answer a question for everything of these days: `members`.

        If a range of more than a month has none, those whose vectors are near to the question's: its words are those of
        a date, which other candidates share. For a shorter range without any, the answer is empty.
        """
        if members or self.is_short:
            return [candidate for candidate in candidates if candidate.id in members]
        least = math.inf if min_best is None else min_best
        return [candidate for candidate in candidates if (candidate.nearness or 0.0) >= least]

    def _has_said(self, at: datetime | None, said_offset: int | None) -> bool:
        if at is None:
            return False
        day = day_of_saying(at, said_offset, self.zone)
        return any(days.first <= day <= days.last for days in self.ranges)


NO_DAYS = NamedDays()
"""The value for a question without times."""


def days_of(question: Question) -> NamedDays:
    """Find the days that a question names, given the day and the zone in which it is asked."""
    text = normalize("NFC", question.asking_part[:_LONGEST_QUESTION])
    times = _sure_times(text)
    if len(question.text) > SHORT_QUESTION:
        times = [found for found in times if not _is_stamp(text, found)]
    if not times or (question.asked_on is None and any(found.depends_on_day for found in times)):
        return NO_DAYS
    asked_on = question.asked_on or date.min
    ranges = dict.fromkeys(days for days in _ranges(text, times, asked_on) if days.last < date.max)
    if not ranges:
        return NO_DAYS
    alone = question.part is None and len(question.text) <= _LONGEST_QUESTION and _asks_for_nothing_else(text, times)
    return NamedDays(list(ranges)[:MAX_RANGES], zone_of(question.time_zone), alone)


def listed(hits: Sequence[Hit]) -> list[Hit]:
    """Sort hits that are listed by their days alone, newest first, and give them the same score."""
    newest_first = sorted(hits, key=lambda hit: (hit.at or FIRST, hit.memory_id), reverse=True)
    return [structs.replace(hit, score=LISTED_SCORE) for hit in newest_first]


def is_listing(hits: Sequence[Hit]) -> bool:
    """Whether hits are listed by their days alone."""
    return bool(hits) and all(hit.score == LISTED_SCORE for hit in hits)


def _sure_times(text: str) -> list[TimePhrase]:
    """The times of a text that can hardly be anything else, or that begin a range ("Monday - Friday")."""
    times = times_in(LANGUAGES, text)
    following = [*times[1:], None][: len(times)]
    return [
        found
        for found, later in zip(times, following, strict=True)
        if found.sure or (later is not None and later.sure and _joins(text, found, later))
    ]


def _is_stamp(text: str, found: TimePhrase) -> bool:
    """Whether a time is a time stamp with seconds, as in a pasted log, whose days nobody asks for."""
    return _CLOCK.search(text, found.start, found.end) is not None or _CLOCK.match(text, found.end) is not None


def _ranges(text: str, times: Sequence[TimePhrase], asked_on: date) -> Iterator[DateRange]:
    """Yield the ranges of times. Two times may be the ends of one; "since" makes one up to `asked_on`.

    From one weekday to another means the last such days: what happened in them is asked for more often than what will.
    """
    index = 0
    while index < len(times):
        found, ranges = times[index], times[index].ranges_around(asked_on)
        later = times[index + 1] if index + 1 < len(times) else None
        if found.is_weekday_range:
            yield from ranges[:1]
        elif later is not None and ranges and _joins(text, found, later):
            index += 1
            yield from _between(ranges, later.ranges_around(asked_on))
        elif _is_since(text, found):
            yield from (DateRange(days.first, asked_on) for days in ranges[:1] if days.first <= asked_on)
        else:
            yield from ranges
        index += 1


def _between(first: Sequence[DateRange], last: Sequence[DateRange]) -> Iterator[DateRange]:
    """The range from the first of some ranges to the next of others; all of these ranges if none comes after it.

    From one weekday to another there are less than seven days, also where the other is the day of asking.
    """
    if _are_weekdays(first) and _are_weekdays(last):
        days = (last[0].first - first[0].first).days % _WEEK
        return iter([DateRange(first[0].first, first[0].first + timedelta(days))])
    after = [days for days in last if days.last > first[0].first]
    if not after:
        return iter([*first, *last])
    return iter([DateRange(first[0].first, min(after, key=lambda days: days.first).last)])


def _are_weekdays(ranges: Sequence[DateRange]) -> bool:
    """Whether ranges are the days of one weekday before and after the day of asking."""
    if len(ranges) != 2 or any(one.days > 1 for one in ranges):
        return False
    before, after = ranges
    return after.first - before.first in (timedelta(_WEEK), timedelta(2 * _WEEK))


def _joins(text: str, found: TimePhrase, later: TimePhrase) -> bool:
    """Whether the words between two times join them to a range."""
    between = _without_article(text[found.end : later.start].strip(" ,").casefold(), _context(found).to)
    if between not in _context(found).to:
        return False
    before = text[: found.start].casefold().split()[-2:]
    if before and len(before[-1]) > _LONGEST_ARTICLE:
        before = before[-1:]
    return between not in _AND or not _BETWEEN.isdisjoint(before)


def _without_article(between: str, to: Set[str]) -> str:
    """The words between two times, without a last word that may be an article: "y el", "und dem"."""
    words = between.rsplit(maxsplit=1)
    has_article = between not in to and len(words) == 2 and len(words[1]) <= _LONGEST_ARTICLE
    return words[0] if has_article else between


def _is_since(text: str, found: TimePhrase) -> bool:
    """Whether a time is the beginning of a range: "since" stands before it, is part of it, or follows it."""
    since, after = _context(found).since, text[found.end :].lstrip()
    before, own = text[: found.start].casefold().split()[-2:], text[found.start : found.end].casefold().split()
    if before and len(before[-1]) > _LONGEST_ARTICLE:
        before = before[-1:]
    if not since.isdisjoint((*before, own[0], own[-1])):
        return True
    spaced = found.language is None or found.language.spaced
    return any((after.split()[:1] == [word]) if spaced else after.startswith(word) for word in since)


def _context(found: TimePhrase) -> SurroundingWords:
    """The words that may surround a time in its language or, if it has only digits, in any language."""
    language = found.language or ENGLISH
    return _ANY_CONTEXT if language in (ENGLISH, NUMBERS) and found.in_digits else language.context


def _asks_for_nothing_else(text: str, times: Sequence[TimePhrase]) -> bool:
    """Whether a text has, apart from its times, only words that do not say what is asked for."""
    languages = {found.language or ENGLISH for found in times} | {ENGLISH}
    languages |= {one for one in LANGUAGES if not one.spaced and one.may_have_times(text, frozenset())}
    fillers = _BETWEEN.union(*(language.context.fillers | language.context.to for language in languages))
    rest = _without(text, times)
    for language in languages:
        rest = rest if language.spaced else _without_fillers(rest, language)
    words = _WORD.findall(rest)
    # In English a capital within a question is that of a name: "What did Will do yesterday?"
    may_be_name = languages == {ENGLISH} and not text.isupper()
    meant = [
        word
        for index, word in enumerate(words)
        if not _is_filler(word, fillers) or (may_be_name and index and word[0].isupper() and len(word) > 1)
    ]
    return not meant and not any(map(str.isdigit, rest))


def _is_filler(word: str, fillers: Set[str]) -> bool:
    plain = word.casefold().replace("’", "'")
    return plain in fillers or all(part in fillers for part in plain.split("'") if part)


def _without(text: str, times: Sequence[TimePhrase]) -> str:
    ends = [0, *(found.end for found in times)]
    starts = [*(found.start for found in times), len(text)]
    return " ".join(text[end:start] for end, start in zip(ends, starts, strict=True))


def _without_fillers(text: str, language: Language) -> str:
    for filler in sorted(language.context.fillers, key=len, reverse=True):
        text = text.replace(filler, " ")
    return text


def _moment(day: date, at: time, zone: tzinfo) -> datetime:
    """The moment of a day and a time in a zone, or the first or last one of the calendar if it lies outside of that."""
    try:
        return min(max(datetime.combine(day, at, zone).astimezone(UTC), FIRST), LAST)
    except OverflowError:
        return FIRST if day.year == 1 else LAST


def _next_moment(day: date, zone: tzinfo) -> datetime:
    """The moment at which the day after a day begins in a zone."""
    return LAST if day == date.max else _moment(date.fromordinal(day.toordinal() + 1), time.min, zone)
