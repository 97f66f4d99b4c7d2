"""Use cases of idempotency keys: find the answer of a key, claim it with the act, store the answer, delete old ones.

The transaction of the act inserts the row of the key. So an act is done if and only if its key is there, whichever
process dies at any time. Only the answer, which is stored right after, may be missing.
"""

from uuid import UUID

from recollect.accounts.idempotency import store
from recollect.accounts.idempotency.model import (
    ANSWER_AWAITED,
    ANSWER_RETENTION,
    MAX_ANSWER_BYTES,
    MAX_KEYS,
    MAX_KEYS_OF_SENDER,
    MAX_STORED_BYTES,
    MAX_STORED_BYTES_OF_SENDER,
    NOT_SAVED,
    AnswerVault,
    IdempotentRequest,
    SavedAnswer,
)
from recollect.accounts.idempotency.store import ClaimedKey
from recollect.caller import Caller
from recollect.errors import Conflict, ErrorCode, TooManyRequests, Unprocessable
from recollect.postgres.database import Database
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import Transaction

FORGOTTEN_AT_ONCE = 1_000
"""Keys that one transaction deletes, at most."""


async def find_answer(
    db: TenantDatabase, caller: Caller, request: IdempotentRequest, vault: AnswerVault
) -> SavedAnswer | None:
    """The answer to a request whose act is done; None if it is not done.

    Raises Unprocessable if the key belongs to another request, Conflict if there is no answer (any more).
    """
    async with db.transaction(caller, read_only=True) as tx:
        record = await store.find_key(tx, request)
    return None if record is None else _answer(record, caller, request, vault)


async def claim(tx: Transaction, request: IdempotentRequest, vault: AnswerVault) -> SavedAnswer | None:
    """Claim a request's key in the transaction of its act; return the answer if another request did the act in between.

    Raises as `find_answer` does, and Conflict while another request with the key is in progress, TooManyRequests if
    the credential or the tenant has too many keys.
    """
    outcome = await store.claim_key(
        tx, request, retention=ANSWER_RETENTION, most=MAX_KEYS, most_of_sender=MAX_KEYS_OF_SENDER
    )
    if outcome.claimed:
        return None
    if not outcome.locked:
        raise _in_progress()
    record = await store.find_key(tx, request)
    if record is not None:
        return _answer(record, tx.caller, request, vault)
    whose = f"This tenant has {MAX_KEYS}" if outcome.sender_has_room else f"This credential has {MAX_KEYS_OF_SENDER}"
    raise TooManyRequests(
        f"{whose} idempotency keys, the most that it may have. Each is kept for a day: send "
        "requests without a key meanwhile.",
        code=ErrorCode.TOO_MANY_IDEMPOTENCY_KEYS,
        seconds=600,
    )


async def release(tx: Transaction, request: IdempotentRequest) -> None:
    """Release a key that the request has claimed, in the transaction that finds that its act is not done after all."""
    await store.release_key(tx, request)


async def save_answer(
    db: TenantDatabase, caller: Caller, request: IdempotentRequest, answer: SavedAnswer | None, vault: AnswerVault
) -> None:
    """Store the answer to a request whose act is done, unless it is None or too large, or too many are stored.

    A repeat of a request whose answer is not stored raises Conflict, and is not executed again.
    """
    fits = answer is not None and len(answer.body) <= MAX_ANSWER_BYTES
    stored = vault.close(answer, caller.tenant_id, request) if answer is not None and fits else NOT_SAVED
    async with db.transaction(caller, also_suspended=True) as tx:
        await store.save_answer(tx, request, stored, most=MAX_STORED_BYTES, most_of_sender=MAX_STORED_BYTES_OF_SENDER)


async def forget_answers(tx: Transaction) -> None:
    """Delete all answers of the tenant, since they may hold erased data. The keys stay, so that no act is repeated."""
    await store.forget_answers(tx)


async def tenants_with_expired_keys(db: Database) -> list[UUID]:
    """Active tenants with keys that have expired."""
    async with db.system() as session:
        return await store.tenants_with_expired_keys(session)


async def forget_expired(tx: Transaction, *, limit: int = FORGOTTEN_AT_ONCE) -> bool:
    """Delete keys that have expired, in one step; return whether another step may find more."""
    return await store.forget_expired(tx, limit=limit) == limit


def _answer(record: ClaimedKey, caller: Caller, request: IdempotentRequest, vault: AnswerVault) -> SavedAnswer:
    if record.request_hash != request.content:
        raise Unprocessable(
            "This key was already used for another request. Use a new key for each request, and repeat a request "
            "unchanged.",
            path="Idempotency-Key",
        )
    if record.answer is None and record.created_at > record.read_at - ANSWER_AWAITED:
        raise _in_progress()
    answer = vault.open(record.answer, caller.tenant_id, request) if record.answer else None
    if answer is None or record.rights_hash != request.rights:
        raise Conflict(
            "This request was already executed and is not executed again. Its response was not kept: read the current "
            "state to see the result.",
            code=ErrorCode.IDEMPOTENCY_DONE,
        )
    return answer


def _in_progress() -> Conflict:
    return Conflict(
        "A request with this key is still running. Send it again in a moment to get its response.",
        code=ErrorCode.IDEMPOTENCY_CONFLICT,
    )
