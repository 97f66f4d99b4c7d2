"""One run: grow the graph to each size, and measure every call and the mix at that size."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.benchmarks.calls import MeasuredCall
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.cost.calls import reading_calls, writing_calls
from tests.benchmarks.cost.figures import SizeCosts
from tests.benchmarks.cost.mix import CLIENTS, GatewayAddress, measure_mix
from tests.benchmarks.cost.round_trips import counted_round_trips
from tests.benchmarks.cost.spent import Meter, Spent
from tests.benchmarks.cost.statements import COUNTED, statement_counter
from tests.benchmarks.cost.stock import Stock
from tests.benchmarks.cost.turns import CallCosts
from tests.benchmarks.memory import measured_memory
from tests.benchmarks.processes import other_seconds
from tests.benchmarks.stack import Stack

_REST_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class CostPlan:
    """Sizes in entities, calls of each tool, the tools (empty: all), and seconds of each mix (0: no mix)."""

    sizes: Sequence[int]
    calls: int
    only: list[str]
    mix_seconds: float


async def run(stack: Stack, folder: Path, plan: CostPlan, sizes: list[SizeCosts], console: Console) -> None:
    """Measure all of it, into `sizes`, which are valid even if this ends early."""
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    corpus = Corpus()
    async with _call_costs(stack, folder, corpus, plan.calls) as costs:
        with Progress(*columns, console=console) as progress:
            for size in plan.sizes:
                await costs.memory.grow(corpus, size, progress)
                await costs.memory.indexed(size, progress)
                sizes.append(measured := SizeCosts(size, await _at_rest(costs)))
                with _others(measured):
                    await _measure_size(costs, plan, measured, progress)


@asynccontextmanager
async def _call_costs(stack: Stack, folder: Path, corpus: Corpus, calls: int) -> AsyncIterator[CallCosts]:
    async with (
        measured_memory(stack) as memory,
        counted_round_trips(folder, stack.superuser_url) as trips,
        statement_counter(stack.superuser_url, trips) as counter,
    ):
        await stack.serve()
        async with stack.another_gateway("counted-gateway", trips.url(COUNTED)) as (_, port):
            yield CallCosts(stack, memory, corpus, Stock(corpus), Meter(stack), counter, port, calls)


async def _measure_size(costs: CallCosts, plan: CostPlan, measured: SizeCosts, progress: Progress) -> None:
    """Measure one size: first the reading calls, on a graph of exactly that size."""
    await _look_up(costs)
    await _measure_calls(costs, plan, reading_calls(costs.stock), measured, progress)
    if plan.mix_seconds:
        await _measure_mixes(costs, plan, measured, progress)
    await _measure_calls(costs, plan, writing_calls(costs.stock), measured, progress)


async def _look_up(costs: CallCosts) -> None:
    superuser = await asyncpg.connect(costs.stack.superuser_url)
    try:
        await costs.stock.look_up(superuser, costs.memory)
    finally:
        await superuser.close()


async def _measure_calls(
    costs: CallCosts, plan: CostPlan, calls: Sequence[MeasuredCall], measured: SizeCosts, progress: Progress
) -> None:
    wanted = [call for call in calls if call.matches(plan.only)]
    measuring = progress.add_task(f"{measured.entities:,} entities: measuring", total=len(wanted))
    for call in wanted:
        measured.calls.append(await costs.measure(call, measured.entities))
        progress.advance(measuring)


async def _measure_mixes(costs: CallCosts, plan: CostPlan, measured: SizeCosts, progress: Progress) -> None:
    stack = costs.stack
    first = GatewayAddress(stack.gateway, stack.settings.port)
    ways = [(gateways, clients) for gateways in (1, 2) for clients in CLIENTS if clients >= gateways]
    mixing = progress.add_task(f"{measured.entities:,} entities: mix", total=len(ways))
    async with stack.another_gateway("second-gateway", stack.settings.database_url) as (server, port):
        both = (first, GatewayAddress(server, port))
        for gateways, clients in ways:
            addresses = both[:gateways]
            measured.mixes.append(await measure_mix(costs, addresses, clients, measured.entities, plan.mix_seconds))
            progress.advance(mixing)


async def _at_rest(costs: CallCosts) -> Spent:
    """The time spent per second without calls."""
    begun, before = time.monotonic(), costs.meter.spent([costs.stack.gateway])
    await asyncio.sleep(_REST_SECONDS)
    return (costs.meter.spent([costs.stack.gateway]) - before).per(time.monotonic() - begun)


@contextmanager
def _others(measured: SizeCosts) -> Iterator[None]:
    """Record how many cores everything else on the machine used meanwhile."""
    begun, before = time.monotonic(), other_seconds()
    try:
        yield
    finally:
        measured.others = (other_seconds() - before) / (time.monotonic() - begun)
