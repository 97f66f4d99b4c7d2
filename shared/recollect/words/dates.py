"""Times in texts, as ranges of days: by the calendar ("on 5 May 2023"), or relative to the day of saying ("last May").

A language is a table: its words for numbers, units, days and months, and the phrases that it makes of them
(`date_phrases.py`). The meanings of phrases are defined here, once for all languages. All phrases of a language are one
regular expression in which every repetition is bounded, so that matching takes time in proportion to the text's length.
It is applied only to texts that have a word without which none of its phrases is made, or its script: most texts have
none, and to see that takes microseconds.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from typing import Self
from unicodedata import normalize

MAX_RANGES = 8
"""Times of one text that are resolved, at most: the first ones."""

_DAY = timedelta(days=1)
_WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class DateRange:
    """Days from `first` to `last`, both included."""

    first: date
    last: date

    @classmethod
    def of_day(cls, day: date) -> Self:
        """The range of one day."""
        return cls(day, day)

    @classmethod
    def of_months(cls, first: date, months: int = 1) -> Self:
        """The range of `months` whole months, beginning with the month of a day."""
        start = first.replace(day=1)
        end = shifted(start, months - 1)
        return cls(start, end.replace(day=monthrange(end.year, end.month)[1]))

    @property
    def days(self) -> int:
        """The number of days."""
        return (self.last - self.first).days + 1

    def overlaps(self, other: "DateRange") -> bool:
        """Whether the ranges have a day in common."""
        return self.first <= other.last and other.first <= self.last


Values = Mapping[str, int]
"""The values of a phrase: the numbers that its words stand for, by the names of their groups."""

Meaning = Callable[[Values, date], Sequence[DateRange]]
"""A function from the values of a phrase, and the day on which it was said, to ranges of days. May raise ValueError or
OverflowError."""


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
class Context:
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
        context: Context | None = None,
    ) -> None:
        self._words, self._phrases = words, phrases
        self.anchors, self._script = anchors, re.compile(script) if script else None
        self.spaced, self.context = spaced, context or Context()

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
        """A phrase as a part of the whole pattern; the names of its groups begin with its place."""

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

DAY, WEEK, MONTH, YEAR, WEEKEND = range(1, 6)
"""The numbers of units of time in tables."""


def shifted(day: date, months: int) -> date:
    """The same day so many months later, or that month's last day. Raises ValueError beyond the calendar."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def period(unit: int, day: date, away: int) -> DateRange:
    """The unit of time that contains a day, or the one `away` units later. Weeks begin on Mondays."""
    monday = day - day.weekday() * _DAY
    match unit:
        case 1:
            return DateRange.of_day(day + away * _DAY)
        case 2:
            return DateRange(monday + away * _WEEK, monday + away * _WEEK + 6 * _DAY)
        case 5:
            return DateRange(monday + away * _WEEK + 5 * _DAY, monday + away * _WEEK + 6 * _DAY)
        case 3:
            return DateRange.of_months(shifted(day.replace(day=1), away))
    return DateRange(date(day.year + away, 1, 1), date(day.year + away, 12, 31))


def days_away(away: int) -> Meaning:
    """The day that lies `away` days from the day of saying."""
    return lambda _, reference: [DateRange.of_day(reference + away * _DAY)]


def units_away(direction: int) -> Meaning:
    """`count` or `number` units before (-1) or after (1): a day, a month, a year; for weeks, the days around a day."""

    def meaning(values: Values, reference: date) -> Sequence[DateRange]:
        away, unit = direction * values.get("count", values.get("number", 1)), values["unit"]
        if unit in (WEEK, WEEKEND):
            day = reference + away * _WEEK
            return [DateRange(day - 3 * _DAY, day + 3 * _DAY)]
        return [period(unit, reference, away)]

    return meaning


def units_until() -> Meaning:
    """The days from `count` or `number` units ago to the day of saying."""

    def meaning(values: Values, reference: date) -> Sequence[DateRange]:
        count, unit = values.get("count", values.get("number", 1)), values["unit"]
        match unit:
            case 3 | 4:
                return [DateRange(shifted(reference, -count * (1 if unit == MONTH else 12)), reference)]
        return [DateRange(reference - count * (_DAY if unit == DAY else _WEEK), reference)]

    return meaning


def adjacent_unit(away: int) -> Meaning:
    """The `unit` before (-1), the one that contains the day of saying (0) or the next (1)."""
    return lambda values, reference: [period(values["unit"], reference, away)]


def adjacent_weekday(*directions: int, today: bool = False) -> Meaning:
    """The last `weekday` before the day of saying (-1), the first after it (1); with `today`, also that day itself."""

    def meaning(values: Values, reference: date) -> Sequence[DateRange]:
        ahead = (values["weekday"] - 1 - reference.weekday()) % 7
        if today and ahead == 0:
            return [DateRange.of_day(reference)]
        return [
            DateRange.of_day(reference + (ahead or 7) * _DAY if direction > 0 else reference + (ahead - 7) * _DAY)
            for direction in directions
        ]

    return meaning


def adjacent_month(direction: int) -> Meaning:
    """The last `month` before that of the day of saying (-1), the first after it (1); or the three of a `season`.

    The last season is one that is over.
    """

    def meaning(values: Values, reference: date) -> Sequence[DateRange]:
        month, months = values.get("month", values.get("season", 1)), 3 if "season" in values else 1
        away = (month - reference.month) % 12
        if direction > 0:
            away = away or 12
        else:
            away -= 12 if away + months <= 12 else 24
        return [DateRange.of_months(shifted(reference.replace(day=1), away), months)]

    return meaning


def by_calendar(values: Values, reference: date) -> Sequence[DateRange]:
    """The day, month, season or year that is named; where no year is, the one nearest to the day of saying."""
    years = [values["year"]] if "year" in values else [reference.year - 1, reference.year, reference.year + 1]
    ranges = [named for year in years if (named := _in_year(values, year)) is not None]
    return [min(ranges, key=lambda named: _distance(named, reference))] if ranges else []


def _in_year(values: Values, year: int) -> DateRange | None:
    month = values.get("month", values.get("monthofyear"))
    try:
        if month is None:
            return DateRange.of_months(date(year, values.get("season", 1), 1), 3 if "season" in values else 12)
        if "dayofmonth" not in values:
            return DateRange.of_months(date(year, month, 1))
        return DateRange.of_day(date(year, month, values["dayofmonth"]))
    except ValueError:  # Few years have a 29 February, and the calendar has an end.
        return None


def _distance(named: DateRange, reference: date) -> timedelta:
    return max(named.first - reference, reference - named.last, timedelta())


def unit_fixed(unit: int, away: int) -> Meaning:
    """The week, month, year or weekend that lies `away` from that of the day of saying."""
    return lambda _, reference: [period(unit, reference, away)]


def days_of_saying(*aways: int) -> Meaning:
    """Each of the days that lie so many days from the day of saying: one word may mean several."""
    return lambda _, reference: [DateRange.of_day(reference + away * _DAY) for away in aways]


def weekday_of_week(away: int) -> Meaning:
    """The `weekday` of the calendar week that lies `away` weeks from that of the day of saying."""
    return lambda values, reference: [
        DateRange.of_day(period(WEEK, reference, away).first + (values["weekday"] - 1) * _DAY),
    ]


def month_of_year(away: int) -> Meaning:
    """The `month` (or `monthofyear`) of the year that lies `away` years from that of the day of saying."""

    def meaning(values: Values, reference: date) -> Sequence[DateRange]:
        month = values.get("month", values.get("monthofyear", 0))
        return [DateRange.of_months(date(reference.year + away, month, 1))]

    return meaning


def week_of_year(values: Values, reference: date) -> Sequence[DateRange]:
    """The `weekofyear` of a `year`, as ISO 8601 counts weeks."""
    monday = date.fromisocalendar(values["year"], values["weekofyear"], 1)
    return [DateRange(monday, monday + 6 * _DAY)]


def days_of_month(values: Values, reference: date) -> Sequence[DateRange]:
    """The days from `firstday` to `dayofmonth` of a month."""
    return [
        DateRange(last.first.replace(day=values["firstday"]), last.last)
        for last in by_calendar(values, reference)
        if values["firstday"] <= last.last.day
    ]


def either_order(values: Values, reference: date) -> Sequence[DateRange]:
    """The day that `dayofmonth`/`monthofyear`/`year` means, in either order of day and month."""
    swapped = {**values, "dayofmonth": values["monthofyear"], "monthofyear": values["dayofmonth"]}
    return list(dict.fromkeys([*by_calendar(values, reference), *by_calendar(swapped, reference)]))


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


MAX_NAMED_DAYS = 100
"""Days and months that are stored of a passage, at most."""

MAX_ASKED_DAYS = 400
"""Days of a range for which passages that name one of them are looked for, at most: the last ones."""

BROAD_DAYS = 7
"""A passage that names a range of more days than this, and than the question's, is about none of them in particular."""

_MONTH_DAYS = 28
_SEASON_DAYS = 92


def named_days(ranges: Iterable[DateRange]) -> list[int]:
    """The days and months that a passage names, as numbers to look it up by.

    A day is its number in the calendar; a month, of ranges of up to a season, a negative number. Longer ranges are left
    out: a passage that names a year says nothing of its days.
    """
    codes: dict[int, None] = {}
    for days in ranges:
        if days.days <= BROAD_DAYS:
            codes |= dict.fromkeys(range(days.first.toordinal(), days.last.toordinal() + 1))
        elif days.days <= _SEASON_DAYS:
            codes |= dict.fromkeys(_months(days))
    return list(codes)[:MAX_NAMED_DAYS]


def asked_days(ranges: Iterable[DateRange]) -> list[int]:
    """The numbers, as in `named_days`, of the days and, where whole months are meant, of the months in these ranges."""
    codes: dict[int, None] = {}
    for days in ranges:
        last = days.last.toordinal()
        codes |= dict.fromkeys(range(max(days.first.toordinal(), last - MAX_ASKED_DAYS + 1), last + 1))
        if days.days >= _MONTH_DAYS:
            codes |= dict.fromkeys(_months(days)[-MAX_ASKED_DAYS // _MONTH_DAYS :])
    return list(codes)


def _months(days: DateRange) -> range:
    """The months that a range touches, as negative numbers, the first month first."""
    first, last = (-(day.year * 12 + day.month) for day in (days.first, days.last))
    return range(first, last - 1, -1)


def date_ranges(languages: Iterable[Language], text: str, reference: date) -> list[DateRange]:
    """The ranges of days that a text names, said on that day, MAX_RANGES at most.

    The calendar's last day is left out: PostgreSQL ends a range with the day after it, which the driver cannot hold.
    """
    return ranges_of(times_in(languages, normalize("NFC", text)), reference)


def ranges_of(times: Iterable[TimePhrase], reference: date) -> list[DateRange]:
    """The ranges of days that times mean, said on that day, MAX_RANGES at most, without the calendar's last day."""
    ranges = dict.fromkeys(found for time in times for found in time.ranges(reference) if found.last < date.max)
    return list(ranges)[:MAX_RANGES]
