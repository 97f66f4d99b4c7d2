"""One measured call: its processor time, in turns with that of the echo, then its statements in PostgreSQL."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from tests.benchmarks.calls import MeasuredCall
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.cost.figures import MeasuredCost
from tests.benchmarks.cost.spent import Meter, Spent
from tests.benchmarks.cost.statements import StatementCounter
from tests.benchmarks.cost.stock import Stock
from tests.benchmarks.memory import MeasuredMemory
from tests.benchmarks.stack import Stack, require_running
from tests.benchmarks.wire import LEGACY, McpConnection

_WARM_UP = 5
_CALLS, _ECHOES = 20, 40
"""Calls of one turn, without a pause: after a pause, caches are cold, and an echo costs twice as much."""
_COUNTED = 20
"""The number of calls whose statements are counted."""
_SECONDS = 30.0
"""Measuring ends after so many seconds, even with fewer calls than requested."""
_ECHO = {"text": "x" * 64, "length": 64}


@dataclass(frozen=True, slots=True)
class CallCosts:
    """The connections to everything that is measured, with so many calls of each tool.

    `counted_port` is that of the gateway whose statements are counted; its processor time is not measured.
    """

    stack: Stack
    memory: MeasuredMemory
    corpus: Corpus
    stock: Stock
    meter: Meter
    counter: StatementCounter
    counted_port: int
    calls: int

    async def measure(self, call: MeasuredCall, size: int) -> MeasuredCost:
        """Measure one call in a graph of so many entities."""
        if call.writes:
            await self._stock_up(call)
        # New connections for each call, since servers close idle ones.
        path, chance = f"/mcp/x/{call.toolset}", random.Random(f"{call.label} {size}")
        async with self.client(self.stack.settings.port, path, chance, size) as client:
            await self._warm_up(client, call)
            calls, by_call = await self._spent(client, call)
        async with self.client(self.counted_port, path, chance, size) as client:
            await self._warm_up(client, call)
            sent = await self.counter.by_call(lambda: client.make(call), _COUNTED)
        return MeasuredCost(call.toolset, call.label, calls, by_call, sent)

    @asynccontextmanager
    async def client(self, port: int, path: str, chance: random.Random, size: int) -> AsyncIterator["Client"]:
        """A client with its own connection, for a graph of so many entities."""
        async with McpConnection(port, path, LEGACY, self.memory.key) as connection:
            yield Client(connection, self.corpus, chance, size)

    @asynccontextmanager
    async def echo(self) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        """A function that calls the bare echo once, on a new connection, because the server closes idle ones."""
        async with McpConnection(self.stack.echo_port, "/mcp", LEGACY) as connection:

            async def echo() -> None:
                (await connection.call("echo", _ECHO)).result()

            yield echo

    async def worker_done(self) -> None:
        """Wait until the worker has nothing left to do; raises RuntimeError if it ended."""
        while await self.memory.waiting() or await self.memory.waiting_links():
            require_running(self.stack.worker)
            await asyncio.sleep(0.05)

    async def _spent(self, client: "Client", call: MeasuredCall) -> tuple[int, Spent]:
        """The number of calls and the time of each, in turns with echoes, because the speed of a machine varies."""
        turns, until = 0, time.monotonic() + _SECONDS
        before = self.meter.spent([self.stack.gateway])
        while turns * _CALLS < self.calls and time.monotonic() < until:
            turns += 1
            for _ in range(_CALLS):
                await client.make(call)
            await self._echo()
        if call.writes:
            await self.worker_done()
        total = self.meter.spent([self.stack.gateway]) - before
        calls = turns * _CALLS
        return calls, replace(total.per(calls), echo=total.echo / (turns * _ECHOES))

    async def _echo(self) -> None:
        async with self.echo() as echo:
            for _ in range(_ECHOES):
                await echo()

    async def _warm_up(self, client: "Client", call: MeasuredCall) -> None:
        for _ in range(_WARM_UP):
            await client.make(call)
        if call.writes:
            await self.worker_done()

    async def _stock_up(self, call: MeasuredCall) -> None:
        async with McpConnection(self.stack.settings.port, "/mcp/x/all", LEGACY, self.memory.key) as connection:
            await self.stock.fill(connection, call.tool, self.calls + _CALLS + 2 * _WARM_UP + _COUNTED)
        await self.worker_done()


@dataclass(frozen=True, slots=True)
class Client:
    """Makes calls on one connection, with different arguments each time."""

    connection: McpConnection
    corpus: Corpus
    chance: random.Random
    size: int

    async def make(self, call: MeasuredCall) -> None:
        """Make a call; raises RuntimeError if the reply is not as expected."""
        arguments = call.arguments(self.corpus, self.chance, self.size)
        exchange = await self.connection.call(call.tool, arguments)
        found = call.found(exchange.result()["structuredContent"])
        if found != (wanted := call.wanted(arguments)):
            raise RuntimeError(f"{call.label} found {found} instead of {wanted}: {arguments}")
