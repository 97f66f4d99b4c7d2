"""One run: remember talk up to each size, and let all ways of answering take turns at that size."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.benchmarks.latency.report import FLOOR, Agreement, LatencyReport, Size, length_of
from tests.benchmarks.latency.talk import Spoken
from tests.benchmarks.latency.ways import Ways, open_ways
from tests.benchmarks.memory import measured_memory
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
        with Progress(*columns, console=console) as progress:
            for passages in plan.sizes:
                await memory.listen(talk, passages, progress)
                # New connections, since servers close those that were idle while the graph grew.
                async with open_ways(stack.settings, memory.caller, memory.key) as ways:
                    size = await _measure(ways, talk, passages, plan, progress)
                    size.bytes = await memory.bytes_per_passage()
                    report.sizes.append(size)
                    await _compare(ways, talk, size, plan, progress)


async def _measure(ways: Ways, talk: Spoken, passages: int, plan: LatencyPlan, progress: Progress) -> Size:
    """Let the ways take turns, because the speed of a shared machine varies; no question is asked twice."""
    size = Size(passages)
    turns = {FLOOR: ways.floor, "service": ways.service, "exact": ways.exact, "MCP": ways.mcp}
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
    return size


async def _compare(ways: Ways, talk: Spoken, size: Size, plan: LatencyPlan, progress: Progress) -> None:
    """Answer the same questions with and without the vector index; a question without exact answers does not count."""
    comparing = progress.add_task(f"{size.passages:,}: comparing with the exact path", total=plan.compared)
    for text in talk.questions(size.passages, plan.compared, "compared"):
        exact = await ways.answer(text, exact=True)
        if exact:
            same = len(set(exact) & set(await ways.answer(text)))
            size.agreements.append(Agreement(length_of(text), same / len(exact)))
        progress.advance(comparing)
