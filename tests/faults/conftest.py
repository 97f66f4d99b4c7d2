"""Faults are met by workers that have nothing else to do."""

import pytest


@pytest.fixture(autouse=True)
def alone(no_backlog: None) -> None:
    """What other tests left to do is gone."""
