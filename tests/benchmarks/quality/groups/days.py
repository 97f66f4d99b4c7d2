"""Days: dated notes that do not say their day, and questions about nothing but a time.

`recall` takes no time at which a question is asked, so days count back from the day of the run, in UTC. Any day gives
the same notes for the same questions: the notes of a day or of a named month never depend on the day of the run.
"""

import calendar
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

import msgspec

from tests.benchmarks.quality.groups.figures import Figure, empty_with_answer, precise, recall_at
from tests.benchmarks.quality.groups.files import read
from tests.benchmarks.quality.groups.notebooks import Asked, Note, Notebook

FIGURES = (
    Figure("of its notes", recall_at(None), 0.95),
    Figure("precision", precise),
    Figure("empty", empty_with_answer),
)

_DAYS = (*range(10), 14, 21)
"""Days before today with three notes each."""

_MONTHS = {2: 5, 3: 5, 4: 5, 5: 5, 12: 4}
"""Months before this one, and their notes. Last month is left out: the days above may lie in it."""

_DAYS_OF_MONTH = (3, 9, 15, 21, 27)
_HOURS = (9, 13, 17)


class DayQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question, and what it asks for: days before today ("2", "1-3"), or a month before this one ("month 2")."""

    query: str
    asks: str
    tolerates: str = ""


class Diary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    notes: list[str]
    questions: list[DayQuestion]


@dataclass(frozen=True, slots=True)
class Span:
    """The days from `first` to `last`, both included."""

    first: date
    last: date


def open_notebooks(_: int, today: date) -> list[Notebook]:
    """One notebook, which is another on each day."""
    diary = read("days", Diary)
    dated = dict(zip(diary.notes, _dates(today), strict=True))
    notes = [Note(f"note-{number}", text, at=at) for number, (text, at) in enumerate(dated.items())]
    questions = [_asked(question, notes, today) for question in diary.questions]
    return [Notebook(f"days-{today}", [notes], questions)]


def _dates(today: date) -> Iterator[datetime]:
    for days in _DAYS:
        for hour in _HOURS:
            yield datetime.combine(today - timedelta(days), time(hour), UTC)
    for months, notes in _MONTHS.items():
        for day in _DAYS_OF_MONTH[:notes]:
            yield datetime.combine(_month(today, months).first.replace(day=day), time(12), UTC)


def _asked(question: DayQuestion, notes: Sequence[Note], today: date) -> Asked:
    span = _span(question.asks, today)
    tolerated = _within(_span(question.tolerates, today), notes) if question.tolerates else frozenset()
    return Asked("60 notes", _worded(question.query, span.first), _within(span, notes), tolerated=tolerated)


def _span(asks: str, today: date) -> Span:
    if asks.startswith("month "):
        return _month(today, int(asks.removeprefix("month ")))
    least, _, most = asks.partition("-")
    return Span(today - timedelta(int(most or least)), today - timedelta(int(least)))


def _month(today: date, ago: int) -> Span:
    year, month = divmod(today.year * 12 + today.month - 1 - ago, 12)
    return Span(date(year, month + 1, 1), date(year, month + 1, calendar.monthrange(year, month + 1)[1]))


def _within(span: Span, notes: Sequence[Note]) -> frozenset[str]:
    return frozenset(note.key for note in notes if note.at and span.first <= note.at.date() <= span.last)


def _worded(query: str, day: date) -> str:
    return query.format(
        iso=day.isoformat(), day=day.day, year=day.year, weekday=f"{day:%A}", month=calendar.month_name[day.month]
    )
