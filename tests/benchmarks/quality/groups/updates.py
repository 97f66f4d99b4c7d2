"""Updates: an old fact and the new one that replaces it, which comes first unless the old one is asked for."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta

import msgspec

from tests.benchmarks.quality.groups.figures import Figure, before_rival, first
from tests.benchmarks.quality.groups.files import read
from tests.benchmarks.quality.groups.notebooks import Asked, Note, Notebook

_SAID = ("with `at`", "without `at`")

FIGURES = (
    Figure("before the other", before_rival, {f"new one, {said}": 31 / 36 for said in _SAID}),
    Figure("first", first),
)

_OLD_DAYS, _NEW_DAYS = 200, 20
"""The age of dated facts."""


class Update(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact, the one that replaced it, a question for the new one and perhaps one for the old one."""

    old: str
    new: str
    question: str
    before: str = ""


class Updates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    updates: list[Update]


def open_notebooks(_: int, today: date) -> list[Notebook]:
    """The same pairs twice: with the times at which they were said, and without, remembered one after the other."""
    updates = read("updates", Updates).updates
    now = datetime.combine(today, time(12), UTC)
    old, new = now - timedelta(_OLD_DAYS), now - timedelta(_NEW_DAYS)
    dated, undated = (list(_questions(updates, said)) for said in _SAID)
    return [
        Notebook("updates-dated", _calls(updates, old, new), dated),
        Notebook("updates-undated", _calls(updates, None, None), undated),
    ]


def _calls(updates: Sequence[Update], old: datetime | None, new: datetime | None) -> list[list[Note]]:
    return [
        [Note(f"old-{index}", update.old, at=old) for index, update in enumerate(updates)],
        [Note(f"new-{index}", update.new, at=new) for index, update in enumerate(updates)],
    ]


def _questions(updates: Sequence[Update], measure: str) -> Iterator[Asked]:
    for index, update in enumerate(updates):
        yield Asked(f"new one, {measure}", update.question, frozenset({f"new-{index}"}), f"old-{index}")
    for index, update in enumerate(updates):
        if update.before:
            yield Asked(f"old one, {measure}", update.before, frozenset({f"old-{index}"}), f"new-{index}")
