"""What proves an address: a link that went by mail to nobody else. In two cells, the account then moves home."""

import re
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from recollect.accounts.members import service as members
from recollect.accounts.members.sending import invite_and_send
from recollect.accounts.people import resets
from recollect.caller import OPERATOR, Caller, Role
from recollect.cells.databases import Databases
from recollect.outbound.mail import Mailer
from recollect.postgres.database import Database
from recollect.postgres.tenant_database import TenantDatabase
from recollect.settings import Settings
from tests.integration.gateway.test_passkeys import add, sign_in_with
from tests.support.authenticator import Authenticator
from tests.support.gateway import RunningGateway
from tests.support.mail_server import MailServer
from tests.support.people import PASSWORD, browser, new_email, sign_in, submit

ANOTHER = "seven lanterns over harbour mud"


@pytest.fixture
def pepper(settings: Settings) -> bytes:
    return settings.key_secret.get_secret_value().encode()


async def invitation(db: TenantDatabase, caller: Caller, email: str, pepper: bytes) -> str:
    """The path of a link that was shown."""
    async with db.transaction(caller) as tx:
        return f"/join/{(await members.invite(tx, email, Role.ADMIN, pepper=pepper)).secret}"


async def confinements(databases: Databases, email: str) -> list[str | None]:
    return [account.tenant for account in await resets.find_accounts(databases, email)]


async def test_a_link_that_was_mailed_proves_the_address(
    mailing: RunningGateway, mail: MailServer, databases: Databases, caller: Caller, admin_key: str
) -> None:
    email = new_email()
    async with mailing.http(admin_key) as admin:
        assert (await admin.post("/v1/invitations", json={"email": email})).json()["sent"] is True
    [path] = re.findall(rf"{mailing.url}(/join/\S+)", mail.messages[0].get_content())
    async with browser(mailing) as http:
        await submit(http, path, name="Grace", password=PASSWORD)
    assert await confinements(databases, email) == [None]


@pytest.mark.proves("security: unproven-addresses")
async def test_a_link_that_an_operator_sees_proves_nothing(
    mailing: RunningGateway, mail: MailServer, sending: Settings, db: Database, databases: Databases, caller: Caller
) -> None:
    mail.refusal, email = "451 not now", new_email()
    operator = replace(caller, subject=OPERATOR)
    told = await invite_and_send(db, operator, email, Role.OWNER, mailer=Mailer.of(sending), settings=sending)
    assert told.link is not None
    async with browser(mailing) as http:
        await submit(http, urlsplit(told.link).path, name="Grace", password=PASSWORD)
    assert await confinements(databases, email) == [caller.tenant]


async def test_a_mailed_link_for_a_new_password_names_the_account_and_proves_the_address(
    mailing: RunningGateway, mail: MailServer, db: Database, databases: Databases, caller: Caller, pepper: bytes
) -> None:
    email = new_email()
    async with browser(mailing) as http:
        await submit(http, await invitation(db, caller, email, pepper), name="Grace", password=PASSWORD)
    async with browser(mailing) as http:
        await submit(http, "/forgot", email=email)
        await mail.wait_for_messages(1)
        sent = mail.messages[0].get_content()
        assert f"Of your account of {caller.tenant}: " in sent
        [path] = re.findall(rf"{mailing.url}(/reset/\S+)", sent)
        await submit(http, path, password=ANOTHER)
        await mail.wait_for_messages(2)
    assert "removed your passkeys" in mail.messages[1].get_content()
    assert await confinements(databases, email) == [None]


async def test_an_account_of_a_tenant_of_another_cell_is_used_there_and_moves_home_once_it_is_proven(
    celled_gateway: RunningGateway, cells: Databases, resident: Caller, native: Caller, celled: Settings
) -> None:
    pepper, email = celled.key_secret.get_secret_value().encode(), new_email()
    async with browser(celled_gateway) as http:
        await submit(
            http,
            await invitation(cells.of(resident.tenant_id), resident, email, pepper),
            name="Grace",
            password=PASSWORD,
        )
        assert resident.tenant in (await http.get("/account")).text
        device, added = await add(http, Authenticator(celled_gateway.url))
        assert added.status_code == 200, added.text
        changed = await submit(http, "/account", "/account/password", old_password=PASSWORD, password=ANOTHER)
        assert changed.status_code == 200, changed.text
    async with browser(celled_gateway) as http:
        assert (await sign_in_with(http, device)).status_code == 303
    async with browser(celled_gateway) as http:
        assert (await sign_in(http, email, ANOTHER)).status_code == 303
    assert await confinements(cells, email) == [resident.tenant]

    (account,) = await resets.find_accounts(cells, email)
    secret = await resets.begin_reset(cells, account.id, pepper=pepper, within=account.confined_to)
    async with browser(celled_gateway) as http:
        assert (await submit(http, f"/reset/{secret}", password=PASSWORD)).status_code == 303
        assert (await sign_in_with(http, device)).status_code == 401
        assert (await sign_in(http, email)).status_code == 303
        await submit(http, await invitation(cells.of(native.tenant_id), native, email, pepper))
        page = (await http.get("/account")).text
    assert await confinements(cells, email) == [None]
    assert all(f"/t/{caller.tenant}/mcp" in page for caller in (native, resident))
