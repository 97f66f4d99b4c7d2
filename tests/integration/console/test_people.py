"""People of an organisation: members and roles, invitations, e-mail domains, identity providers."""

from collections.abc import AsyncIterator

import pytest

from recollect.accounts.email_domains import service as domains
from recollect.accounts.members import service as members
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.support.console import Page, Visitor, visiting
from tests.support.gateway import RunningGateway


@pytest.fixture
async def visitor(
    gateway: RunningGateway, databases: Databases, settings: Settings, caller: Caller
) -> AsyncIterator[Visitor]:
    async with visiting(gateway, databases, settings, caller) as visitor:
        yield visitor


@pytest.fixture
async def admin(
    gateway: RunningGateway, databases: Databases, settings: Settings, caller: Caller
) -> AsyncIterator[Visitor]:
    async with visiting(gateway, databases, settings, caller, Role.ADMIN) as visitor:
        yield visitor


def fault(page: Page) -> str:
    return page.all("div", role="alert")[0].text


async def test_a_role_is_changed_unless_somebody_was_faster(
    visitor: Visitor, admin: Visitor, db: Database, caller: Caller
) -> None:
    page = await visitor.open("people")
    part = f"people/{admin.person.id}/role"
    changed = await visitor.send(page, part, role="member")
    assert "The role is changed" in changed.text
    async with db.transaction(caller, read_only=True) as tx:
        assert (await members.get_member(tx, admin.person.id)).role is Role.MEMBER
    outdated = await visitor.send(page, part, status=409, role="reader")
    assert "Somebody changed this" in fault(outdated)
    assert "The role is changed" in (await visitor.send(outdated, part, role="admin")).text
    assert "Choose a role" in fault(await visitor.send(await visitor.open("people"), part, status=400, role="king"))


@pytest.mark.proves("security: console-owners")
async def test_the_last_owner_stays_and_admins_touch_no_owner(visitor: Visitor, admin: Visitor) -> None:
    own = await visitor.open(f"people/{visitor.person.id}/remove")
    assert "Leave" in own.text
    assert "owner" in fault(await visitor.send(own, "/remove", status=409))
    seen = await admin.open("people")
    assert not [form for form in seen.forms if f"{visitor.person.id}/role" in form.action]
    question = await admin.open(f"people/{visitor.person.id}/remove")
    assert "Only an owner" in fault(await admin.send(question, "/remove", status=403))


async def test_a_member_is_removed_and_loses_the_pages(visitor: Visitor, admin: Visitor) -> None:
    link = next(href for href in (await visitor.open("people")).links().values() if f"{admin.person.id}/remove" in href)
    gone = await visitor.send(await visitor.open_address(link), "/remove")
    assert "no longer a member" in gone.text
    assert admin.person.email not in gone.text
    await admin.open("people", status=404)


@pytest.mark.proves("security: console-secrets")
async def test_an_invitation_shows_its_link_once_is_renewed_and_revoked(visitor: Visitor) -> None:
    page = await visitor.open("people/invitations")
    made = await visitor.send(page, "people/invitations", email="eve@example.com", role="reader")
    link = made.all("code", id="invitation-link")[0].text
    assert "/join/" in link
    assert "no mail was sent" in made.text
    assert link not in (await visitor.open("people/invitations")).source, "it is shown once"
    again = next(form for form in made.forms if form.fields.get("email") == "eve@example.com")
    made.forms = [again]
    renewed = await visitor.send(made, "people/invitations")
    assert renewed.all("code", id="invitation-link")[0].text != link
    assert (await visitor.http.get(f"/join/{link.rpartition('/')[2]}")).status_code == 404
    revoked = await visitor.send(renewed, "/revoke")
    assert "its link no longer works" in revoked.text
    assert not [form for form in revoked.forms if "/revoke" in form.action]


async def test_a_refused_invitation_keeps_what_was_entered(visitor: Visitor, admin: Visitor) -> None:
    page = await visitor.open("people/invitations")
    refused = await visitor.send(page, "people/invitations", status=400, email="no address", role="reader")
    assert refused.form("people/invitations").fields | {"form_token": ""} == {
        "form_token": "",
        "email": "no address",
        "role": "reader",
    }
    answer = await admin.send(
        page_of_admin := await admin.open("people/invitations"),
        "people/invitations",
        status=403,
        email="eve@example.com",
        role="owner",
    )
    assert "Only an owner" in fault(answer)
    assert "owner" not in [option.attributes["value"] for option in page_of_admin.all("option")]


async def test_a_domain_is_claimed_verified_or_not_and_let_go(visitor: Visitor, db: Database, caller: Caller) -> None:
    page = await visitor.open("people/domains")
    assert "not a domain" in fault(await visitor.send(page, "people/domains", status=400, domain="x", role="member"))
    name = f"{caller.tenant}.example"
    claimed = await visitor.send(page, "people/domains", domain=name, role="member")
    async with db.transaction(caller, read_only=True) as tx:
        [claim] = await domains.list_domains(tx)
    assert claimed.all("code", id=f"record-value-{claim.id}")[0].text == claim.record_value
    changed = await visitor.send(claimed, "/role", role="reader")
    assert "The role is changed" in changed.text
    assert "The claim is deleted" in (await visitor.send(changed, f"{claim.id}/delete")).text


async def test_an_identity_provider_is_set_up_changed_disabled_and_deleted(visitor: Visitor) -> None:
    page = await visitor.open("people/providers")
    entered = {"name": "Acme Login", "issuer": "https://login.acme.example", "client_id": "recollect"}
    refused = await visitor.send(page, "people/providers", status=400, **entered, client_secret="")
    assert {name: refused.form("people/providers").fields[name] for name in entered} == entered
    added = await visitor.send(refused, "people/providers", client_secret="a-secret-of-theirs")
    assert "a-secret-of-theirs" not in added.source
    address = added.links()["Change"]
    form = await visitor.open_address(address)
    saved = await visitor.send(form, address, name="Acme", client_secret="")
    assert "It is changed" in saved.text
    outdated = await visitor.send(form, address, status=409, name="Acme Two", client_secret="")
    assert "Somebody changed this" in fault(outdated)
    assert outdated.form(address).fields["name"] == "Acme Two"
    assert "As it is now" in outdated.text
    off = await visitor.send(saved, "/switch")
    assert "Nobody can sign in by it" in off.text
    gone = await visitor.send(await visitor.open_address(off.links()["Delete"]), "/delete")
    assert "It is deleted" in gone.text
