"""Days and months as numbers, by which passages that name them are stored and found."""

from collections.abc import Iterable

from recollect.words.dates.ranges import DateRange

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
