"""Use cases of identity: turn a credential into a Caller; create, list and revoke keys."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from recollect.caller import Caller, Scope
from recollect.errors import ErrorCode, InvalidInput, NotFound, Unauthenticated
from recollect.identity import model, store
from recollect.identity.model import KIND_SCOPES, ApiKey, IssuedKey, NewKey
from recollect.identity.store import KeyRecord
from recollect.platform.db import Database, Transaction

MAX_NAME = 200
TOUCH_EVERY = timedelta(minutes=1)
REFUSAL = "A valid API key is needed: Authorization: Bearer rcl_…"
"""What is told for every credential that does not hold: no hint why."""


async def authenticate(db: Database, secret: str, *, pepper: bytes) -> Caller:
    """The Caller that a key stands for. Raises Unauthenticated, alike for every reason, or Unavailable."""
    record = await _find(db, secret, pepper)
    now = datetime.now(UTC)
    if record is None or not _holds(record, now):
        raise Unauthenticated(REFUSAL)
    caller = _caller(record)
    if record.last_used_at is None or record.last_used_at < now - TOUCH_EVERY:
        async with db.transaction(caller) as tx:
            await store.touch_key(tx, record.id)
    return caller


async def create_key(tx: Transaction, new: NewKey, *, pepper: bytes) -> IssuedKey:
    """Make a key; its secret is in the answer and nowhere else.

    Raises InvalidInput, or Forbidden where it would reach graphs that its maker does not.
    """
    scopes = _scopes(new)
    _check(new)
    for graph_id in (None,) if new.graph_ids is None else new.graph_ids:
        tx.caller.require_graph(graph_id)
    secret = model.generate_secret(new.kind)
    key = await store.insert_key(
        tx, new, scopes=scopes, key_hash=model.hash_secret(secret, pepper), hint=model.hint_of(secret)
    )
    return IssuedKey(key, secret)


async def list_keys(tx: Transaction, *, after: UUID | None = None, limit: int = 100) -> list[ApiKey]:
    """The tenant's keys, oldest first, void ones too."""
    return await store.list_keys(tx, after=after, limit=limit)


async def is_default_graph(tx: Transaction, graph_id: UUID) -> bool:
    """Whether a key that still holds has this graph as its default."""
    return await store.is_default_graph(tx, graph_id)


async def revoke_key(tx: Transaction, key_id: UUID) -> ApiKey:
    """Make a key void from now on; doing it twice changes nothing. Raises NotFound."""
    key = await store.revoke_key(tx, key_id)
    if key is None:
        raise NotFound("There is no such key.", code=ErrorCode.KEY_NOT_FOUND)
    return key


async def _find(db: Database, secret: str, pepper: bytes) -> KeyRecord | None:
    if not model.is_well_formed(secret):
        return None
    async with db.system() as session:
        return await store.find_key(session, model.hash_secret(secret, pepper))


def _holds(record: KeyRecord, now: datetime) -> bool:
    expired = record.expires_at is not None and record.expires_at <= now
    return record.revoked_at is None and not expired and record.tenant_status == "active"


def _caller(record: KeyRecord) -> Caller:
    return Caller(
        tenant_id=record.tenant_id,
        tenant=record.tenant,
        subject=f"key:{record.id}",
        scopes=frozenset(Scope(scope) for scope in record.scopes),
        graphs=None if record.graph_ids is None else frozenset(record.graph_ids),
        default_graph=record.default_graph or "default",
    )


def _scopes(new: NewKey) -> list[str]:
    if new.kind not in KIND_SCOPES:
        raise InvalidInput(f"A key's kind is one of {', '.join(KIND_SCOPES)}", path="kind")
    return sorted(KIND_SCOPES[new.kind] if new.scopes is None else new.scopes)


def _check(new: NewKey) -> None:
    if not 1 <= len(new.name) <= MAX_NAME:
        raise InvalidInput(f"A key's name has 1 to {MAX_NAME} characters", path="name")
    if new.expires_at is not None and new.expires_at.tzinfo is None:
        raise InvalidInput("A time with its offset is needed, such as 2027-01-31T00:00:00Z", path="expires_at")
    if new.expires_at is not None and not _in_calendar(new.expires_at):
        raise InvalidInput("Outside the years 1 to 9999", path="expires_at")
    if new.graph_ids is not None and new.default_graph_id not in (None, *new.graph_ids):
        raise InvalidInput("The default graph must be one of the allowed graphs", path="default_graph")


def _in_calendar(time: datetime) -> bool:
    """Whether a time's offset leaves it in the calendar."""
    try:
        time.astimezone(UTC)
    except OverflowError:
        return False
    return True
