"""Whether a replica may answer a read, by what it and its primary know of the graph."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recollect.graph.graphs.model import GraphPosition
from recollect.graph.graphs.replicas import compared
from recollect.postgres.replica_lag import ReplicaOutcome

WRITTEN_AT = datetime(2026, 1, 1, tzinfo=UTC)
KNOWN = GraphPosition(revision=7, at=WRITTEN_AT, compacted=2, tied=None, log=1_000, is_replayed=False)
REPLAYED = replace(KNOWN, log=900, is_replayed=True)


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (REPLAYED, ReplicaOutcome.REPLICA),
        (replace(REPLAYED, log=899), ReplicaOutcome.LAGGING),
        (None, ReplicaOutcome.BEHIND),
        (replace(REPLAYED, revision=6), ReplicaOutcome.BEHIND),
        (replace(REPLAYED, revision=8), ReplicaOutcome.BEHIND),
        (replace(REPLAYED, at=WRITTEN_AT + timedelta(microseconds=1)), ReplicaOutcome.BEHIND),
        (replace(REPLAYED, compacted=3), ReplicaOutcome.BEHIND),
        (replace(REPLAYED, tied="another"), ReplicaOutcome.BEHIND),
        (replace(REPLAYED, is_replayed=False), ReplicaOutcome.PROMOTED),
        # A replica that was promoted and written to since then never catches up: its outcome says so.
        (replace(REPLAYED, is_replayed=False, revision=8), ReplicaOutcome.PROMOTED),
    ],
)
def test_only_a_following_replica_with_the_state_of_the_primary_answers(
    found: GraphPosition | None, outcome: ReplicaOutcome
) -> None:
    assert compared(KNOWN, 900, found) is outcome
