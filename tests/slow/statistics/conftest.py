"""Fixtures for tests of searches."""

from tests.support.column_statistics import work

__all__ = ["work"]
