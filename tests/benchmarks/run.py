"""One run: grow the graph to each size, and sample every call and its floors at that size."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg
import msgspec
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from recollect.embedding import WordLlamaEmbedder
from tests.benchmarks.calls import Arguments, MeasuredCall
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.memory import MeasuredMemory, measured_memory
from tests.benchmarks.recording import Recorder, Recording, bare_connection, replay
from tests.benchmarks.report import Report, Sample, Series
from tests.benchmarks.stack import Stack
from tests.benchmarks.wire import McpConnection

_WARM_UP = 5


Filling = Callable[[MeasuredMemory, int, Progress], Awaitable[None]]
"""A function that lets a memory grow to so many entities."""


@dataclass(frozen=True, slots=True)
class MeasuringPlan:
    """What to measure: sizes in entities, how to grow to them, calls, and the number of samples of each.

    `embeds`: with a worker, for which the filling waits.
    """

    corpus: Corpus
    fill: Filling
    sizes: Sequence[int]
    calls: Sequence[MeasuredCall]
    rounds: int
    revision: str
    embeds: bool = True


async def run(stack: Stack, plan: MeasuringPlan, report: Report, console: Console) -> None:
    """Measure all of it, into `report`, which is valid even if this ends early."""
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    async with measured_memory(stack) as memory, _bench(stack, plan, memory) as bench:
        with Progress(*columns, console=console) as progress:
            for size in plan.sizes:
                await plan.fill(memory, size, progress)
                measuring = progress.add_task(f"{size:,} entities: measuring", total=len(plan.calls))
                for call in plan.calls:
                    report.series.append(await bench.measure(call, size))
                    progress.advance(measuring)


@asynccontextmanager
async def _bench(stack: Stack, plan: MeasuringPlan, memory: MeasuredMemory) -> AsyncIterator["Bench"]:
    await stack.serve(embeds=plan.embeds)
    async with bare_connection(stack.settings) as recording, bare_connection(stack.settings) as bare:
        recorder = Recorder(recording, WordLlamaEmbedder(), stack.settings, memory.key)
        yield Bench(stack, plan, memory, recorder, bare)


@dataclass(frozen=True, slots=True)
class CallSamples:
    """What the samples of one call share: the size, random numbers, and connections to gateway and echo server."""

    call: MeasuredCall
    size: int
    chance: random.Random
    gateway: McpConnection
    echo: McpConnection


@dataclass(frozen=True, slots=True)
class Bench:
    """The connections to everything that is measured."""

    stack: Stack
    plan: MeasuringPlan
    memory: MeasuredMemory
    recorder: Recorder
    bare: asyncpg.Connection

    async def measure(self, call: MeasuredCall, size: int) -> Series:
        """Sample a call; call, echo and SQL take turns, because the speed of a shared machine varies."""
        series = Series(call.label, size, call.flat)
        async with self._turn(call, size) as turn:
            for number in range(_WARM_UP + (call.rounds or self.plan.rounds)):
                sample = await (self._write(turn) if call.writes else self._read(turn))
                if number >= _WARM_UP:
                    series.samples.append(sample)
        return series

    @asynccontextmanager
    async def _turn(self, call: MeasuredCall, size: int) -> AsyncIterator[CallSamples]:
        # New connections, since servers close those that were idle while the graph grew.
        path, revision = f"/mcp/x/{call.toolset}", self.plan.revision
        async with (
            McpConnection(self.stack.settings.port, path, revision, self.memory.key) as gateway,
            McpConnection(self.stack.echo_port, "/mcp", revision) as echo,
        ):
            yield CallSamples(call, size, random.Random(size), gateway, echo)

    def _arguments(self, turn: CallSamples) -> Arguments:
        return turn.call.arguments(self.plan.corpus, turn.chance, turn.size)

    async def _read(self, turn: CallSamples) -> Sample:
        # Recorded first, so that the call and the floor both find the pages in memory.
        arguments = self._arguments(turn)
        recording = await self.recorder.record(turn.call.tool, arguments)
        seconds, echo_seconds = await self._call(turn, arguments)
        return await self._sample(recording, seconds, echo_seconds)

    async def _write(self, turn: CallSamples) -> Sample:
        # Recorded after the call, because statements contain the revision; with new arguments, because names are taken.
        mark = await self.memory.mark()
        seconds, echo_seconds = await self._call(turn, self._arguments(turn))
        recording = await self.recorder.record(turn.call.tool, self._arguments(turn))
        sample = await self._sample(recording, seconds, echo_seconds)
        await self.memory.return_to(mark)
        return sample

    async def _call(self, turn: CallSamples, arguments: Arguments) -> tuple[float, float]:
        exchange = await turn.gateway.call(turn.call.tool, arguments)
        found = turn.call.found(exchange.result()["structuredContent"])
        if found != (wanted := turn.call.wanted(arguments)):
            raise RuntimeError(f"{turn.call.label} found {found} instead of {wanted}: {arguments}")
        like = {"text": "x" * len(msgspec.json.encode(arguments)), "length": len(exchange.body)}
        echoed = await turn.echo.call("echo", like)
        return exchange.seconds, echoed.seconds

    async def _sample(self, recording: Recording, seconds: float, echo_seconds: float) -> Sample:
        return Sample(
            call=seconds,
            echo=echo_seconds,
            sql=await replay(self.bare, recording.transaction),
            sign_in=await replay(self.bare, recording.sign_in),
            sign_in_trips=len(recording.sign_in),
            trips=len(recording.transaction),
        )
