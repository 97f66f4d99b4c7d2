"""`python -m tests.benchmarks.quality`: start the service, remember, ask, compare, stop everything."""

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import FrameType

import uvloop
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from recollect.embedding import create_embedder
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.benchmarks.memory import kept_tenant
from tests.benchmarks.quality.conversations import Conversation, read_conversations
from tests.benchmarks.quality.groups.catalogue import GROUPS, Group
from tests.benchmarks.quality.groups.notebooks import Answer
from tests.benchmarks.quality.groups.report import group_rows, print_groups
from tests.benchmarks.quality.groups.run import GroupRun, open_groups
from tests.benchmarks.quality.invented import invent_conversations
from tests.benchmarks.quality.loaded import open_loaded
from tests.benchmarks.quality.precision.fixtures import Fixtures, read_fixtures
from tests.benchmarks.quality.precision.report import precision_rows, print_precision
from tests.benchmarks.quality.precision.run import MeasuredWay, PrecisionRun
from tests.benchmarks.quality.report import print_quality, question_rows, write_questions
from tests.benchmarks.quality.run import AskedQuestion, Run
from tests.benchmarks.quality.service import ABOUT, SHAPES, Service
from tests.benchmarks.report import WIDTH
from tests.benchmarks.stack import Stack, running_stack

INVENTED = 15
"""The default number of synthetic conversations."""

CONVERSATIONS = "conversations"
"""The group of questions about conversations, beside the others."""

_FORGETFUL = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the arguments name; the exit code is 1 if the time was up."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _leave)
    try:
        uvloop.run(_within(options))
    except TimeoutError:
        print(f"The {options.limit_seconds:g} s were up.", file=sys.stderr)
        return 1
    return 0


async def _within(options: argparse.Namespace) -> None:
    async with asyncio.timeout(options.limit_seconds):
        chosen = _chosen(options)
        plan = Plan(
            _conversations(options) if CONVERSATIONS in chosen else [],
            [GROUPS[name] for name in chosen if name in GROUPS],
            read_fixtures(options.precision) if options.precision else None,
        )
        with _folder(options.keep) as folder, _stack(folder, options.embedder) as stack:
            measured = await _measure(options, plan, stack, folder)
    _report(options, plan.conversations, measured, stack.settings.embedder)


def _chosen(options: argparse.Namespace) -> Sequence[str]:
    """What to measure: what is named, or everything, but with files of somebody else those only."""
    if options.group or not (options.conversations or options.precision):
        return list(dict.fromkeys(options.group or [CONVERSATIONS, *GROUPS]))
    return [CONVERSATIONS] if options.conversations else []


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure: conversations, groups, and PrecisionMemBench, if its fixtures are given."""

    conversations: Sequence[Conversation]
    groups: Sequence[Group]
    fixtures: Fixtures | None


@dataclass(frozen=True, slots=True)
class Measured:
    """What came for questions about conversations, by the way of answering, for those of groups, by their name, and for
    the cases of PrecisionMemBench, by the way of using the service."""

    found: Mapping[str, Sequence[AskedQuestion]]
    answers: Mapping[str, Sequence[Answer]]
    precision: Mapping[str, MeasuredWay]


async def _measure(options: argparse.Namespace, plan: Plan, stack: Stack, folder: Path) -> Measured:
    kept_at = folder / "loaded.json"
    loaded = await open_loaded(kept_at, stack.settings)
    await stack.serve()
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    async with _service(stack, loaded.key) as service:
        with Progress(*columns, console=Console(stderr=True)) as progress:
            run = Run(plan.conversations, service, loaded, kept_at, options.concurrency, options.explain, progress)
            group_run = GroupRun(service, loaded, kept_at, options.concurrency, progress)
            found = await _ask_conversations(options, run, stack.settings) if plan.conversations else {}
            answers = await group_run.measure(open_groups(plan.groups, options.seed)) if plan.groups else {}
            precision_run = PrecisionRun(service, loaded, kept_at, progress)
            precision = await precision_run.measure(plan.fixtures) if plan.fixtures else {}
    return Measured(found, answers, precision)


async def _ask_conversations(
    options: argparse.Namespace, run: Run, settings: Settings
) -> Mapping[str, Sequence[AskedQuestion]]:
    found: dict[str, Sequence[AskedQuestion]] = {}
    for shape in options.shape or [ABOUT]:
        found[f"recall ({shape})"] = await run.ask_service(shape)
    if not options.no_baselines:
        found |= await run.ask_baselines(create_embedder(settings))
    return found


def _report(
    options: argparse.Namespace, conversations: Sequence[Conversation], measured: Measured, embedder: str
) -> None:
    console = Console(width=WIDTH)
    if measured.found:
        turns = sum(len(conversation.turns) for conversation in conversations)
        title = f"{len(conversations)} conversations of {turns:,} turns, embedder {embedder}"
        print_quality(measured.found, title, console)
    if measured.answers:
        print_groups(measured.answers, f"Groups, seed {options.seed}, embedder {embedder}", console)
    if measured.precision:
        print_precision(measured.precision, console)
    if options.json:
        rows = (question_rows(measured.found), group_rows(measured.answers), precision_rows(measured.precision))
        write_questions(chain.from_iterable(rows), options.json)


@asynccontextmanager
async def _service(stack: Stack, key: str) -> AsyncIterator[Service]:
    settings, caller = stack.settings, await kept_tenant(stack.settings)
    async with Database.connect(settings.database_url, settings=settings) as db:
        yield Service(settings.port, key, stack.worker, db, caller)


def _conversations(options: argparse.Namespace) -> list[Conversation]:
    if options.conversations:
        return read_conversations(options.conversations)[: options.limit_conversations]
    return invent_conversations(options.limit_conversations or INVENTED, options.seed)


def _stack(folder: Path, embedder: str | None) -> AbstractContextManager[Stack]:
    return running_stack(folder, embedder=embedder or Settings().embedder, postgres_settings=_FORGETFUL)


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="recollect-quality-") as folder:
        yield Path(folder)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.quality", description=__doc__)
    parser.add_argument("--group", action="append", choices=(CONVERSATIONS, *GROUPS), help="repeatable (all)")
    parser.add_argument("--conversations", type=Path, metavar="FILE", help="a file in the shape of LoCoMo's JSON")
    parser.add_argument(
        "--precision", type=Path, metavar="FOLDER", help="measure PrecisionMemBench, whose fixtures are there"
    )
    parser.add_argument("--limit-conversations", type=int, metavar="N", help=f"only so many (made up: {INVENTED})")
    parser.add_argument("--seed", type=int, default=1, help="another number, other conversations (1)")
    parser.add_argument("--embedder", help="another than RECOLLECT_EMBEDDER names")
    parser.add_argument("--shape", action="append", choices=SHAPES, help=f"how to remember; repeatable ({ABOUT})")
    parser.add_argument("--concurrency", type=int, default=2, help="questions under way at a time (2)")
    parser.add_argument("--explain", action="store_true", help="ask for the terms of each score too (for --json)")
    parser.add_argument("--no-baselines", action="store_true", help="measure the service only")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what was remembered there, or use what is")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every question there, one a line")
    parser.add_argument("--limit-seconds", type=float, default=1_500, help="stop after so long (1500)")
    return parser


def _leave(_: int, __: FrameType | None) -> None:
    sys.exit(1)  # An exception, so that every server is stopped on the way out.


if __name__ == "__main__":
    sys.exit(main())
