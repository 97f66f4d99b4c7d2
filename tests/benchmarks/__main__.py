"""`python -m tests.benchmarks`: start everything on this machine, measure, print, stop everything.

A full run ends by itself, at `--limit-seconds` at the latest; most of it is filling. `RECOLLECT_*` variables apply to
gateway and worker, except addresses and the embedder: the default one where recall is measured, else wordllama.
`python -m tests.benchmarks.quality` measures how well recall finds.
"""

import argparse
import asyncio
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import msgspec
import uvloop
from rich.console import Console

from tests.benchmarks.batches import batches_table, measure_batches
from tests.benchmarks.corpus import LEAST
from tests.benchmarks.cost.figures import SizeCosts
from tests.benchmarks.cost.report import cost_markdown
from tests.benchmarks.cost.run import CostPlan
from tests.benchmarks.cost.run import run as run_cost
from tests.benchmarks.cost.statements import counting_settings
from tests.benchmarks.duplicates import duplicates_table, measure_duplicates
from tests.benchmarks.embedding import embedding_table, measure_embedding
from tests.benchmarks.fairness import fairness_table, measure_fairness
from tests.benchmarks.groups import PLANS
from tests.benchmarks.latency.report import LatencyReport, latency_document, print_latency
from tests.benchmarks.latency.run import LatencyPlan
from tests.benchmarks.latency.run import run as run_latency
from tests.benchmarks.latency.talk import THREAD, Spoken, create_talk
from tests.benchmarks.latency.written import read_written
from tests.benchmarks.listeners import LISTENERS as MANY_STREAMS
from tests.benchmarks.listeners import listeners_table, measure_listeners
from tests.benchmarks.neighbours.floods import KINDS
from tests.benchmarks.neighbours.run import MeasuredBeside, measure_crowd, measure_floods, neighbours_table
from tests.benchmarks.partitions import MeasuredPartitions, measure_partitions, partitions_table
from tests.benchmarks.replicas import MeasuredReads, measure_replicas, replicas_table
from tests.benchmarks.report import WIDTH, Report, calls_document, machine, print_report
from tests.benchmarks.run import run
from tests.benchmarks.stack import EMBEDDER, QUICK_EMBEDDER, WORKER_LOGIN, Stack, running_stack
from tests.benchmarks.start import MeasuredStart, measure_start, start_table
from tests.benchmarks.telemetry import MeasuredTelling, measure_telemetry, telemetry_table
from tests.benchmarks.transfer import measure_transfer, transfer_table
from tests.benchmarks.web import LEAST as LEAST_WEB
from tests.benchmarks.wire import LEGACY, REVISIONS

RECALL = "recall"
TRANSFER = "transfer"
"""The group of imports and exports, which are not calls."""
DUPLICATES = "duplicates"
"""The group of passes over a graph, which are not calls either."""
BATCHES = "batches"
"""The group of imports of many items of one thing."""
EMBEDDING = "embedding"
"""The group of passages that the worker embeds."""
PARTITIONS = "partitions"
"""The group of the costs of other graphs' vector indexes."""
FAIRNESS = "fairness"
"""The group of the worker's fairness between tenants."""
NEIGHBOURS = "neighbours"
"""The group of effects of tenants on each other."""
LISTENERS = "listeners"
"""The group of open streams."""
TELEMETRY = "telemetry"
"""The group of the costs of traces and metrics."""
REPLICAS = "replicas"
"""The group of reads from a replica."""
START = "start"
"""The group of the time until a filled stack answers after a start."""
COST = "cost"
"""The group of processor time per call. It is the last, so that the others are measured if the time is up early."""
OTHERS = (
    RECALL,
    TRANSFER,
    DUPLICATES,
    BATCHES,
    EMBEDDING,
    PARTITIONS,
    FAIRNESS,
    NEIGHBOURS,
    LISTENERS,
    TELEMETRY,
    REPLICAS,
    START,
    COST,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the arguments name; the exit code is 1 if the time was up before the end."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _leave)
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # wordllama lets everything log, between bars of progress
    console = Console(stderr=True)
    reports = Reports(Report(options.revision, options.rounds), LatencyReport(options.recall_embedder), [], [])
    try:
        finished = _within(options.limit_seconds, _measure(options, reports, console))
    finally:
        _tell(reports, options.json)
    if not finished:
        console.print(f"The {options.limit_seconds:g} s were up: this is what had been measured until then.")
    return 0 if finished else 1


def _tell(reports: "Reports", path: Path | None) -> None:
    """Print the measurements, and write them to `path`."""
    reports.print(Console(width=WIDTH))
    if reports.calls.transfers:
        Console(width=WIDTH).print(transfer_table(reports.calls.transfers))
    if reports.calls.duplicates:
        Console(width=WIDTH).print(duplicates_table(reports.calls.duplicates))
    if reports.calls.batches:
        Console(width=WIDTH).print(batches_table(reports.calls.batches))
    if reports.calls.embedded:
        Console(width=WIDTH).print(embedding_table(reports.calls.embedded))
    if reports.calls.fairness:
        Console(width=WIDTH).print(fairness_table(reports.calls.fairness))
    if reports.calls.listeners:
        Console(width=WIDTH).print(listeners_table(reports.calls.listeners))
    if reports.partitions:
        Console(width=WIDTH).print(partitions_table(reports.partitions))
    if reports.neighbours:
        Console(width=WIDTH).print(neighbours_table(reports.neighbours))
    if reports.telling:
        Console(width=WIDTH).print(telemetry_table(reports.telling))
    if reports.reads:
        Console(width=WIDTH).print(replicas_table(reports.reads))
    if reports.starts:
        Console(width=WIDTH).print(start_table(reports.starts))
    if reports.costs:
        print(cost_markdown(reports.costs, os.cpu_count() or 1))
    if path:
        reports.write(path)


@dataclass(frozen=True, slots=True)
class Reports:
    """Reports of calls and their floors, of recall as a graph grows, and of the costs of calls."""

    calls: Report
    latency: LatencyReport
    costs: list[SizeCosts]
    neighbours: list[MeasuredBeside]
    telling: list[MeasuredTelling] = field(default_factory=list)
    partitions: list[MeasuredPartitions] = field(default_factory=list)
    reads: list[MeasuredReads] = field(default_factory=list)
    starts: list[MeasuredStart] = field(default_factory=list)

    def print(self, console: Console) -> None:
        """Print all tables."""
        print_report(self.calls, console)
        print_latency(self.latency, console)

    def write(self, path: Path) -> None:
        """Write all reports as JSON, with every sample."""
        document = {
            **machine(),
            "calls": calls_document(self.calls),
            "recall": latency_document(self.latency),
            "cost": self.costs,
            "neighbours": self.neighbours,
            "telemetry": self.telling,
            "partitions": self.partitions,
            "replicas": self.reads,
            "starts": self.starts,
        }
        path.write_bytes(msgspec.json.format(msgspec.json.encode(document)))


async def _measure(options: argparse.Namespace, reports: Reports, console: Console) -> None:
    """Measure one group after the other, each on its own servers."""
    sizes = {"memory": options.sizes, "search": options.search_sizes, "graph": options.graph_sizes}
    for group in options.group or [*PLANS, *OTHERS]:
        if group == RECALL:
            plan = LatencyPlan(options.recall_sizes, options.questions, options.compared)
            with _stack(options.recall_embedder) as stack:
                await run_latency(stack, plan, await _spoken(options), reports.latency, console)
        elif group == TRANSFER:
            await _transfer(options, reports.calls, console)
        elif group == DUPLICATES:
            await measure_duplicates(options.duplicates_sizes, reports.calls.duplicates)
        elif group == BATCHES:
            await measure_batches(options.batches_sizes, reports.calls.batches)
        elif group == EMBEDDING:
            await measure_embedding(options.embedding_sizes, reports.calls.embedded)
        elif group == PARTITIONS:
            await measure_partitions(options.partitions_indexes, reports.partitions)
        elif group == FAIRNESS:
            for size in options.fairness_sizes:
                with _stack(QUICK_EMBEDDER) as stack:
                    await measure_fairness(stack, size, reports.calls.fairness, console)
        elif group == NEIGHBOURS:
            await _neighbours(options, reports.neighbours, console)
        elif group == LISTENERS:
            await _listeners(options, reports.calls)
        elif group == TELEMETRY:
            with _stack() as stack:
                await measure_telemetry(stack, options.telemetry_turns, reports.telling)
        elif group == REPLICAS:
            await _replicas(options, reports.reads, console)
        elif group == START:
            await measure_start(options.start_entities, options.starts, reports.starts, console)
        elif group == COST:
            await _cost(options, reports.costs, console)
        elif (calls := PLANS[group](sizes[group], options.rounds, options.revision, options.only)).calls:
            with _stack(EMBEDDER if calls.embeds else QUICK_EMBEDDER) as stack:
                await run(stack, calls, reports.calls, console)


@contextmanager
def _stack(embedder: str = EMBEDDER) -> Iterator[Stack]:
    with (
        tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder,
        running_stack(Path(folder), embedder=embedder) as stack,
    ):
        yield stack


async def _transfer(options: argparse.Namespace, report: Report, console: Console) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder,
        running_stack(Path(folder), embedder=QUICK_EMBEDDER) as stack,
    ):
        await measure_transfer(stack, Path(folder), options.transfer_sizes, report.transfers, console)


async def _neighbours(options: argparse.Namespace, rows: list[MeasuredBeside], console: Console) -> None:
    if options.flood != ["none"]:
        with _stack() as stack:
            await measure_floods(stack, options.flooded, options.flood or KINDS, rows, console, at_once=options.at_once)
    if options.crowd:
        with _stack() as stack:
            await measure_crowd(stack, options.crowd, rows)


async def _spoken(options: argparse.Namespace) -> Spoken:
    """The memories and questions: synthetic, or from the text in the arguments. Exits if that text is too short."""
    if options.recall_text is None:
        return await create_talk()
    written = read_written(options.recall_text)
    if len(written) < (most := max(options.recall_sizes)):
        sys.exit(f"{options.recall_text} has {len(written):,} turns, less than {most:,}: see --recall-sizes.")
    return written


async def _listeners(options: argparse.Namespace, report: Report) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder,
        running_stack(Path(folder), embedder=QUICK_EMBEDDER, variables=MANY_STREAMS) as stack,
    ):
        await measure_listeners(stack, options.listeners_sizes, report.listeners)


async def _replicas(options: argparse.Namespace, rows: list[MeasuredReads], console: Console) -> None:
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder, running_stack(Path(folder)) as stack:
        size, turns = options.replicas_size, options.replicas_turns
        await measure_replicas(stack, Path(folder), size, turns, rows, console)


async def _cost(options: argparse.Namespace, costs: list[SizeCosts], console: Console) -> None:
    plan = CostPlan(options.cost_sizes, options.cost_calls, options.only, options.mix_seconds)
    with (
        tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder,
        running_stack(Path(folder), postgres_settings=counting_settings(), worker_login=WORKER_LOGIN) as stack,
    ):
        await run_cost(stack, Path(folder), plan, costs, console)


def _within(seconds: float, measuring: Coroutine[None, None, None]) -> bool:
    """Run it on uvloop, like the gateway, since the floor is faster on it; returns whether it ended in time."""

    async def limited() -> None:
        async with asyncio.timeout(seconds):
            await measuring

    try:
        uvloop.run(limited())
    except TimeoutError:
        return False
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument(
        "--group",
        action="append",
        choices=[*PLANS, *OTHERS],
        help="calls that belong together; repeatable (all)",
    )
    parser.add_argument(
        "--sizes", type=_sizes(LEAST), default=[1_000, 10_000, 100_000], help="entities of group memory, as 1000,10000"
    )
    parser.add_argument(
        "--search-sizes", type=_sizes(LEAST), default=[1_000, 10_000], help="entities of group search (1000,10000)"
    )
    parser.add_argument(
        "--graph-sizes",
        type=_sizes(LEAST_WEB),
        default=[10_000, 100_000],
        help="entities of group graph, three relations each",
    )
    parser.add_argument(
        "--recall-sizes", type=_sizes(THREAD), default=[1_000, 10_000, 100_000], help="passages of group recall"
    )
    parser.add_argument(
        "--recall-text",
        type=Path,
        metavar="PATH",
        help="text for group recall: a turn a line, an empty line ends a thread",
    )
    parser.add_argument("--recall-embedder", default=EMBEDDER, help=f"of group recall ({EMBEDDER})")
    parser.add_argument("--questions", type=_at_least(1), default=200, help="of group recall, a way and size (200)")
    parser.add_argument(
        "--compared", type=_at_least(0), default=100, help="questions answered with and without indexes (100)"
    )
    parser.add_argument(
        "--transfer-sizes", type=_sizes(2), default=[10_000, 100_000], help="entities of group transfer"
    )
    parser.add_argument(
        "--duplicates-sizes", type=_sizes(2), default=[10_000, 100_000], help="entities of group duplicates"
    )
    parser.add_argument(
        "--batches-sizes",
        type=_sizes(1),
        default=[1_000, 10_000, 50_000],
        help="items of one thing, of group batches (1000,10000,50000)",
    )
    parser.add_argument(
        "--embedding-sizes",
        type=_sizes(THREAD),
        default=[2_000, 20_000],
        help="passages of group embedding (2000,20000)",
    )
    parser.add_argument(
        "--partitions-indexes",
        type=_sizes(1),
        default=[16, 100, 800],
        help="vector indexes of other graphs, of group partitions (16,100,800)",
    )
    parser.add_argument(
        "--fairness-sizes", type=_sizes(THREAD), default=[100_000], help="passages of group fairness (100000)"
    )
    parser.add_argument(
        "--flooded",
        type=_at_least(LEAST),
        default=5_000,
        help="entities of the tenant that floods, of group neighbours",
    )
    parser.add_argument("--flood", action="append", choices=[*KINDS, "none"], help="a kind of flood; repeatable (all)")
    parser.add_argument("--at-once", type=_at_least(1), default=16, help="calls at once of a flood (16)")
    parser.add_argument("--crowd", type=_at_least(0), default=10_000, help="tenants of group neighbours (10000)")
    parser.add_argument(
        "--listeners-sizes", type=_sizes(1), default=[500, 2_000], help="open streams of group listeners (500,2000)"
    )
    parser.add_argument(
        "--cost-sizes", type=_sizes(LEAST), default=[1_000, 100_000], help="entities of group cost (1000,100000)"
    )
    parser.add_argument("--cost-calls", type=_at_least(20), default=200, help="calls of each tool of group cost (200)")
    parser.add_argument("--mix-seconds", type=float, default=10.0, help="of each mix of group cost (10; 0: none)")
    parser.add_argument("--telemetry-turns", type=_at_least(1), default=50, help="of ten calls, of group telemetry")
    parser.add_argument(
        "--replicas-size", type=_at_least(LEAST), default=2_000, help="entities of group replicas (2000)"
    )
    parser.add_argument("--replicas-turns", type=_at_least(1), default=20, help="of ten calls, of group replicas (20)")
    parser.add_argument("--start-entities", type=_at_least(LEAST), default=10_000, help="of group start (10000)")
    parser.add_argument("--starts", type=_at_least(1), default=2, help="of group start, with either settings (2)")
    parser.add_argument("--rounds", type=_at_least(1), default=50, help="samples of each call at each size (50)")
    parser.add_argument("--only", action="append", default=[], help="a call to measure, by tool or label; repeatable")
    parser.add_argument("--revision", choices=REVISIONS, default=LEGACY, help=f"MCP revision to speak ({LEGACY})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there")
    parser.add_argument("--limit-seconds", type=float, default=3_600, help="stop measuring after so long (3600)")
    return parser


def _sizes(least: int) -> Callable[[str], list[int]]:
    def sizes(text: str) -> list[int]:
        return sorted({_at_least(least)(size) for size in text.split(",")})

    return sizes


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least}")
        return int(text)

    return number


def _leave(_: int, __: FrameType | None) -> None:
    sys.exit(1)  # An exception, so that every server is stopped on the way out.


if __name__ == "__main__":
    sys.exit(main())
