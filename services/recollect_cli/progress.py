"""The progress of a long command: a bar on a terminal, otherwise a line now and then. Always on stderr."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

from recollect.text.control_characters import printable

EVERY_ITEMS = 10_000
MEGABYTE = 1_000_000


class Meter(Protocol):
    """Shows the progress of a command."""

    def advance(self, done: int, position: int, total: int | None = None) -> None:
        """Show that `done` items are done, at `position` of `total`, where that was not known from the start."""

    def wait_for(self, cause: str | None) -> None:
        """Show what the work waits for ("a worker"); None where it goes on."""


@contextmanager
def metered(doing: str, total: int | None = None, *, item: str, every: int) -> Iterator[Meter]:
    """A meter for what a command is `doing` ("importing"), up to `total`, where that is known.

    It counts `item`; where there is no terminal, it prints a line whenever `every` more are done.
    """
    if not sys.stderr.isatty():
        yield _Lines(doing, item, every)
        return
    description = TextColumn("{task.description}", markup=False)
    count = TextColumn(f"{{task.fields[done]:,}} {item}", markup=False)
    columns = [description, SpinnerColumn(), count, BarColumn(), TaskProgressColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield _Bar(progress, doing, total)


class _Bar:
    def __init__(self, progress: Progress, doing: str, total: int | None) -> None:
        self._progress, self._doing = progress, printable(doing)
        self._task = progress.add_task(self._doing, total=total, done=0)

    def advance(self, done: int, position: int, total: int | None = None) -> None:
        self._progress.update(self._task, completed=position, total=total, done=done)

    def wait_for(self, cause: str | None) -> None:
        description = f"{self._doing} (waiting for {cause})" if cause else self._doing
        self._progress.update(self._task, description=description)


class _Lines:
    def __init__(self, doing: str, item: str, every: int) -> None:
        self._doing, self._item, self._every = doing, item, every
        self._printed_steps = 0
        self._cause: str | None = None

    def advance(self, done: int, position: int, total: int | None = None) -> None:
        if done // self._every > self._printed_steps:
            self._printed_steps = done // self._every
            self._print(f"{done} {self._item}")

    def wait_for(self, cause: str | None) -> None:
        if cause and cause != self._cause:
            self._print(f"waiting for {cause}")
        self._cause = cause

    def _print(self, text: str) -> None:
        print(printable(f"{self._doing}: {text}"), file=sys.stderr, flush=True)
