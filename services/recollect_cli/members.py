"""`recollect members …`: the members of a tenant. It also invites the first owner."""

from typing import Literal
from uuid import UUID

from cyclopts import App

from recollect.accounts.members import service as members
from recollect.accounts.members.sending import SentInvitation, invite_and_send
from recollect.caller import Caller, Role
from recollect.platform.db import Database
from recollect.platform.mail import Mailer
from recollect.settings import Settings
from recollect_cli.operations import as_tenant, for_tenant
from recollect_cli.tables import show

app = App(name="members", help="Invite, list, update and remove the members of a tenant.")

NamedRole = Literal["owner", "admin", "member", "reader"]


@app.command
def invite(tenant: str, email: str, *, role: NamedRole = "member") -> None:
    """Invite somebody by e-mail. Without a mail server, or if sending fails, print the link. It is valid for a week.

    Parameters
    ----------
    tenant
        The tenant's slug.
    email
        E-mail address of the person.
    role
        Role of the member: owner, admin, member or reader.
    """

    settings = Settings()
    mailer = Mailer.of(settings)

    async def work(db: Database, caller: Caller) -> SentInvitation:
        return await invite_and_send(db, caller, email, Role(role), mailer=mailer, settings=settings)

    sent = as_tenant(tenant, work)
    print(f"Sent to {sent.invitation.email}." if sent.link is None else sent.link)


@app.command(name="list")
def list_members(tenant: str) -> None:
    """List the members of a tenant.

    Parameters
    ----------
    tenant
        The tenant's slug.
    """
    found = for_tenant(tenant, lambda tx: members.list_members(tx, limit=1000))
    rows = [(str(member.person_id), member.email, member.name, str(member.role)) for member in found]
    show(("id", "email", "name", "role"), rows)


@app.command
def set_role(tenant: str, person_id: UUID, role: NamedRole) -> None:
    """Change the role of a member.

    Parameters
    ----------
    tenant
        The tenant's slug.
    person_id
        The member's id, from `recollect members list`.
    role
        Role of the member: owner, admin, member or reader.
    """
    for_tenant(tenant, lambda tx: members.change_role(tx, person_id, Role(role)))


@app.command
def remove(tenant: str, person_id: UUID) -> None:
    """Remove a member from a tenant.

    Parameters
    ----------
    tenant
        The tenant's slug.
    person_id
        The member's id, from `recollect members list`.
    """
    for_tenant(tenant, lambda tx: members.remove_member(tx, person_id))
