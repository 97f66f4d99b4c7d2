"""What all tests of workers need."""

import pytest

from recollect_workers.jobs import embedding
from tests.support.timeouts import MAX_WAIT_SECONDS


@pytest.fixture(autouse=True)
def lasting_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run end by the batches that it has done: on a busy machine, its time may be over before."""
    monkeypatch.setattr(embedding, "SLICE_SECONDS", MAX_WAIT_SECONDS)
