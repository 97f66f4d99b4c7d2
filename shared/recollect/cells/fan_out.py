"""One query to several cells at once. A cell that hangs delays no caller that has its answer from another cell."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar
from uuid import UUID

from recollect.errors import ErrorCode, Unavailable
from recollect.postgres.transactions import Session
from recollect.settings.cells import HOME

T = TypeVar("T")

CellQuery = Callable[[Session], Awaitable[T]]
"""Queries one cell by its session."""

SessionOf = Callable[[str, UUID | None], AbstractAsyncContextManager[Session]]
"""Opens a session in the cell of that name, of a person or without one."""


class FanOut:
    """Runs queries in several cells at once, each in a task of its own, for `seconds` at most."""

    def __init__(self, session_at: SessionOf, *, seconds: float) -> None:
        self._session_at, self.seconds = session_at, seconds
        self._running: set[asyncio.Task[Any]] = set()

    def begin(self, cell: str, query: CellQuery[T], person_id: UUID | None) -> asyncio.Task[T]:
        """Begin to ask a cell. The task raises Unavailable where the cell is unreachable or too slow."""

        async def ask() -> T:
            try:
                async with asyncio.timeout(self.seconds), self._session_at(cell, person_id) as session:
                    return await query(session)
            except TimeoutError:
                raise unanswered() from None

        task = asyncio.create_task(ask(), name=f"ask {cell}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # The caller may have left.
        return task

    async def first(self, cells: list[str], query: CellQuery[T | None], person_id: UUID | None) -> tuple[str, T | None]:
        """The first cell that finds a value, and the value. Raises Unavailable if none does and one is unreachable."""
        pending = {self.begin(name, query, person_id): name for name in cells}
        failure: Unavailable | None = None
        deadline = asyncio.get_running_loop().time() + self.seconds
        while pending:
            remaining = deadline - asyncio.get_running_loop().time()
            done, _ = await asyncio.wait(pending, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
            for task in done or set(pending):
                name = pending.pop(task)
                try:
                    found = answer_of(task)
                except Unavailable as error:
                    failure = error
                    continue
                if found is not None:
                    return name, found
        if failure is not None:
            raise failure
        return HOME, None

    async def each(self, cells: list[str], query: CellQuery[T]) -> dict[str, T]:
        """The answer of each of these cells. Raises Unavailable where one is unreachable."""
        tasks = {name: self.begin(name, query, None) for name in cells}
        await asyncio.wait(tasks.values(), timeout=self.seconds)
        return {name: answer_of(task) for name, task in tasks.items()}

    async def stop(self) -> None:
        """Cancel all queries under way, which hold connections that their pools need back to close."""
        tasks = list(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def answer_of(task: asyncio.Task[T]) -> T:
    """The answer of a cell. Raises the task's error, or Unavailable where the cell has not answered yet."""
    if not task.done():
        task.cancel()
        raise unanswered()
    return task.result()


def unanswered() -> Unavailable:
    """The error for a cell that has not answered in time."""
    return Unavailable("The database is busy. Try again in a moment.", code=ErrorCode.BUSY)
