"""Group `replicas`: what reads cost on a streaming replica, compared with the same reads on the primary.

Two gateways on one primary, one of them with the replica, take turns, a few calls at a time, so that other work of the
machine affects both equally. Primary and replica share the machine here: only processor time moves between them.
"""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

import asyncpg
import httpx2
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from recollect_local.address import claimed_port
from recollect_local.server import Server
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.memory import MeasuredMemory, measured_memory
from tests.benchmarks.processes import processor_seconds
from tests.benchmarks.stack import Stack
from tests.benchmarks.wire import LEGACY, McpConnection
from tests.support.clusters import Cluster
from tests.support.gateway import eventually

CALLS = 10
"""Calls of a turn."""

READS = ("recall", "search_nodes", "open_nodes", "explore")
PATH = "/mcp/x/agent,memory"
PRIMARY, REPLICA = "primary alone", "primary and replica"
_ANSWERED = re.compile(
    r'^recollect_replica_reads_total\{.*recollect_replica_outcome="replica".*\} (?P<count>[\d.]+)$', re.MULTILINE
)


@dataclass(slots=True)
class MeasuredReads:
    """One tool at one gateway: the seconds of each call, and the processor seconds of all calls."""

    tool: str
    servers: str
    seconds: list[float] = field(default_factory=list)
    gateway: float = 0.0
    primary: float = 0.0
    replica: float = 0.0
    from_replica: int = 0
    """Of the calls, those that the replica answered, as the gateway counts them."""


@dataclass(frozen=True, slots=True)
class _Reader:
    """A gateway, its port, the address of its metrics, and the key of the reader."""

    servers: str
    gateway: Server
    port: int
    metrics: str
    key: str

    async def from_replica(self) -> int:
        """The number of reads that the replica has answered so far."""
        async with httpx2.AsyncClient() as http:
            metrics = (await http.get(self.metrics)).raise_for_status().text
        return int(sum(float(found["count"]) for found in _ANSWERED.finditer(metrics)))


async def measure_replicas(
    stack: Stack, folder: Path, entities: int, turns: int, rows: list[MeasuredReads], console: Console
) -> None:
    """Measure so many turns of each tool by each gateway on a graph of so many entities, into `rows`."""
    corpus = Corpus()
    async with measured_memory(stack) as memory:
        await stack.serve()
        with Progress(console=console) as progress:
            await memory.grow(corpus, entities, progress)
            await memory.indexed(entities, progress)
        stack.worker.stop()
        async with _standby(stack, folder) as standby, AsyncExitStack() as open_:
            readers = [
                await open_.enter_async_context(_reader(stack, memory, servers, standby))
                for servers in (PRIMARY, REPLICA)
            ]
            comparison = _Comparison(stack, standby, corpus, entities, readers)
            for tool in READS:
                await comparison.measure(tool, turns, rows)


@asynccontextmanager
async def _standby(stack: Stack, folder: Path) -> AsyncIterator[Cluster]:
    """A replica with all data of the primary."""
    standby = Cluster(folder / "standby")
    standby.back_up(stack.superuser_url, "--write-recovery-conf")
    standby.start()
    try:
        primary, replica = await asyncpg.connect(stack.superuser_url), await asyncpg.connect(standby.url())
        try:
            written = await primary.fetchval("SELECT pg_current_wal_lsn()::text")
            await eventually(lambda: replica.fetchval("SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", written))
        finally:
            await primary.close()
            await replica.close()
        yield standby
    finally:
        standby.stop()


@asynccontextmanager
async def _reader(stack: Stack, memory: MeasuredMemory, servers: str, standby: Cluster) -> AsyncIterator[_Reader]:
    with claimed_port("127.0.0.1", 0) as port:
        variables = {"RECOLLECT_METRICS_PORT": str(port), "RECOLLECT_METRICS_HOST": "127.0.0.1"}
    if servers == REPLICA:
        variables["RECOLLECT_REPLICA_DATABASE_URL"] = standby.url("recollect_app")
    name = servers.replace(" ", "-")
    async with stack.another_gateway(name, stack.settings.database_url, **variables) as (gateway, own_port):
        yield _Reader(servers, gateway, own_port, f"http://127.0.0.1:{port}/metrics", memory.key)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The readers, and the data that they read."""

    stack: Stack
    standby: Cluster
    corpus: Corpus
    entities: int
    readers: Sequence[_Reader]

    async def measure(self, tool: str, turns: int, rows: list[MeasuredReads]) -> None:
        """Measure a tool at each warm gateway, into `rows`."""
        measured = [MeasuredReads(tool, reader.servers) for reader in self.readers]
        for reader in self.readers:
            await self._turn(reader, MeasuredReads(tool, reader.servers), 0)
        rows.extend(measured)
        before = [await reader.from_replica() for reader in self.readers]
        for turn in range(1, turns + 1):
            for reader, row in zip(self.readers, measured, strict=True):
                await self._turn(reader, row, turn)
        for reader, row, count in zip(self.readers, measured, before, strict=True):
            row.from_replica = await reader.from_replica() - count

    async def _turn(self, reader: _Reader, row: MeasuredReads, turn: int) -> None:
        servers = (reader.gateway, self.stack.postgres, self.standby)
        before = [_spent(server) for server in servers]
        async with McpConnection(reader.port, PATH, LEGACY, reader.key) as connection:
            for number in range(turn * CALLS, (turn + 1) * CALLS):
                # Each reader has its own questions, because the gateways share a cache of answers.
                position = number * len(self.readers) + self.readers.index(reader)
                arguments = _arguments(row.tool, self.corpus, position * 37 % self.entities)
                exchange = await connection.call(row.tool, arguments)
                exchange.result()
                row.seconds.append(exchange.seconds)
        gateway, primary, replica = (_spent(server) - was for server, was in zip(servers, before, strict=True))
        row.gateway, row.primary, row.replica = row.gateway + gateway, row.primary + primary, row.replica + replica


def _spent(server: Server) -> float:
    assert server.pid is not None, "it was started"
    return processor_seconds(server.pid)


def _arguments(tool: str, corpus: Corpus, number: int) -> dict[str, Any]:
    arguments: dict[str, dict[str, Any]] = {
        "recall": {"query": corpus.question(number)},
        "search_nodes": {"query": corpus.marker(number)},
        "open_nodes": {"names": [corpus.name(number)]},
        "explore": {"start": corpus.name(number)},
    }
    return arguments[tool]


def replicas_table(rows: Sequence[MeasuredReads]) -> Table:
    """The table of the measurements."""
    table = Table(box=box.SIMPLE, title="Reads by a primary alone, and by its replica: ms, and processor ms a call")
    for column in ("tool", "read from", "calls", "by replica", "p50", "p95", "gateway", "primary", "replica"):
        table.add_column(column, justify="left" if column in {"tool", "read from"} else "right")
    for row in rows:
        if len(row.seconds) < CALLS:
            continue
        cuts = quantiles(row.seconds, n=20, method="inclusive")
        spent = [f"{each / len(row.seconds) * 1000:.1f}" for each in (row.gateway, row.primary, row.replica)]
        figures = f"{cuts[9] * 1000:.1f}", f"{cuts[18] * 1000:.1f}"
        table.add_row(row.tool, row.servers, f"{len(row.seconds):,}", f"{row.from_replica:,}", *figures, *spent)
    return table
