"""Idempotency keys of another tenant or credential count as unused."""

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway


@pytest.mark.proves("security: idempotency-keys-per-credential")
async def test_a_key_of_another_tenant_counts_as_unused(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller, new_tenant: NewTenant, owner: asyncpg.Connection
) -> None:
    other = operator_caller(await new_tenant())
    secrets = [(await issue(each, kind="admin")).secret for each in (caller, other, caller)]
    answers = []
    for secret in secrets:
        async with gateway.http(secret) as http:
            for name in ("laptop", "laptop"):
                made = await http.post("/v1/keys", json={"name": name}, headers={"Idempotency-Key": "one"})
                answers.append((made.status_code, made.headers.get("idempotency-replayed"), made.json()["id"]))
    assert [answer[:2] for answer in answers] == [(201, None), (201, "true")] * 3
    assert len({answer[2] for answer in answers}) == 3
    hashes = await owner.fetch(
        "SELECT key_hash, request_hash FROM idempotency_keys WHERE tenant_id = ANY ($1)",
        [caller.tenant_id, other.tenant_id],
    )
    assert len({bytes(row["key_hash"]) for row in hashes}) == 3
    assert len({bytes(row["request_hash"]) for row in hashes}) == 3, "equal bodies of others are not seen as equal"


@pytest.mark.proves("security: idempotency-keys-per-credential")
async def test_a_key_of_another_tenant_causes_no_conflict(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller, new_tenant: NewTenant
) -> None:
    other = operator_caller(await new_tenant())
    for each, name in ((caller, "laptop"), (other, "phone")):
        async with gateway.http((await issue(each, kind="admin")).secret) as http:
            made = await http.post("/v1/keys", json={"name": name}, headers={"Idempotency-Key": "one"})
            assert (made.status_code, made.headers.get("idempotency-replayed")) == (201, None)
