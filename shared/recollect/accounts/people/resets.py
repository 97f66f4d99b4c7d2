"""Use cases of a forgotten password: a link by mail to the address, by which the password can be reset once."""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from recollect.accounts.audit.model import Action
from recollect.accounts.identity.model import hash_secret
from recollect.accounts.people import acts, passwords, store
from recollect.accounts.people.breached import BreachedPasswords
from recollect.accounts.people.model import Credentials, normalized_email
from recollect.errors import NotFound
from recollect.ids import new_id
from recollect.peppers import find_under_any_secret
from recollect.platform.db import Database
from recollect.platform.mail import Letter

RESET_LIFETIME = timedelta(hours=1)
MAX_RESETS = 5
"""The most valid links of one person; one more ends the oldest."""

MAX_SECRET = 100
"""The most characters of a link's secret; longer text is refused."""


@dataclass(frozen=True, slots=True)
class OpenReset:
    """A valid link and its person."""

    id: UUID
    person_id: UUID
    email: str
    name: str


async def find_account(db: Database, email: str) -> Credentials | None:
    """The account of an address, if any. Raises InvalidInput for text that is no address."""
    async with db.system() as session:
        return await store.find_credentials(session, normalized_email(email))


async def begin_reset(db: Database, person_id: UUID, *, pepper: bytes) -> str:
    """The secret of a link by which this person can reset the password; it is in the result and nowhere else."""
    secret, expires_at = secrets.token_urlsafe(32), datetime.now(UTC) + RESET_LIFETIME
    async with db.personal(person_id) as session:
        await store.forget_resets(session, person_id, kept=MAX_RESETS - 1)
        await store.insert_reset(
            session, person_id, reset_id=new_id(), secret_hash=hash_secret(secret, pepper), expires_at=expires_at
        )
    return secret


async def open_reset(db: Database, secret: str, *, pepper: bytes) -> OpenReset:
    """The valid link of this secret. Raises NotFound, with one message for every reason why it is not valid."""
    record = None
    if secret and len(secret) <= MAX_SECRET:
        async with db.system() as session:
            record = await find_under_any_secret(
                pepper, lambda accepted: store.find_reset(session, hash_secret(secret, accepted))
            )
    if record is None or record.expires_at <= datetime.now(UTC):
        raise _void()
    return OpenReset(record.id, record.person_id, record.email, record.name)


async def reset_password(
    db: Database,
    reset: OpenReset,
    password: str,
    *,
    breached: BreachedPasswords | None = None,
    address: str | None = None,
) -> None:
    """Set another password, and end all sessions and reset links of the person. `address`: their address.

    Raises InvalidInput for a password that is refused, after which the link is still valid; NotFound where it was used
    meanwhile.
    """
    await passwords.require_strong(password, (reset.email, reset.name), breached)
    password_hash = await passwords.hash_password(password)
    changed = acts.Act(Action.PASSWORD_CHANGED, address)
    async with db.personal(reset.person_id) as session:
        if not await store.use_reset(session, reset.person_id, reset.id):
            raise _void()
        await store.forget_resets(session, reset.person_id, kept=0)
        await store.set_password(session, reset.person_id, password_hash)
        await store.revoke_sessions(session, reset.person_id)
        await acts.record(session, reset.person_id, changed)
    await acts.end_sessions_elsewhere(db, reset.person_id, changed)


def reset_letter(email: str, link: str) -> Letter:
    """The mail with the link."""
    return Letter(
        to=email,
        subject="Choose a new password for Recollect",
        text=(
            "Somebody, probably you, asked for a new password for your account on Recollect.\n"
            "\n"
            "Open this link to choose one:\n"
            "\n"
            f"{link}\n"
            "\n"
            "The link works once and is valid for an hour. A new password ends all your sessions.\n"
            "If you did not ask for it, you can ignore this mail: your password stays as it is.\n"
        ),
    )


def _void() -> NotFound:
    return NotFound("This link is no longer valid. Ask for a new one at /forgot.")
