"""Rotation of RECOLLECT_KEY_SECRET: keys, repeated requests and encrypted values work with both secrets, until the
old one is removed.
"""

from collections.abc import Awaitable, Callable
from uuid import uuid4

import asyncpg
import pytest
from pydantic import SecretStr

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import IssuedKey, NewKey, fingerprint_of, hash_secret, operator_caller
from recollect.accounts.oauth.signing import service as signing
from recollect.accounts.oauth.signing import store as signing_store
from recollect.accounts.oauth.signing.model import Vault
from recollect.accounts.operator_keys import service as operator_keys
from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.crypto.encryption import Cipher
from recollect.crypto.peppers import Pepper, find_under_any_secret
from recollect.errors import Unauthenticated
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.gateway import serving

OLD, NEW = b"an old secret of 32 bytes or more", b"a new secret of 32 bytes or more."
BOTH = Pepper.of(NEW, [OLD])


async def new_key(db: Database, caller: Caller, pepper: bytes) -> IssuedKey:
    async with db.transaction(caller) as tx:
        return await identity.create_key(tx, NewKey("test"), pepper=pepper)


async def use(databases: Databases, issued: IssuedKey, pepper: bytes) -> Caller:
    """Authenticate, and run the errands that this starts."""
    errands: list[Callable[[], Awaitable[None]]] = []
    caller = await identity.authenticate(
        databases, issued.secret, pepper=pepper, start_task=lambda _, errand: errands.append(errand)
    )
    for errand in errands:
        await errand()
    return caller


async def hash_of(owner: asyncpg.Connection, issued: IssuedKey) -> tuple[bytes, bytes]:
    row = await owner.fetchrow("SELECT hash, hashed_with FROM api_keys WHERE id = $1", issued.key.id)
    assert row is not None
    return row["hash"], row["hashed_with"]


async def test_a_used_key_is_rehashed_and_outlives_the_old_secret(
    db: Database, databases: Databases, caller: Caller, owner: asyncpg.Connection
) -> None:
    used, unused = await new_key(db, caller, OLD), await new_key(db, caller, OLD)
    with pytest.raises(Unauthenticated):
        await use(databases, used, NEW)
    assert (await use(databases, used, BOTH)).tenant_id == caller.tenant_id
    assert await hash_of(owner, used) == (hash_secret(used.secret, NEW), fingerprint_of(NEW))
    assert (await use(databases, used, NEW)).tenant_id == caller.tenant_id
    with pytest.raises(Unauthenticated):
        await use(databases, unused, NEW)


@pytest.mark.proves("security: key-rehashing")
async def test_another_tenants_key_is_not_rehashed(
    db: Database, databases: Databases, caller: Caller, new_tenant: NewTenant, owner: asyncpg.Connection
) -> None:
    """The row is written in its own tenant, whatever the secret under which it was found."""
    mine, theirs = await new_key(db, caller, OLD), await new_key(db, operator_caller(await new_tenant()), OLD)
    before = await hash_of(owner, theirs)
    assert (await use(databases, mine, BOTH)).tenant_id == caller.tenant_id
    assert await hash_of(owner, theirs) == before
    other = await use(databases, theirs, BOTH)
    assert other.tenant_id not in (caller.tenant_id, None)


async def test_keys_that_depend_on_the_old_secret_are_counted(
    db: Database, databases: Databases, caller: Caller, operator: Operator
) -> None:
    alone = Pepper.of(uuid4().bytes, [OLD])  # A secret of this test's own, since other tests make keys meanwhile.
    key = await new_key(db, caller, OLD)
    assert (await operator_keys.count_hashed_keys(operator, pepper=alone))[0] == 0
    await use(databases, key, alone)
    now, left = await operator_keys.count_hashed_keys(operator, pepper=alone)
    assert now == 1
    assert left > 0


async def test_with_one_secret_a_key_is_looked_up_once() -> None:
    asked: list[bytes] = []

    async def find(secret: bytes) -> None:
        asked.append(secret)

    await find_under_any_secret(NEW, find)
    assert asked == [NEW]
    await find_under_any_secret(BOTH, find)
    assert asked[1:] == [NEW, OLD, NEW]


async def test_a_key_rehashed_between_two_lookups_is_found() -> None:
    stored = OLD

    async def find(secret: bytes) -> bool | None:
        nonlocal stored
        found = stored == secret or None
        stored = NEW
        return found

    assert await find_under_any_secret(BOTH, find)


def test_both_secrets_decrypt_and_the_new_one_encrypts() -> None:
    old, both = Cipher.of(OLD, purpose="webhooks"), Cipher.of(BOTH, purpose="webhooks")
    assert both.decrypt(old.encrypt(b"told", bound_to="a"), bound_to="a") == b"told"
    assert Cipher.of(NEW, purpose="webhooks").decrypt(both.encrypt(b"told", bound_to="a"), bound_to="a") == b"told"
    for wrong in (Cipher.of(BOTH, purpose="other"), Cipher.of(NEW, purpose="webhooks")):
        with pytest.raises(ValueError, match="not of this secret"):
            wrong.decrypt(old.encrypt(b"told", bound_to="a"), bound_to="a")


async def test_a_new_signing_key_is_published_before_it_signs(db: Database, owner: asyncpg.Connection) -> None:
    """Until verifiers can know the new key, the key of the old secret signs, which the new secret alone could not
    open.
    """
    old, new = uuid4().bytes * 2, uuid4().bytes * 2
    vault = Vault.of(Pepper.of(new, [old]))
    await signing.sign(db, Vault.of(old), {"sub": "before"})
    signed = await signing.sign(db, vault, {"sub": "after"})
    assert signed.count(".") == 2
    async with db.system() as session:
        keys = [key for key in await signing_store.list_keys(session) if key.fingerprint in vault.fingerprints]
    assert {key.fingerprint for key in keys} == vault.fingerprints, "one of each: the new one waits, published"
    assert signed.split(".")[0] == (await signing.sign(db, Vault.of(old), {"sub": "x"})).split(".")[0]
    # Gateways of other tests publish the keys that they find, and remember them.
    await owner.execute("DELETE FROM signing_keys WHERE fingerprint = ANY($1)", list(vault.fingerprints))


async def test_a_repeated_request_is_recognized_under_the_old_secret(
    db: Database, caller: Caller, settings: Settings
) -> None:
    old = settings.model_copy(update={"key_secret": SecretStr(OLD.decode())})
    both = settings.model_copy(
        update={"key_secret": SecretStr(NEW.decode()), "accepted_key_secrets": [SecretStr(OLD.decode())]}
    )
    key = (await new_key(db, caller, OLD)).secret
    answers = []
    for each in (old, both):
        with serving(each) as gateway:
            async with gateway.http(key) as http:
                body = {"items": [{"text": "Bees make honey"}]}
                answers.append(await http.post("/v1/graphs/g/memories", json=body, headers={"Idempotency-Key": "once"}))
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[1].headers["idempotency-replayed"] == "true"
    assert answers[1].content == answers[0].content
