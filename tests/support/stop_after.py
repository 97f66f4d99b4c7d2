"""`--stop-after`: a run that goes on for so many seconds, for `make affected`."""

import time

import pytest


class StopAfter:
    """Ends a run when its time is over; pytest says so."""

    def __init__(self, session: pytest.Session, seconds: int) -> None:
        self._session, self._seconds = session, seconds
        self._give_up = time.monotonic() + seconds

    def pytest_runtest_logfinish(self) -> None:
        """Look at the clock after each test."""
        if time.monotonic() > self._give_up:
            self._session.shouldstop = f"{self._seconds} seconds are over; the tests left are further from the change"

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """That the time was over is no failure, unless a test failed before."""
        if exitstatus == pytest.ExitCode.INTERRUPTED and session.shouldstop:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED if session.testsfailed else pytest.ExitCode.OK


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--stop-after", type=int, metavar="SECONDS", help="end the run after so long")


def pytest_sessionstart(session: pytest.Session) -> None:
    seconds: int | None = session.config.getoption("--stop-after")
    if seconds:  # In each process, too: otherwise it would go on with the files that it was given before.
        session.config.pluginmanager.register(StopAfter(session, seconds))
