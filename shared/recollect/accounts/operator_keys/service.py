"""Use cases of operators' keys: make, list and revoke them, as the owner of the database; authenticate one."""

from datetime import timedelta
from uuid import UUID

from recollect.accounts.identity.model import fingerprint_of, generate_secret, hash_secret, hint_of, key_name, kind_of
from recollect.accounts.operator_keys import store
from recollect.accounts.operator_keys.model import KIND, MAX_LIFETIME, SUBJECT, OperatorKey
from recollect.accounts.operator_log import service as log
from recollect.accounts.operator_log.model import OperatorAction
from recollect.crypto.peppers import find_under_any_secret
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
    """The actor that a key stands for. Raises Unauthenticated, with one message for every reason.

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
    return f"{SUBJECT}{found.id}"


async def count_hashed_keys(operator: Operator, *, pepper: bytes) -> tuple[int, int]:
    """How many valid API keys of all tenants are hashed with the present secret, and how many may not be."""
    return await store.count_hashed_keys(operator, hashed_with=fingerprint_of(pepper))
