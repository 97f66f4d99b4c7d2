"""One function per query of `queries.sql`."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from recollect.accounts.idempotency.model import IdempotentRequest
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction

queries = Queries(__package__)


@dataclass(frozen=True, slots=True)
class ClaimedKey:
    """The stored row of a key. `answer` None: there is none yet; empty: it is not stored."""

    request_hash: bytes
    rights_hash: bytes
    created_at: datetime
    answer: bytes | None
    read_at: datetime
    """When it was read, by the clock of the database."""


@dataclass(frozen=True, slots=True)
class ClaimOutcome:
    """The outcome of a claim. `locked` False: another request with the key is in progress.

    `tenant_has_room`, `sender_has_room`: whether the tenant and the credential may have another key.
    """

    locked: bool
    tenant_has_room: bool
    sender_has_room: bool
    claimed: bool


async def find_key(tx: Transaction, request: IdempotentRequest) -> ClaimedKey | None:
    """The stored row of a request's key, or None."""
    return await tx.fetch_object(queries.find_key, ClaimedKey, key_hash=request.key)


async def claim_key(
    tx: Transaction, request: IdempotentRequest, *, retention: timedelta, most: int, most_of_sender: int
) -> ClaimOutcome:
    """Claim a request's key for this transaction."""
    row = await tx.fetchrow(
        queries.claim_key,
        key_hash=request.key,
        request_hash=request.content,
        rights_hash=request.rights,
        sender_hash=request.sender,
        lock=request.lock,
        retention=retention,
        most=most,
        most_of_sender=most_of_sender,
    )
    assert row is not None
    return ClaimOutcome(**row)


async def release_key(tx: Transaction, request: IdempotentRequest) -> None:
    """Delete a request's key."""
    await tx.execute(queries.release_key, key_hash=request.key, request_hash=request.content)


async def save_answer(
    tx: Transaction, request: IdempotentRequest, answer: bytes, *, most: int, most_of_sender: int
) -> None:
    """Store the answer to the request that claimed its key, if the bytes of all answers stay within these bounds."""
    await tx.execute(
        queries.save_answer,
        key_hash=request.key,
        request_hash=request.content,
        sender_hash=request.sender,
        answer=answer,
        most=most,
        most_of_sender=most_of_sender,
    )


async def forget_answers(tx: Transaction) -> None:
    """Delete all answers of the tenant."""
    await tx.execute(queries.forget_answers)


async def tenants_with_expired_keys(session: Session) -> list[UUID]:
    """Active tenants with keys that have expired."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_expired_keys)]


async def forget_expired(tx: Transaction, *, limit: int) -> int:
    """Delete keys that have expired; return their number."""
    return await tx.fetchval(queries.forget_expired, limit=limit)
