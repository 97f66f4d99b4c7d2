"""One run: remember talk up to each size, and let all ways of answering take turns at that size."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.benchmarks.latency.report import ECHO, FLOOR, MCP, Agreement, LatencyReport, Size, length_of
from tests.benchmarks.latency.spent import cost_of_recalls, cost_of_writing
from tests.benchmarks.latency.talk import Spoken
from tests.benchmarks.latency.ways import Ways, open_ways
from tests.benchmarks.memory import MeasuredMemory, measured_memory
from tests.benchmarks.stack import Stack

_WARM_UP = 10


@dataclass(frozen=True, slots=True)
class LatencyPlan:
    """Sizes in passages, questions per way, and questions that are answered with and without the vector index."""

    sizes: Sequence[int]
    questions: int
    compared: int


async def run(stack: Stack, plan: LatencyPlan, talk: Spoken, report: LatencyReport, console: Console) -> None:
    """Measure all of it, into `report`, which is valid even if this ends early."""
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    async with measured_memory(stack) as memory:
        await stack.serve()
        empty = await memory.stored_bytes()
        with Progress(*columns, console=console) as progress:
            for passages in plan.sizes:
                size = Size(passages)
                await _grow(stack, memory, talk, size, progress)
                size.bytes = await memory.bytes_per_passage()
                size.stored = (await memory.stored_bytes() - empty) / passages
                # New connections, since servers close those that were idle while the graph grew.
                async with open_ways(stack.settings, memory.caller, memory.key, stack.echo_port) as ways:
                    await _measure(ways, talk, size, plan, progress)
                    report.sizes.append(size)
                    questions = talk.questions(passages, plan.questions, "processor time")
                    size.recall_cost = await cost_of_recalls(stack, ways, questions)
                    await _compare(ways, talk, size, plan, progress)


async def _grow(stack: Stack, memory: MeasuredMemory, talk: Spoken, size: Size, progress: Progress) -> None:
    """Let the graph grow to this size, and measure what writing and embedding cost; the index is built afterwards."""

    async def write() -> None:
        await memory.hear(talk, size.passages, progress)
        await memory.embedded(progress)

    if added := size.passages - memory.entities:
        size.write_cost = await cost_of_writing(stack, added, write)
    await memory.listen(talk, size.passages, progress)


async def _measure(ways: Ways, talk: Spoken, size: Size, plan: LatencyPlan, progress: Progress) -> None:
    """Let the ways take turns, because the speed of a shared machine varies; no question is asked twice."""
    passages = size.passages
    turns = {FLOOR: ways.floor, ECHO: ways.echo, "service": ways.service, "exact": ways.exact, MCP: ways.mcp}
    if await ways.compares_tokens():
        turns["first stage"] = ways.first_stage
    questions = {way: talk.questions(passages, _WARM_UP + plan.questions, way) for way in turns}
    measuring = progress.add_task(f"{passages:,}: measuring", total=plan.questions)
    for number in range(_WARM_UP + plan.questions):
        taken = {way: await turn(questions[way][number]) for way, turn in turns.items()}
        if number >= _WARM_UP:
            for way, one in taken.items():
                size.taken.setdefault(way, []).append(one)
            progress.advance(measuring)


async def _compare(ways: Ways, talk: Spoken, size: Size, plan: LatencyPlan, progress: Progress) -> None:
    """Answer the same questions with and without the vector index; a question without exact answers does not count."""
    comparing = progress.add_task(f"{size.passages:,}: comparing with the exact path", total=plan.compared)
    for text in talk.questions(size.passages, plan.compared, "compared"):
        exact = await ways.answer(text, exact=True)
        if exact:
            same = len(set(exact) & set(await ways.answer(text)))
            size.agreements.append(Agreement(length_of(text), same / len(exact)))
        progress.advance(comparing)
