"""Updates: an old fact and the new one that replaces it, which comes first unless the old one is asked for.

And facts of the same form about two things, of which neither replaces the other; and later facts of the same topic.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta

import msgspec

from tests.benchmarks.quality.groups.figures import Figure, before_rival, first
from tests.benchmarks.quality.groups.files import read
from tests.benchmarks.quality.groups.notebooks import Asked, Note, Notebook

_SAID = ("with `at`", "without `at`")

_NOW, _APART = "new one of now", "of two things"
_CHANGED, _ALONE, _OTHER = "new one, other words", "new one, two alone", "old one, others later"

_AIMS = (
    {f"new one, {said}": 31 / 36 for said in _SAID}
    | {f"{_NOW}, {said}": 0.875 for said in _SAID}
    | {f"{_APART}, {said}": 0.95 for said in _SAID}
)

FIGURES = (Figure("before the other", before_rival, _AIMS), Figure("first", first))

_OLD_DAYS, _NEW_DAYS = 200, 20
"""The age of dated facts."""


class Update(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fact, the one that replaced it, a question for the new one and perhaps one for the old one."""

    old: str
    new: str
    question: str
    before: str = ""


class Apart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two facts of the same form about two things, and a question for each."""

    one: str
    other: str
    asks_one: str
    asks_other: str


class Updates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file. `now`: updates whose questions ask for what is so now. `changes`, `alone`: updates in other words.

    `others`: later facts that leave the earlier one as it is.
    """

    updates: list[Update]
    now: list[Update]
    apart: list[Apart]
    changes: list[Update]
    alone: list[Update]
    others: list[Update]


def open_notebooks(_: int, today: date) -> list[Notebook]:
    """The same pairs twice: with the times at which they were said, and without, remembered one after the other."""
    found = read("updates", Updates)
    now = datetime.combine(today, time(12), UTC)
    times = (now - timedelta(_OLD_DAYS), now - timedelta(_NEW_DAYS)), (None, None)
    return [
        *(
            notebook
            for said, (old, new) in zip(_SAID, times, strict=True)
            for notebook in _notebooks(found, said, "undated" if old is None else "dated", old, new)
        ),
        *_in_other_words(found, *times[0]),
    ]


def _in_other_words(found: Updates, old: datetime | None, new: datetime | None) -> Iterator[Notebook]:
    pairs = [*found.changes, *found.alone]
    asked = [_asks(f"new-{index}", f"old-{index}", _CHANGED, pair) for index, pair in enumerate(pairs)]
    yield Notebook("updates-changes", _calls(_texts(pairs), old, new), asked)
    for index, pair in enumerate(found.alone):
        asks = [_asks("new-0", "old-0", _ALONE, pair)]
        yield Notebook(f"updates-alone-{index}", _calls(_texts([pair]), old, new), asks)
    asked = [_asks(f"old-{index}", f"new-{index}", _OTHER, pair) for index, pair in enumerate(found.others)]
    yield Notebook("updates-others", _calls(_texts(found.others), old, new), asked)


def _asks(wanted: str, rival: str, measure: str, pair: Update) -> Asked:
    return Asked(measure, pair.question, frozenset({wanted}), rival)


def _notebooks(
    found: Updates, said: str, suffix: str, old: datetime | None, new: datetime | None
) -> Iterator[Notebook]:
    pairs = [(pair.one, pair.other) for pair in found.apart]
    yield Notebook(f"updates-{suffix}", _calls(_texts(found.updates), old, new), list(_questions(found.updates, said)))
    yield Notebook(f"updates-now-{suffix}", _calls(_texts(found.now), old, new), list(_of_now(found.now, said)))
    yield Notebook(f"updates-apart-{suffix}", _calls(pairs, old, new), list(_of_two_things(found.apart, said)))


def _texts(updates: Sequence[Update]) -> list[tuple[str, str]]:
    return [(update.old, update.new) for update in updates]


def _calls(pairs: Sequence[tuple[str, str]], old: datetime | None, new: datetime | None) -> list[list[Note]]:
    return [
        [Note(f"old-{index}", text, at=old) for index, (text, _) in enumerate(pairs)],
        [Note(f"new-{index}", text, at=new) for index, (_, text) in enumerate(pairs)],
    ]


def _of_now(updates: Sequence[Update], said: str) -> Iterator[Asked]:
    for index, update in enumerate(updates):
        yield Asked(f"{_NOW}, {said}", update.question, frozenset({f"new-{index}"}), f"old-{index}")


def _of_two_things(pairs: Sequence[Apart], said: str) -> Iterator[Asked]:
    for index, pair in enumerate(pairs):
        yield Asked(f"{_APART}, {said}", pair.asks_one, frozenset({f"old-{index}"}), f"new-{index}")
        yield Asked(f"{_APART}, {said}", pair.asks_other, frozenset({f"new-{index}"}), f"old-{index}")


def _questions(updates: Sequence[Update], measure: str) -> Iterator[Asked]:
    for index, update in enumerate(updates):
        yield Asked(f"new one, {measure}", update.question, frozenset({f"new-{index}"}), f"old-{index}")
    for index, update in enumerate(updates):
        if update.before:
            yield Asked(f"old one, {measure}", update.before, frozenset({f"old-{index}"}), f"new-{index}")
