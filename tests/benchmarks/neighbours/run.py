"""The measurements: calls of a tenant alone, and beside a flood or in a crowd, in turns of the same run."""

import asyncio
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain
from statistics import median
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
from rich import box
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import NewKey, worker_caller
from recollect.caller import Caller
from recollect.graph.entities import service as entities
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.memory import MeasuredMemory, measured_memory, new_tenant
from tests.benchmarks.neighbours.crowd import make_crowd
from tests.benchmarks.neighbours.floods import ANSWERED
from tests.benchmarks.stack import Stack
from tests.benchmarks.wire import LEGACY, McpConnection

SMALL = 5
"""The number of entities of a small graph."""

ROUNDS, CALLS = 10, 10
"""Rounds, each with a turn alone and one under load, and calls of each tool per turn."""

SETTLE_SECONDS = 60.0
"""The limit in seconds for the worker to finish the work of a flood before a turn alone."""

ASKED = 50
"""The number of tenants of a crowd that make calls."""

MEASURED = ("recall", "open_nodes", "remember")


@dataclass(slots=True)
class MeasuredBeside:
    """The seconds of each call, by tool and round: `alone`, and `beside` the load that `what` names."""

    what: str
    alone: dict[str, list[list[float]]] = field(default_factory=lambda: {tool: [] for tool in MEASURED})
    beside: dict[str, list[list[float]]] = field(default_factory=lambda: {tool: [] for tool in MEASURED})


async def measure_floods(
    stack: Stack, size: int, kinds: Sequence[str], rows: list[MeasuredBeside], console: Console, *, at_once: int
) -> None:
    """Measure kinds of flood, with so many calls at once, by a tenant with so many entities, into `rows`."""
    corpus = Corpus()
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    async with measured_memory(stack) as flooding:
        _, key = await _small_tenant(stack.settings, corpus, "quiet")
        with Progress(*columns, console=console) as progress:
            await flooding.grow(corpus, size, progress, embedded=False)
            await stack.serve()
            measuring = progress.add_task("floods", total=len(kinds))
            for kind in kinds:
                rows.append(row := MeasuredBeside(f"a flood of {kind}"))
                async with _flood(stack.settings.port, kind, flooding.key, size, at_once) as flood:
                    for _ in range(ROUNDS):
                        await _sample(stack.settings.port, [key], corpus, row.beside)
                        flood.send_signal(signal.SIGSTOP)
                        await _settled(flooding)
                        await _sample(stack.settings.port, [key], corpus, row.alone)
                        flood.send_signal(signal.SIGCONT)
                progress.advance(measuring)


async def _settled(flooding: MeasuredMemory) -> None:
    """Wait until all work of a paused flood is done, or the time for it is up."""
    give_up = time.monotonic() + SETTLE_SECONDS
    await asyncio.sleep(1)  # The gateway ends what it has begun.
    while await flooding.waiting() or await flooding.waiting_links():
        if time.monotonic() > give_up:
            return
        await asyncio.sleep(0.2)


async def measure_crowd(stack: Stack, crowd: int, rows: list[MeasuredBeside]) -> None:
    """Measure the same calls on two databases of one server, each with a gateway: one tenant, and very many."""
    corpus = Corpus()
    rows.append(row := MeasuredBeside(f"{crowd:,} tenants"))
    async with AsyncExitStack() as held:
        places = []
        for name, count in (("alone", 0), ("crowded", crowd)):
            settings = await _database(stack, name)
            caller, key = await _small_tenant(settings, corpus, "quiet")
            keys = [key, *await _crowded(settings, caller, count)]
            app_url = _named(stack.settings.database_url, name)
            _, port = await held.enter_async_context(stack.another_gateway(f"gateway of {name}", app_url))
            places.append((port, keys))
        (alone, one), (crowded, many) = places
        for number in range(2 * ROUNDS):
            await _sample(alone, one, corpus, row.alone)
            first = number * CALLS % len(many)
            await _sample(crowded, [*many[first:], *many[:first]], corpus, row.beside)


async def _crowded(settings: Settings, caller: Caller, count: int) -> list[str]:
    """Create a crowd of tenants like the caller's; returns the keys of some of them."""
    if not count:
        return []
    session = {"search_path": "recollect, public", "session_replication_role": "replica"}
    superuser = await asyncpg.connect(settings.migration_url, server_settings=session)
    try:
        made = await make_crowd(superuser, caller.tenant_id, count)
    finally:
        await superuser.close()
    keys = []
    async with Database.connect(settings.database_url, settings=settings) as db:
        for tenant_id in random.Random(1).sample(made, ASKED):
            async with db.transaction(worker_caller(tenant_id)) as tx:
                pepper = settings.key_secret.get_secret_value().encode()
                keys.append((await identity.create_key(tx, NewKey("benchmark"), pepper=pepper)).secret)
    return keys


async def _database(stack: Stack, name: str) -> Settings:
    """Create a database with that name on the server of the stack; returns settings for filling it."""
    superuser = await asyncpg.connect(stack.superuser_url)
    await superuser.execute(f"CREATE DATABASE {name}")
    await superuser.close()
    url = _named(stack.superuser_url, name)
    return stack.settings.model_copy(
        update={"database_url": _named(stack.settings.database_url, name), "owner_database_url": url}
    )


def _named(url: str, database: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{database}"))


async def _small_tenant(settings: Settings, corpus: Corpus, slug: str) -> tuple[Caller, str]:
    caller, key = await new_tenant(settings, slug)
    async with (
        Database.connect(settings.database_url, settings=settings) as db,
        db.transaction(caller) as tx,
        graphs.write_graph(tx, None, "benchmark") as revision,
    ):
        await entities.create_entities(tx, revision, [corpus.entity(number) for number in range(SMALL)])
    return caller, key


async def _sample(port: int, keys: Sequence[str], corpus: Corpus, taken: dict[str, list[list[float]]]) -> None:
    """Add one round to the samples: call each tool in turn, each time as another of these tenants."""
    arguments: dict[str, Callable[[int], dict[str, Any]]] = {
        "recall": lambda n: {"query": corpus.question(n)},
        "open_nodes": lambda n: {"names": [corpus.name(n)]},
        "remember": lambda _: {"items": [{"text": corpus.new_sentence()}]},
    }
    for tool in MEASURED:
        taken[tool].append([])
    for number in range(CALLS + 1):
        key = keys[number % len(keys)]
        async with McpConnection(port, "/mcp/x/all", LEGACY, key) as connection:
            await connection.call("open_nodes", arguments["open_nodes"](number % SMALL))
            for tool in MEASURED:
                exchange = await connection.call(tool, arguments[tool](number % SMALL))
                exchange.result()
                if number:
                    taken[tool][-1].append(exchange.seconds)


@asynccontextmanager
async def _flood(port: int, kind: str, key: str, size: int, at_once: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """A running flood until the block ends; it sends nothing while its process is paused."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.benchmarks.neighbours.floods",
        str(port),
        kind,
        str(size),
        str(at_once),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(f"{key}\n".encode())
        told = await process.stdout.readline()
        if told.decode().strip() != ANSWERED:
            raise RuntimeError(f"the flood of {kind} ended")
        yield process
        if process.returncode is not None:
            raise RuntimeError(f"the flood of {kind} ended")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def p95(seconds: Sequence[float]) -> float:
    """The time that nineteen of twenty calls do not exceed."""
    return sorted(seconds)[max(0, -(-len(seconds) * 19 // 20) - 1)]


def neighbours_table(rows: Sequence[MeasuredBeside]) -> Table:
    """The table of the measurements."""
    table = Table(
        box=box.SIMPLE,
        title="Neighbours: p95 of a tenant's calls, ms alone → beside (ratio; ratio of medians)",
        caption="Alone and beside take turns in one run. The ratio of medians: the median of those of its rounds.",
    )
    for column in ("beside", *MEASURED):
        table.add_column(column, justify="left" if column == "beside" else "right")
    for row in rows:
        table.add_row(row.what, *(_cell(row.alone[tool], row.beside[tool]) for tool in MEASURED))
    return table


def _cell(alone: Sequence[Sequence[float]], beside: Sequence[Sequence[float]]) -> str:
    if not alone or not beside:
        return ""
    before, after = p95([*chain(*alone)]), p95([*chain(*beside)])
    rounds = median(median(with_it) / median(without) for without, with_it in zip(alone, beside, strict=False))
    return f"{before * 1000:.1f} → {after * 1000:.1f} ({after / before:.2f}; {rounds:.2f})"
