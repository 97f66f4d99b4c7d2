"""Members and invitations, and the rules for changing roles."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.accounts.identity.service import PERSON_SUBJECT
from recollect.caller import ROLE_SCOPES, Caller, Role
from recollect.errors import ErrorCode, Forbidden


@dataclass(frozen=True, slots=True)
class Member:
    """A person in a tenant."""

    person_id: UUID
    email: str
    name: str
    role: Role
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Invitation:
    """An invitation as it is listed: never its secret."""

    id: UUID
    email: str
    role: Role
    created_at: datetime
    created_by: str
    expires_at: datetime
    accepted_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class IssuedInvitation:
    """An invitation at the one moment when its secret can be shown or sent."""

    invitation: Invitation
    secret: str


@dataclass(frozen=True, slots=True)
class OpenInvitation:
    """A valid invitation as the holder of its secret sees it.

    `proves_address`: it went to its address by mail and to nobody else, so its holder reads that mail.
    """

    tenant_id: UUID
    tenant: str
    tenant_name: str
    id: UUID
    email: str
    role: Role
    proves_address: bool


@dataclass(frozen=True, slots=True)
class NewMember:
    """A person who has joined with a new account; `confined_to`: the one tenant of which the account is, if any."""

    person_id: UUID
    confined_to: UUID | None


def given_by(role: Role | None) -> frozenset[Role]:
    """The roles that a member of this role may give by invitation; None: not a member."""
    if role is Role.OWNER:
        return frozenset(Role)
    return frozenset(Role) - {Role.OWNER} if role is Role.ADMIN else frozenset()


def subject_of(person_id: UUID) -> str:
    """The subject by which the log names a person."""
    return f"{PERSON_SUBJECT}{person_id}"


def require_may_give(caller: Caller, role: Role, *, instead_of: Role | None = None) -> None:
    """Raise Forbidden where the caller may not give this role, in place of a member's role (`instead_of`), if any.

    Only owners may give and take the role of owner, and nobody may give a role with more rights than their credential
    has, as with keys. An API key may manage members, as an admin may. An operator may do everything.
    """
    require_may_take(caller, role)
    if instead_of is not None:
        require_may_take(caller, instead_of)
    if instead_of is None or not ROLE_SCOPES[role] <= ROLE_SCOPES[instead_of]:
        caller.require_can_grant(role)


def require_may_take(caller: Caller, *roles: Role) -> None:
    """Raise Forbidden where the caller may not take one of these roles from a member."""
    if Role.OWNER in roles and caller.role is not Role.OWNER and not caller.is_operator:
        raise Forbidden(
            "Only an owner can make somebody an owner, or take that role away.", code=ErrorCode.ROLE_REQUIRED
        )
