"""Group `fairness`: how long one tenant's ten memories wait for their vectors while another has very many to embed.

Both tenants share a worker process. The ten are written through MCP, some rounds of them while the worker is at the
many, and some when it is done with them; each round ends when `recall` tells that nothing waits any more.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

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
class Measured:
    """One size: seconds until each ten had their vectors, beside the many (of which `left` waited then) and alone."""

    passages: int
    beside: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)


async def measure_fairness(stack: Stack, passages: int, rows: list[Measured], console: Console) -> None:
    """Measure one size on servers of its own, into `rows`, which are of use whenever this ends."""
    rows.append(measured := Measured(passages))
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    talk = await create_talk()
    async with measured_memory(stack) as many:
        _, key = await new_tenant(stack.settings, "other")
        with Progress(*columns, console=console) as progress:
            await many.hear(talk, passages, progress)
            await stack.serve()
            await _begun(many, passages, stack.worker)
            async with McpConnection(stack.settings.port, "/mcp/x/agent", LEGACY, key) as other:
                for _ in range(ROUNDS):
                    measured.beside.append(await _until_embedded(other, stack.worker))
                    measured.left.append(await many.waiting())
                await many.embedded(progress)
                for _ in range(ROUNDS):
                    measured.alone.append(await _until_embedded(other, stack.worker))


def fairness_table(rows: Sequence[Measured]) -> Table:
    """What was measured, for people."""
    table = Table(
        box=box.SIMPLE,
        title=f"Fairness: seconds until {WRITTEN} memories of another tenant have their vectors",
        caption="left: what waited of the many when each ten beside them were done. 0: nothing was beside them.",
    )
    for column in ("the many", "beside them: median", "most", "alone: median", "most", "left of the many"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        figures = [f"{of(taken):.1f}" for taken in (row.beside, row.alone) if taken for of in (median, max)]
        left = " ".join(f"{left:,}" for left in row.left)
        table.add_row(f"{row.passages:,}", *figures, *[""] * (4 - len(figures)), left)
    return table


async def _begun(many: MeasuredMemory, passages: int, worker: Server) -> None:
    """Return when the worker is at the many; raises RuntimeError where it ended."""
    while await many.waiting() >= passages:
        require_running(worker)
        await asyncio.sleep(ASKED_EVERY_SECONDS)


async def _until_embedded(connection: McpConnection, worker: Server) -> float:
    """Write ten memories; the seconds until none waits for its vector, from when the answer came.

    Raises RuntimeError where the worker ended.
    """
    texts = [f"The kettle number {time.time_ns()} {number} is on the stove" for number in range(WRITTEN)]
    (await connection.call("remember", {"items": [{"text": text} for text in texts]})).result()
    begun = time.perf_counter()
    while True:
        answer = (await connection.call("recall", {"query": f"are you there {time.time_ns()}"})).result()
        if not answer["structuredContent"]["waiting"]:
            return time.perf_counter() - begun
        require_running(worker)
        await asyncio.sleep(ASKED_EVERY_SECONDS)
