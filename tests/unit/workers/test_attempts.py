"""How the failure of one tenant's turn is logged, and which failures are passed on."""

import asyncio
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from recollect.errors import ErrorCode, NotFound, Unavailable
from recollect_workers.failure_logging import FailureLogger

TENANT = uuid4()


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            Unavailable("The embedder cannot be reached."),
            {
                "log_level": "warning",
                "event": "nothing done, will retry",
                "reason": "The embedder cannot be reached.",
            },
        ),
        (
            NotFound("This tenant no longer exists.", code=ErrorCode.TENANT_NOT_FOUND),
            {"log_level": "info", "event": "tenant was erased or moved"},
        ),
    ],
)
def test_an_expected_failure_is_logged_with_its_reason(error: Exception, line: dict[str, str]) -> None:
    with capture_logs() as logs, FailureLogger("nothing done", TENANT):
        raise error
    assert logs == [{"tenant": str(TENANT), **line}]


def test_an_unexpected_failure_is_logged_with_its_traceback() -> None:
    fault = ValueError("a fault")
    with capture_logs() as logs, FailureLogger("nothing done", TENANT, graph="g"):
        raise fault
    [line] = logs
    assert (line["log_level"], line["exc_info"], line["graph"]) == ("error", fault, "g")


def test_a_cancellation_is_passed_on() -> None:
    with pytest.raises(asyncio.CancelledError), FailureLogger("nothing done", TENANT):
        raise asyncio.CancelledError
