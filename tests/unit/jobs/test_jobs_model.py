"""The digest of equal jobs, what is stored of an error, and how long a failed step waits."""

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
def test_an_error_that_the_job_causes_is_not_retried(error: type[RecollectError]) -> None:
    failure = failure_of(error(SECRET, path=SECRET))
    assert (failure.code, failure.is_retryable) == (error.default_code, False)


@pytest.mark.parametrize("error", [Unavailable(SECRET), RecollectError(SECRET), TimeoutError(SECRET), KeyError(SECRET)])
def test_every_other_error_is_retried(error: Exception) -> None:
    assert failure_of(error).is_retryable


@pytest.mark.parametrize("kind", [RecollectError, *RecollectError.__subclasses__()])
def test_the_message_of_an_error_is_not_stored(kind: type[RecollectError]) -> None:
    """It may quote a user's text."""
    failure = failure_of(kind(SECRET, path=SECRET))
    assert SECRET not in failure.message
    assert failure.message.endswith(".")


def test_the_message_of_a_step_is_stored() -> None:
    assert failure_of(StepRefused("Line 7 is broken.")).message == "Line 7 is broken."
    assert failure_of(StepRefused("x", code=ErrorCode.KIND_NOT_ALLOWED)).code is ErrorCode.KIND_NOT_ALLOWED


@given(st.integers(1, 10**9))
def test_waits_double_up_to_a_bound_and_half_of_each_is_random(attempt: int) -> None:
    whole = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** min(attempt - 1, 100))
    assert whole / 2 <= wait_before(attempt).total_seconds() <= whole


def test_every_kind_of_job_can_be_stored() -> None:
    """The table has a constraint on kinds."""
    assert all(
        kind.replace("_", "").isalpha() and kind.islower() and len(kind) <= 64 for kind in known_kinds(Settings())
    )


def test_the_api_knows_every_kind_of_job_that_the_worker_runs() -> None:
    assert set(KINDS) == set(known_kinds(Settings()))
