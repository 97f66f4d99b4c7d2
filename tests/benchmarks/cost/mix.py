"""Calls a second, where clients read nine times and write once, without pause."""

import asyncio
import itertools
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from recollect_local.server import Server
from tests.benchmarks.calls import MeasuredCall
from tests.benchmarks.cost.calls import MIX_READS, MIX_WRITE
from tests.benchmarks.cost.figures import MeasuredMix
from tests.benchmarks.cost.turns import CallCosts

CLIENTS = (1, 8, 32)
_PATH = "/mcp/x/agent,memory"
_OF_TEN = 10
"""Calls of which one writes."""


def mixed_calls() -> Iterator[MeasuredCall]:
    """What is called one after the other, by whichever client is free: nine of ten read, in turns."""
    reads = itertools.cycle(MIX_READS)
    for number in itertools.count(1):
        yield MIX_WRITE if number % _OF_TEN == 0 else next(reads)


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """A gateway that is measured."""

    server: Server = field(hash=False)
    port: int


async def measure_mix(
    costs: CallCosts, gateways: Sequence[GatewayAddress], clients: int, size: int, seconds: float
) -> MeasuredMix:
    """Let so many clients call for so long; what they have begun then is answered, and counts."""
    calls = mixed_calls()
    servers = [gateway.server for gateway in gateways]
    addresses = [gateways[number % len(gateways)] for number in range(clients)]
    await _all_call(costs, addresses, calls, size, 0.0)  # once each, so that sessions with PostgreSQL are there
    await costs.worker_done()
    before, begun = costs.meter.spent(servers), time.monotonic()
    made = await _all_call(costs, addresses, calls, size, seconds)
    taken = time.monotonic() - begun
    await costs.worker_done()
    by_call = (costs.meter.spent(servers) - before).per(made)
    return MeasuredMix(len(gateways), clients, made, taken, by_call)


async def _all_call(
    costs: CallCosts, addresses: Sequence[GatewayAddress], calls: Iterator[MeasuredCall], size: int, seconds: float
) -> int:
    """A client at each address calls for so long; how many calls they made."""
    until = time.monotonic() + seconds
    title = f"{len(addresses)} clients, {len(set(addresses))} gateways, {size} entities"

    async def one(number: int, address: GatewayAddress) -> int:
        made = 0
        async with costs.client(address.port, _PATH, random.Random(f"{number} {seconds} {title}"), size) as client:
            while not made or time.monotonic() < until:
                await client.make(next(calls))
                made += 1
        return made

    return sum(await asyncio.gather(*(one(number, address) for number, address in enumerate(addresses))))
