"""Use cases of signing keys: publish them, sign with them, replace old ones."""

from datetime import timedelta
from typing import Any

from joserfc import jwt

from recollect.accounts.oauth.signing import store
from recollect.accounts.oauth.signing.model import (
    ALGORITHM,
    ID_TOKEN_LIFETIME,
    PUBLISHED_BEFORE_USE,
    ROTATED_AFTER,
    StoredKey,
    Vault,
)
from recollect.postgres.database import Database


async def public_keys(db: Database) -> list[dict[str, Any]]:
    """The public parts of all keys that may have signed tokens that are still valid."""
    async with db.system() as session:
        return [key.public_key for key in await store.list_keys(session)]


async def sign(db: Database, vault: Vault, claims: dict[str, Any], *, lifetime: timedelta = ID_TOKEN_LIFETIME) -> str:
    """The claims as a JWT that begins now (`iat`, `exp`), signed with the present key; an old key is replaced first.

    Now is by the clock of the database: those of gateways may differ.
    """
    stored = await _signing_key(db, vault)
    now = int(stored.read_at.timestamp())
    claims = {**claims, "iat": now, "exp": now + int(lifetime.total_seconds())}
    header = {"alg": ALGORITHM, "kid": stored.id, "typ": "JWT"}
    return jwt.encode(header, claims, vault.open(stored), algorithms=[ALGORITHM])


async def _signing_key(db: Database, vault: Vault) -> StoredKey:
    """The newest key that verifiers can have read, or the only one."""
    async with db.system() as session:
        keys = _own(await store.list_keys(session), vault)
        if _is_due(keys, vault):
            await store.add_key(session, vault.new_key())
            keys = _own(await store.list_keys(session), vault)
    return next((key for key in keys if key.is_older_than(PUBLISHED_BEFORE_USE)), keys[-1])


def _is_due(keys: list[StoredKey], vault: Vault) -> bool:
    """Whether a new key is to be made: no key of the present secret is young."""
    newest = next((key for key in keys if key.fingerprint == vault.fingerprint), None)
    return newest is None or newest.is_older_than(ROTATED_AFTER)


def _own(keys: list[StoredKey], vault: Vault) -> list[StoredKey]:
    return [key for key in keys if key.fingerprint in vault.fingerprints]
