"""What equal jobs have in common, what is kept of an error, and how long a failed step waits."""

from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import (
    Conflict,
    ErrorCode,
    Forbidden,
    InvalidInput,
    NotFound,
    RecollectError,
    TooLarge,
    Unavailable,
)
from recollect.jobs.kinds import KINDS
from recollect.jobs.model import (
    FIRST_WAIT_SECONDS,
    LONGEST_WAIT_SECONDS,
    NewJob,
    StepRefused,
    failure_of,
    wait_before,
)
from recollect.settings import Settings
from recollect_workers.kinds import known_kinds

SECRET = "the vault opens at nine"


def test_equal_jobs_have_one_digest_whatever_the_order_of_their_arguments() -> None:
    graph_id = uuid4()
    job = NewJob("prune", graph_id, {"a": 1, "b": {"c": 2, "d": 3}})
    assert job.digest == NewJob("prune", graph_id, {"b": {"d": 3, "c": 2}, "a": 1}, total=7).digest
    others = [
        NewJob("graft", graph_id, job.arguments),
        NewJob("prune", None, job.arguments),
        NewJob("prune", uuid4(), job.arguments),
        NewJob("prune", graph_id, {"a": "1", "b": {"c": 2, "d": 3}}),
    ]
    assert len({job.digest, *(other.digest for other in others)}) == 5
    assert NewJob("prune", graph_id, unique=False).digest is None
    assert NewJob("prune", graph_id, is_held=True).digest is None


@pytest.mark.parametrize("error", [InvalidInput, NotFound, Conflict, Forbidden, TooLarge])
def test_what_the_job_is_to_blame_for_fails_at_once(error: type[RecollectError]) -> None:
    failure = failure_of(error(SECRET, path=SECRET))
    assert (failure.code, failure.is_retryable) == (error.default_code, False)


@pytest.mark.parametrize("error", [Unavailable(SECRET), RecollectError(SECRET), TimeoutError(SECRET), KeyError(SECRET)])
def test_everything_else_is_tried_again(error: Exception) -> None:
    assert failure_of(error).is_retryable


@pytest.mark.parametrize("kind", [RecollectError, *RecollectError.__subclasses__()])
def test_nothing_that_an_error_says_is_kept(kind: type[RecollectError]) -> None:
    """It may quote what people stored."""
    failure = failure_of(kind(SECRET, path=SECRET))
    assert SECRET not in failure.message
    assert failure.message.endswith(".")


def test_what_a_step_says_itself_is_kept() -> None:
    assert failure_of(StepRefused("Line 7 is broken.")).message == "Line 7 is broken."
    assert failure_of(StepRefused("x", code=ErrorCode.KIND_NOT_ALLOWED)).code is ErrorCode.KIND_NOT_ALLOWED


@given(st.integers(1, 10**9))
def test_waits_double_to_a_bound_and_half_is_left_to_chance(attempt: int) -> None:
    whole = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** min(attempt - 1, 100))
    assert whole / 2 <= wait_before(attempt).total_seconds() <= whole


def test_kinds_can_be_stored() -> None:
    """As the table's constraint has it."""
    assert all(
        kind.replace("_", "").isalpha() and kind.islower() and len(kind) <= 64 for kind in known_kinds(Settings())
    )


def test_every_kind_that_the_worker_knows_can_be_asked_for() -> None:
    assert set(KINDS) == set(known_kinds(Settings()))
