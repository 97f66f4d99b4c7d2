"""`recollect members …`: the members of a tenant, by a gateway or, for operators who name the tenant, by the database.

Operators also invite the first owner.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal, get_args
from uuid import UUID

import msgspec
from cyclopts import App, Parameter

from recollect.accounts.members import service as members
from recollect.accounts.members.model import Invitation, Member
from recollect.accounts.members.sending import SentInvitation, invite_and_send
from recollect.caller import Caller, Role
from recollect.errors import InvalidInput
from recollect.outbound.mail import Mailer
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import Transaction
from recollect.settings import Settings
from recollect_cli.gateway import ApiKey, Url, body_of, connected
from recollect_cli.operations import as_tenant, for_tenant
from recollect_cli.running import operator_settings
from recollect_cli.tables import AsJson, echo, show, show_json
from recollect_cli.tenancy import MAX_LISTED, PAGE, TENANT, id_of, listed, require_one_option, tenant_of

app = App(name="members", help="Invite, list, update and remove the members of a tenant.")

NamedRole = Literal["owner", "admin", "member", "reader"]

_OF_MEMBER = f"{TENANT} PERSON-ID: the member's id, as `recollect members list` shows it."
TenantAndEmail = Annotated[
    str, Parameter(name="[TENANT] EMAIL", help=f"{TENANT} EMAIL: the e-mail address of the person.")
]
TenantAndPerson = Annotated[str, Parameter(name="[TENANT] PERSON-ID", help=_OF_MEMBER)]
TenantPersonAndRole = Annotated[
    str,
    Parameter(name="[TENANT] PERSON-ID ROLE", help=f"{_OF_MEMBER} ROLE: {', '.join(get_args(NamedRole))}."),
]


class MemberView(msgspec.Struct, frozen=True):
    """The fields of a member that commands show."""

    person_id: UUID
    email: str
    name: str
    role: str


class InvitationView(msgspec.Struct, frozen=True):
    """The fields of an invitation that commands show."""

    id: UUID
    email: str
    role: str
    expires_at: datetime
    accepted_at: datetime | None
    revoked_at: datetime | None


class SentView(msgspec.Struct, frozen=True):
    """An invitation that was made; `link` None: it was sent by mail."""

    email: str
    link: str | None


@app.command(usage="Usage: recollect members invite [TENANT] EMAIL [OPTIONS]")
def invite(*words: TenantAndEmail, role: NamedRole = "member", url: Url = None, api_key: ApiKey = None) -> None:
    """Invite a person by e-mail. Without a mail server, print the link. It is valid for a week.

    Operators also get the link if sending fails. Only they, and owners who are signed in, make somebody an owner.

    Parameters
    ----------
    role
        Role of the member: owner, admin, member or reader.
    """
    tenant, (email,) = tenant_of(words, "EMAIL", command="members invite", url=url, api_key=api_key)
    if tenant is not None:
        sent = invite_as_operator(tenant, email, Role(role))
        _print_sent(SentView(sent.invitation.email, sent.link))
        return
    with connected(url, api_key) as gateway:
        answer = gateway.send("POST", "/invitations", body_of(email=email, role=role))
    _print_sent(msgspec.json.decode(answer, type=SentView))


def invite_as_operator(tenant: str, email: str, role: Role, settings: Settings | None = None) -> SentInvitation:
    """Invite a person by the database, with any role. `settings`: those of the gateway, where they are known."""
    settings = settings or operator_settings()
    mailer = Mailer.of(settings)

    async def work(db: TenantDatabase, caller: Caller) -> SentInvitation:
        return await invite_and_send(db, caller, email, role, mailer=mailer, settings=settings)

    return as_tenant(tenant, work)


@app.command(name="list")
def list_members(
    tenant: Annotated[str | None, Parameter(help=TENANT)] = None,
    *,
    json: AsJson = False,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """List the members of a tenant, and the people who are invited and have not joined yet. --json: members alone."""
    require_one_option(tenant, url, api_key, json=json)
    if tenant is not None:
        _show(*for_tenant(tenant, _members_and_invitations))
        return
    with connected(url, api_key) as gateway:
        if json:
            show_json(gateway.send("GET", f"/members?limit={PAGE}"))
            return
        found = list(listed(gateway, "/members", MemberView))
        _show(found, list(listed(gateway, "/invitations", InvitationView)))


async def _members_and_invitations(tx: Transaction) -> tuple[list[Member], list[Invitation]]:
    return await members.list_members(tx, limit=MAX_LISTED), await members.list_invitations(tx, limit=MAX_LISTED)


@app.command(usage="Usage: recollect members set-role [TENANT] PERSON-ID ROLE [OPTIONS]")
def set_role(*words: TenantPersonAndRole, url: Url = None, api_key: ApiKey = None) -> None:
    """Change the role of a member."""
    tenant, (word, role) = tenant_of(words, "PERSON-ID", "ROLE", command="members set-role", url=url, api_key=api_key)
    person_id, known = id_of(word, "member"), _role(role)
    if tenant is not None:
        for_tenant(tenant, lambda tx: members.change_role(tx, person_id, known))
    else:
        with connected(url, api_key) as gateway:
            gateway.send("PATCH", f"/members/{person_id}", body_of(role=role))
    echo(f"{person_id} is {role} now.")


@app.command(usage="Usage: recollect members remove [TENANT] PERSON-ID [OPTIONS]")
def remove(*words: TenantAndPerson, url: Url = None, api_key: ApiKey = None) -> None:
    """Remove a member from a tenant."""
    tenant, (word,) = tenant_of(words, "PERSON-ID", command="members remove", url=url, api_key=api_key)
    person_id = id_of(word, "member")
    if tenant is not None:
        for_tenant(tenant, lambda tx: members.remove_member(tx, person_id))
    else:
        with connected(url, api_key) as gateway:
            gateway.send("DELETE", f"/members/{person_id}")
    echo(f"{person_id} is no longer a member.")


def _role(role: str) -> Role:
    if role not in get_args(NamedRole):
        raise InvalidInput(f"{role!r} is not a role: {', '.join(get_args(NamedRole))}")
    return Role(role)


def _print_sent(sent: SentView) -> None:
    if sent.link is None:
        print(f"Sent to {sent.email}.")
    else:
        print(sent.link)


def _show(found: Sequence[Member | MemberView], invitations: Iterable[Invitation | InvitationView]) -> None:
    rows = [(str(member.person_id), member.email, member.name, str(member.role)) for member in found]
    rows += [
        (str(each.id), each.email, f"(invited until {each.expires_at:%Y-%m-%d})", str(each.role))
        for each in invitations
        if each.accepted_at is None and each.revoked_at is None and each.expires_at > datetime.now(UTC)
    ]
    show(("id", "email", "name", "role"), rows, empty="There are no members.")
