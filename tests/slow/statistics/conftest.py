"""Fixtures for tests of searches."""

from tests.support.statistics import work

__all__ = ["work"]
