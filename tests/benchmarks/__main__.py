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

from tests.benchmarks.calls import CALLS
from tests.benchmarks.corpus import LEAST
from tests.benchmarks.report import WIDTH, Report, print_report, write_json
from tests.benchmarks.run import Plan, run
from tests.benchmarks.stack import running_stack
from tests.benchmarks.wire import LEGACY, REVISIONS


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure as the arguments say; the exit code: 1 if the time was up before all was measured."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _leave)
    plan = Plan(options.sizes, [call for call in CALLS if call.matches(options.only)], options.rounds, options.revision)
    report = Report(options.revision, options.rounds)
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder, running_stack(Path(folder)) as stack:
        finished = _within(options.limit_seconds, run(stack, plan, report, console))
    print_report(report, Console(width=WIDTH))
    if options.json:
        write_json(report, options.json)
    if not finished:
        console.print(f"The {options.limit_seconds:g} s were up: this is what had been measured until then.")
    return 0 if finished else 1


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
    parser.add_argument("--sizes", type=_sizes, default=[1_000, 10_000, 100_000], help="entities, as 1000,10000,100000")
    parser.add_argument("--rounds", type=_at_least(1), default=50, help="samples of each call at each size (50)")
    parser.add_argument("--only", action="append", default=[], help="a call to measure, by tool or label; repeatable")
    parser.add_argument("--revision", choices=REVISIONS, default=LEGACY, help=f"MCP revision to speak ({LEGACY})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there")
    parser.add_argument("--limit-seconds", type=float, default=900, help="stop measuring after so long (900)")
    return parser


def _sizes(text: str) -> list[int]:
    return sorted({_at_least(LEAST)(size) for size in text.split(",")})


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
