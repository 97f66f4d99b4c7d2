"""Ranges of days, and the units of time that are ranges of days: weeks, months, years."""

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Self

_DAY = timedelta(days=1)
_WEEK = timedelta(days=7)

DAY, WEEK, MONTH, YEAR, WEEKEND = range(1, 6)
"""The numbers of units of time in tables."""


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
