"""The measurements, as a table and as JSON."""

import math
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from tests.benchmarks.batches import MeasuredBatch
from tests.benchmarks.duplicates import MeasuredPass as MeasuredPass
from tests.benchmarks.embedding import MeasuredEmbedding
from tests.benchmarks.fairness import MeasuredFairness as MeasuredFairness
from tests.benchmarks.listeners import MeasuredListeners as MeasuredListeners
from tests.benchmarks.transfer import MeasuredTransfer

WIDTH = 124
"""The width of the tables in characters."""

TARGET = 1.5
"""The limit of the ratio of a call to the sum of its floors."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One turn: the seconds of call, echo, SQL and look-up of the credential; round trips of the latter two."""

    call: float
    echo: float
    sql: float
    sign_in: float
    sign_in_trips: int
    trips: int


@dataclass(slots=True)
class Series:
    """The samples of one call at one size (entities)."""

    label: str
    size: int
    flat: bool
    samples: list[Sample] = field(default_factory=list)

    def quantile(self, of: Callable[[Sample], float], share: float) -> float:
        """See `quantile`."""
        return quantile([of(sample) for sample in self.samples], share)

    def p50(self, of: Callable[[Sample], float]) -> float:
        """The median."""
        return self.quantile(of, 0.5)

    @property
    def floor(self) -> float:
        """The sum of the floors' medians, in seconds."""
        return self.p50(lambda s: s.echo) + self.p50(lambda s: s.sql)

    @property
    def ratio(self) -> float:
        """The median of the call, divided by the sum of its floors' medians."""
        return self.p50(lambda s: s.call) / self.floor


@dataclass(slots=True)
class Report:
    """All series of a run."""

    revision: str
    rounds: int
    series: list[Series] = field(default_factory=list)
    transfers: list[MeasuredTransfer] = field(default_factory=list)
    duplicates: list[MeasuredPass] = field(default_factory=list)
    batches: list[MeasuredBatch] = field(default_factory=list)
    embedded: list[MeasuredEmbedding] = field(default_factory=list)
    fairness: list[MeasuredFairness] = field(default_factory=list)
    listeners: list[MeasuredListeners] = field(default_factory=list)


def quantile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that at least `share` of all do not exceed (nearest rank)."""
    return sorted(samples)[max(0, math.ceil(share * len(samples)) - 1)]


def machine() -> dict[str, Any]:
    """The time and the machine of the measurement."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()},
    }


def print_report(report: Report, console: Console) -> None:
    """Print two tables: the calls with their floors, and how their times grow."""
    if report.series:
        console.print(_calls(report))
        console.print(_growth(report.series))


def calls_document(report: Report) -> dict[str, Any]:
    """All samples in seconds, with medians and ratios."""
    return {
        "revision": report.revision,
        "rounds": report.rounds,
        "series": [_document(series) for series in report.series],
        "transfers": report.transfers,
        "duplicates": report.duplicates,
        "batches": report.batches,
        "embedded": report.embedded,
        "fairness": report.fairness,
        "listeners": report.listeners,
    }


def _document(series: Series) -> dict[str, Any]:
    return {
        "call": series.label,
        "entities": series.size,
        "p50": series.p50(lambda s: s.call),
        "p95": series.quantile(lambda s: s.call, 0.95),
        "echo_p50": series.p50(lambda s: s.echo),
        "sql_p50": series.p50(lambda s: s.sql),
        "ratio": series.ratio,
        "samples": series.samples,
    }


def _calls(report: Report) -> Table:
    table = Table(
        box=box.SIMPLE,
        pad_edge=False,
        title=f"Milliseconds, {report.rounds} samples each, MCP {report.revision}",
        caption=f"ratio = p50 / (p50 of echo + p50 of SQL), aim ≤ {TARGET}. SQL: the call's own statements through "
        "asyncpg, BEGIN to COMMIT. sign-in: the look-up of the key, in p50 but in no floor. trips: round trips to "
        "PostgreSQL, sign-in + call.",
    )
    for column in ("call", "entities", "p50", "p95", "echo p50", "p95", "SQL p50", "p95", "sign-in", "ratio", "trips"):
        table.add_column(column, justify="left" if column == "call" else "right", no_wrap=True)
    for previous, series in zip([None, *report.series], report.series, strict=False):
        if previous and previous.size != series.size:
            table.add_section()
        table.add_row(*_row(series))
    return table


def _row(series: Series) -> Sequence[str]:
    pairs = [
        milliseconds(series.quantile(of, share))
        for of in (lambda s: s.call, lambda s: s.echo, lambda s: s.sql)
        for share in (0.5, 0.95)
    ]
    ratio = f"{series.ratio:.2f}"
    last = series.samples[-1]
    return [
        series.label,
        f"{series.size:,}",
        *pairs,
        milliseconds(series.p50(lambda s: s.sign_in)),
        ratio if series.ratio <= TARGET else f"[bold red]{ratio}[/]",
        f"{last.sign_in_trips} + {last.trips}",
    ]


def _growth(all_series: Sequence[Series]) -> Table:
    table = Table(
        box=box.SIMPLE,
        title="Growth of p50 from the smallest size to the largest",
        caption="Aim: flat where it is said; what else grows, grows with what it finds.",
    )
    for column in ("call", "aim", "call grows", "SQL grows", "echo grows"):
        table.add_column(column, justify="left" if column == "call" else "right", no_wrap=True)
    for label in dict.fromkeys(series.label for series in all_series):
        sizes = [series for series in all_series if series.label == label]
        first, last = sizes[0], sizes[-1]
        grows = [last.p50(of) / first.p50(of) for of in (lambda s: s.call, lambda s: s.sql, lambda s: s.echo)]
        table.add_row(label, "flat" if first.flat else "", *(f"×{factor:.2f}" for factor in grows))
    return table


def milliseconds(seconds: float) -> str:
    """The seconds in milliseconds, as in the tables."""
    return f"{seconds * 1000:.2f}"
