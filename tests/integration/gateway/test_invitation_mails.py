"""Invitations by mail: refused if they cannot be sent; without a mail server, the inviter gets the link."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.members.sending import invite_and_send
from recollect.caller import OPERATOR, Caller, Role
from recollect.outbound.mail import Mailer
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.integration.gateway.test_management import done, problem
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.mail_server import MailServer
from tests.support.people import PASSWORD, browser, new_email, submit

PER_DAY = 3


@pytest.fixture
def sending(sending: Settings) -> Settings:
    return sending.model_copy(update={"invitation_mails_per_day": PER_DAY})


@pytest.fixture
async def admin(mailing: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with mailing.http(admin_key) as http:
        yield http


async def valid_invitations(admin: httpx2.AsyncClient) -> list[dict[str, Any]]:
    """Invitations that are not void."""
    listed = (await done(admin, "GET", "/v1/invitations"))["items"]
    return [each for each in listed if each["revoked_at"] is None]


@pytest.mark.proves("security: invitation-mail")
async def test_the_link_is_sent_to_the_invited_address_and_not_returned(
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


@pytest.mark.proves("security: invitation-mail")
async def test_an_invitation_that_cannot_be_sent_is_void_and_its_link_is_not_returned(
    admin: httpx2.AsyncClient, mail: MailServer
) -> None:
    """Whoever saw it could create the account of somebody whose mail they cannot read."""
    mail.refusal, email = "451 not now", new_email()
    for _ in range(PER_DAY):
        refused = await admin.post("/v1/invitations", json={"email": email})
        assert "/join/" not in refused.text
        problem(refused, 503, "mail_not_sent")
    left = (await done(admin, "GET", "/v1/invitations"))["items"]
    assert all(each["revoked_at"] for each in left)
    mail.refusal = None
    assert (await done(admin, "POST", "/v1/invitations", email=email))["sent"] is True  # The refused ones do not count.


async def test_an_earlier_invitation_is_void_only_once_the_new_one_is_sent(
    mailing: RunningGateway, admin: httpx2.AsyncClient, mail: MailServer
) -> None:
    email = new_email()
    first = await done(admin, "POST", "/v1/invitations", email=email, role="reader")
    mail.refusal = "451 not now"
    problem(await admin.post("/v1/invitations", json={"email": email, "role": "admin"}), 503, "mail_not_sent")
    assert [each["id"] for each in await valid_invitations(admin)] == [first["id"]]
    mail.refusal = None
    second = await done(admin, "POST", "/v1/invitations", email=email, role="admin")
    assert [each["id"] for each in await valid_invitations(admin)] == [second["id"]]
    links = [re.findall(r"/join/\S+", each.get_content())[0] for each in mail.messages]
    async with browser(mailing) as theirs:
        assert [(await theirs.get(link)).status_code for link in links] == [404, 200]


async def test_an_undeliverable_address_is_refused(admin: httpx2.AsyncClient) -> None:
    refused = await admin.post("/v1/invitations", json={"email": "jürgen@example.com"})
    assert problem(refused, 400)["path"] == "email"
    assert (await done(admin, "GET", "/v1/invitations"))["items"] == []


async def test_an_invitation_that_failed_can_be_sent_later_under_the_same_idempotency_key(
    admin: httpx2.AsyncClient, mail: MailServer
) -> None:
    body, headers = {"email": new_email()}, {"Idempotency-Key": "one"}
    mail.refusal = "451 not now"
    for _ in range(2):
        refused = await admin.post("/v1/invitations", json=body, headers=headers)
        problem(refused, 503, "mail_not_sent")
        assert "idempotency-replayed" not in refused.headers
    mail.refusal = None
    sent, replayed = [await admin.post("/v1/invitations", json=body, headers=headers) for _ in range(2)]
    assert (sent.status_code, replayed.content, len(mail.messages)) == (201, sent.content, 1)


async def test_of_concurrent_invitations_to_one_address_one_is_valid(
    gateway: RunningGateway, admin_key: str, admin: httpx2.AsyncClient
) -> None:
    """With mail, and without."""
    async with gateway.http(admin_key) as http:
        for client, count in ((http, 6), (admin, PER_DAY)):
            body = {"email": new_email()}
            made = await asyncio.gather(*(client.post("/v1/invitations", json=body) for _ in range(count)))
            assert [each.status_code for each in made] == [201] * count
            assert [each["email"] for each in await valid_invitations(client)].count(body["email"]) == 1


@pytest.mark.proves("security: invitation-mail")
async def test_invitation_mails_of_a_tenant_are_limited_by_the_day(
    mailing: RunningGateway, admin: httpx2.AsyncClient, mail: MailServer, issue: NewApiKey, new_tenant: NewTenant
) -> None:
    """Those of another tenant are counted separately."""
    for _ in range(PER_DAY):
        assert (await done(admin, "POST", "/v1/invitations", email=new_email()))["sent"] is True
    refused = await admin.post("/v1/invitations", json={"email": new_email()})
    assert "/join/" not in refused.text
    problem(refused, 429, "too_many_invitations")
    assert refused.headers["Retry-After"] == "3600"
    assert len((await done(admin, "GET", "/v1/invitations"))["items"]) == PER_DAY
    other = await issue(operator_caller(await new_tenant()), kind="admin")
    async with mailing.http(other.secret) as http:
        assert (await done(http, "POST", "/v1/invitations", email=new_email()))["sent"] is True
    assert len(mail.messages) == PER_DAY + 1


async def test_an_operator_gets_the_link_if_it_cannot_be_sent(
    sending: Settings, db: Database, caller: Caller, mail: MailServer
) -> None:
    mail.refusal = "451 not now"
    operator = replace(caller, subject=OPERATOR)
    told = await invite_and_send(db, operator, new_email(), Role.OWNER, mailer=Mailer.of(sending), settings=sending)
    assert told.link is not None
    assert "/join/" in told.link


async def test_without_a_mail_server_the_link_is_returned(gateway: RunningGateway, admin_key: str) -> None:
    async with gateway.http(admin_key) as http:
        invited = await done(http, "POST", "/v1/invitations", email=new_email())
    assert (invited["sent"], "/join/" in invited["link"]) == (False, True)
