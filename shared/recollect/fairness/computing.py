"""Bounded computation: long computations run in threads, in turns, and with a limit.

A computation is a generator that yields between slices of a few milliseconds and returns its result: the algorithm
decides where it may be interrupted, and knows of no thread. `compute` runs its slices in one of a few threads, a turn
at a time, in turns with other computations. Those of one tenant take turns among themselves first, so that one tenant
never has more than one thread, however many calls it sends. A cancelled computation gets no further turn, and one that
takes more processor time than allowed is refused. It holds no transaction: its input is read before, its result is
written after. Where a write has to compute something in between, `compute_while_locked` gives way to nobody.

Work in many short parts, such as turning rows into values, stays on the event loop and lets other calls go on in
between: `collect_yielding` and `interleave` (ADR 34).
"""

import asyncio
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from recollect.errors import ErrorCode, TooLarge
from recollect.fairness.slots import yield_to_others

A = TypeVar("A")
T = TypeVar("T")

Slices = Generator[None, None, T]
"""A computation: it yields after each slice, and returns its result."""

THREADS = 2
"""Computations of a process that run at once. More would mostly wait for the interpreter's lock."""

SLICE_SECONDS = 0.1
"""Processor time of one turn; also the longest that a computation goes on after its caller left."""

MAX_BLOCKING_SECONDS = 0.002
"""How long `collect_yielding` holds the event loop before it lets other calls go on."""


@dataclass(frozen=True, slots=True)
class Finished(Generic[T]):
    """The end of a computation."""

    result: T


async def compute(tenant_id: UUID, slices: Slices[T], *, seconds: float, advice: str) -> T:
    """The result of a computation that takes turns with others in a thread.

    Raises TooLarge (too_costly) with the advice once it has taken more than `seconds` of processor time.
    """
    lane = _lane_of(tenant_id)
    spent = 0.0
    while spent < seconds:
        await yield_to_others()
        async with lane:
            outcome = await anyio.to_thread.run_sync(_run_slice, slices, limiter=_threads())
        if isinstance(outcome, Finished):
            return outcome.result
        spent += outcome
    raise TooLarge(
        f"This takes more computing time than one call may use ({seconds:g} seconds). {advice}",
        code=ErrorCode.TOO_COSTLY,
    )


async def compute_while_locked(tenant_id: UUID, slices: Slices[T]) -> T:
    """The result of a computation inside a transaction that writes: in a thread, in turns with others.

    It does not give way to other calls, since others wait for the locks of the transaction, and has no limit of its
    own: the caller bounds its input.
    """
    lane = _lane_of(tenant_id)
    while True:
        async with lane:
            outcome = await anyio.to_thread.run_sync(_run_slice, slices, limiter=_threads())
        if isinstance(outcome, Finished):
            return outcome.result


async def interleave(slices: Slices[T]) -> T:
    """The result of a computation that runs on the event loop, with other calls between its slices.

    For computations inside a transaction. It takes no turns, so it must be short and bounded by itself.
    """
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: T = end.value
            return result
        await asyncio.sleep(0)


def finish(slices: Slices[T]) -> T:
    """The result of a computation that runs at once and to its end, however long it takes."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: T = end.value
            return result


def in_one_slice(function: Callable[[], T]) -> Slices[T]:
    """A computation that cannot be interrupted, and is bounded by the size of its input."""
    yield
    return function()


async def collect_yielding(items: Iterable[A]) -> list[A]:
    """The items of a generator as a list. Other calls go on while they are made.

    It looks at the clock after each item: a generator that drops most of what it looks at gives None for it instead.
    """
    made: list[A] = []
    yield_at = time.perf_counter() + MAX_BLOCKING_SECONDS
    for item in items:
        made.append(item)
        if time.perf_counter() > yield_at:
            await asyncio.sleep(0)
            yield_at = time.perf_counter() + MAX_BLOCKING_SECONDS
    return made


def batches(items: Sequence[A], size: int) -> Iterator[Sequence[A]]:
    """Batches of `size` items at most, for statements whose arguments are encoded on the event loop in one go."""
    return (items[start : start + size] for start in range(0, len(items), size))


def sized_batches(
    items: Iterable[A], size_of: Callable[[A], int], *, max_items: int, max_size: int
) -> Iterator[list[A]]:
    """Batches of `max_items` items and `max_size` in all at most, in order; a larger item is a batch by itself."""
    batch, size = list[A](), 0
    for item in items:
        added = size_of(item)
        if batch and (len(batch) == max_items or size + added > max_size):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += added
    if batch:
        yield batch


def _run_slice(slices: Slices[T]) -> Finished[T] | float:
    """Run slices for one turn; the result if the computation has ended, else the processor time that they took."""
    started = time.thread_time()
    spent = 0.0
    while spent < SLICE_SECONDS:
        try:
            next(slices)
        except StopIteration as end:
            return Finished(end.value)
        # Hand the interpreter's lock to the event loop, which would otherwise have to ask for it and wait 5 ms.
        time.sleep(0)
        spent = time.thread_time() - started
    return spent


_THREADS = RunVar[anyio.CapacityLimiter]("computing_threads")
_LANES = RunVar[WeakValueDictionary[UUID, anyio.Lock]]("computing_lanes")
"""One of each for every event loop, as with anyio's own threads."""


def _threads() -> anyio.CapacityLimiter:
    try:
        return _THREADS.get()
    except LookupError:
        _THREADS.set(threads := anyio.CapacityLimiter(THREADS))
        return threads


def _lane_of(tenant_id: UUID) -> anyio.Lock:
    """The lock by which the computations of a tenant wait for each other; it exists as long as they do."""
    try:
        lanes = _LANES.get()
    except LookupError:
        _LANES.set(lanes := WeakValueDictionary())
    lane = lanes.get(tenant_id)
    if lane is None:
        lanes[tenant_id] = lane = anyio.Lock()
    return lane
