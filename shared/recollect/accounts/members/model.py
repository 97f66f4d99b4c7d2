"""Members and invitations, and who may change whose role."""

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
    """What an invitation that holds says to who has its secret."""

    tenant_id: UUID
    tenant: str
    tenant_name: str
    id: UUID
    email: str
    role: Role


def given_by(role: Role | None) -> frozenset[Role]:
    """The roles for which a member of this role may invite; None is no member."""
    if role is Role.OWNER:
        return frozenset(Role)
    return frozenset(Role) - {Role.OWNER} if role is Role.ADMIN else frozenset()


def subject_of(person_id: UUID) -> str:
    """How the log names a person who acts."""
    return f"{PERSON_SUBJECT}{person_id}"


def require_may_give(caller: Caller, role: Role, *, instead_of: Role | None = None) -> None:
    """Raise Forbidden where the caller may not give this role, also `instead_of` what a member is.

    Owners are only owners' to make and unmake, and nobody gives a role that reaches further than their credential, as
    with keys. An API key may manage members, as an admin may. An operator may do all.
    """
    require_may_take(caller, role)
    if instead_of is not None:
        require_may_take(caller, instead_of)
    if instead_of is None or not ROLE_SCOPES[role] <= ROLE_SCOPES[instead_of]:
        caller.require_reach_of(role)


def require_may_take(caller: Caller, *roles: Role) -> None:
    """Raise Forbidden where the caller may not let a member of these roles be none any more."""
    if Role.OWNER in roles and caller.role is not Role.OWNER and not caller.is_operator:
        raise Forbidden("Only an owner makes and unmakes owners.", code=ErrorCode.ROLE_REQUIRED)
