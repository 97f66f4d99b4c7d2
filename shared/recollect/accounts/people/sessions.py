"""Use cases of sessions: begin one, find its person, list those of a person, end one.

A session ends after `SESSION_LIFETIME`, and earlier if it is not used for `IDLE_LIFETIME`.
"""

import secrets
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from recollect.accounts.audit.model import Action, named
from recollect.accounts.identity.model import hash_secret
from recollect.accounts.people import acts, store
from recollect.accounts.people.model import (
    MAX_USER_AGENT,
    Browser,
    Confinement,
    IssuedSession,
    ListedSession,
    PersonSession,
)
from recollect.accounts.people.store import SessionRecord
from recollect.cells.databases import Databases
from recollect.crypto.peppers import find_under_any_secret, hashes_under
from recollect.errors import ErrorCode, NotFound, TenantMoving, Unauthenticated
from recollect.postgres.transactions import Session
from recollect.text.control_characters import printable

SESSION_LIFETIME = timedelta(days=30)
IDLE_LIFETIME = timedelta(days=7)
TOUCH_EVERY = timedelta(minutes=1)
ENDED_SESSION_RETENTION = timedelta(days=30)
"""How long a session is kept after its end; then the person's next sign-in deletes it."""

MAX_SESSIONS = 100
"""The most sessions of a person that are listed, the most recently used first."""

MAX_STORED_SESSIONS = 1_000
"""The most sessions of a person that are stored, ended ones included: a sign-in ends the least recently used ones."""

MAX_SECRET = 100
"""The most characters of a session's secret; longer text is refused."""

REFUSAL = "The address or the password is wrong."


async def begin_session(
    databases: Databases,
    person_id: UUID,
    browser: Browser,
    *,
    pepper: bytes,
    confinement: Confinement | None = None,
    password_changes: int | None = None,
) -> IssuedSession:
    """Begin a session of a person who has been authenticated, by us or by a tenant's provider.

    `confinement`: of a session that a provider began, and of an account of one tenant.

    `password_changes`: their number of password changes when the password was verified; None without a password.
    Raises Unauthenticated where the password was changed since.
    """
    secret = secrets.token_urlsafe(32)
    stored_browser = Browser(printable(browser.user_agent[:MAX_USER_AGENT]), browser.address)
    within = confinement.tenant_id if confinement else None
    by_provider = confinement is not None and confinement.provider_id is not None
    changes_at_home = (
        await _password_changes(databases, person_id) if by_provider and databases.has_several_cells else None
    )
    async with databases.personal(person_id, within=within) as session:
        if password_changes is not None and not await store.lock_password(
            session, person_id, password_changes=password_changes
        ):
            raise Unauthenticated(REFUSAL)
        session_id, expires_at = await store.insert_session(
            session,
            person_id,
            secret_hash=hash_secret(secret, pepper),
            lifetime=SESSION_LIFETIME,
            browser=stored_browser,
            confinement=confinement,
            password_changes=changes_at_home,
        )
        await store.forget_sessions(
            session, person_id, retention=ENDED_SESSION_RETENTION, most=MAX_STORED_SESSIONS, limit=MAX_SESSIONS
        )
        started = acts.Act(Action.SESSION_STARTED, browser.address, (named("session", session_id),))
        await acts.record(session, person_id, started, within=within)
    await acts.record_in_other_cells(databases, person_id, started, within=within)
    return IssuedSession(session_id, person_id, secret, expires_at)


async def _password_changes(databases: Databases, person_id: UUID) -> int | None:
    """A person's number of password changes so far: a later change ends sessions that begin now."""
    async with databases.home.personal(person_id) as home:
        return await store.count_password_changes(home, person_id)


async def session_of(databases: Databases, secret: str, *, pepper: bytes) -> PersonSession | None:
    """The session of this secret; None where it is not valid, or has ended."""
    found = await find_session(databases, secret, pepper=pepper)
    return None if found is None else await use_session(databases, found)


async def find_session(databases: Databases, secret: str, *, pepper: bytes) -> SessionRecord | None:
    """What is stored of the session of this secret, even if it has ended; None for any other text."""
    if not secret or len(secret) > MAX_SECRET:
        return None

    async def find(session: Session) -> SessionRecord | None:
        return await find_under_any_secret(
            pepper, lambda accepted: store.find_session(session, hash_secret(secret, accepted))
        )

    return await databases.find_in_any_cell(
        secret, find, stored_hashes=lambda: hashes_under(pepper, lambda accepted: hash_secret(secret, accepted))
    )


async def use_session(databases: Databases, record: SessionRecord) -> PersonSession | None:
    """A session of `find_session`, noted as used; None where it has ended."""
    now = record.read_at
    if record.revoked_at is not None:
        return None
    if record.expires_at <= now or record.last_used_at <= now - IDLE_LIFETIME:
        return None
    if record.last_used_at < now - TOUCH_EVERY:
        with suppress(TenantMoving):  # While a move blocks writes, reads go on.
            async with databases.personal(record.person_id, within=record.confined_to) as session:
                await store.touch_session(session, record.person_id, record.id, now)
    return PersonSession(
        record.id,
        record.person_id,
        record.email,
        record.name,
        record.created_at,
        record.last_used_at,
        record.expires_at,
        record.confined_to,
        record.by_provider,
        read_at=now,
    )


async def list_sessions(databases: Databases, person_id: UUID, *, within: UUID | None) -> list[ListedSession]:
    """A person's valid sessions, the most recently used first.

    `within`: the tenant to which the calling session is confined; it sees sessions confined to the same tenant.
    """

    async def list_in_cell(session: Session) -> list[ListedSession]:
        return await store.list_sessions(session, person_id, within=within, limit=MAX_SESSIONS)

    if within is None:
        sessions = await databases.list_from_all_cells(list_in_cell, person_id=person_id)
        return sorted(sessions, key=lambda session: session.last_used_at, reverse=True)[:MAX_SESSIONS]
    async with databases.personal(person_id, within=within) as session:
        return await list_in_cell(session)


async def end_session(
    databases: Databases, person_id: UUID, session_id: UUID, *, within: UUID | None, address: str | None = None
) -> ListedSession:
    """End one of a person's sessions; doing it twice changes nothing.

    `within` as in `list_sessions`; `address`: the person's. Raises NotFound.
    """
    act = acts.Act(Action.SESSION_ENDED, address, (named("session", session_id),))

    async def end(session: Session) -> ListedSession | None:
        ended = await store.revoke_session(session, person_id, session_id, within=within)
        if ended is None:
            return await store.find_revoked_session(session, person_id, session_id, within=within)
        await acts.record(session, person_id, act, within=within)
        return ended

    if within is None:
        ended = await databases.find_in_any_cell(str(session_id), end, person_id=person_id)
    else:
        async with databases.personal(person_id, within=within) as session:
            ended = await end(session)
    if ended is None:
        raise NotFound("There is no such session.", code=ErrorCode.SESSION_NOT_FOUND)
    return ended
