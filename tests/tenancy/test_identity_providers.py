"""Identity providers, their identities and pending sign-ins are isolated by tenant, for any statement."""

from uuid import uuid4

import asyncpg
import pytest

from recollect.accounts.identity_providers import service as providers
from recollect.accounts.identity_providers.model import NewProvider, ProviderChange, SignInSecrets
from recollect.accounts.people.model import Person
from recollect.accounts.token_issuers import IssuerFailed, Issuers
from recollect.caller import Role
from recollect.cells.databases import Databases
from recollect.crypto.encryption import Cipher
from recollect.errors import ErrorCode, NotFound
from recollect.outbound.http_client import Outbound
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.support.identity_provider import identity_provider
from tests.support.people import joined, new_email
from tests.tenancy.conftest import PEPPER, Neighbour

Neighbours = tuple[Neighbour, Neighbour]
BARRED = asyncpg.InsufficientPrivilegeError


async def test_a_provider_of_another_tenant_is_neither_listed_nor_changed(db: Database, neighbours: Neighbours) -> None:
    mine, other = neighbours
    async with db.transaction(other.caller, read_only=True) as tx:
        (theirs,) = await providers.list_providers(tx)
    told = set()
    for provider_id in (theirs.id, uuid4()):
        async with db.transaction(mine.caller) as tx:
            with pytest.raises(NotFound) as refused:
                await providers.change_provider(tx, provider_id, ProviderChange(enabled=False), pepper=PEPPER)
            told.add((str(refused.value), refused.value.code))
            with pytest.raises(NotFound) as refused:
                await providers.delete_provider(tx, provider_id)
            told.add((str(refused.value), refused.value.code))
    assert told == {("There is no such identity provider.", ErrorCode.PROVIDER_NOT_FOUND)}
    async with db.transaction(other.caller, read_only=True) as tx:
        assert await providers.list_providers(tx) == [theirs]


@pytest.mark.proves("security: client-secrets")
async def test_a_client_secret_can_be_decrypted_only_in_its_own_row(
    db: Database, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    stored = []
    for neighbour in neighbours:
        async with db.transaction(neighbour.caller) as tx:
            new = NewProvider("Login", "https://other.example.com", "recollect", "secret")
            made = await providers.add_provider(tx, new, pepper=PEPPER)
        row = await owner.fetchval("SELECT client_secret FROM identity_providers WHERE id = $1", made.id)
        stored.append((f"{neighbour.caller.tenant_id}/{made.id}", row))
    cipher = Cipher.of(PEPPER, purpose="identity providers")
    assert cipher.decrypt(stored[0][1], bound_to=stored[0][0]) == b"secret"
    for place, secret in ((stored[1][0], stored[0][1]), (stored[0][0], stored[1][1])):
        with pytest.raises(ValueError, match="not of this secret"):
            cipher.decrypt(secret, bound_to=place)
    with pytest.raises(ValueError, match="not of this secret"):
        Cipher.of(b"another", purpose="identity providers").decrypt(stored[0][1], bound_to=stored[0][0])


async def test_only_providers_of_the_named_tenants_are_found(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    mine, other = neighbours
    asked = "SELECT tenant FROM recollect.find_identity_providers($1)"
    assert [row[0] for row in await attacker.fetch(asked, [mine.caller.tenant])] == [mine.caller.tenant]
    for hostile in (None, [], [None], ["%"], [""], ["nowhere"]):
        assert await attacker.fetch(asked, hostile) == []
    await owner.execute("UPDATE identity_providers SET disabled_at = now() WHERE tenant_id = $1", mine.caller.tenant_id)
    await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", other.caller.tenant_id)
    assert await attacker.fetch(asked, [mine.caller.tenant, other.caller.tenant]) == []


async def test_a_sign_in_is_found_only_by_its_whole_hash(
    attacker: asyncpg.Connection, neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    asked = "SELECT * FROM recollect.find_provider_sign_in($1)"
    for neighbour in neighbours:
        tenant_id = neighbour.caller.tenant_id
        whole = await owner.fetchval("SELECT hash FROM provider_sign_ins WHERE tenant_id = $1", tenant_id)
        (found,) = await attacker.fetch(asked, whole)
        assert dict(found) == {"tenant_id": tenant_id}
        for part in (None, b"", whole[:-1], whole + b"\x00", b"%"):
            assert await attacker.fetch(asked, part) == []


@pytest.mark.proves("security: provider-takes-no-address")
async def test_no_tenant_can_create_a_person_of_another_tenants_provider(
    attacker: asyncpg.Connection, neighbours: Neighbours, db: Database
) -> None:
    mine, other = neighbours
    insert = "INSERT INTO people (id, email, name, provider_tenant_id) VALUES ($1, 'x@example.com', 'x', $2)"
    person_id = uuid4()
    await attacker.execute(f"SET recollect.person_id = '{person_id}'")
    with pytest.raises(BARRED):
        await attacker.execute(insert, person_id, other.caller.tenant_id)
    await attacker.execute(f"SET recollect.tenant_id = '{mine.caller.tenant_id}'")
    with pytest.raises(BARRED):
        await attacker.execute(insert, person_id, other.caller.tenant_id)
    await attacker.execute(insert, person_id, mine.caller.tenant_id)
    with pytest.raises(BARRED):
        await attacker.execute("UPDATE people SET provider_tenant_id = NULL WHERE id = $1", person_id)
    with pytest.raises(asyncpg.CheckViolationError):
        await attacker.execute("UPDATE people SET password_hash = 'x' WHERE id = $1", person_id)


async def test_the_address_of_a_provider_s_person_is_not_an_account(
    databases: Databases, neighbours: Neighbours, owner: asyncpg.Connection, attacker: asyncpg.Connection
) -> None:
    email = new_email()
    await owner.execute(
        "INSERT INTO people (id, email, name, provider_tenant_id) VALUES ($1, $2, 'x', $3)",
        uuid4(),
        email,
        neighbours[0].caller.tenant_id,
    )
    assert await attacker.fetch("SELECT * FROM recollect.find_person($1)", email) == []
    person: Person = await joined(databases, neighbours[1].caller, Role.MEMBER, pepper=PEPPER, email=email)
    (found,) = await attacker.fetch("SELECT * FROM recollect.find_person($1)", email)
    assert found["id"] == person.id


async def test_the_documents_of_an_issuer_are_cached_per_tenant(neighbours: Neighbours) -> None:
    """A request of one tenant neither answers nor delays another's: each fetches for itself."""
    issuers = Issuers(Outbound(Settings(outbound_networks=["127.0.0.0/8"])))
    mine, other = (neighbour.caller.tenant_id for neighbour in neighbours)
    async with identity_provider() as idp:
        for _ in range(2):
            await issuers.issuer(mine, idp.issuer)
        assert idp.request_count("/jwks") == 1
        token = idp.signed({}, kid="unknown")
        for _ in range(2):
            with pytest.raises(IssuerFailed, match="a moment ago"):
                await issuers.verified(mine, idp.issuer, token, "RS256")
        await issuers.issuer(other, idp.issuer)
        assert idp.request_count("/jwks") == 2


def test_the_secrets_of_two_sign_ins_are_unrelated() -> None:
    one, other = SignInSecrets.new("browser", PEPPER), SignInSecrets.new("browser", PEPPER)
    derived = [(each.hash, each.nonce, each.code_verifier) for each in (one, other)]
    assert len({text for each in derived for text in each}) == 6
    assert one.browser_hash == other.browser_hash, "a browser has one cookie for all"
    assert SignInSecrets(one.state, "another", PEPPER).nonce != one.nonce
    assert SignInSecrets(one.state, "browser", b"another").code_verifier != one.code_verifier
    assert one.state not in repr(one)
