"""`python -m tests.benchmarks`: start everything on this machine, measure, print, stop everything.

A full run takes some minutes and ends by itself, at `--limit-seconds` at the latest. `RECOLLECT_*` variables hold for
gateway and worker, but for the addresses.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from types import FrameType

import uvloop
from rich.console import Console

from tests.benchmarks.corpus import LEAST
from tests.benchmarks.groups import PLANS
from tests.benchmarks.report import WIDTH, Report, print_report, write_json
from tests.benchmarks.run import run
from tests.benchmarks.stack import running_stack
from tests.benchmarks.web import LEAST as LEAST_WEB
from tests.benchmarks.wire import LEGACY, REVISIONS


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure as the arguments say; the exit code: 1 if the time was up before all was measured."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _leave)
    report = Report(options.revision, options.rounds)
    console = Console(stderr=True)
    finished = _within(options.limit_seconds, _measure(options, report, console))
    print_report(report, Console(width=WIDTH))
    if options.json:
        write_json(report, options.json)
    if not finished:
        console.print(f"The {options.limit_seconds:g} s were up: this is what had been measured until then.")
    return 0 if finished else 1


async def _measure(options: argparse.Namespace, report: Report, console: Console) -> None:
    """One group after the other, each on servers of its own."""
    sizes = {"memory": options.sizes, "graph": options.graph_sizes}
    for group in options.group or PLANS:
        plan = PLANS[group](sizes[group], options.rounds, options.revision, options.only)
        if plan.calls:
            with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder, running_stack(Path(folder)) as stack:
                await run(stack, plan, report, console)


def _within(seconds: float, measuring: Coroutine[None, None, None]) -> bool:
    """Run it; whether it ended in time. On uvloop, as the gateway: asyncpg is faster on it, and so is its floor."""

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
    parser.add_argument("--group", action="append", choices=PLANS, help="calls that belong together; repeatable (all)")
    parser.add_argument(
        "--sizes", type=_sizes(LEAST), default=[1_000, 10_000, 100_000], help="entities of group memory, as 1000,10000"
    )
    parser.add_argument(
        "--graph-sizes",
        type=_sizes(LEAST_WEB),
        default=[10_000, 100_000],
        help="entities of group graph, three relations each",
    )
    parser.add_argument("--rounds", type=_at_least(1), default=50, help="samples of each call at each size (50)")
    parser.add_argument("--only", action="append", default=[], help="a call to measure, by tool or label; repeatable")
    parser.add_argument("--revision", choices=REVISIONS, default=LEGACY, help=f"MCP revision to speak ({LEGACY})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there")
    parser.add_argument("--limit-seconds", type=float, default=1_500, help="stop measuring after so long (1500)")
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
