"""A person's last ways to sign in may be in several cells: concurrent removals leave one."""

import asyncio
from copy import copy
from datetime import UTC, datetime
from uuid import UUID

import asyncpg
import pytest

from recollect.accounts.identity_providers import own
from recollect.accounts.people.model import PersonSession
from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.errors import Conflict, ErrorCode
from recollect.ids import new_id
from tests.support.gateway import eventually

CONNECT = """
    WITH provider AS (
        INSERT INTO identity_providers (tenant_id, id, name, issuer, client_id, client_secret, algorithm, created_by)
        VALUES ($1, $1, 'idp', 'https://idp.example', 'recollect', '', 'RS256', 'test')
    ), person AS (
        INSERT INTO people (id, email, name) VALUES ($2, $2 || '@example.com', 'Ada') ON CONFLICT DO NOTHING
    ), member AS (INSERT INTO members (tenant_id, person_id, role) VALUES ($1, $2, 'member'))
    INSERT INTO provider_identities (tenant_id, provider_id, subject, person_id) VALUES ($1, $1, 'ada', $2)"""
"""The person's identity at the one provider of a tenant, whose id is the tenant's."""

WAITS = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = $1)"


async def connect(owner: asyncpg.Connection, tenant_id: UUID, person_id: UUID) -> None:
    await owner.execute(CONNECT.replace("$2 ||", f"'{person_id}' ||").replace("$2", f"'{person_id}'::uuid"), tenant_id)


@pytest.fixture
async def ada(
    native: Caller, resident: Caller, owner: asyncpg.Connection, owner_b: asyncpg.Connection
) -> PersonSession:
    """A person without password and passkey, who has identities at two providers, of a tenant in each cell."""
    person, now = new_id(), datetime.now(UTC)
    await connect(owner, native.tenant_id, person)
    await connect(owner_b, resident.tenant_id, person)
    return PersonSession(new_id(), person, f"{person}@example.com", "Ada", now, now, now, None)


async def test_of_two_concurrent_removals_of_the_last_two_ways_one_succeeds(
    cells: Databases,
    ada: PersonSession,
    native: Caller,
    resident: Caller,
    owner: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each has looked at the ways before the other removes its own, unless the other has to wait for it."""
    database = await owner.fetchval("SELECT oid FROM pg_database WHERE datname = current_database()")
    original, looked = own._disconnect, 0

    async def all_have_looked_or_wait() -> bool:
        return looked == 2 or bool(await owner.fetchval(WAITS, database))

    async def disconnect(*arguments: object) -> None:
        nonlocal looked
        looked += 1
        await eventually(all_have_looked_or_wait)
        await original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(own, "_disconnect", disconnect)
    other = copy(cells)  # As in another gateway: within one, the second would not get that far.
    other.several_connections = asyncio.Lock()
    both = own.disconnect(cells, ada, native.tenant_id), own.disconnect(other, ada, resident.tenant_id)
    done = await asyncio.gather(*both, return_exceptions=True)
    assert done.count(None) == 1, done
    [refused] = [each for each in done if each is not None]
    assert isinstance(refused, Conflict)
    assert refused.code is ErrorCode.LAST_SIGN_IN
    assert len(await own.list_own_identities(cells, ada.person_id)) == 1


async def test_one_of_two_ways_is_removed_with_a_single_connection(
    cells: Databases, ada: PersonSession, resident: Caller
) -> None:
    """Whoever holds the lock at home uses that connection for its queries at home."""
    cells.home._tenants.limit = 1
    await own.disconnect(cells, ada, resident.tenant_id)
    with pytest.raises(Conflict):
        await own.disconnect(cells, ada, (await own.list_own_identities(cells, ada.person_id))[0].provider_id)
