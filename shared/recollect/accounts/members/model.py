"""Members and invitations, and who may change whose role."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.accounts.identity.service import PERSON_SUBJECT
from recollect.caller import Caller, Role
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


def require_may_give(caller: Caller, *roles: Role) -> None:
    """Raise Forbidden where the caller may not give and take these roles: owners' are only owners' to give.

    An API key may manage members, as an admin may, and makes and unmakes no owners. An operator may do all.
    """
    if Role.OWNER in roles and caller.role is not Role.OWNER and not caller.is_operator:
        raise Forbidden("Only an owner makes and unmakes owners.", code=ErrorCode.ROLE_REQUIRED)
