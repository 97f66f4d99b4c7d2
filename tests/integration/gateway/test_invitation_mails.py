"""Invitations by mail: sent where a server is set, else, or where it fails, a link for who invites."""

import re
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
from pydantic import SecretStr

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.integration.gateway.test_management import done
from tests.support.gateway import NewApiKey, RunningGateway, serving
from tests.support.mail_server import MailServer, mail_server
from tests.support.people import PASSWORD, browser, new_email, submit

PER_DAY = 3


@pytest.fixture
async def mail() -> AsyncIterator[MailServer]:
    async with mail_server() as server:
        yield server


@pytest.fixture
def mailing(settings: Settings, mail: MailServer) -> Iterator[RunningGateway]:
    """A gateway that sends mail."""
    update = {
        "mail_url": SecretStr(f"smtp://127.0.0.1:{mail.port}"),
        "mail_from": "memory@example.com",
        "invitation_mails_per_day": PER_DAY,
    }
    with serving(settings.model_copy(update=update)) as gateway:
        yield gateway


@pytest.fixture
async def admin(mailing: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with mailing.http(admin_key) as http:
        yield http


async def test_who_is_invited_gets_the_link_and_nobody_else(
    mailing: RunningGateway, admin: httpx2.AsyncClient, mail: MailServer, caller: Caller
) -> None:
    email = new_email()
    invited = await done(admin, "POST", "/v1/invitations", email=email, role="reader")
    assert (invited["sent"], invited["link"]) == (True, None)
    (message,) = mail.messages
    assert (message["To"], caller.tenant in message["Subject"]) == (email, True)
    [link] = re.findall(r"https?://\S+", message.get_content())
    assert link.startswith(f"{mailing.url}/join/")
    async with browser(mailing) as theirs:
        await submit(theirs, link.removeprefix(mailing.url), name="Grace", password=PASSWORD)
        assert caller.tenant in (await theirs.get("/account")).text


async def test_where_it_cannot_be_sent_the_link_is_shown(
    mailing: RunningGateway, admin: httpx2.AsyncClient, mail: MailServer
) -> None:
    mail.refusal = "451 not now"
    invited = await done(admin, "POST", "/v1/invitations", email=new_email())
    assert invited["sent"] is False
    assert invited["link"].startswith(f"{mailing.url}/join/")


async def test_a_tenant_sends_only_so_many_in_a_day(
    mailing: RunningGateway, admin: httpx2.AsyncClient, mail: MailServer, issue: NewApiKey, new_tenant: NewTenant
) -> None:
    """Those of another tenant are its own."""
    sent = [(await done(admin, "POST", "/v1/invitations", email=new_email()))["sent"] for _ in range(PER_DAY + 1)]
    assert sent == [True] * PER_DAY + [False]
    other = await issue(operator_caller(await new_tenant()), kind="admin")
    async with mailing.http(other.secret) as http:
        assert (await done(http, "POST", "/v1/invitations", email=new_email()))["sent"] is True
    assert len(mail.messages) == PER_DAY + 1


async def test_without_a_server_the_link_is_shown(gateway: RunningGateway, admin_key: str) -> None:
    async with gateway.http(admin_key) as http:
        invited = await done(http, "POST", "/v1/invitations", email=new_email())
    assert (invited["sent"], "/join/" in invited["link"]) == (False, True)
