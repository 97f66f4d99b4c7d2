"""How long a deleted tenant can be restored, and whose work goes on while a tenant is suspended."""

from datetime import timedelta
from uuid import uuid4

import pytest

from recollect.accounts.deletions.model import MAX_GRACE, checked_grace
from recollect.accounts.identity.model import WORKER, worker_caller
from recollect.accounts.oauth.grants.model import authorization_server
from recollect.errors import InvalidInput, TenantReadOnly


@pytest.mark.parametrize("grace", [timedelta(0), timedelta(hours=1), MAX_GRACE])
def test_a_grace_period_within_bounds_is_accepted(grace: timedelta) -> None:
    assert checked_grace(grace) == grace


@pytest.mark.parametrize("grace", [timedelta(seconds=-1), MAX_GRACE + timedelta(seconds=1)])
def test_a_grace_period_out_of_bounds_is_refused_with_its_path(grace: timedelta) -> None:
    with pytest.raises(InvalidInput) as error:
        checked_grace(grace)
    assert error.value.path == "grace_days"


def test_only_work_of_the_service_itself_goes_on_in_a_suspended_tenant() -> None:
    assert worker_caller(uuid4()).of_service
    assert worker_caller(uuid4(), WORKER).of_service
    assert authorization_server(uuid4()).of_service
    for subject in ("key:0", "person:0", "operator"):
        assert not worker_caller(uuid4(), subject).of_service


def test_the_read_only_error_names_the_contact() -> None:
    assert str(TenantReadOnly("support@example.com")).endswith("Ask support@example.com.")
    assert str(TenantReadOnly()).endswith("Ask whoever operates this service.")
