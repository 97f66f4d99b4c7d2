"""One function per query of `queries.sql`."""

from datetime import timedelta
from uuid import UUID

from recollect.accounts.passkeys.model import Passkey, StoredPasskey
from recollect.ids import new_id
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session

queries = Queries(__package__)


async def keep_challenge(session: Session, challenge: bytes, browser: bytes, *, lifetime: timedelta) -> None:
    """Store the challenge that a browser is to sign."""
    await session.execute(queries.keep_challenge, challenge=challenge, browser=browser, lifetime=lifetime)


async def take_challenge(session: Session, challenge: bytes, browser: bytes) -> bool:
    """Use a challenge up; return whether it was valid."""
    return await session.fetchval(queries.take_challenge, challenge=challenge, browser=browser) is True


async def find_passkey(session: Session, credential_id: bytes) -> StoredPasskey | None:
    """The passkey with this credential, of any person."""
    return await session.fetch_object(queries.find_passkey, StoredPasskey, credential_id=credential_id)


async def insert_passkey(
    session: Session, person_id: UUID, *, credential_id: bytes, public_key: bytes, sign_count: int, name: str, most: int
) -> Passkey | None:
    """Store a passkey; None if it is registered already, or the person has `most`."""
    return await session.fetch_object(
        queries.insert_passkey,
        Passkey,
        id=new_id(),
        person_id=person_id,
        credential_id=credential_id,
        public_key=public_key,
        sign_count=sign_count,
        name=name,
        most=most,
    )


async def list_passkeys(session: Session, person_id: UUID, *, limit: int) -> list[Passkey]:
    """A person's passkeys, oldest first."""
    return [Passkey(**row) for row in await session.fetch(queries.list_passkeys, person_id=person_id, limit=limit)]


async def list_credentials(session: Session, person_id: UUID, *, limit: int) -> list[bytes]:
    """The credentials of a person's passkeys."""
    return await session.fetch_column(queries.list_credentials, "credential_id", person_id=person_id, limit=limit)


async def note_use(session: Session, passkey: StoredPasskey, *, sign_count: int) -> bool:
    """Note that a passkey was used; False if another use came first."""
    noted = await session.fetchval(
        queries.note_use, person_id=passkey.person_id, id=passkey.id, was=passkey.sign_count, sign_count=sign_count
    )
    return noted is not None


async def rename_passkey(session: Session, person_id: UUID, passkey_id: UUID, name: str) -> bool:
    """Give a passkey another name; False if the person has no such passkey."""
    return await session.fetchval(queries.rename_passkey, person_id=person_id, id=passkey_id, name=name) is not None


async def delete_passkey(session: Session, person_id: UUID, passkey_id: UUID) -> bool:
    """Delete a passkey; False if the person has no such passkey."""
    return await session.fetchval(queries.delete_passkey, person_id=person_id, id=passkey_id) is not None
