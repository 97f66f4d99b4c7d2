"""People who are of a tenant alone move with it: their password, passkeys and sessions."""

import asyncpg

from recollect.accounts.members import service as members
from recollect.accounts.passkeys import service as passkeys
from recollect.accounts.passkeys import store as passkey_store
from recollect.accounts.people import service as people
from recollect.accounts.people import sessions
from recollect.accounts.people.model import Browser, Confinement
from recollect.accounts.tenants.model import Tenant
from recollect.caller import Role
from recollect.cells.databases import Databases
from tests.support.memories import Agent
from tests.support.moves import AWAY, TwoCells
from tests.support.people import PASSWORD, new_email

PEPPER = b"pepper" * 6
ANOTHER = "seven lanterns over harbour mud"


async def test_people_of_a_tenant_alone_move_with_their_ways_to_sign_in(
    two_cells: TwoCells, gateway: Databases, agent: Agent, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    email, browser = new_email(), Browser("", "")
    async with gateway.of(agent.caller.tenant_id).transaction(agent.caller) as tx:
        issued = await members.invite(tx, email, Role.READER, pepper=PEPPER)
    invitation = await members.open_invitation(gateway, issued.secret, pepper=PEPPER)
    joined = await members.join_with_new_account(gateway, invitation, "Ada", PASSWORD)
    confinement = Confinement.of_account(joined.confined_to)
    begun = await sessions.begin_session(gateway, joined.person_id, browser, pepper=PEPPER, confinement=confinement)
    session = await sessions.session_of(gateway, begun.secret, pepper=PEPPER)
    assert session is not None
    await people.change_password(gateway, session, PASSWORD, ANOTHER)
    async with gateway.personal(joined.person_id, within=tenant.id) as own:
        await passkey_store.insert_passkey(
            own, joined.person_id, credential_id=b"credential", public_key=b"x", sign_count=0, name="Laptop", most=1
        )

    await two_cells.move(tenant.slug)

    assert await owner.fetchval("SELECT count(*) FROM people WHERE id = $1", joined.person_id) == 0
    assert await sessions.session_of(gateway, begun.secret, pepper=PEPPER) is not None
    await people.sign_in(gateway, email, ANOTHER, browser, pepper=PEPPER)
    kept = await passkeys.list_passkeys(gateway, joined.person_id, within=tenant.id)
    assert [passkey.name for passkey in kept] == ["Laptop"]
    async with two_cells.bare(AWAY) as away:
        assert await away.fetchval("SELECT unproven FROM people WHERE id = $1", joined.person_id) is True
