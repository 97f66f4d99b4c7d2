"""Group `start`: how soon a stack with much data answers after a start, and how much memory a gateway takes.

A filled folder is started in turns with PostgreSQL's own settings and with those for the machine. Before each start, it
is used for a while, so that PostgreSQL knows what to load again, and its files are dropped from the machine's cache, as
in a reboot.
"""

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from recollect_local.machine import Machine
from recollect_local.tuning import postgres_settings
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.memory import measured_memory
from tests.benchmarks.processes import processor_seconds
from tests.benchmarks.stack import Stack, running_stack
from tests.benchmarks.wire import LEGACY, McpConnection

DEFAULTS, TUNED = "PostgreSQL's own", "of the machine"
LATER = 20
"""The number of later calls per tool, with which the first is compared."""


@dataclass(slots=True)
class MeasuredStart:
    """One start: the seconds until the servers and then the gateway are ready, the processor seconds of the gateway
    until then, its memory in MB (at rest, and after the reads), and, by tool, the milliseconds of the first call and
    the median of later ones."""

    entities: int
    settings: str
    stores: float
    gateway: float
    processor: float
    rest_mb: float
    used_mb: float = 0.0
    calls: dict[str, tuple[float, float]] = field(default_factory=dict)


async def measure_start(size: int, starts: int, rows: list[MeasuredStart], console: Console) -> None:
    """Fill a folder with so many entities, and measure so many starts with both settings, into `rows`."""
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as name:
        folder = Path(name)
        key = await _fill(folder, size, console)
        for _ in range(starts):
            await measure_folder(folder, size, key, rows)


async def measure_folder(folder: Path, size: int, key: str, rows: list[MeasuredStart]) -> None:
    """Measure starts of a filled folder with both settings, into `rows`. `key`: that of its agent."""
    either: dict[str, Mapping[str, str]] = {DEFAULTS: {}, TUNED: postgres_settings(Machine.own())}
    for name, settings in either.items():
        with running_stack(folder, postgres_settings=settings) as stack:  # The use from which the cache is restored.
            await stack.serve(embeds=False)
            await _ask(stack, key, size)
        rows.append(await _start(folder, size, key, name, settings))


def start_table(rows: Sequence[MeasuredStart]) -> Table:
    """The table of the measurements."""
    tools = list(rows[0].calls)
    table = Table(
        box=box.SIMPLE,
        title="Start: until ready, the first call of each tool, and the memory of a gateway",
        caption=f"seconds; ms of the first call and the median of {LATER} later ones; MB at rest and after the calls",
    )
    for column in ("entities", "settings", "servers", "gateway", "its processor", *tools, "memory"):
        table.add_column(column, justify="left" if column == "settings" else "right")
    for row in rows:
        seconds = [f"{value:.1f}" for value in (row.stores, row.gateway, row.processor)]
        calls = [f"{first:.0f} / {later:.0f}" for first, later in row.calls.values()]
        memory = f"{row.rest_mb:.0f} / {row.used_mb:.0f}"
        table.add_row(f"{row.entities:,}", row.settings, *seconds, *calls, memory)
    return table


async def _fill(folder: Path, size: int, console: Console) -> str:
    corpus = Corpus()
    with running_stack(folder) as stack, Progress(console=console) as progress:
        async with measured_memory(stack) as memory:
            await stack.serve()
            await memory.grow(corpus, size, progress)
            await memory.indexed(size, progress)
            return memory.key


async def _start(folder: Path, size: int, key: str, name: str, settings: Mapping[str, str]) -> MeasuredStart:
    _out_of_cache(folder / "postgres")
    begun = time.perf_counter()
    with running_stack(folder, postgres_settings=settings) as stack:
        stores = time.perf_counter() - begun
        await stack.serve(embeds=False)
        gateway = time.perf_counter() - begun - stores
        pid = stack.gateway.pid
        assert pid is not None
        row = MeasuredStart(size, name, stores, gateway, processor_seconds(pid), _megabytes(pid))
        row.calls = await _ask(stack, key, size)
        row.used_mb = _megabytes(pid)
        return row


async def _ask(stack: Stack, key: str, size: int) -> dict[str, tuple[float, float]]:
    """Read entities all over the graph; returns, by tool, the ms of the first call and the median of the others."""
    corpus = Corpus()
    numbers = [round(size * (turn + 0.5) / (LATER + 1)) for turn in range(LATER + 1)]
    arguments_of: dict[str, list[dict[str, Any]]] = {
        "get_entity": [{"name": corpus.name(number)} for number in numbers],
        "search_nodes": [{"query": corpus.marker(number)} for number in numbers],
        "recall": [{"query": corpus.question(number)} for number in numbers],
    }
    times = {}
    for tool, calls in arguments_of.items():
        async with McpConnection(stack.settings.port, "/mcp/x/agent,memory", LEGACY, key) as connection:
            taken = [(await connection.call(tool, arguments)) for arguments in calls]
        for exchange in taken:
            exchange.result()
        first, *later = (1_000 * exchange.seconds for exchange in taken)
        times[tool] = first, median(later)
    return times


def _out_of_cache(folder: Path) -> None:
    """Drop the files of a folder from the machine's cache, and no others."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def _megabytes(pid: int) -> float:
    return psutil.Process(pid).memory_info().rss / 1_000_000
