"""Calls per second of clients that read nine times and write once, without pause."""

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from recollect_local.server import Server
from tests.benchmarks.calls import MeasuredCall
from tests.benchmarks.cost.calls import MIX_READS, MIX_WRITE
from tests.benchmarks.cost.figures import MeasuredMix
from tests.benchmarks.cost.spent import Spent
from tests.benchmarks.cost.turns import CallCosts

CLIENTS = (1, 8, 32)
_PATH = "/mcp/x/agent,memory"
_OF_TEN = 10
"""The number of calls of which one writes."""
_TURNS = 3
"""Turns of calls and echoes, because the speed of a machine varies."""
_ECHO_SHARE = 1 / 3
"""Seconds of echoes per second of calls."""


def mixed_calls() -> Iterator[MeasuredCall]:
    """The sequence of calls, each made by the next free client: nine of ten read, in turns."""
    reads = itertools.cycle(MIX_READS)
    for number in itertools.count(1):
        yield MIX_WRITE if number % _OF_TEN == 0 else next(reads)


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """The address of a measured gateway."""

    server: Server = field(hash=False)
    port: int


async def measure_mix(
    costs: CallCosts, gateways: Sequence[GatewayAddress], clients: int, size: int, seconds: float
) -> MeasuredMix:
    """Let so many clients call for so long, in turns with echoes; begun calls are finished and count."""
    calls = mixed_calls()
    servers = [gateway.server for gateway in gateways]
    addresses = [gateways[number % len(gateways)] for number in range(clients)]
    await _all_call(costs, addresses, calls, size, 0, 0.0)  # once each, so that sessions with PostgreSQL are there
    await costs.worker_done()
    made, taken, spent = 0, 0.0, Spent()
    echoes, echoed, echo = 0, 0.0, 0.0
    for turn in range(1, _TURNS + 1):
        before, begun = costs.meter.spent(servers), time.monotonic()
        made += await _all_call(costs, addresses, calls, size, turn, seconds / _TURNS)
        taken += time.monotonic() - begun
        await costs.worker_done()
        between, begun = costs.meter.spent(servers), time.monotonic()
        spent += between - before
        echoes += await _all_echo(costs, clients, _ECHO_SHARE * seconds / _TURNS)
        echoed += time.monotonic() - begun
        echo += costs.meter.spent(servers).echo - between.echo
    by_call = replace(spent.per(made), echo=echo / echoes)
    return MeasuredMix(len(gateways), clients, made, taken, by_call, echoes / echoed)


async def _all_call(
    costs: CallCosts,
    addresses: Sequence[GatewayAddress],
    calls: Iterator[MeasuredCall],
    size: int,
    turn: int,
    seconds: float,
) -> int:
    """Let a client at each address call for so long; returns the number of calls."""
    title = f"{len(addresses)} clients, {len(set(addresses))} gateways, {size} entities"

    async def one(number: int, until: float) -> int:
        chance = random.Random(f"{number} {turn} {title}")
        async with costs.client(addresses[number].port, _PATH, chance, size) as client:
            return await _repeat(lambda: client.make(next(calls)), until)

    return await _at_once(one, len(addresses), seconds)


async def _all_echo(costs: CallCosts, clients: int, seconds: float) -> int:
    """Let clients call the bare echo for so long; returns the number of echoes."""

    async def one(_: int, until: float) -> int:
        async with costs.echo() as echo:
            return await _repeat(echo, until)

    return await _at_once(one, clients, seconds)


async def _at_once(one: Callable[[int, float], Awaitable[int]], clients: int, seconds: float) -> int:
    until = time.monotonic() + seconds
    return sum(await asyncio.gather(*(one(number, until) for number in range(clients))))


async def _repeat(call: Callable[[], Awaitable[None]], until: float) -> int:
    made = 0
    while not made or time.monotonic() < until:
        await call()
        made += 1
    return made
