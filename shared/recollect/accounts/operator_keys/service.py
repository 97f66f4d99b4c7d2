"""Use cases of operators' keys: make, list and revoke them, as the owner of the database; authenticate one.


For the pages of operators, a key begins a session of an hour, which ends with the key at the latest.
"""

import secrets
from datetime import timedelta
from uuid import UUID

from recollect.accounts.identity.model import fingerprint_of, generate_secret, hash_secret, hint_of, key_name, kind_of
from recollect.accounts.operator_keys import store
from recollect.accounts.operator_keys.model import (
    KIND,
    MAX_LIFETIME,
    SUBJECT,
    FoundKey,
    IssuedOperatorSession,
    OperatorKey,
    SessionKey,
)
from recollect.accounts.operator_log import service as log
from recollect.accounts.operator_log.model import OperatorAction
from recollect.crypto.peppers import find_under_any_secret, hashes_under
from recollect.errors import CredentialEnded, ErrorCode, InvalidInput, NotFound, Unauthenticated
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.transactions import Session

REFUSAL = "A valid operator's key is needed: Authorization: Bearer rcl_operator_…"
"""The message for every credential that is not valid, whatever the reason."""


async def create_key(operator: Operator, name: str, *, lifetime: timedelta, pepper: bytes) -> tuple[OperatorKey, str]:
    """Make a key that is valid for `lifetime`; its secret is in the result and nowhere else. Raises InvalidInput."""
    name = key_name(name)
    if not timedelta(0) < lifetime <= MAX_LIFETIME:
        raise InvalidInput(f"A key's lifetime is more than 0 and at most {MAX_LIFETIME.days} days", path="days")
    secret = generate_secret(KIND)
    async with operator.transaction():
        key = await store.insert_key(
            operator,
            name,
            key_hash=hash_secret(secret, pepper),
            hint=hint_of(secret),
            lifetime=lifetime,
        )
        await log.record(operator, OperatorAction.KEY_CREATED, f"{SUBJECT}{key.id}")
    return key, secret


async def list_keys(operator: Operator) -> list[OperatorKey]:
    """Every key, oldest first, void ones too."""
    return await store.list_keys(operator)


async def revoke_key(operator: Operator, key_id: UUID) -> OperatorKey:
    """Make a key void from now on; doing it twice changes nothing. Raises NotFound."""
    async with operator.transaction():
        key = await store.revoke_key(operator, key_id)
        if key is None:
            raise NotFound("There is no such key.", code=ErrorCode.KEY_NOT_FOUND)
        await log.record(operator, OperatorAction.KEY_REVOKED, f"{SUBJECT}{key.id}")
    return key


async def authenticate(session: Session, secret: str, *, pepper: bytes) -> str:
    """The actor that a key stands for. Raises as `find_valid_key`."""
    return f"{SUBJECT}{(await find_valid_key(session, secret, pepper=pepper)).id}"


async def find_valid_key(session: Session, secret: str, *, pepper: bytes) -> FoundKey:
    """The key with this secret. Raises Unauthenticated, with one message for every reason.

    It raises CredentialEnded for a key that was revoked or has expired.
    """
    found = None
    if kind_of(secret) == KIND:
        found = await find_under_any_secret(
            pepper, lambda accepted: store.find_key(session, hash_secret(secret, accepted))
        )
    if found is None:
        raise Unauthenticated(REFUSAL)
    if not found.is_valid:
        raise CredentialEnded(REFUSAL)
    return found


async def begin_session(operator: Operator, key_id: UUID, *, pepper: bytes) -> IssuedOperatorSession:
    """Begin a session of an hour for the holder of a valid key; its secret is in the result and nowhere else."""
    secret = secrets.token_urlsafe(32)
    async with operator.transaction():
        expires_at = await store.begin_session(operator, hash_secret(secret, pepper), key_id)
        await log.record(operator, OperatorAction.SIGNED_IN, f"{SUBJECT}{key_id}")
    return IssuedOperatorSession(secret, expires_at)


async def find_session(session: Session, secret: str, *, pepper: bytes) -> SessionKey | None:
    """The key of the session with this secret; None where it has ended, or its key is not valid any more."""
    return await find_under_any_secret(
        pepper, lambda accepted: store.find_session(session, hash_secret(secret, accepted))
    )


async def end_session(session: Session, secret: str, *, pepper: bytes) -> None:
    """End the session with this secret, if there is one."""
    for session_hash in hashes_under(pepper, lambda accepted: hash_secret(secret, accepted)):
        await store.end_session(session, session_hash)


async def count_hashed_keys(operator: Operator, *, pepper: bytes) -> tuple[int, int]:
    """How many valid API keys of all tenants are hashed with the present secret, and how many may not be."""
    return await store.count_hashed_keys(operator, hashed_with=fingerprint_of(pepper))
