"""Each test of faults begins without work of other tests."""

import pytest


@pytest.fixture(autouse=True)
def alone(no_backlog: None) -> None:
    """Remove the work that other tests left."""
