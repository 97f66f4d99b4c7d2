"""An account that a tenant made by a link that it saw reaches no other tenant, whatever its person does."""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.members import service as members
from recollect.accounts.passkeys.service import REFUSAL
from recollect.accounts.people import passwords, resets, sessions
from recollect.accounts.people import service as people
from recollect.accounts.people.model import Confinement
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.integration.gateway.test_passkeys import add, sign_in_with
from tests.support.authenticator import Authenticator
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.people import BROWSER, PASSWORD, browser, joined, new_email, new_session, send_form, sign_in, submit

OF_THE_CFO = "orange ladder beside rivers"


@dataclass(frozen=True)
class Organisation:
    """A tenant and the secret of an admin's key of it."""

    caller: Caller
    key: str

    async def invite(self, gateway: RunningGateway, email: str, role: str) -> str:
        """The path of the link that an invitation shows to this tenant."""
        async with gateway.http(self.key) as http:
            invited = await http.post("/v1/invitations", json={"email": email, "role": role})
        assert (invited.status_code, invited.json()["sent"]) == (201, False), invited.text
        return str(urlsplit(invited.json()["link"]).path)


@pytest.fixture
def pepper(settings: Settings) -> bytes:
    return settings.key_secret.get_secret_value().encode()


@pytest.fixture
async def evil(issue: NewApiKey, new_tenant: NewTenant) -> Organisation:
    caller = operator_caller(await new_tenant())
    return Organisation(caller, (await issue(caller, kind="admin")).secret)


@pytest.fixture
async def acme(issue: NewApiKey, new_tenant: NewTenant) -> Organisation:
    caller = operator_caller(await new_tenant())
    return Organisation(caller, (await issue(caller, kind="admin")).secret)


@dataclass(frozen=True)
class Planted:
    """An account that evil made in advance, a browser that is signed in to it, and a passkey of it."""

    email: str
    http: httpx2.AsyncClient
    device: Authenticator


@pytest.fixture
async def planted(gateway: RunningGateway, evil: Organisation) -> AsyncIterator[Planted]:
    email = new_email()
    link = await evil.invite(gateway, email, "reader")
    async with browser(gateway) as http:
        made = await submit(http, link, name="CFO", password=PASSWORD)
        assert (made.status_code, made.headers["location"]) == (303, f"/app/{evil.caller.tenant}")
        device, added = await add(http, Authenticator(gateway.url))
        assert added.status_code == 200, added.text
        yield Planted(email, http, device)


async def members_seen_by(http: httpx2.AsyncClient, organisation: Organisation) -> int:
    answer = await http.get("/v1/members", headers={"X-Recollect-Tenant": organisation.caller.tenant})
    return answer.status_code


@pytest.mark.proves("security: unproven-addresses")
async def test_an_account_made_in_advance_reaches_no_other_tenant(
    gateway: RunningGateway, evil: Organisation, acme: Organisation, planted: Planted
) -> None:
    link = await acme.invite(gateway, planted.email, "admin")
    async with browser(gateway) as cfo:
        assert (await submit(cfo, link, name="The CFO", password=OF_THE_CFO)).status_code == 303
        assert await members_seen_by(cfo, acme) == 200
        assert await members_seen_by(cfo, evil) == 401
    async with browser(gateway) as attacker:
        assert (await sign_in_with(attacker, planted.device)).status_code == 303
        for http in (planted.http, attacker):
            assert await members_seen_by(http, acme) == 401
            assert acme.caller.tenant not in (await http.get("/account")).text


@pytest.mark.proves("security: unproven-addresses")
async def test_the_holder_of_the_account_cannot_join_another_tenant_with_it(
    gateway: RunningGateway, acme: Organisation, planted: Planted
) -> None:
    """Not even with a link of that tenant: it makes another account, which its passkey does not open."""
    link = await acme.invite(gateway, planted.email, "admin")
    joining = await planted.http.get(link)
    assert 'name="password"' in joining.text
    assert (await send_form(planted.http, joining.text, link, name="CFO", password=OF_THE_CFO)).status_code == 303
    async with browser(gateway) as attacker:
        assert (await sign_in_with(attacker, planted.device)).status_code == 303
        assert await members_seen_by(attacker, acme) == 401


@pytest.mark.proves("security: resets-end-sign-ins")
async def test_a_link_of_an_operator_gives_the_account_to_whoever_has_it_and_to_nobody_else(
    gateway: RunningGateway,
    databases: Databases,
    pepper: bytes,
    acme: Organisation,
    evil: Organisation,
    planted: Planted,
) -> None:
    (account,) = await resets.find_accounts(databases, planted.email)
    link = f"/reset/{await resets.begin_reset(databases, account.id, pepper=pepper, within=account.confined_to)}"
    async with browser(gateway) as cfo:
        shown = (await cfo.get(link)).text
        assert "the passkey “Laptop”" in shown
        assert (await submit(cfo, link, password=OF_THE_CFO)).status_code == 303
        assert (await sign_in(cfo, planted.email, OF_THE_CFO)).status_code == 303
        assert 'value="Laptop"' not in (await cfo.get("/account")).text
        invitation = await acme.invite(gateway, planted.email, "admin")
        assert (await submit(cfo, invitation)).headers["location"] == f"/app/{acme.caller.tenant}"
        assert await members_seen_by(cfo, acme) == 200
    async with browser(gateway) as attacker:
        refused = await sign_in_with(attacker, planted.device)
        assert (refused.status_code, REFUSAL in refused.text) == (401, True)
        assert (await sign_in(attacker, planted.email, PASSWORD)).status_code == 401
    assert (await planted.http.get("/account")).status_code == 303, "the session that it had has ended"
    assert await members_seen_by(planted.http, acme) == 401


@pytest.mark.proves("security: known-addresses")
async def test_a_link_does_not_tell_who_has_an_account(
    gateway: RunningGateway,
    databases: Databases,
    pepper: bytes,
    acme: Organisation,
    evil: Organisation,
    planted: Planted,
) -> None:
    proven = (await joined(databases, evil.caller, Role.READER, pepper=pepper)).email
    pages, answers = set(), set()
    for email in (proven, planted.email, new_email()):
        link = await acme.invite(gateway, email, "reader")
        async with browser(gateway) as http:
            shown = await http.get(link)
            secret = link.rpartition("/")[2]
            text = re.sub(r'value="[0-9a-f]{64}"', "", shown.text.replace(email, "").replace(secret, ""))
            pages.add((shown.status_code, text))
            joining = await send_form(http, shown.text, link, name="Eve", password=OF_THE_CFO)
            answers.add((joining.status_code, joining.headers["location"]))
    assert (len(pages), answers) == (1, {(303, f"/app/{acme.caller.tenant}")})


async def test_whoever_has_proven_an_address_joins_with_that_account(
    gateway: RunningGateway, databases: Databases, pepper: bytes, acme: Organisation, evil: Organisation
) -> None:
    person = await joined(databases, acme.caller, Role.READER, pepper=pepper)
    link = await evil.invite(gateway, person.email, "reader")
    async with browser(gateway) as http:
        await sign_in(http, person.email)
        assert (await submit(http, link)).headers["location"] == f"/app/{evil.caller.tenant}"
        account = (await http.get("/account")).text
    assert acme.caller.tenant in account
    assert evil.caller.tenant in account


async def test_of_several_accounts_of_an_address_the_password_and_the_organisation_decide(
    gateway: RunningGateway,
    databases: Databases,
    pepper: bytes,
    evil: Organisation,
    acme: Organisation,
    planted: Planted,
) -> None:
    async with browser(gateway) as cfo:
        await submit(cfo, await acme.invite(gateway, planted.email, "admin"), name="CFO", password=OF_THE_CFO)
    for password, reached in ((PASSWORD, evil), (OF_THE_CFO, acme)):
        async with browser(gateway) as http:
            assert (await sign_in(http, planted.email, password)).status_code == 303
            assert reached.caller.tenant in (await http.get("/account")).text
    for organisation in (evil, acme):  # With one password for both, too.
        (account,) = [
            found
            for found in await resets.find_accounts(databases, planted.email)
            if found.confined_to == organisation.caller.tenant_id
        ]
        session = await new_session(databases, account.id, pepper=pepper)
        assert session.confined_to == organisation.caller.tenant_id, "whatever the session says of it"
        if organisation is evil:
            await people.change_password(databases, session, PASSWORD, OF_THE_CFO)
    for organisation in (evil, acme):
        async with browser(gateway) as http:
            page = f"/sign-in?organization={organisation.caller.tenant}"
            assert (await submit(http, page, "/sign-in", email=planted.email, password=OF_THE_CFO)).status_code == 303
            assert organisation.caller.tenant in (await http.get("/account")).text


@pytest.mark.proves("security: known-addresses")
async def test_a_sign_in_takes_one_verification_however_many_accounts_the_address_has(
    gateway: RunningGateway,
    databases: Databases,
    pepper: bytes,
    acme: Organisation,
    planted: Planted,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with browser(gateway) as cfo:
        await submit(cfo, await acme.invite(gateway, planted.email, "admin"), name="CFO", password=OF_THE_CFO)
    computed: list[str] = []
    hash_like = passwords._hash_like

    def counted(password: str, stored: str) -> str:
        computed.append(stored)
        return hash_like(password, stored)

    monkeypatch.setattr(passwords, "_hash_like", counted)
    await people.sign_in(databases, planted.email, OF_THE_CFO, BROWSER, pepper=pepper)
    assert len(computed) == 1


async def test_a_member_who_leaves_takes_the_account_along(
    gateway: RunningGateway, db: Database, databases: Databases, evil: Organisation, planted: Planted
) -> None:
    (account,) = await resets.find_accounts(databases, planted.email)
    async with db.transaction(evil.caller) as tx:
        await members.remove_member(tx, account.id)
    assert await resets.find_accounts(databases, planted.email) == []
    async with browser(gateway) as http:
        assert (await sign_in_with(http, planted.device)).status_code == 401
    assert (await planted.http.get("/account")).status_code == 303


async def test_an_address_that_somebody_proved_stays_theirs(
    databases: Databases, pepper: bytes, acme: Organisation, planted: Planted
) -> None:
    """A link by which the account of another tenant gets a password does not make a second account of no tenant."""
    proven = await joined(databases, acme.caller, Role.READER, pepper=pepper, email=planted.email)
    found = await resets.find_accounts(databases, planted.email)
    assert [account.id for account in found if account.confined_to is None] == [proven.id]
    (other,) = [account for account in found if account.confined_to is not None]
    secret = await resets.begin_reset(databases, other.id, pepper=pepper, within=other.confined_to)
    await resets.reset_password(databases, await resets.open_reset(databases, secret, pepper=pepper), OF_THE_CFO)
    again = {account.id: account.confined_to for account in await resets.find_accounts(databases, planted.email)}
    assert again == {proven.id: None, other.id: other.confined_to}


async def test_the_application_can_make_no_account_of_another_tenant(
    db: Database, databases: Databases, evil: Organisation, acme: Organisation, planted: Planted
) -> None:
    """Nor make one of its own of none by itself."""
    (account,) = await resets.find_accounts(databases, planted.email)
    statements: Sequence[tuple[str, dict[str, object]]] = (
        (
            "INSERT INTO people (id, email, name, provider_tenant_id, unproven) "
            "VALUES (gen_random_uuid(), 'x@example.com', 'x', :other, true)",
            {"other": acme.caller.tenant_id},
        ),
        ("UPDATE people SET provider_tenant_id = NULL, unproven = false WHERE id = :id", {"id": account.id}),
        (
            "UPDATE people SET provider_tenant_id = :other WHERE id = :id",
            {"id": account.id, "other": evil.caller.tenant_id},
        ),
    )
    for statement, arguments in statements:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with db.transaction(evil.caller) as tx:
                await tx.execute(Query.compile(statement), **arguments)


async def test_a_reset_ends_connections_to_identity_providers_and_nobody_elses(
    gateway: RunningGateway, databases: Databases, pepper: bytes, acme: Organisation, owner: asyncpg.Connection
) -> None:
    person, other = [await joined(databases, acme.caller, Role.MEMBER, pepper=pepper) for _ in range(2)]
    tenant_id = acme.caller.tenant_id
    await owner.execute(
        "INSERT INTO identity_providers (tenant_id, id, name, issuer, client_id, client_secret, algorithm, created_by) "
        "VALUES ($1, $1, 'Acme Login', 'https://login.example', 'recollect', '', 'RS256', 'test')",
        tenant_id,
    )
    await owner.executemany(
        "INSERT INTO provider_identities (tenant_id, provider_id, subject, person_id) VALUES ($1, $1, $2, $3)",
        [(tenant_id, str(each.id), each.id) for each in (person, other)],
    )
    provided = await sessions.begin_session(
        databases, person.id, BROWSER, pepper=pepper, confinement=Confinement(tenant_id, tenant_id)
    )
    link = f"/reset/{await resets.begin_reset(databases, person.id, pepper=pepper)}"
    async with browser(gateway) as http:
        assert "Acme Login" in (await http.get(link)).text
        assert (await submit(http, link, password=OF_THE_CFO)).status_code == 303
    assert await sessions.session_of(databases, provided.secret, pepper=pepper) is None
    left = await owner.fetch("SELECT person_id FROM provider_identities WHERE tenant_id = $1", tenant_id)
    assert [row["person_id"] for row in left] == [other.id]
