"""One function per query of `queries.sql`."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from recollect.accounts.members.model import Invitation, Member
from recollect.caller import Role
from recollect.ids import new_id
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction

queries = Queries(__package__)


@dataclass(frozen=True, slots=True)
class InvitationRecord:
    """The data of an invitation and its tenant that a check needs."""

    tenant_id: UUID
    tenant: str
    tenant_name: str
    tenant_status: str
    id: UUID
    email: str
    role: str
    expires_at: datetime
    accepted_at: datetime | None
    revoked_at: datetime | None
    mailed_at: datetime | None
    read_at: datetime
    """When it was read, by the clock of the database, which set the other times."""


async def list_members(tx: Transaction, *, after: UUID | None, limit: int) -> list[Member]:
    """The tenant's members after a person's id."""
    return [_member(row) for row in await tx.fetch(queries.list_members, after=after, limit=limit)]


async def find_member(tx: Transaction, person_id: UUID) -> Member | None:
    """A member of the tenant, or None."""
    row = await tx.fetchrow(queries.find_member, person_id=person_id)
    return _member(row) if row else None


async def has_account(tx: Transaction, email: str) -> bool:
    """Whether a member who signs in by an account of their own has this address."""
    return await tx.fetchval(queries.find_account_member, email=email) is not None


async def lock_members(tx: Transaction, person_id: UUID) -> dict[UUID, Role]:
    """The roles of the tenant's owners and of this member, locked until the transaction ends."""
    rows = await tx.fetch(queries.lock_members, person_id=person_id)
    return {row["person_id"]: Role(row["role"]) for row in rows}


async def lock_number(tx: Transaction) -> None:
    """Lock the number of the tenant's members until the transaction ends."""
    await tx.execute(queries.lock_number)


async def count_members(tx: Transaction, *, most: int) -> int:
    """The number of members, counted up to `most`."""
    return await tx.fetchval(queries.count_members, most=most)


async def insert_member(tx: Transaction, person_id: UUID, role: Role) -> bool:
    """Make a person a member; False where they are one already."""
    return await tx.fetchval(queries.insert_member, person_id=person_id, role=role) is not None


async def set_role(tx: Transaction, person_id: UUID, role: Role) -> None:
    """Give a member another role."""
    await tx.execute(queries.set_role, person_id=person_id, role=role)


async def delete_member(tx: Transaction, person_id: UUID) -> None:
    """Remove a member."""
    await tx.execute(queries.delete_member, person_id=person_id)


async def insert_invitation(
    tx: Transaction, *, email: str, role: Role, secret_hash: bytes, lifetime: timedelta
) -> Invitation:
    """Store an invitation, which is valid for this time."""
    row = await tx.fetchrow(
        queries.insert_invitation,
        id=new_id(),
        email=email,
        role=role,
        hash=secret_hash,
        subject=tx.caller.subject,
        lifetime=lifetime,
    )
    assert row is not None
    return _invitation(row)


async def count_invitations(tx: Transaction, email: str, *, most: int) -> tuple[int, int]:
    """The number of invitations, and of valid ones for other addresses than this, each counted up to `most`."""
    row = await tx.fetchrow(queries.count_invitations, email=email, most=most)
    assert row is not None
    return row["stored"], row["open"]


async def forget_void_invitation(tx: Transaction) -> bool:
    """Delete the oldest invitation that is not valid; False if none may be deleted."""
    return await tx.fetchval(queries.forget_void_invitation)


async def revoke_earlier_invitations(tx: Transaction, invitation_id: UUID) -> None:
    """Revoke the earlier invitations of an invitation's address."""
    await tx.execute(queries.revoke_earlier_invitations, id=invitation_id)


async def lock_invitations(tx: Transaction) -> None:
    """Lock the tenant's invitations against other calls that invite or count mails, until the transaction ends."""
    await tx.execute(queries.lock_invitations)


async def claim_invitation_mail(tx: Transaction, invitation_id: UUID, *, per_day: int) -> bool:
    """Note that an invitation is sent, unless `per_day` were sent in 24 hours; False in that case."""
    claimed_id = await tx.fetchval(queries.claim_invitation_mail, id=invitation_id, per_day=per_day)
    return claimed_id is not None


async def release_invitation_mail(tx: Transaction, invitation_id: UUID) -> None:
    """Note that an invitation was not sent after all."""
    await tx.execute(queries.release_invitation_mail, id=invitation_id)


async def list_invitations(tx: Transaction, *, after: UUID | None, limit: int) -> list[Invitation]:
    """The tenant's invitations after an id."""
    return [_invitation(row) for row in await tx.fetch(queries.list_invitations, after=after, limit=limit)]


async def lock_invitation(tx: Transaction, invitation_id: UUID) -> Invitation | None:
    """An invitation, locked until the transaction ends; None if the tenant has no such one."""
    row = await tx.fetchrow(queries.lock_invitation, id=invitation_id)
    return _invitation(row) if row else None


async def revoke_invitation(tx: Transaction, invitation_id: UUID) -> Invitation | None:
    """Revoke an invitation; None if the tenant has no such one."""
    row = await tx.fetchrow(queries.revoke_invitation, id=invitation_id)
    return _invitation(row) if row else None


async def revoke_invitations_of(tx: Transaction, subject: str, *, except_roles: Iterable[Role]) -> list[UUID]:
    """Revoke a subject's valid invitations, except for those to the kept roles; their ids, oldest first."""
    rows = await tx.fetch(queries.revoke_invitations_of, created_by=subject, except_roles=sorted(except_roles))
    return sorted(row["id"] for row in rows)


async def find_invitation(session: Session, secret_hash: bytes) -> InvitationRecord | None:
    """The invitation with this hash, of any tenant; None if there is none."""
    return await session.fetch_object(queries.find_invitation, InvitationRecord, hash=secret_hash)


async def find_invited(tx: Transaction, invitation_id: UUID) -> str | None:
    """The e-mail address of an invitation of the tenant; None if there is no such invitation."""
    return await tx.fetchval(queries.find_invited, id=invitation_id)


async def accept_invitation(tx: Transaction, invitation_id: UUID) -> Role | None:
    """Use an invitation up; the role that it gives, or None where it is not valid any more."""
    role = await tx.fetchval(queries.accept_invitation, id=invitation_id)
    return Role(role) if role else None


def _member(row: asyncpg.Record) -> Member:
    return Member(**{**row, "role": Role(row["role"])})


def _invitation(row: asyncpg.Record) -> Invitation:
    return Invitation(**{**row, "role": Role(row["role"])})
