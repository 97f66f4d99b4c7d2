"""Phrases of time in texts, such as "last Tuesday" and "in March": found, and turned into ranges of days.

A time is by the calendar ("on 5 May 2023"), or relative to the day of saying ("last May"). A language is a table: its
words for numbers, units, days and months, and the phrases that it makes of them (`phrase_tables.py`). What each phrase
means is computed by a function of `arithmetic.py`, once for all languages. All phrases of a language are one regular
expression in which every repetition is bounded, so that matching takes time in proportion to the text's length. It is
applied only to texts that have a word without which none of its phrases is made, or its script: most texts have none,
and to see that takes microseconds.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

from recollect.text.unicode_forms import normalize
from recollect.words.dates.arithmetic import Meaning, Values
from recollect.words.dates.ranges import DateRange

MAX_RANGES = 8
"""Times of one text that are resolved, at most: the first ones."""


@dataclass(frozen=True, slots=True)
class TimePhrase:
    """A time in a text. `absolute`: by the calendar, and not relative to the day on which it was said.

    `start`, `end`: where it stands in the text. `sure`: it can hardly mean anything else, as "Sunday" does in "Sunday
    roast". `language`: whose phrase it is. `in_digits`: it has no letters.
    """

    meaning: Meaning
    values: Values
    absolute: bool
    start: int = 0
    end: int = 0
    sure: bool = True
    language: "Language | None" = None
    in_digits: bool = False

    @property
    def depends_on_day(self) -> bool:
        """Whether it means another day on another day: "yesterday", and "in March", which names no year."""
        return not self.absolute or "year" not in self.values

    @property
    def is_weekday_range(self) -> bool:
        """Whether it lasts from one weekday to another: "Monday to Wednesday"."""
        return "firstweekday" in self.values

    def ranges(self, reference: date) -> Sequence[DateRange]:
        """The ranges of days that are meant, said on that day; none for a day that does not exist."""
        try:
            return self.meaning(self.values, reference)
        except (ValueError, OverflowError):
            return ()

    def resolved(self, reference: date) -> "TimePhrase":
        """The same time as an absolute one, said on that day."""
        ranges = self.ranges(reference)
        return self if self.absolute else replace(self, meaning=lambda _, __: ranges, values={}, absolute=True)

    def ranges_around(self, day: date) -> Sequence[DateRange]:
        """As `ranges`; for a day or month without its year the last one that has begun by that day, and the next."""
        if not self.absolute or "year" in self.values:
            return self.ranges(day)
        years = (day.year - 2, day.year - 1, day.year, day.year + 1, day.year + 2)
        named = [one for year in years for one in replace(self, values={**self.values, "year": year}).ranges(day)]
        past, ahead = [one for one in named if one.first <= day], [one for one in named if one.first > day]
        return [*past[-1:], *ahead[:1]]


@dataclass(frozen=True, slots=True)
class Phrase:
    """A form of a time in a language. A name in braces in `pattern` stands for any word of that name in the table."""

    pattern: str
    meaning: Meaning
    absolute: bool = False
    sure: bool = True


@dataclass(frozen=True, slots=True)
class SurroundingWords:
    """What a language says around times. `since`: words that make a time the beginning of a range up to now; `to`:
    words between the first and the last day of a range; `fillers`: words that say nothing about what is asked for."""

    since: Set[str] = frozenset()
    to: Set[str] = frozenset()
    fillers: Set[str] = frozenset()


class Language:
    """A language's forms of times. `words`: for each name, its words in lower case and their numbers.

    `anchors`: words (in lower case) of which each of its times has one. `script`: instead of these, a pattern for the
    letters in which it is written. `spaced`: its words have spaces between them.
    """

    def __init__(
        self,
        words: Mapping[str, Mapping[str, int]],
        phrases: Sequence[Phrase],
        *,
        anchors: Set[str] = frozenset(),
        script: str = "",
        spaced: bool = True,
        context: SurroundingWords | None = None,
    ) -> None:
        self._words, self._phrases = words, phrases
        self.anchors, self._script = anchors, re.compile(script) if script else None
        self.spaced, self.context = spaced, context or SurroundingWords()

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """All phrases, compiled when a text first needs them."""
        return self._compiled(range(len(self._phrases)))

    @cached_property
    def _pattern_of_digits(self) -> re.Pattern[str]:
        """The phrases of which all values are digits: a text with numbers but no other anchor can have these alone."""
        groups = [re.findall("{([a-z]+)}", phrase.pattern) for phrase in self._phrases]
        return self._compiled(
            index for index, names in enumerate(groups) if names and self._words.keys().isdisjoint(names)
        )

    def _compiled(self, indexes: Iterable[int]) -> re.Pattern[str]:
        parts = [self._part(index, self._phrases[index].pattern) for index in indexes] or [_NOTHING]
        begin, end = (rf"(?<!{_IN_WORD})", rf"(?!{_IN_WORD})") if self.spaced else (r"(?<!\d)", "")
        return re.compile(rf"{begin}(?:{'|'.join(parts)}){end}", re.IGNORECASE)

    @property
    def phrases(self) -> Sequence[Phrase]:
        """Its forms of times."""
        return self._phrases

    def may_have_times(self, text: str, words: Set[str]) -> bool:
        """Whether a text can have times of this language; `words`: those of `words_of`."""
        if self._script is not None:
            return self._script.search(text) is not None
        return not self.anchors.isdisjoint(words)

    def times_in(self, text: str, words: Set[str]) -> list[TimePhrase]:
        """The first MAX_RANGES times in a text, which is in normal form NFC; `words`: those of `words_of`."""
        found: list[TimePhrase] = []
        is_wordless = self._script is None and (self.anchors - {DIGITS}).isdisjoint(words)
        for match in (self._pattern_of_digits if is_wordless else self._pattern).finditer(text):
            if (time := self._read_match(match)) is not None:
                found.append(time)
            if len(found) == MAX_RANGES:
                break
        return found

    def _part(self, index: int, pattern: str) -> str:
        """A phrase as a part of the whole pattern; the names of its groups begin with its position."""

        def group(match: re.Match[str]) -> str:
            name = match[1]
            words = sorted(self._words[name], key=len, reverse=True) if name in self._words else [_DIGITS[name]]
            return f"(?P<p{index}_{name}>{'|'.join(words)})"

        return f"(?P<p{index}>{re.sub('{([a-z]+)}', group, pattern)})"

    def _read_match(self, match: re.Match[str]) -> TimePhrase | None:
        """The time of a match; None where a word is not in the table: ignoring case, a dotless i matches an i."""
        groups = {name: value for name, value in match.groupdict().items() if value is not None}
        index = next(int(name[1:]) for name in groups if "_" not in name)
        phrase, values = self._phrases[index], dict[str, int]()
        for name, value in groups.items():
            _, _, kind = name.partition("_")
            if not kind:
                continue
            number = self._number(kind, value)
            if number is None:
                return None
            values[kind] = number
        in_digits = not any(map(str.isalpha, match[0]))
        return TimePhrase(phrase.meaning, values, phrase.absolute, *match.span(), phrase.sure, self, in_digits)

    def _number(self, kind: str, value: str) -> int | None:
        return self._words[kind].get(value.casefold()) if kind in self._words else int(value)


_DIGITS = {
    "year": r"(?:19|20)\d\d",
    "dayofmonth": r"[0-3]?\d",
    "firstday": r"[0-3]?\d",
    "monthofyear": r"[01]?\d",
    "weekofyear": r"[0-5]\d",
    "count": r"\d{1,3}",
}
"""Groups of digits, in any language."""

_IN_WORD = r"[\w\u0300-\u036f\u064b-\u0652\u0900-\u0963\u0970-\u097f-]"
"""What stands next to a part of a word: letters, digits, a hyphen, and marks that are no letters by themselves."""

_NOTHING = "(?!)"
"""A pattern that nothing matches."""

_WORDS = re.compile(r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f])*")

DIGITS = "0"
"""The anchor of phrases that are made of digits alone."""


def times_in(languages: Iterable[Language], text: str) -> list[TimePhrase]:
    """The times in a text in normal form NFC, in its order, MAX_RANGES of each language at most.

    Of times of several languages that overlap, the longest.
    """
    words = words_of(text)
    found = [
        time
        for language in languages
        if language.may_have_times(text, words)
        for time in language.times_in(text, words)
    ]
    chosen: list[TimePhrase] = []
    for time in sorted(found, key=lambda time: (time.start - time.end, time.start)):
        if all(time.end <= other.start or other.end <= time.start for other in chosen):
            chosen.append(time)
    return sorted(chosen, key=lambda time: time.start)


def words_of(text: str) -> Set[str]:
    """The words of a text in small letters, and DIGITS where it has any."""
    words = set(_WORDS.findall(text.casefold()))
    return words | {DIGITS} if any(map(str.isdigit, text)) else words


def date_ranges(languages: Iterable[Language], text: str, reference: date) -> list[DateRange]:
    """The ranges of days that a text names, said on that day, MAX_RANGES at most.

    The calendar's last day is left out: PostgreSQL ends a range with the day after it, which the driver cannot hold.
    """
    return ranges_of(times_in(languages, normalize("NFC", text)), reference)


def ranges_of(times: Iterable[TimePhrase], reference: date) -> list[DateRange]:
    """The ranges of days that times mean, said on that day, MAX_RANGES at most, without the calendar's last day."""
    ranges = dict.fromkeys(found for time in times for found in time.ranges(reference) if found.last < date.max)
    return list(ranges)[:MAX_RANGES]
