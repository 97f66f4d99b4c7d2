"""One function per query of `queries.sql`. Each query calls a SECURITY DEFINER function, since keys have no tenant."""

from recollect.accounts.oauth.signing.model import StoredKey
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session

queries = Queries(__package__)


async def list_keys(session: Session) -> list[StoredKey]:
    """All signing keys, the newest first."""
    return [StoredKey(**row) for row in await session.fetch(queries.list_keys)]


async def add_key(session: Session, key: StoredKey) -> None:
    """Store a key, unless there is a young one of its secret."""
    await session.execute(
        queries.add_key,
        id=key.id,
        fingerprint=key.fingerprint,
        public_key=key.public_key,
        private_key=key.private_key,
    )
