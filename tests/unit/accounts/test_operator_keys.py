"""When an operator's key holds, and that it is of no other kind."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from recollect.accounts.identity.model import KIND_SCOPES, generate_secret, is_well_formed, kind_of
from recollect.accounts.operator_keys.model import KIND, FoundKey

NOW = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ends", "revoked", "holds"),
    [
        (timedelta(seconds=1), None, True),
        (timedelta(0), None, False),
        (timedelta(days=1), NOW - timedelta(days=1), False),
    ],
)
def test_a_key_holds_until_it_ends_or_is_revoked(ends: timedelta, revoked: datetime | None, holds: bool) -> None:
    assert FoundKey(uuid4(), "ada", NOW + ends, revoked).holds(NOW) is holds


def test_a_secret_of_an_operator_is_no_key_of_a_tenant() -> None:
    secret = generate_secret(KIND)
    assert kind_of(secret) == KIND
    assert KIND not in KIND_SCOPES
    assert not is_well_formed(secret)
