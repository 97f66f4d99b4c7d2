"""`python -m tests.benchmarks.before_after REVISION`: what recall costs at an earlier commit and now.

The earlier commit is checked out beside this one, with these benchmarks in place of its own, so that both are measured
alike, one after the other; what they cannot import or call there fails the run. Further arguments are those of
`python -m tests.benchmarks`, for group recall: `--recall-sizes 1000,10000 --questions 100`.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from tests.benchmarks.report import WIDTH
from tests.breakages.table import ROOT
from tests.breakages.tree import make_environment

_BENCHMARKS = Path("tests/benchmarks")

Sizes = Mapping[int, Mapping[str, float]]
"""Figures by their name, by the number of passages."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both, in turns, and print each figure with its ratio."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.before_after", description=__doc__)
    parser.add_argument("revision", help="the earlier commit")
    parser.add_argument("--turns", type=int, default=1, help="runs of either; figures are their medians (1)")
    options, passed_on = parser.parse_known_args(arguments)
    with earlier_tree(options.revision) as tree:
        runs = [(_measure(tree, passed_on), _measure(ROOT, passed_on)) for _ in range(options.turns)]
    before, now = (medians([run[place] for run in runs]) for place in (0, 1))
    Console(width=WIDTH).print(comparison(options.revision, before, now))
    return 0


@contextmanager
def earlier_tree(revision: str) -> Iterator[Path]:
    """A work tree of that commit with a `.venv` of its own, and the benchmarks of this tree."""
    with tempfile.TemporaryDirectory(prefix="recollect-before-", ignore_cleanup_errors=True) as folder:
        tree = Path(folder) / "tree"
        _git("worktree", "add", "--quiet", "--detach", str(tree), revision)
        try:
            shutil.rmtree(tree / _BENCHMARKS, ignore_errors=True)
            shutil.copytree(ROOT / _BENCHMARKS, tree / _BENCHMARKS, ignore=shutil.ignore_patterns("__pycache__"))
            make_environment(tree)
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=ROOT, check=True)


def _measure(tree: Path, passed_on: Sequence[str]) -> Sizes:
    """The figures of a run in a tree. Raises RuntimeError if it fails, or the time is up."""
    with tempfile.TemporaryDirectory(prefix="recollect-before-") as folder:
        written = Path(folder) / "recall.json"
        python = str(tree / ".venv" / "bin" / "python") if tree != ROOT else sys.executable
        command = [python, "-m", "tests.benchmarks", "--group", "recall", "--json", str(written), *passed_on]
        if status := _run(command, tree):
            raise RuntimeError(f"{' '.join(command)} in {tree} ended with status {status}")
        return figures(msgspec.json.decode(written.read_bytes()))


def _run(command: Sequence[str], tree: Path) -> int:
    """The exit status of a run; it is asked to stop its servers if this ends before it."""
    process = subprocess.Popen(command, cwd=tree)
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def figures(document: Mapping[str, Any]) -> Sizes:
    """The figures of what `--json` writes, by the number of passages."""
    return {
        size["passages"]: {name: figure(size) for name, figure in _FIGURES.items() if _has(size, figure)}
        for size in document["recall"]["sizes"]
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


def medians(runs: Sequence[Sizes]) -> Sizes:
    """The median of each figure."""
    return {
        passages: {name: median(run[passages][name] for run in runs) for name in of_first}
        for passages, of_first in runs[0].items()
    }


def comparison(revision: str, before: Sizes, now: Sizes) -> Table:
    """Each figure before and now, and how many times the former the latter is."""
    table = Table(box=box.SIMPLE, pad_edge=False, title=f"recall at {revision} and now")
    for column in ("passages", "figure", "before", "now", "now / before"):
        table.add_column(column, justify="left" if column == "figure" else "right", no_wrap=True)
    for passages, of_now in now.items():
        for name, value in of_now.items():
            old = before.get(passages, {}).get(name)
            ratio = f"{value / old:.2f}" if old else ""
            table.add_row(f"{passages:,}", name, "" if old is None else _shown(old), _shown(value), ratio)
        table.add_section()
    return table


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3f}" if value <= 1 else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main())
