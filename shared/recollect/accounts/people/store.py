"""One function per query of `queries.sql`."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from recollect.accounts.people.model import (
    Browser,
    Confinement,
    Credentials,
    DeletionOutcome,
    ListedSession,
    Membership,
    Person,
    ProofOutcome,
)
from recollect.caller import Role
from recollect.ids import new_id
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction

queries = Queries(__package__)


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """The data of a session and its person that a check needs."""

    id: UUID
    person_id: UUID
    email: str
    name: str
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    confined_to: UUID | None
    by_provider: bool
    read_at: datetime
    """When it was read, by the clock of the database, which set the other times."""


@dataclass(frozen=True, slots=True)
class ResetRecord:
    """A link for a password reset, and its person."""

    id: UUID
    person_id: UUID
    email: str
    name: str
    expires_at: datetime
    confined_to: UUID | None
    read_at: datetime
    """When it was read, by the clock of the database."""


async def find_credentials(session: Session, email: str) -> Credentials | None:
    """The credentials of a sign-in with this address; None for an unknown address."""
    return await session.fetch_object(queries.find_person, Credentials, email=email)


async def find_tenant_accounts(
    session: Session, email: str, *, tenant: str | None = None, person_id: UUID | None = None, most: int
) -> list[Credentials]:
    """The credentials of the accounts of this address that are of one tenant each, oldest first.

    That of this `tenant` (its slug) or person comes before all others.
    """
    return await session.fetch_objects(
        queries.find_tenant_accounts, Credentials, email=email, tenant=tenant, person_id=person_id, most=most
    )


async def insert_tenant_account(tx: Transaction, person_id: UUID, *, email: str, name: str, password_hash: str) -> bool:
    """Store a new person of the transaction's tenant alone; False if the tenant has an account of this address."""
    inserted = await tx.fetchval(
        queries.insert_tenant_account, person_id=person_id, email=email, name=name, password_hash=password_hash
    )
    return inserted is not None


async def prove_address(session: Session, *, as_copy: bool) -> ProofOutcome:
    """Make the account of this transaction's person one of no single tenant; `as_copy`: home has its password."""
    return ProofOutcome(await session.fetchval(queries.prove_address, as_copy=as_copy))


async def end_sign_ins(session: Session) -> None:
    """End the person's sessions, and delete their passkeys and their identities at providers, in this cell."""
    await session.execute(queries.end_sign_ins)


async def insert_person(
    session: Session, person_id: UUID, *, email: str, name: str, password_hash: str | None
) -> Person | None:
    """Store a new person; None if the address is taken."""
    return await session.fetch_object(
        queries.insert_person, Person, person_id=person_id, email=email, name=name, password_hash=password_hash
    )


async def lock_account_shared(home: Session, person_id: UUID) -> bool:
    """Prevent the deletion of a person's account until the transaction ends; False where there is none."""
    return await home.fetchval(queries.lock_account_shared, person_id=person_id) is not None


async def lock_account(home: Session, person_id: UUID) -> tuple[str, str] | None:
    """Prevent that a person becomes a member until the transaction ends; their address and name, or None if unknown."""
    row = await home.fetchrow(queries.lock_account, person_id=person_id)
    return (row["email"], row["name"]) if row else None


async def delete_account(session: Session) -> DeletionOutcome:
    """Delete the person of this transaction, or their copy in this cell, unless they are a member of a tenant here."""
    return DeletionOutcome(await session.fetchval(queries.delete_account))


async def act_as_person(tx: Transaction, person_id: UUID) -> None:
    """Let the transaction write the rows of this person, too."""
    await tx.execute(queries.act_as_person, person_id=person_id)


async def copy_person(session: Session, person_id: UUID, *, email: str, name: str) -> None:
    """Store a copy of a person whose account is at home, unless there is one."""
    await session.execute(queries.copy_person, person_id=person_id, email=email, name=name)


async def lock_password(session: Session, person_id: UUID, *, password_changes: int) -> bool:
    """Lock a person's password until the transaction ends; False where it was changed since `password_changes`."""
    locked = await session.fetchval(queries.lock_password, person_id=person_id, password_changes=password_changes)
    return locked is not None


async def set_password(session: Session, person_id: UUID, password_hash: str) -> None:
    """Store another password."""
    await session.execute(queries.set_password, person_id=person_id, password_hash=password_hash)


async def insert_session(
    session: Session,
    person_id: UUID,
    *,
    secret_hash: bytes,
    lifetime: timedelta,
    browser: Browser,
    confinement: Confinement | None,
    password_changes: int | None = None,
) -> tuple[UUID, datetime]:
    """Store a session; return its id, and when it expires.

    `password_changes`: the person's number of password changes before it.
    """
    session_id = new_id()
    expires_at: datetime = await session.fetchval(
        queries.insert_session,
        id=session_id,
        person_id=person_id,
        hash=secret_hash,
        lifetime=lifetime,
        user_agent=browser.user_agent,
        address=browser.address,
        confined_to=confinement.tenant_id if confinement else None,
        provider_id=confinement.provider_id if confinement else None,
        password_changes=password_changes,
    )
    return session_id, expires_at


async def count_password_changes(home: Session, person_id: UUID) -> int | None:
    """A person's number of password changes; None where their account is not at home."""
    return await home.fetchval(queries.count_password_changes, person_id=person_id)


async def find_session(session: Session, secret_hash: bytes) -> SessionRecord | None:
    """The session with this hash, of anybody; None if there is none."""
    return await session.fetch_object(queries.find_session, SessionRecord, hash=secret_hash)


async def touch_session(session: Session, person_id: UUID, session_id: UUID, used_at: datetime) -> None:
    """Note when a session was used."""
    await session.execute(queries.touch_session, person_id=person_id, id=session_id, used_at=used_at)


async def list_sessions(session: Session, person_id: UUID, *, within: UUID | None, limit: int) -> list[ListedSession]:
    """Valid sessions of a person, the most recently used first; `within` a tenant: those confined to it."""
    return await session.fetch_objects(
        queries.list_sessions, ListedSession, person_id=person_id, within=within, limit=limit
    )


async def forget_sessions(session: Session, person_id: UUID, *, retention: timedelta, most: int, limit: int) -> None:
    """Delete at most `limit` sessions of a person: that ended longer ago than `retention`, or are beyond `most`."""
    await session.execute(queries.forget_sessions, person_id=person_id, retention=retention, most=most, limit=limit)


async def revoke_session(
    session: Session, person_id: UUID, session_id: UUID, *, within: UUID | None
) -> ListedSession | None:
    """End a session; None if the person has no such session, or it was ended. `within` as in `list_sessions`."""
    return await session.fetch_object(
        queries.revoke_session, ListedSession, person_id=person_id, id=session_id, within=within
    )


async def find_revoked_session(
    session: Session, person_id: UUID, session_id: UUID, *, within: UUID | None
) -> ListedSession | None:
    """A session that was ended; None if the person has no such session. `within` as in `list_sessions`."""
    return await session.fetch_object(
        queries.find_revoked_session, ListedSession, person_id=person_id, id=session_id, within=within
    )


async def revoke_other_sessions(session: Session, person_id: UUID, *, except_session: UUID) -> None:
    """End all of a person's sessions but one."""
    await session.execute(queries.revoke_other_sessions, person_id=person_id, except_session=except_session)


async def revoke_sessions(session: Session, person_id: UUID) -> None:
    """End all of a person's sessions."""
    await session.execute(queries.revoke_sessions, person_id=person_id)


async def insert_reset(
    session: Session, person_id: UUID, *, reset_id: UUID, secret_hash: bytes, lifetime: timedelta
) -> None:
    """Store a link for a person's password reset, which is valid for this time."""
    await session.execute(queries.insert_reset, id=reset_id, person_id=person_id, hash=secret_hash, lifetime=lifetime)


async def find_reset(session: Session, secret_hash: bytes) -> ResetRecord | None:
    """The link with this hash, of anybody; None if there is none."""
    return await session.fetch_object(queries.find_reset, ResetRecord, hash=secret_hash)


async def use_reset(session: Session, person_id: UUID, reset_id: UUID) -> bool:
    """Use a link up; False where it is not valid any more."""
    return await session.fetchval(queries.use_reset, person_id=person_id, id=reset_id) is not None


async def forget_resets(session: Session, person_id: UUID, *, max_stored: int) -> None:
    """Delete a person's links that ended, and of the others all but the newest `max_stored`."""
    await session.execute(queries.forget_resets, person_id=person_id, max_stored=max_stored)


async def list_memberships(session: Session) -> list[Membership]:
    """The memberships of the person of this transaction, by slug."""
    rows = await session.fetch(queries.list_memberships)
    return [Membership(**{**row, "role": Role(row["role"])}) for row in rows]
