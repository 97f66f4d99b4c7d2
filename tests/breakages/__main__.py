"""`python -m tests.breakages [WORD …]`: break the code in one place after another, and see whether tests notice.

Runs in a second work tree; the checkout stays as it is. WORDs choose breakages by parts of their names. A failed test
counts only if it passes in the tree as it was, which is tested last. Exits with 1 where a breakage is not noticed that
the table says was.
"""

import signal
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from tests.breakages.table import Breakage, read_table, select_breakages
from tests.breakages.tree import imported_from, run_tests, second_tree

SECONDS_EACH = 1200.0
"""How long the tests of one breakage may take, so that one that hangs ends. A run that takes longer noticed nothing.

The longest take two minutes on an idle machine; a busy one is no reason to call a breakage unnoticed.
"""

SECONDS_WITHOUT = 3600.0
"""How long the tests that failed may take in the tree as it was."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The first test that failed with a breakage; None if there was none, and `remark` says why.

    `seconds`: how long its tests took.
    """

    breakage: Breakage
    failed: str | None
    seconds: float
    remark: str

    @property
    def is_lost(self) -> bool:
        """Whether the breakage was noticed once, and is not any more."""
        return self.breakage.noticed and self.failed is None


def main(words: list[str]) -> int:
    """Run the breakages whose names contain one of the words; the exit status."""
    for number in (signal.SIGINT, signal.SIGTERM):  # Also where it was started in the background, without the first.
        signal.signal(number, signal.default_int_handler)
    breakages = select_breakages(read_table(), words)
    with second_tree() as tree:
        if tree not in imported_from(tree).parents:
            raise RuntimeError(f"The tests would import {imported_from(tree)}")
        outcomes = [_try(tree, breakage) for breakage in breakages]
        outcomes = _without_unrelated(tree, outcomes)
    _print(outcomes)
    return int(any(outcome.is_lost for outcome in outcomes))


def _try(tree: Path, breakage: Breakage) -> Outcome:
    """Run the tests of a breakage in the broken tree."""
    began, failed, remark = time.monotonic(), list[str](), "not noticed"
    with breakage.applied_to(tree):
        try:
            failed = run_tests(tree, breakage.tests, seconds=SECONDS_EACH, stop_at_first=True)
        except TimeoutError:
            remark = f"not done after {SECONDS_EACH:.0f} s"
    outcome = Outcome(breakage, failed[0] if failed else None, time.monotonic() - began, remark)
    print(f"{breakage.name}: {outcome.failed or remark} ({outcome.seconds:.0f} s)", flush=True)
    return outcome


def _without_unrelated(tree: Path, outcomes: list[Outcome]) -> list[Outcome]:
    """The outcomes, without tests that fail in the tree as it was, too."""
    ids = sorted({outcome.failed for outcome in outcomes if outcome.failed})
    failing = set(run_tests(tree, ids, seconds=SECONDS_WITHOUT, stop_at_first=False)) if ids else set[str]()
    return [
        replace(outcome, failed=None, remark=f"{outcome.failed} fails without it, too")
        if outcome.failed in failing
        else outcome
        for outcome in outcomes
    ]


def _print(outcomes: list[Outcome]) -> None:
    table = Table("breakage", "noticed", "before", "s", Column("by", overflow="fold"))
    for outcome in outcomes:
        noticed, before = ("yes" if is_noticed else "NO" for is_noticed in (outcome.failed, outcome.breakage.noticed))
        first = Text(outcome.failed or outcome.remark)
        table.add_row(outcome.breakage.name, noticed, before, f"{outcome.seconds:.0f}", first)
    Console(width=None if sys.stdout.isatty() else 200).print(table)
    count, seconds = sum(outcome.failed is not None for outcome in outcomes), sum(each.seconds for each in outcomes)
    print(f"{count} of {len(outcomes)} breakages noticed, in {seconds / 60:.1f} minutes")
    for outcome in outcomes:
        if outcome.is_lost:
            print(f"NOT NOTICED ANY MORE: {outcome.breakage.name}")
        elif outcome.failed and not outcome.breakage.noticed:
            print(f"noticed now, which the table may say: {outcome.breakage.name}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
