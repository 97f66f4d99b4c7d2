"""The processor time of a recall over MCP and of a remembered passage, and what memories take on the disk.

The kernel counts processor time for each process, so other work on the machine disturbs it little (`processes.py`).
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tests.benchmarks.cost.spent import Meter, Spent
from tests.benchmarks.latency.ways import Ways
from tests.benchmarks.stack import Stack

_CALLS, _ECHOES = 20, 40
"""Calls and echoes of one turn, without a pause: after a pause, caches are cold, and an echo costs twice as much."""


@dataclass(frozen=True, slots=True)
class RecallCost:
    """Processor seconds of a recall, in the gateway and in PostgreSQL, and of an echo that was measured in turns."""

    gateway: float
    postgres: float
    echo: float

    @property
    def in_echoes(self) -> float:
        """Both, in echoes."""
        return (self.gateway + self.postgres) / self.echo


@dataclass(frozen=True, slots=True)
class WriteCost:
    """Processor seconds of a passage until it is embedded and settled: of the process that writes it (a thousand at a
    time, not over MCP), of the worker, and of PostgreSQL for both."""

    writer: float
    worker: float
    postgres: float

    @property
    def total(self) -> float:
        """All of them."""
        return self.writer + self.worker + self.postgres


async def cost_of_recalls(stack: Stack, ways: Ways, questions: Sequence[str]) -> RecallCost:
    """Ask the questions over MCP, in turns with echoes."""
    meter = Meter(stack)
    before, echoes = meter.spent([stack.gateway]), 0
    for start in range(0, len(questions), _CALLS):
        for text in questions[start : start + _CALLS]:
            await ways.mcp(text)
        for _ in range(_ECHOES):
            await ways.echo("")
        echoes += _ECHOES
    total = meter.spent([stack.gateway]) - before
    by_call = total.per(len(questions))
    return RecallCost(by_call.gateway, by_call.postgres, total.echo / echoes)


async def cost_of_writing(stack: Stack, passages: int, write: Callable[[], Awaitable[None]]) -> WriteCost:
    """Write so many passages, which `write` does, with the wait for the worker."""
    meter = Meter(stack)
    before, begun = meter.spent([]), time.process_time()
    await write()
    spent: Spent = (meter.spent([]) - before).per(passages)
    writer = (time.process_time() - begun) / passages
    return WriteCost(writer, spent.worker, spent.postgres + spent.worker_postgres)
