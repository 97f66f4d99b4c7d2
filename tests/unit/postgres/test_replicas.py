"""Which log position a replica must have replayed, and which errors count as the replica's."""

from itertools import count

import asyncpg
import pytest

from recollect.errors import ErrorCode, NotFound, Unavailable
from recollect.postgres.driver_errors import translated_errors
from recollect.postgres.replica_lag import MARKS, LogMarks, ReplicaOutcome
from recollect.postgres.replicas import outcome_of


def required_positions(*moments: tuple[float, int]) -> list[int]:
    """The position that a replica with a lag of up to 10 seconds must have, at each moment of the primary."""
    times = iter([at for at, _ in moments])
    marks = LogMarks(10, lambda: next(times))
    return [marks.note(position) for _, position in moments]


def test_a_replica_must_have_the_log_up_to_the_allowed_lag() -> None:
    moments = ((0, 100), (4, 200), (9, 300), (10, 400), (11, 500), (15, 600))
    assert required_positions(*moments) == [100, 100, 100, 100, 200, 300]


def test_without_an_older_position_a_replica_must_have_the_whole_log() -> None:
    assert required_positions((0, 100), (10.5, 900)) == [100, 900]


def test_few_positions_are_kept_for_any_number_of_requests() -> None:
    now = count()
    marks = LogMarks(10, lambda: next(now) / 100)
    for position in range(3_000):
        marks.note(position)
    assert len(marks._marks) <= MARKS + 1


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ConnectionRefusedError(), ReplicaOutcome.UNREACHABLE),
        (TimeoutError(), ReplicaOutcome.UNREACHABLE),
        (asyncpg.ConnectionDoesNotExistError(), ReplicaOutcome.UNREACHABLE),
        (asyncpg.AdminShutdownError(), ReplicaOutcome.UNREACHABLE),
        (asyncpg.CannotConnectNowError(), ReplicaOutcome.UNREACHABLE),
        (asyncpg.TooManyConnectionsError(), ReplicaOutcome.UNREACHABLE),
        (asyncpg.SerializationError(), ReplicaOutcome.CONFLICT),
        (asyncpg.UndefinedColumnError(), ReplicaOutcome.FAILED),
        (asyncpg.DiskFullError("no room"), ReplicaOutcome.FAILED),
        (asyncpg.QueryCanceledError(), None),
        (asyncpg.CharacterNotInRepertoireError(), None),
    ],
)
async def test_each_driver_error_has_its_outcome(error: Exception, outcome: ReplicaOutcome | None) -> None:
    async def meet() -> None:
        async with translated_errors():
            raise error

    with pytest.raises(Exception) as met:  # noqa: PT011 - as whichever error it is told
        await meet()
    assert outcome_of(met.value) is outcome


@pytest.mark.parametrize(
    "error", [NotFound("no"), Unavailable("no vectors", code=ErrorCode.EMBEDDER_UNAVAILABLE), KeyError("no")]
)
def test_an_error_of_the_call_itself_is_no_outcome_of_the_replica(error: Exception) -> None:
    assert outcome_of(error) is None
