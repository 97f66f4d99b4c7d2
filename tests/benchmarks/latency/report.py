"""Latencies and agreements, as a table and as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from tests.benchmarks.latency import AGREEMENT, TARGETS
from tests.benchmarks.latency.spent import RecallCost, WriteCost
from tests.benchmarks.latency.ways import LIMIT, Taken
from tests.benchmarks.report import milliseconds, quantile

FLOOR = "floor"
ECHO = "echo"
MCP = "MCP"
_FLOORS = (FLOOR, ECHO)


@dataclass(frozen=True, slots=True)
class Agreement:
    """The share of the exact path's answers to a question that the index path found, and the length of the question."""

    length: str
    share: float


def length_of(question: str) -> str:
    """The class of a question by its length: a shorter one has fewer words to determine its vector."""
    words = question.split()
    if len(words) == 1 and question[0].isupper():
        return "a name"
    return "1 or 2 words" if len(words) < 3 else "3 to 7 words" if len(words) < 8 else "8 words and more"


@dataclass(slots=True)
class Size:
    """The measurements at so many passages: the turns of each way, and, for each question, the share of the exact
    path's answers that the index path found. `bytes`: the size of the rows of a passage, by table. `stored`: all that a
    passage takes on the disk, indexes included. `write_cost`: of the passages by which the graph grew to this size."""

    passages: int
    taken: dict[str, list[Taken]] = field(default_factory=dict)
    agreements: list[Agreement] = field(default_factory=list)
    bytes: dict[str, float] = field(default_factory=dict)
    stored: float = 0.0
    recall_cost: RecallCost | None = None
    write_cost: WriteCost | None = None

    def in_echoes(self, share: float) -> float:
        """A quantile of the recalls over MCP, in medians of the echo."""
        return self.quantile(MCP, share) / self.quantile(ECHO, 0.5)

    def quantile(self, way: str, share: float) -> float:
        """Seconds, by nearest rank."""
        return quantile([one.seconds for one in self.taken[way]], share)

    @property
    def agreement(self) -> float:
        """The mean agreement; 0 if nothing was compared."""
        return _mean([one.share for one in self.agreements])

    @property
    def agreement_by_length(self) -> dict[str, float]:
        """The mean agreement of the questions of each length."""
        lengths = sorted({one.length for one in self.agreements})
        return {length: _mean([o.share for o in self.agreements if o.length == length]) for length in lengths}


@dataclass(slots=True)
class LatencyReport:
    """All sizes of a run."""

    embedder: str
    sizes: list[Size] = field(default_factory=list)


def print_latency(report: LatencyReport, console: Console) -> None:
    """Print a table, unless nothing was measured."""
    if not report.sizes:
        return
    questions = len(report.sizes[0].taken[FLOOR])
    table = Table(
        box=box.SIMPLE,
        pad_edge=False,
        title=f"recall: milliseconds, {questions} questions a way, embedder {report.embedder}",
        caption="floor: one row by its primary key in a transaction of the same shape. × floor: in p50 of the floor. "
        f"same {LIMIT}: the share of the exact path's first {LIMIT} that the indexes give too, aim ≥ {AGREEMENT}.",
    )
    for column in ("passages", "way", "p50", "p95", "p99", "p50 × floor", "p95 × floor", "aim p95", "empty"):
        table.add_column(column, justify="left" if column == "way" else "right", no_wrap=True)
    table.add_column(f"same {LIMIT}", justify="right")
    for size in report.sizes:
        for way in size.taken:
            table.add_row(*_row(size, way))
        table.add_section()
    console.print(table)
    console.print(_summary(report.sizes))
    for size in report.sizes:
        rows = ", ".join(f"{name} {mean:,.0f}" for name, mean in size.bytes.items())
        console.print(f"{size.passages:,}: bytes of a passage: {rows}")
        if size.agreements:
            lengths = ", ".join(f"{length} {mean:.3f}" for length, mean in size.agreement_by_length.items())
            console.print(f"{size.passages:,}: same {LIMIT} by length of question: {lengths}")


def _summary(sizes: Sequence[Size]) -> Table:
    """Recall over MCP beside an echo, what it costs, and what a memory costs."""
    table = Table(
        box=box.SIMPLE,
        pad_edge=False,
        title="recall over MCP",
        caption="× echo: in p50 of a bare echo of the SDK. cpu: processor ms, of the gateway + PostgreSQL, and in "
        "echoes; of a passage: written + embedded by the worker + PostgreSQL. bytes: on the disk, with indexes.",
    )
    for column in ("passages", "p50", "p95", "p50 × echo", "p95 × echo", "cpu of a recall", "in echoes"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("cpu of a passage", "bytes", f"same {LIMIT}"):
        table.add_column(column, justify="right", no_wrap=True)
    for size in sizes:
        table.add_row(*_summary_row(size))
    return table


def _summary_row(size: Size) -> Sequence[str]:
    recall, write = size.recall_cost, size.write_cost
    return [
        f"{size.passages:,}",
        *(milliseconds(size.quantile(MCP, share)) for share in (0.5, 0.95)),
        *(f"{size.in_echoes(share):.1f}" for share in (0.5, 0.95)),
        _sum_of(recall.gateway, recall.postgres) if recall else "",
        f"{recall.in_echoes:.1f}" if recall else "",
        _sum_of(write.writer, write.worker, write.postgres) if write else "",
        f"{size.stored:,.0f}",
        f"{size.agreement:.3f}" if size.agreements else "",
    ]


def _sum_of(*seconds: float) -> str:
    return " + ".join(f"{1_000 * one:.1f}" for one in seconds)


def latency_document(report: LatencyReport) -> dict[str, Any]:
    """All turns in seconds, with quantiles and agreements."""
    return {"embedder": report.embedder, "sizes": [_document(size) for size in report.sizes]}


def _row(size: Size, way: str) -> Sequence[str]:
    floor = size.quantile(FLOOR, 0.5)
    p50, p95, p99 = (size.quantile(way, share) for share in (0.5, 0.95, 0.99))
    target = TARGETS.get(size.passages) if way not in (*_FLOORS, "exact") else None
    missed = target is not None and p95 > target
    empty = sum(one.found == 0 for one in size.taken[way]) / len(size.taken[way])
    agreement = f"{size.agreement:.3f}" if way == "service" and size.agreements else ""
    return [
        f"{size.passages:,}",
        way,
        milliseconds(p50),
        f"[bold red]{milliseconds(p95)}[/]" if missed else milliseconds(p95),
        milliseconds(p99),
        f"{p50 / floor:.1f}",
        f"{p95 / floor:.1f}",
        f"{1_000 * target:g}" if target else "",
        f"{empty:.2f}",
        f"[bold red]{agreement}[/]" if agreement and size.agreement < AGREEMENT else agreement,
    ]


def _document(size: Size) -> dict[str, Any]:
    ways = {
        way: {
            "p50": size.quantile(way, 0.5),
            "p95": size.quantile(way, 0.95),
            "samples": [one.seconds for one in taken],
        }
        for way, taken in size.taken.items()
    }
    agreement = (
        {
            "agreement": size.agreement,
            "agreement_by_length": size.agreement_by_length,
            "compared": len(size.agreements),
        }
        if size.agreements
        else {}
    )
    costs = {"stored": size.stored, "recall_cost": size.recall_cost, "write_cost": size.write_cost}
    return {"passages": size.passages, "ways": ways, "bytes": size.bytes, **costs, **agreement}


def _mean(shares: Sequence[float]) -> float:
    return sum(shares) / max(1, len(shares))
