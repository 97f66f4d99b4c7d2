"""Filters: questions whose words say nothing ("everything"), so that whatever passes the filter is the answer."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import msgspec

from tests.benchmarks.quality.groups.figures import Figure, precise, recall_at
from tests.benchmarks.quality.groups.files import read
from tests.benchmarks.quality.groups.notebooks import Asked, Note, Notebook

FIGURES = (Figure("of what passes", recall_at(None), 0.95), Figure("precision", precise))

_LONG_AGO = 90
"""The age in days of memories whose age does not matter."""


class Remembered(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A memory with properties."""

    text: str
    about: list[str] = []
    tags: list[str] = []
    kind: str | None = None
    importance: float | None = None
    days_ago: int = _LONG_AGO


class FilterQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question and its filter. `asked_without_filter`: the words alone say what the filter would."""

    query: str
    about: list[str] = []
    tags: list[str] = []
    kinds: list[str] = []
    min_importance: float | None = None
    since_days_ago: int | None = None
    asked_without_filter: bool = False

    def passes(self, memory: Remembered) -> bool:
        """Whether a memory has what the filter asks for: any of several values."""
        return (
            (not self.about or not set(self.about).isdisjoint(memory.about))
            and (not self.tags or not set(self.tags).isdisjoint(memory.tags))
            and (not self.kinds or memory.kind in self.kinds)
            and (self.min_importance is None or (memory.importance or 0) >= self.min_importance)
            and (self.since_days_ago is None or memory.days_ago <= self.since_days_ago)
        )

    def may_pass(self, memory: Remembered) -> bool:
        """Whether it may pass by the kind of its entity, since it has none itself."""
        return bool(self.kinds and memory.about and memory.kind is None)

    def arguments(self, today: date) -> dict[str, Any]:
        """The filter, as arguments of `recall`."""
        days = self.since_days_ago
        since = None if days is None else datetime.combine(today - timedelta(days), time(), UTC).isoformat()
        values: dict[str, Any] = {"about": self.about, "tags": self.tags, "kinds": self.kinds}
        values |= {"min_importance": self.min_importance, "since": since}
        return {name: value for name, value in values.items() if value not in (None, [])}


class Filters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    memories: list[Remembered]
    questions: list[FilterQuestion]


def read_filters() -> Filters:
    """The memories and questions."""
    return read("filters", Filters)


def open_notebooks(_: int, today: date) -> list[Notebook]:
    """One notebook, which is another on each day."""
    filters = read_filters()
    notes = [_note(index, memory, today) for index, memory in enumerate(filters.memories)]
    questions = [_asked(question, filters.memories, today) for question in filters.questions]
    return [Notebook(f"filters-{today}", [notes], questions)]


def _note(index: int, memory: Remembered, today: date) -> Note:
    at = datetime.combine(today - timedelta(memory.days_ago), time(8), UTC)
    return Note(str(index), memory.text, memory.about, memory.tags, memory.kind, memory.importance, at=at)


def _asked(question: FilterQuestion, memories: Sequence[Remembered], today: date) -> Asked:
    wanted = frozenset(str(index) for index, memory in enumerate(memories) if question.passes(memory))
    tolerated = frozenset(str(index) for index, memory in enumerate(memories) if question.may_pass(memory))
    if question.asked_without_filter:
        return Asked("words alone", question.query, wanted)
    return Asked("with a filter", question.query, wanted, tolerated=tolerated, filters=question.arguments(today))
