"""The groups, each measured on its own memory: calls, how it is filled, and sizes."""

from collections.abc import Sequence

from rich.progress import Progress

from tests.benchmarks.calls import CALLS, SEARCHES
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.memory import MeasuredMemory
from tests.benchmarks.run import MeasuringPlan
from tests.benchmarks.walks import walks
from tests.benchmarks.web import Web


def memory_plan(sizes: Sequence[int], rounds: int, revision: str, only: list[str]) -> MeasuringPlan:
    """Calls that remember, find and read, on entities with one observation and one relation each, all embedded."""
    corpus = Corpus()

    async def grow(memory: MeasuredMemory, size: int, progress: Progress) -> None:
        await memory.grow(corpus, size, progress)

    return MeasuringPlan(corpus, grow, sizes, [call for call in CALLS if call.matches(only)], rounds, revision)


def search_plan(sizes: Sequence[int], rounds: int, revision: str, only: list[str]) -> MeasuringPlan:
    """The classic searches, on the same entities as in group memory."""
    corpus = Corpus()

    async def grow(memory: MeasuredMemory, size: int, progress: Progress) -> None:
        await memory.grow(corpus, size, progress, embedded=False)

    return MeasuringPlan(
        corpus, grow, sizes, [call for call in SEARCHES if call.matches(only)], rounds, revision, embeds=False
    )


def graph_plan(sizes: Sequence[int], rounds: int, revision: str, only: list[str]) -> MeasuringPlan:
    """Walks on a web of entities with three relations and a parent each, and creation in large batches."""
    corpus = Corpus()
    web = Web(corpus)

    async def weave(memory: MeasuredMemory, size: int, progress: Progress) -> None:
        await memory.weave(web, size, progress)

    calls = [call for call in walks(web) if call.matches(only)]
    return MeasuringPlan(corpus, weave, sizes, calls, rounds, revision, embeds=False)


PLANS = {"memory": memory_plan, "search": search_plan, "graph": graph_plan}
