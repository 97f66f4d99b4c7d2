"""The arithmetic of phrases: functions from the values of a phrase, and the day of saying, to ranges of days.

They are the same for all languages. Each function here is a `Meaning`, or makes one.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta

from recollect.words.dates.ranges import DAY, MONTH, WEEK, WEEKEND, DateRange, period, shifted

_DAY = timedelta(days=1)
_WEEK = timedelta(days=7)

Values = Mapping[str, int]
"""The values of a phrase: the numbers that its words stand for, by the names of their groups."""

Meaning = Callable[[Values, date], Sequence[DateRange]]
"""A function from the values of a phrase, and the day on which it was said, to ranges of days. May raise ValueError or
OverflowError."""


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


def weekday_range(values: Values, reference: date) -> Sequence[DateRange]:
    """From `firstweekday` to the next `lastweekday`: the last such days that began before the day of saying, the next.

    From a weekday to the same one it is a week.
    """
    ahead = (values["firstweekday"] - 1 - reference.weekday()) % 7
    days = (values["lastweekday"] - values["firstweekday"]) % 7 or 7
    starts = (reference + (ahead - 7) * _DAY, reference + ahead * _DAY)
    return [DateRange(start, start + days * _DAY) for start in starts]


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
