"""The bytes of answers that a tenant and a credential may have stored for repeats."""

from dataclasses import replace
from uuid import uuid4

import asyncpg
import pytest

from recollect.accounts.idempotency import service as idempotency
from recollect.accounts.idempotency.model import (
    MAX_ANSWER_BYTES,
    MAX_KEYS_OF_SENDER,
    MAX_STORED_BYTES,
    MAX_STORED_BYTES_OF_SENDER,
    AnswerVault,
    IdempotentRequest,
    SavedAnswer,
)
from recollect.caller import Caller
from recollect.errors import Conflict, ErrorCode
from recollect.postgres.database import Database
from tests.conftest import NewTenant

PEPPER = b"stored answers"
VAULT = AnswerVault.of(PEPPER)
ANSWER = SavedAnswer(201, [], b"x" * 1_000)
STORED = "SELECT coalesce(sum(octet_length(answer)), 0)::int FROM idempotency_keys WHERE tenant_id = $1"


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for four answers of a tenant, and for two of a credential."""
    monkeypatch.setattr(idempotency, "MAX_STORED_BYTES", 4_500)
    monkeypatch.setattr(idempotency, "MAX_STORED_BYTES_OF_SENDER", 2_500)


async def done(db: Database, caller: Caller, key: str) -> SavedAnswer | ErrorCode | None:
    """The answer to a repeat of a request that was done and answered: None where it would be done again."""
    request = IdempotentRequest.of(caller, key, "POST", "/v1/keys", b"{}", pepper=PEPPER)
    async with db.transaction(caller) as tx:
        assert await idempotency.claim(tx, request, VAULT) is None
    await idempotency.save_answer(db, caller, request, ANSWER, VAULT)
    try:
        return await idempotency.find_answer(db, caller, request, VAULT)
    except Conflict as conflict:
        return conflict.code


async def test_answers_without_room_are_not_stored_and_their_acts_not_repeated(
    db: Database, caller: Caller, new_tenant: NewTenant, owner: asyncpg.Connection
) -> None:
    senders = [replace(caller, subject=f"key:{uuid4()}") for _ in range(3)]
    outcomes = [[await done(db, sender, str(number)) for number in range(3)] for sender in senders]
    assert outcomes[:2] == [[ANSWER, ANSWER, ErrorCode.IDEMPOTENCY_DONE]] * 2, "one credential leaves room for another"
    assert outcomes[2] == [ErrorCode.IDEMPOTENCY_DONE] * 3
    assert 4_000 < await owner.fetchval(STORED, caller.tenant_id) <= 4_500
    neighbour = await new_tenant()
    assert await done(db, replace(senders[0], tenant_id=neighbour.id), "0") == ANSWER


async def test_room_comes_back_when_answers_expire(db: Database, caller: Caller, owner: asyncpg.Connection) -> None:
    assert [await done(db, caller, str(number)) for number in range(3)] == [ANSWER, ANSWER, ErrorCode.IDEMPOTENCY_DONE]
    await owner.execute("UPDATE idempotency_keys SET expires_at = now() WHERE tenant_id = $1", caller.tenant_id)
    async with db.transaction(caller) as tx:
        await idempotency.forget_expired(tx)
    assert await done(db, caller, "another") == ANSWER


def test_the_bounds_leave_room_for_many_answers() -> None:
    """Most answers are small: all that a credential may have are stored if they have 6 kB on average."""
    assert MAX_STORED_BYTES_OF_SENDER // MAX_KEYS_OF_SENDER > 6_000
    assert MAX_STORED_BYTES // MAX_ANSWER_BYTES >= 1_000
