"""The figures of PrecisionMemBench, as a table and as lines of JSON."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from tests.benchmarks.quality.precision.judging import Judged
from tests.benchmarks.quality.precision.run import MeasuredWay

_COLUMNS = ("precision", "recall", "active", "passed", "empty", "turns", "precision", "drift", "p50, ms")


def print_precision(measured: Mapping[str, MeasuredWay], console: Console) -> None:
    """Print a row for each way: the single cases, then the turns of sessions, then the median of a call."""
    table = Table(
        box=box.SIMPLE,
        pad_edge=False,
        title="PrecisionMemBench",
        caption="active: passed with something that was found. empty: of the cases that want nothing, those that got "
        "nothing. turns and what follows: of the sessions. p50: of all calls.",
    )
    for column in ("", *_COLUMNS):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    for name, way in measured.items():
        table.add_row(name, *_case_cells(way.cases), *_turn_cells(way.turns), _p50([*way.cases, *way.turns]))
    console.print(table)


def precision_rows(measured: Mapping[str, MeasuredWay]) -> Iterator[dict[str, Any]]:
    """Each case and turn with what came, to be written as JSON."""
    for name, way in measured.items():
        for kind, judged in (("case", way.cases), ("turn", way.turns)):
            for one in judged:
                yield {
                    "group": "precision",
                    "way": name,
                    "kind": kind,
                    "case": one.case_id,
                    "found": one.context.relevant,
                    "failures": one.failures,
                    "precision": one.precision,
                    "recall": one.recall,
                }


def _case_cells(cases: Sequence[Judged]) -> list[str]:
    empty = [one for one in cases if one.recall is None]
    return [
        _mean([one.precision for one in cases]),
        _mean([one.recall for one in cases]),
        str(sum(one.is_active_pass for one in cases)),
        f"{sum(one.passed for one in cases)}/{len(cases)}",
        f"{sum(not one.context.relevant for one in empty)}/{len(empty)}",
    ]


def _turn_cells(turns: Sequence[Judged]) -> list[str]:
    return [
        f"{sum(one.passed for one in turns)}/{len(turns)}",
        _mean([one.precision for one in turns]),
        _mean([one.drift for one in turns]),
    ]


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{fmean(known):.3f}" if known else ""


def _p50(judged: Sequence[Judged]) -> str:
    asked = [one.seconds for one in judged if one.seconds]
    return f"{1_000 * median(asked):.1f}" if asked else ""
