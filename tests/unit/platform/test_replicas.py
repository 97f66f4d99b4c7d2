"""What a replica must have replayed, and what keeps it from answering."""

from itertools import count

import asyncpg
import pytest

from recollect.errors import ErrorCode, NotFound, Unavailable
from recollect.platform.driver_errors import translated_errors
from recollect.platform.replicas import MARKS, LogMarks, ReplicaOutcome, outcome_of


def noted(*moments: tuple[float, int]) -> list[int]:
    """What a replica must have that may lag for 10 seconds, at each moment, where the primary's log is so long."""
    times = iter([at for at, _ in moments])
    marks = LogMarks(10, lambda: next(times))
    return [marks.note(position) for _, position in moments]


def test_a_replica_must_have_what_there_was_within_the_bound() -> None:
    moments = ((0, 100), (4, 200), (9, 300), (10, 400), (11, 500), (15, 600))
    assert noted(*moments) == [100, 100, 100, 100, 200, 300]


def test_where_nothing_is_known_of_that_time_it_must_have_all() -> None:
    assert noted((0, 100), (10.5, 900)) == [100, 900]


def test_few_positions_are_kept_however_many_ask() -> None:
    now = count()
    marks = LogMarks(10, lambda: next(now) / 100)
    for position in range(3_000):
        marks.note(position)
    assert len(marks._marks) <= MARKS + 1


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ConnectionRefusedError(), ReplicaOutcome.AWAY),
        (TimeoutError(), ReplicaOutcome.AWAY),
        (asyncpg.ConnectionDoesNotExistError(), ReplicaOutcome.AWAY),
        (asyncpg.AdminShutdownError(), ReplicaOutcome.AWAY),
        (asyncpg.CannotConnectNowError(), ReplicaOutcome.AWAY),
        (asyncpg.TooManyConnectionsError(), ReplicaOutcome.AWAY),
        (asyncpg.SerializationError(), ReplicaOutcome.CONFLICT),
        (asyncpg.UndefinedColumnError(), ReplicaOutcome.FAILED),
        (asyncpg.DiskFullError("no room"), ReplicaOutcome.FAILED),
        (asyncpg.QueryCanceledError(), None),
        (asyncpg.CharacterNotInRepertoireError(), None),
    ],
)
async def test_each_error_of_the_driver_has_its_word(error: Exception, outcome: ReplicaOutcome | None) -> None:
    async def meet() -> None:
        async with translated_errors():
            raise error

    with pytest.raises(Exception) as met:  # noqa: PT011 - as whichever error it is told
        await meet()
    assert outcome_of(met.value) is outcome


@pytest.mark.parametrize(
    "error", [NotFound("no"), Unavailable("no vectors", code=ErrorCode.EMBEDDER_UNAVAILABLE), KeyError("no")]
)
def test_what_the_call_itself_says_is_no_fault_of_the_replica(error: Exception) -> None:
    assert outcome_of(error) is None
