"""How far a long command has come: a bar on a terminal, a line now and then otherwise. Always on stderr."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

from recollect.printable import printable

EVERY_LINES = 10_000


class Meter(Protocol):
    """Told how far a command has come."""

    def advance(self, lines: int, place: int) -> None:
        """So many lines are done in all, and of the total `place`."""

    def say(self, text: str) -> None:
        """Print one line that stays."""


@contextmanager
def metered(doing: str, total: int | None = None, *, item: str = "lines", every: int = EVERY_LINES) -> Iterator[Meter]:
    """A meter for something that is `doing` ("importing"), until `total`, where that is known.

    It counts `item`; where there is no terminal it says so whenever `every` more are done.
    """
    if not sys.stderr.isatty():
        yield _Lines(doing, item, every)
        return
    told = [TextColumn(text, markup=False) for text in ("{task.description}", f"{{task.fields[lines]:,}} {item}")]
    columns = [told[0], SpinnerColumn(), told[1]]
    measured = [BarColumn(), TaskProgressColumn(), TimeRemainingColumn()] if total else []
    with Progress(*columns, *measured, console=Console(stderr=True), transient=True) as progress:
        yield _Bar(progress, doing, total)


class _Bar:
    def __init__(self, progress: Progress, doing: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(printable(doing), total=total, lines=0)

    def advance(self, lines: int, place: int) -> None:
        self._progress.update(self._task, completed=place, lines=lines)

    def say(self, text: str) -> None:
        self._progress.console.print(printable(text), markup=False, highlight=False, soft_wrap=True)


class _Lines:
    def __init__(self, doing: str, item: str, every: int) -> None:
        self._doing, self._item, self._every = doing, item, every
        self._told = 0

    def advance(self, lines: int, place: int) -> None:
        if lines // self._every > self._told:
            self._told = lines // self._every
            self.say(f"{self._doing}: {lines} {self._item}")

    def say(self, text: str) -> None:
        print(printable(text), file=sys.stderr, flush=True)
