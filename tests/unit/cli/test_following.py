"""The messages about a job that failed."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from recollect_cli.following import JobFailure, JobView, Work, _failure_message

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def job(status: str, error: JobFailure | None = None) -> JobView:
    return JobView(UUID(int=1), "import_graph", "notes", status, 3, 9, NOW, NOW, NOW, 0, None, error)


@pytest.mark.parametrize(
    ("kept", "code", "said"),
    [
        ("", "job_storage_full", "The storage of the tenant's jobs is full: wait until older jobs are deleted"),
        ("", "internal_error", "Run the command again"),
        ("It stays", "busy", "Run the command again. It stays"),
        ("It stays", "invalid_input", "It stays"),
    ],
)
def test_the_message_of_a_failed_job_says_what_to_do(kept: str, code: str, said: str) -> None:
    failed = job("failed", JobFailure(code, "It is so."))
    assert _failure_message(failed, Work("import", "importing", kept)) == f"The import failed: It is so. {said}"


@pytest.mark.parametrize(("kept", "mend"), [("It stays", "It stays; mend the file"), ("", "Mend the file")])
def test_the_message_of_invalid_input_says_to_mend_the_file_first(kept: str, mend: str) -> None:
    """The same file would fail in the same way. The file causes no other failure."""
    work = Work("import", "importing", kept, mend)
    assert (
        _failure_message(job("failed", JobFailure("invalid_input", "It is so.")), work)
        == f"The import failed: It is so. {mend}"
    )
    assert mend not in _failure_message(job("failed", JobFailure("busy", "It is so.")), work)


def test_the_message_has_no_advice_where_there_is_none() -> None:
    assert _failure_message(job("failed", JobFailure("invalid_input", "It is so")), Work("export", "exporting")) == (
        "The export failed: It is so"
    )
