"""Times in texts, as ranges of days: by the calendar ("on 5 May 2023"), or relative to the day of saying ("last May").

A language is a table: its words for numbers, units, days and months, and the phrases that it makes of them
(`date_phrases.py`). The meanings of phrases are defined here, once for all languages. All phrases of a language are one
regular expression in which every repetition is bounded, so that matching takes time in proportion to the text's length.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Self

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
    """A time in a text. `absolute`: by the calendar, and not relative to the day on which it was said."""

    meaning: Meaning
    values: Values
    absolute: bool

    def ranges(self, said: date) -> Sequence[DateRange]:
        """The ranges of days that are meant, said on that day; none for a day that does not exist."""
        try:
            return self.meaning(self.values, said)
        except (ValueError, OverflowError):
            return ()

    def resolved(self, said: date) -> "TimePhrase":
        """The same time as an absolute one, said on that day."""
        ranges = self.ranges(said)
        return self if self.absolute else TimePhrase(lambda _, __: ranges, {}, absolute=True)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A form of a time in a language. A name in braces in `pattern` stands for any word of that name in the table."""

    pattern: str
    meaning: Meaning
    absolute: bool = False


class Language:
    """A language's forms of times. `words`: for each name, its words in lower case and their numbers."""

    def __init__(self, words: Mapping[str, Mapping[str, int]], phrases: Sequence[Phrase]) -> None:
        self._words, self._phrases = words, phrases
        parts = (self._part(place, phrase.pattern) for place, phrase in enumerate(phrases))
        self._pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(parts)})(?![\w-])", re.IGNORECASE)  # Not within a word.

    def times_in(self, text: str) -> list[TimePhrase]:
        """The first MAX_RANGES times in a text."""
        found: list[TimePhrase] = []
        for match in self._pattern.finditer(text):
            if (time := self._read_match(match)) is not None:
                found.append(time)
            if len(found) == MAX_RANGES:
                break
        return found

    def _part(self, place: int, pattern: str) -> str:
        """A phrase as a part of the whole pattern; the names of its groups begin with its place."""

        def group(match: re.Match[str]) -> str:
            name = match[1]
            words = sorted(self._words[name], key=len, reverse=True) if name in self._words else [_DIGITS[name]]
            return f"(?P<p{place}_{name}>{'|'.join(words)})"

        return f"(?P<p{place}>{re.sub('{([a-z]+)}', group, pattern)})"

    def _read_match(self, match: re.Match[str]) -> TimePhrase | None:
        """The time of a match; None where a word is not in the table: ignoring case, a dotless i matches an i."""
        groups = {name: value for name, value in match.groupdict().items() if value is not None}
        place = next(int(name[1:]) for name in groups if "_" not in name)
        phrase, values = self._phrases[place], dict[str, int]()
        for name, value in groups.items():
            _, _, kind = name.partition("_")
            if not kind:
                continue
            number = self._number(kind, value)
            if number is None:
                return None
            values[kind] = number
        return TimePhrase(phrase.meaning, values, phrase.absolute)

    def _number(self, kind: str, value: str) -> int | None:
        return self._words[kind].get(value.casefold()) if kind in self._words else int(value)


_DIGITS = {"year": r"(?:19|20)\d\d", "dayofmonth": r"[0-3]?\d", "monthofyear": r"[01]?\d", "count": r"\d{1,3}"}
"""Groups of digits, in any language."""

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
    return lambda _, said: [DateRange.of_day(said + away * _DAY)]


def units_away(direction: int) -> Meaning:
    """`count` or `number` units before (-1) or after (1): a day, a month, a year; for weeks, the days around a day."""

    def meaning(values: Values, said: date) -> Sequence[DateRange]:
        away, unit = direction * values.get("count", values.get("number", 1)), values["unit"]
        if unit in (WEEK, WEEKEND):
            day = said + away * _WEEK
            return [DateRange(day - 3 * _DAY, day + 3 * _DAY)]
        return [period(unit, said, away)]

    return meaning


def units_until() -> Meaning:
    """The days from `count` or `number` units ago to the day of saying."""

    def meaning(values: Values, said: date) -> Sequence[DateRange]:
        count, unit = values.get("count", values.get("number", 1)), values["unit"]
        match unit:
            case 3 | 4:
                return [DateRange(shifted(said, -count * (1 if unit == MONTH else 12)), said)]
        return [DateRange(said - count * (_DAY if unit == DAY else _WEEK), said)]

    return meaning


def unit_beside(away: int) -> Meaning:
    """The `unit` before (-1), the one that contains the day of saying (0) or the next (1)."""
    return lambda values, said: [period(values["unit"], said, away)]


def weekday_beside(*directions: int, today: bool = False) -> Meaning:
    """The last `weekday` before the day of saying (-1), the first after it (1); with `today`, also that day itself."""

    def meaning(values: Values, said: date) -> Sequence[DateRange]:
        ahead = (values["weekday"] - 1 - said.weekday()) % 7
        if today and ahead == 0:
            return [DateRange.of_day(said)]
        return [
            DateRange.of_day(said + (ahead or 7) * _DAY if direction > 0 else said + (ahead - 7) * _DAY)
            for direction in directions
        ]

    return meaning


def month_beside(direction: int) -> Meaning:
    """The last `month` before that of the day of saying (-1), the first after it (1); or the three of a `season`.

    The last season is one that is over.
    """

    def meaning(values: Values, said: date) -> Sequence[DateRange]:
        month, months = values.get("month", values.get("season", 1)), 3 if "season" in values else 1
        away = (month - said.month) % 12
        if direction > 0:
            away = away or 12
        else:
            away -= 12 if away + months <= 12 else 24
        return [DateRange.of_months(shifted(said.replace(day=1), away), months)]

    return meaning


def by_calendar(values: Values, said: date) -> Sequence[DateRange]:
    """The day, month, season or year that is named; where no year is, the one nearest to the day of saying."""
    years = [values["year"]] if "year" in values else [said.year - 1, said.year, said.year + 1]
    ranges = [named for year in years if (named := _in_year(values, year)) is not None]
    return [min(ranges, key=lambda named: _distance(named, said))] if ranges else []


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


def _distance(named: DateRange, said: date) -> timedelta:
    return max(named.first - said, said - named.last, timedelta())


def date_ranges(languages: Iterable[Language], text: str, said: date) -> list[DateRange]:
    """The ranges of days that a text names, said on that day, MAX_RANGES at most.

    The calendar's last day is left out: PostgreSQL ends a range with the day after it, which the driver cannot hold.
    """
    times = (time for language in languages for time in language.times_in(text))
    ranges = dict.fromkeys(found for time in times for found in time.ranges(said) if found.last < date.max)
    return list(ranges)[:MAX_RANGES]
