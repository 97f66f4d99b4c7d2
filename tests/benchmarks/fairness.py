"""Group `fairness`: how long ten new memories wait for their vectors while the worker embeds very many of a tenant.

The ten belong to another tenant, or to the one with so many. They are written through MCP, some rounds of each while
the worker embeds the many, and some of the other tenant after it has finished them. A round ends when all of its ten
have their vectors.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from uuid import UUID

from rich import box
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from recollect_local.server import Server
from tests.benchmarks.latency.talk import create_talk
from tests.benchmarks.memory import MeasuredMemory, measured_memory, new_tenant
from tests.benchmarks.stack import Stack, require_running
from tests.benchmarks.wire import LEGACY, McpConnection

ROUNDS = 5
WRITTEN = 10
ASKED_EVERY_SECONDS = 0.02


@dataclass(slots=True)
class MeasuredFairness:
    """One size: seconds until each ten had their vectors, and how many of the many still waited then (`left`).

    `beside`: ten of another tenant during the many; `own`: ten of the same tenant; `alone`: ten after the many.
    """

    passages: int
    beside: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)


async def measure_fairness(stack: Stack, passages: int, rows: list[MeasuredFairness], console: Console) -> None:
    """Measure one size on its own servers, into `rows`, which are valid even if this ends early."""
    rows.append(measured := MeasuredFairness(passages))
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    talk = await create_talk()
    async with measured_memory(stack) as many:
        _, key = await new_tenant(stack.settings, "other")
        with Progress(*columns, console=console) as progress:
            await many.hear(talk, passages, progress)
            await stack.serve()
            await _begun(many, passages, stack.worker)
            measured.beside += await _rounds(stack, many, key, measured.left)
            measured.own += await _rounds(stack, many, many.key, measured.left)
            await many.embedded(progress)
            measured.alone += await _rounds(stack, many, key, [])


def fairness_table(rows: Sequence[MeasuredFairness]) -> Table:
    """The table of the measurements."""
    table = Table(
        box=box.SIMPLE,
        title=f"Fairness: seconds until {WRITTEN} new memories have their vectors",
        caption="left: what waited of the many when each ten beside them were done. 0: nothing was beside them.",
    )
    for column in ("the many", "another tenant's: median", "most", "its own: median", "most", "alone: median", "most"):
        table.add_column(column, justify="right")
    table.add_column("left of the many", justify="right")
    for row in rows:
        measured = (row.beside, row.own, row.alone)
        figures = [f"{of(taken):.1f}" if taken else "" for taken in measured for of in (median, max)]
        table.add_row(f"{row.passages:,}", *figures, " ".join(f"{left:,}" for left in row.left))
    return table


async def _rounds(stack: Stack, many: MeasuredMemory, key: str, left: list[int]) -> list[float]:
    """The seconds of each round of ten by a key; appends to `left` how many of the many still wait after each."""
    taken = list[float]()
    for _ in range(ROUNDS):  # Each on a connection of its own: one that is idle for long is closed.
        async with McpConnection(stack.settings.port, "/mcp/x/agent", LEGACY, key) as connection:
            taken.append(await _until_embedded(many, connection, stack.worker))
        left.append(await many.waiting())
    return taken


async def _begun(many: MeasuredMemory, passages: int, worker: Server) -> None:
    """Wait until the worker embeds the many; raises RuntimeError if it ended."""
    while await many.waiting() >= passages:
        require_running(worker)
        await asyncio.sleep(ASKED_EVERY_SECONDS)


async def _until_embedded(many: MeasuredMemory, connection: McpConnection, worker: Server) -> float:
    """Write ten memories; the seconds until none of them waits for its vector, from when the answer came.

    Raises RuntimeError where the worker ended.
    """
    texts = [f"The kettle number {time.time_ns()} {number} is on the stove" for number in range(WRITTEN)]
    answer = (await connection.call("remember", {"items": [{"text": text} for text in texts]})).result()
    begun = time.perf_counter()
    written = [UUID(memory["id"]) for memory in answer["structuredContent"]["memories"]]
    while await many.waiting_of(written):
        require_running(worker)
        await asyncio.sleep(ASKED_EVERY_SECONDS)
    return time.perf_counter() - begun
