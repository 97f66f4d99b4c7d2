"""How far a long command has come: a bar on a terminal, a line now and then otherwise. Always on stderr."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

from recollect.printable import printable

EVERY_ITEMS = 10_000
MEGABYTE = 1_000_000


class Meter(Protocol):
    """Told how far a command has come."""

    def advance(self, done: int, place: int, total: int | None = None) -> None:
        """So much is done, which is `place` of the total; the total, where it was not known from the beginning."""

    def wait_for(self, awaited: str | None) -> None:
        """What the work waits for ("a worker"); None where it goes on."""


@contextmanager
def metered(doing: str, total: int | None = None, *, item: str, every: int) -> Iterator[Meter]:
    """A meter for something that is `doing` ("importing"), until `total`, where that is known.

    It counts `item`; where there is no terminal it says so whenever `every` more are done.
    """
    if not sys.stderr.isatty():
        yield _Lines(doing, item, every)
        return
    told = [TextColumn(text, markup=False) for text in ("{task.description}", f"{{task.fields[done]:,}} {item}")]
    columns = [told[0], SpinnerColumn(), told[1], BarColumn(), TaskProgressColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield _Bar(progress, doing, total)


class _Bar:
    def __init__(self, progress: Progress, doing: str, total: int | None) -> None:
        self._progress, self._doing = progress, printable(doing)
        self._task = progress.add_task(self._doing, total=total, done=0)

    def advance(self, done: int, place: int, total: int | None = None) -> None:
        self._progress.update(self._task, completed=place, total=total, done=done)

    def wait_for(self, awaited: str | None) -> None:
        told = f"{self._doing} (waits for {awaited})" if awaited else self._doing
        self._progress.update(self._task, description=told)


class _Lines:
    def __init__(self, doing: str, item: str, every: int) -> None:
        self._doing, self._item, self._every = doing, item, every
        self._told = 0
        self._awaited: str | None = None

    def advance(self, done: int, place: int, total: int | None = None) -> None:
        if done // self._every > self._told:
            self._told = done // self._every
            self._say(f"{done} {self._item}")

    def wait_for(self, awaited: str | None) -> None:
        if awaited and awaited != self._awaited:
            self._say(f"waits for {awaited}")
        self._awaited = awaited

    def _say(self, text: str) -> None:
        print(printable(f"{self._doing}: {text}"), file=sys.stderr, flush=True)
