"""What a run of group recall tells: recalls in echoes, costs, and the same of an earlier commit beside it."""

import io
from typing import Any

import msgspec
import pytest
from rich.console import Console

from recollect.settings import Settings
from tests.benchmarks.__main__ import _parser
from tests.benchmarks.before_after import comparison, medians, recall_figures
from tests.benchmarks.latency.report import (
    ECHO,
    FLOOR,
    MCP,
    Agreement,
    LatencyReport,
    Size,
    latency_document,
    print_latency,
)
from tests.benchmarks.latency.spent import RecallCost, WriteCost
from tests.benchmarks.latency.ways import Taken


def _size(passages: int, recall_seconds: float) -> Size:
    taken = {FLOOR: 0.001, ECHO: 0.002, MCP: recall_seconds}
    size = Size(passages, {way: [Taken(seconds, 10)] * 3 for way, seconds in taken.items()})
    size.stored = 5_000.0
    size.recall_cost = RecallCost(gateway=0.006, postgres=0.004, echo=0.0025)
    return size


def _document(*sizes: Size) -> dict[str, Any]:
    document = {"recall": latency_document(LatencyReport("minilm", list(sizes)))}
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
    return decoded


def test_recall_is_measured_with_the_default_embedder() -> None:
    assert _parser().parse_args([]).recall_embedder == Settings(database_url="postgresql:///x").embedder


def test_a_recall_is_told_in_echoes_and_its_cost_too() -> None:
    size = _size(1_000, 0.02)
    assert size.in_echoes(0.5) == pytest.approx(10)
    assert size.recall_cost is not None
    assert size.recall_cost.in_echoes == pytest.approx(4)
    assert WriteCost(writer=0.001, worker=0.002, postgres=0.003).total == pytest.approx(0.006)


def test_the_summary_has_what_was_measured_and_blanks_for_the_rest() -> None:
    size = _size(1_000, 0.02)
    size.write_cost = WriteCost(0.001, 0.002, 0.003)
    told = io.StringIO()
    print_latency(LatencyReport("minilm", [size, _size(2_000, 0.04)]), Console(file=told, width=140))
    rows = [line.split() for line in told.getvalue().splitlines() if "000 " in line and "+" in line]
    with_writing, without_writing = rows
    assert with_writing[-6:-1] == ["1.0", "+", "2.0", "+", "3.0"]
    assert without_writing[-2:] == ["4.0", "5,000"]


def test_figures_are_compared_size_by_size() -> None:
    small, large = _size(1_000, 0.02), _size(10_000, 0.03)
    large.write_cost = WriteCost(0.001, 0.002, 0.003)
    large.agreements = [Agreement("a name", 0.9)]
    before, now = recall_figures(_document(_size(1_000, 0.01))), recall_figures(_document(small, large))
    assert now[1_000]["p95, in echoes"] == pytest.approx(2 * before[1_000]["p95, in echoes"])
    assert now[1_000]["both, in echoes"] == pytest.approx(4)
    assert "same 10 as the exact path" not in now[1_000]
    assert now[10_000]["processor ms of a passage, written and embedded"] == pytest.approx(6)
    assert now[10_000]["same 10 as the exact path"] == pytest.approx(0.9)
    told = io.StringIO()
    Console(file=told, width=120).print(comparison("recall at HEAD~1 and now", "passages", before, now))
    assert "2.00" in next(line for line in told.getvalue().splitlines() if "p95, in echoes" in line)


def test_of_several_runs_each_figure_is_the_median() -> None:
    runs = [recall_figures(_document(_size(1_000, seconds))) for seconds in (0.03, 0.01, 0.02)]
    assert medians(runs)[1_000]["recall over MCP, p50, ms"] == pytest.approx(20)
