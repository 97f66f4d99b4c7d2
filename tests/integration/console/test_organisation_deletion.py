"""Deleting the organisation in the console: an owner asks, everybody sees it, and an owner takes it back."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.settings import Settings
from tests.support.console import Page, Visitor, visiting
from tests.support.gateway import RunningGateway
from tests.support.mail_server import MailServer
from tests.support.people import PASSWORD


@pytest.fixture
async def visitor(
    mailing: RunningGateway, databases: Databases, settings: Settings, caller: Caller
) -> AsyncIterator[Visitor]:
    async with visiting(mailing, databases, settings, caller, Role.OWNER) as visitor:
        yield visitor


def fault(page: Page) -> str:
    return page.all("div", role="alert")[0].text


async def test_an_owner_asks_for_the_deletion_and_another_takes_it_back(
    visitor: Visitor,
    mailing: RunningGateway,
    databases: Databases,
    settings: Settings,
    caller: Caller,
    mail: MailServer,
) -> None:
    form = await visitor.open("settings/delete")
    assert "export each graph" in form.text
    for typed, password, said in (
        ("other", PASSWORD, f"Type {visitor.tenant}"),
        (visitor.tenant, "wrong", "not your current password"),
        (visitor.tenant, "", "not your current password"),
    ):
        refused = await visitor.send(form, "settings/delete", status=400, typed=typed, password=password)
        assert said in fault(refused)
        assert refused.form("settings/delete").fields["typed"] == typed
        assert not refused.form("settings/delete").fields["password"], "a password is never shown again"
    asked = await visitor.send(form, "settings/delete", typed=visitor.tenant, password=PASSWORD)
    assert "The deletion is requested" in asked.text
    again = await visitor.send(form, "settings/delete", status=409, typed=visitor.tenant, password=PASSWORD)
    assert "requested before" in fault(again)
    async with visiting(mailing, databases, settings, caller, Role.READER) as reader:
        banner = (await reader.open("memory")).all("p", class_="past-banner")[0]
        assert "is to be deleted from" in banner.text
        assert (await reader.open("settings/delete", status=403)).all("h1")
    async with visiting(mailing, databases, settings, caller, Role.ADMIN) as admin:
        page = await admin.open("settings/delete")
        assert not [form for form in page.forms if "settings/delete" in form.action]
        assert "See the request" in page.links()
    async with visiting(mailing, databases, settings, caller, Role.OWNER) as other:
        kept = await other.send(await other.open("settings/delete"), "settings/delete/keep")
        assert "The organisation is kept" in kept.text
        assert not (await other.open("memory")).all("p", class_="past-banner")
        stale = await visitor.send(asked, "settings/delete/keep", status=404)
        assert "not requested any more" in stale.text
    await mail.wait_for_messages(4)
    subjects = [(message["To"], message["Subject"]) for message in mail.messages]
    assert (visitor.person.email, f"The organisation {visitor.tenant} is to be deleted on Recollect") in subjects
    assert {to for to, subject in subjects if "is kept" in subject} == {
        visitor.person.email,
        admin.person.email,
        other.person.email,
    }


async def test_who_has_no_password_signs_in_anew(visitor: Visitor, owner: asyncpg.Connection) -> None:
    await owner.execute("UPDATE people SET password_hash = NULL WHERE id = $1", visitor.person.id)
    await owner.execute(
        "UPDATE sessions SET created_at = now() - interval '1 hour' WHERE person_id = $1", visitor.person.id
    )
    form = await visitor.open("settings/delete")
    assert not form.all("input", type="password")
    refused = await visitor.send(form, "settings/delete", status=400, typed=visitor.tenant)
    assert "Sign out and in again" in fault(refused)
    await owner.execute("UPDATE sessions SET created_at = now() WHERE person_id = $1", visitor.person.id)
    await visitor.send(form, "settings/delete", typed=visitor.tenant)


async def test_an_admin_who_sends_the_form_is_refused(
    visitor: Visitor, mailing: RunningGateway, databases: Databases, settings: Settings, caller: Caller
) -> None:
    form = await visitor.open("settings/delete")
    async with visiting(mailing, databases, settings, caller, Role.ADMIN) as admin:
        token = (await admin.open("settings")).form("settings").fields["form_token"]
        forged = form.form("settings/delete")
        forged.fields["form_token"] = token
        refused = await admin.send(form, "settings/delete", status=403, typed=admin.tenant, password=PASSWORD)
        assert "Only owners" in refused.text
