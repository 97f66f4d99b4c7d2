"""One function per query of `queries.sql`. All but the look-up of a key run as the owner."""

from datetime import datetime, timedelta
from uuid import UUID

from recollect.accounts.operator_keys.model import FoundKey, OperatorKey, SessionKey
from recollect.ids import new_id
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session

queries = Queries(__package__)


async def insert_key(operator: Operator, name: str, *, key_hash: bytes, hint: str, lifetime: timedelta) -> OperatorKey:
    """Store a new key, which is valid for this time."""
    row = await operator.fetchrow(
        queries.insert_operator_key, id=new_id(), name=name, key_hash=key_hash, hint=hint, lifetime=lifetime
    )
    assert row is not None
    return OperatorKey(**row)


async def list_keys(operator: Operator) -> list[OperatorKey]:
    """Every key, oldest first."""
    return [OperatorKey(**row) for row in await operator.fetch(queries.list_operator_keys)]


async def revoke_key(operator: Operator, key_id: UUID) -> OperatorKey | None:
    """Make a key void; None if there is no such key."""
    return await operator.fetch_object(queries.revoke_operator_key, OperatorKey, key_id=key_id)


async def find_key(session: Session, key_hash: bytes) -> FoundKey | None:
    """The key with this hash; None if there is none."""
    return await session.fetch_object(queries.find_operator_key, FoundKey, key_hash=key_hash)


async def begin_session(session: Session, session_hash: bytes, key_id: UUID) -> datetime:
    """Store a new session of the holder of a key; return when it ends."""
    expires_at: datetime = await session.fetchval(
        queries.begin_operator_session, session_hash=session_hash, key_id=key_id
    )
    return expires_at


async def find_session(session: Session, session_hash: bytes) -> SessionKey | None:
    """The key of the session with this hash; None if there is no valid one."""
    row = await session.fetchrow(queries.find_operator_session, session_hash=session_hash)
    return SessionKey(**row) if row else None


async def end_session(session: Session, session_hash: bytes) -> None:
    """Delete the session with this hash, if there is one."""
    await session.execute(queries.end_operator_session, session_hash=session_hash)


async def count_hashed_keys(operator: Operator, *, hashed_with: bytes) -> tuple[int, int]:
    """How many valid API keys are hashed with a secret, and how many with another or an unknown one."""
    row = await operator.fetchrow(queries.count_hashed_keys, hashed_with=hashed_with)
    assert row is not None
    return row["with_it"], row["without_it"]
