"""Filters that pages have in their address, as people type them."""

from datetime import UTC, date, datetime, time

from recollect.errors import InvalidInput


def day_of(given: str, path: str) -> datetime | None:
    """The beginning of a day in UTC; None where none is given. Raises InvalidInput."""
    try:
        return datetime.combine(date.fromisoformat(given), time(), UTC) if given else None
    except ValueError:
        raise InvalidInput("A day is written like 2026-11-28", path=path) from None


def importance_of(given: str) -> float | None:
    """An importance; None where none is given. Raises InvalidInput."""
    try:
        importance = float(given) if given else None
    except ValueError:
        importance = -1
    if importance is not None and not 0 <= importance <= 10:
        raise InvalidInput("The importance is a number from 0 to 10", path="importance")
    return importance


def values_of(given: str) -> tuple[str, ...]:
    """The one value of a filter, if one is given."""
    return (given,) if given else ()


def several_of(given: str) -> list[str]:
    """The values of a filter that takes several, between commas."""
    return [value for part in given.split(",") if (value := part.strip())]
