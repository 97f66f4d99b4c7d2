"""`python -m tests.benchmarks.before_after REVISION`: what calls cost at an earlier commit and now.

The earlier commit is checked out beside this one, with these benchmarks in place of its own, so that both are measured
alike, one after the other; what they cannot import or call there fails the run. For a commit with other names of
packages, `--benchmarks` gives a commit whose benchmarks run there. Further arguments are those of `python -m
tests.benchmarks`: `--recall-sizes 1000,10000 --questions 100`, or with `--group cost`, `--cost-sizes 1000`.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from tests.benchmarks.report import WIDTH
from tests.breakages.table import ROOT

_BENCHMARKS = Path("tests/benchmarks")

Sizes = Mapping[int, Mapping[str, float]]
"""Figures by their name, by the size of the graph."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both, in turns, and print each figure with its ratio."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.before_after", description=__doc__)
    parser.add_argument("revision", help="the earlier commit")
    parser.add_argument("--turns", type=int, default=1, help="runs of either; figures are their medians (1)")
    parser.add_argument("--group", choices=list(_GROUPS), default="recall", help="what is measured (recall)")
    parser.add_argument("--benchmarks", help="the commit whose benchmarks measure the earlier one (those of this tree)")
    options, passed_on = parser.parse_known_args(arguments)
    group = _GROUPS[options.group]
    with earlier_tree(options.revision, options.benchmarks) as tree:
        runs = [
            tuple(group.read(_measure(where, ["--group", options.group, *passed_on])) for where in (tree, ROOT))
            for _ in range(options.turns)
        ]
    before, now = (medians(side) for side in zip(*runs, strict=True))
    Console(width=WIDTH).print(comparison(f"{options.group} at {options.revision} and now", group.unit, before, now))
    return 0


@contextmanager
def earlier_tree(revision: str, benchmarks: str | None = None) -> Iterator[Path]:
    """A work tree of that commit with its locked dependencies, and the benchmarks of this tree or another commit."""
    with tempfile.TemporaryDirectory(prefix="recollect-before-", ignore_cleanup_errors=True) as folder:
        tree = Path(folder) / "tree"
        _git("worktree", "add", "--quiet", "--detach", str(tree), revision)
        try:
            shutil.rmtree(tree / _BENCHMARKS, ignore_errors=True)
            if benchmarks:
                _git("checkout", "--quiet", benchmarks, "--", str(_BENCHMARKS), cwd=tree)
            else:
                shutil.copytree(ROOT / _BENCHMARKS, tree / _BENCHMARKS, ignore=shutil.ignore_patterns("__pycache__"))
            subprocess.run(["make", "--silent", "setup"], cwd=tree, check=True)
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*arguments: str, cwd: Path = ROOT) -> None:
    subprocess.run(["git", *arguments], cwd=cwd, check=True)


def _measure(tree: Path, passed_on: Sequence[str]) -> dict[str, Any]:
    """What a run in a tree writes by `--json`. Raises RuntimeError if it fails, or the time is up."""
    with tempfile.TemporaryDirectory(prefix="recollect-before-") as folder:
        written = Path(folder) / "measured.json"
        python = str(tree / ".venv" / "bin" / "python") if tree != ROOT else sys.executable
        command = [python, "-m", "tests.benchmarks", "--json", str(written), *passed_on]
        if status := _run(command, tree):
            raise RuntimeError(f"{' '.join(command)} in {tree} ended with status {status}")
        document: dict[str, Any] = msgspec.json.decode(written.read_bytes())
        return document


def _run(command: Sequence[str], tree: Path) -> int:
    """The exit status of a run; it is asked to stop its servers if this ends before it."""
    process = subprocess.Popen(command, cwd=tree)
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def recall_figures(document: Mapping[str, Any]) -> Sizes:
    """The figures of a measured document of group recall."""
    return {
        size["passages"]: {name: figure(size) for name, figure in _FIGURES.items() if _has(size, figure)}
        for size in document["recall"]["sizes"]
    }


def cost_figures(document: Mapping[str, Any]) -> Sizes:
    """The figures of a measured document of group cost: the gateway and PostgreSQL for each call, in echoes."""
    return {
        size["entities"]: {
            f"{call['label']}, {title}": call["spent"][role] / call["spent"]["echo"]
            for call in size["calls"]
            for role, title in (("gateway", "gateway"), ("postgres", "PostgreSQL"))
        }
        for size in document["cost"]
    }


def _has(size: Mapping[str, Any], figure: Callable[[Mapping[str, Any]], float]) -> bool:
    """Whether it was measured at this size."""
    try:
        figure(size)
    except (KeyError, TypeError):
        return False
    return True


def _sum(cost: Mapping[str, float]) -> float:
    return cost["writer"] + cost["worker"] + cost["postgres"]


_FIGURES: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
    "recall over MCP, p50, ms": lambda size: 1_000 * size["ways"]["MCP"]["p50"],
    "p95, ms": lambda size: 1_000 * size["ways"]["MCP"]["p95"],
    "p50, in echoes": lambda size: size["ways"]["MCP"]["p50"] / size["ways"]["echo"]["p50"],
    "p95, in echoes": lambda size: size["ways"]["MCP"]["p95"] / size["ways"]["echo"]["p50"],
    "processor ms of a recall, gateway": lambda size: 1_000 * size["recall_cost"]["gateway"],
    "PostgreSQL": lambda size: 1_000 * size["recall_cost"]["postgres"],
    "both, in echoes": lambda size: (
        (size["recall_cost"]["gateway"] + size["recall_cost"]["postgres"]) / size["recall_cost"]["echo"]
    ),
    "processor ms of a passage, written and embedded": lambda size: 1_000 * _sum(size["write_cost"]),
    "bytes of a memory on the disk": lambda size: size["stored"],
    "same 10 as the exact path": lambda size: size["agreement"],
}


@dataclass(frozen=True, slots=True)
class _Group:
    """How the document of a group of benchmarks is read, and what its sizes count."""

    read: Callable[[Mapping[str, Any]], Sizes]
    unit: str


_GROUPS = {"recall": _Group(recall_figures, "passages"), "cost": _Group(cost_figures, "entities")}


def medians(runs: Sequence[Sizes]) -> Sizes:
    """The median of each figure."""
    return {
        size: {name: median(run[size][name] for run in runs) for name in of_first} for size, of_first in runs[0].items()
    }


def comparison(title: str, unit: str, before: Sizes, now: Sizes) -> Table:
    """Each figure before and now, and how many times the former the latter is."""
    table = Table(box=box.SIMPLE, pad_edge=False, title=title)
    for column in (unit, "figure", "before", "now", "now / before"):
        table.add_column(column, justify="left" if column == "figure" else "right", no_wrap=True)
    for size, of_now in now.items():
        for name, value in of_now.items():
            old = before.get(size, {}).get(name)
            ratio = f"{value / old:.2f}" if old else ""
            table.add_row(f"{size:,}", name, "" if old is None else _shown(old), _shown(value), ratio)
        table.add_section()
    return table


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3f}" if value <= 1 else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main())
