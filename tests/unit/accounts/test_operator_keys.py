"""When an operator key is valid, and that it is no key of a tenant."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from recollect.accounts.identity.model import KIND_SCOPES, generate_secret, is_well_formed, kind_of
from recollect.accounts.operator_keys.model import KIND, FoundKey

NOW = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ends", "revoked", "is_valid"),
    [
        (timedelta(seconds=1), None, True),
        (timedelta(0), None, False),
        (timedelta(days=1), NOW - timedelta(days=1), False),
    ],
)
def test_an_operator_key_is_valid_until_it_expires_or_is_revoked(
    ends: timedelta, revoked: datetime | None, is_valid: bool
) -> None:
    assert FoundKey(uuid4(), "ada", NOW + ends, revoked, NOW).is_valid is is_valid


def test_an_operator_key_is_not_a_tenant_key() -> None:
    secret = generate_secret(KIND)
    assert kind_of(secret) == KIND
    assert KIND not in KIND_SCOPES
    assert not is_well_formed(secret)
