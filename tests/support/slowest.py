"""`--slowest`: where the time of a run went, by file, by fixture and by test.

pytest's own `--durations` lists single phases. A suite is slow by sums: a file with a thousand short items, a fixture
that four hundred tests set up.
"""

import time
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import pytest

WORKER_OUTPUT = "slowest_fixtures"
"""Under which name a process of pytest-xdist hands its fixtures to the one that prints."""


@dataclass
class Spent:
    """How often something ran, and the seconds that it took in all."""

    times: int = 0
    seconds: float = 0.0

    def add(self, seconds: float, times: int = 1) -> None:
        """Count one more run, or several."""
        self.times += times
        self.seconds += seconds


@dataclass(eq=False)  # pluggy keeps plugins in sets
class Slowest:
    """Adds up the seconds of a run and prints the largest sums."""

    lines: int
    files: defaultdict[str, Spent] = field(default_factory=lambda: defaultdict(Spent))
    tests: defaultdict[str, Spent] = field(default_factory=lambda: defaultdict(Spent))
    phases: defaultdict[str, Spent] = field(default_factory=lambda: defaultdict(Spent))
    fixtures: defaultdict[str, Spent] = field(default_factory=lambda: defaultdict(Spent))
    _open: list[float] = field(default_factory=list)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        """Time the setup of a fixture, without that of the fixtures that it asks for while it is set up."""
        started = time.perf_counter()
        self._open.append(0.0)
        try:
            return (yield)
        finally:
            took = time.perf_counter() - started
            within = self._open.pop()
            if self._open:
                self._open[-1] += took
            self.fixtures[f"{fixturedef.argname} ({fixturedef.scope}, {fixturedef.baseid})"].add(took - within)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test to its file and to the test. A subtest is a part of its test's phase."""
        if isinstance(report, pytest.SubtestReport):
            return
        file, _, name = report.nodeid.partition("::")
        self.files[file].add(report.duration, times=report.when == "call")
        self.tests[f"{file}::{name.partition('[')[0]}"].add(report.duration, times=report.when == "call")
        self.phases[report.when].add(report.duration)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the fixtures of another process."""
        for name, (times, seconds) in getattr(node, "workeroutput", {}).get(WORKER_OUTPUT, {}).items():
            self.fixtures[name].add(seconds, times)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand the fixtures of this process to the one that prints."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[WORKER_OUTPUT] = {
                name: (spent.times, spent.seconds) for name, spent in self.fixtures.items()
            }

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the largest sums, the slowest first."""
        for title, sums in (
            ("phases", self.phases),
            ("files", self.files),
            ("fixtures, setup alone", self.fixtures),
            ("tests, parameters together", self.tests),
        ):
            terminalreporter.section(f"slowest {title}")
            ordered = sorted(sums.items(), key=lambda item: -item[1].seconds)[: self.lines]
            for name, spent in ordered:
                terminalreporter.write_line(f"{spent.seconds:9.2f} s {spent.times:6d} x  {name}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slowest", type=int, metavar="LINES", help="print the slowest files, fixtures and tests")


def pytest_configure(config: pytest.Config) -> None:
    lines: int | None = config.getoption("--slowest")
    if lines:
        config.pluginmanager.register(Slowest(lines))
