"""Which process of a run gets which file of tests."""

from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

SHARED = "tests.support.column_statistics"
"""A module that fills databases, which takes half a minute, and gives each test of the files that import it a copy."""


class SchedulingByFile(LoadFileScheduling):
    """Runs all tests of a file in one process, and all files that import SHARED in the same process."""

    def _split_scope(self, nodeid: str) -> str:
        """The name of the group of tests that runs in one process."""
        file = super()._split_scope(nodeid)
        return SHARED if _imports_shared(self.config.rootpath / file) else file


def put_in_order(items: list[pytest.Item]) -> None:
    """Put the tests of the files that import SHARED first: one process runs them all, which takes the longest.

    Then those that look at every row of every tenant (`whole_database`): it has few yet. Then the `long` files, so that
    at the end all processes have something to do. The others keep their order.
    """
    marks = ("whole_database", "long")
    items.sort(
        key=lambda item: (not _imports_shared(item.path), *(item.get_closest_marker(mark) is None for mark in marks))
    )


@cache
def _imports_shared(file: Path) -> bool:
    return SHARED in file.read_text()
