"""Use cases of identity: turn a credential into a Caller; create, list and revoke keys."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.accounts.identity import model, store
from recollect.accounts.identity.model import KIND_SCOPES, ApiKey, IssuedKey, NewKey
from recollect.accounts.identity.store import KeyRecord
from recollect.caller import Caller, Check, Rates, Scope, default_graph_of, unconditional
from recollect.cells.databases import Databases
from recollect.crypto.peppers import accepted_secrets_of, find_under_any_secret, hashes_under
from recollect.errors import (
    Conflict,
    CredentialEnded,
    ErrorCode,
    Forbidden,
    InvalidInput,
    NotFound,
    TenantSuspended,
    Unauthenticated,
    Unavailable,
)
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import Session, Transaction
from recollect.times import storable

KEY_SUBJECT = "key:"
PERSON_SUBJECT = "person:"
GRANT_SUBJECT = "grant:"
ISSUER_SUBJECT = "issuer:"
"""Prefixes of a Caller's subject: a key, a person, a grant to an OAuth client, or a subject of an issuer that the
tenant trusts. The id follows; after the id of an issuer, the issuer's subject."""

TOUCH_EVERY = timedelta(minutes=1)
MAX_OVERLAP = timedelta(days=30)
"""How long a rotated key may stay valid after it is replaced."""

MAX_KEYS = 10_000
"""The most keys of a tenant, void ones included: a new one replaces the one that has been void longest."""

REPORTED = "reported"
"""The subject of a report that a key leaked."""

REHASHED = "rehashed"
"""The subject under which a key's hash is replaced."""

REFUSAL = "A valid API key is needed: Authorization: Bearer rcl_…"
"""The message for every invalid credential: it does not say why."""

EXPIRED = "The access token has expired. Get another, by the refresh token if there is one."
"""The message for an access token whose time is over."""

NoteUse = Callable[[UUID, UUID, datetime], None]
"""Called with the tenant and the id of a key that was used, and when. Returns at once; the use is stored later."""


StartTask = Callable[[str, Callable[[], Awaitable[None]]], None]
"""Starts a named background task. Returns at once."""


async def authenticate(
    databases: Databases,
    secret: str,
    *,
    pepper: bytes,
    note_use: NoteUse | None = None,
    start_task: StartTask | None = None,
) -> Caller:
    """The Caller that a key stands for. Raises Unauthenticated, with one message for every reason, or Unavailable.

    It raises CredentialEnded for a key that was revoked or has expired.

    `note_use` is called for a key whose last noted use is more than a minute ago. While several peppers are accepted,
    its hash may be replaced: by a task that `start_task` starts, so that the call need not wait for a connection of its
    tenant.
    """
    record = await _find(databases, secret, pepper)
    if record is None:
        raise Unauthenticated(REFUSAL)
    if not record.is_valid:
        raise CredentialEnded(REFUSAL)
    if record.tenant_status != "active":
        raise TenantSuspended(REFUSAL)
    if record.last_used_at is None or record.last_used_at < record.read_at - TOUCH_EVERY:
        if accepted_secrets_of(pepper) and start_task is not None:
            start_task("hash a key anew", partial(_rehash, databases.of(record.tenant_id), record, secret, pepper))
        if note_use is not None:
            note_use(record.tenant_id, record.id, record.read_at)
    return _caller(record)


async def note_used(tx: Transaction, keys: Mapping[UUID, datetime]) -> None:
    """Store when keys of the tenant were last used, each at most once a minute."""
    await store.touch_keys(tx, keys, every=TOUCH_EVERY)


async def create_key(tx: Transaction, new: NewKey, *, pepper: bytes) -> IssuedKey:
    """Create a key; its secret is in the result and nowhere else.

    Raises InvalidInput, Forbidden where the key would have more rights than the caller (scopes, graphs, toolsets or
    lifetime), or Conflict where the tenant has MAX_KEYS valid keys.
    """
    new = _checked(new)
    if new.expires_at is not None and new.expires_at <= datetime.now(UTC):
        raise InvalidInput("This time is in the past: the key could never be used", path="expires_at")
    issued = await _issue(tx, new, pepper=pepper)
    key = issued.key
    await audit.record(tx, Action.KEY_CREATED, named("key", key.id), kind=key.kind, scopes=list(key.scopes))
    return issued


async def _issue(tx: Transaction, new: NewKey, *, pepper: bytes) -> IssuedKey:
    scopes = _scopes(new)
    for scope in scopes:
        tx.caller.require(Scope(scope))
    _require_end(tx.caller, new)
    graph_ids = (None,) if new.graph_ids is None else new.graph_ids
    for graph_id in graph_ids:
        tx.caller.require_graph(graph_id)
    _require_toolsets(tx.caller, new)
    await _make_room(tx)
    secret = model.generate_secret(new.kind)
    key = await store.insert_key(
        tx,
        new,
        scopes=scopes,
        key_hash=model.hash_secret(secret, pepper),
        hint=model.hint_of(secret),
        hashed_with=model.fingerprint_of(pepper),
    )
    return IssuedKey(key, secret)


async def _make_room(tx: Transaction) -> None:
    """Let the oldest void key go where the tenant has as many keys as it may; operators may make more."""
    if tx.caller.is_operator:
        return
    await store.lock_keys(tx)
    if await store.count_keys(tx, most=MAX_KEYS) >= MAX_KEYS and not await store.forget_void_key(tx):
        raise Conflict(
            f"A tenant can have at most {MAX_KEYS:,} valid keys. Revoke one first.", code=ErrorCode.TOO_MANY_KEYS
        )


async def get_key(tx: Transaction, key_id: UUID) -> ApiKey:
    """A key of the tenant, even a void one. Raises NotFound."""
    key = await store.find_key_by_id(tx, key_id)
    if key is None:
        raise _no_key()
    return key


async def rotate_key(
    tx: Transaction, key_id: UUID, *, overlap: timedelta, pepper: bytes, check: Check[ApiKey] = unconditional
) -> IssuedKey:
    """Create a key that is like another one, which expires after the overlap, or earlier if it would anyway.

    Raises NotFound, Conflict for a key that is void, InvalidInput for an overlap out of bounds, and Forbidden as
    `create_key` does.
    """
    if not timedelta(0) <= overlap <= MAX_OVERLAP:
        raise InvalidInput(f"Must be between 0 and {MAX_OVERLAP.days * 24} hours", path="overlap_hours")
    key = await store.lock_key(tx, key_id)
    if key is None:
        raise _no_key()
    check(key)
    if await store.is_void(tx, key_id):
        raise Conflict("This key was revoked or has expired. Create a new one.", code=ErrorCode.KEY_VOID)
    issued = await _issue(tx, model.alike(key), pepper=pepper)
    await store.expire_key(tx, key_id, overlap=overlap)
    old, new, seconds = named("key", key_id), named("key", issued.key.id), int(overlap.total_seconds())
    await audit.record(tx, Action.KEY_ROTATED, old, new, overlap_seconds=seconds)
    return issued


async def report_key(databases: Databases, secret: str, *, pepper: bytes, address: str | None = None) -> None:
    """Revoke a key that was found where it should not be: knowing the secret is the proof.

    The result does not say whether it was a key.

    `address`: where the report comes from, for the tenant's audit log.
    """
    record = await _find(databases, secret, pepper)
    if record is None:
        return
    async with databases.of(record.tenant_id).transaction(_reporting(record, address)) as tx:
        await store.revoke_key(tx, record.id)
        await audit.record(tx, Action.KEY_REPORTED, named("key", record.id), was_void=not record.is_valid)


async def list_keys(tx: Transaction, *, after: UUID | None = None, limit: int = 100) -> list[ApiKey]:
    """The tenant's keys, oldest first, void ones included."""
    return await store.list_keys(tx, after=after, limit=limit)


async def is_default_graph(tx: Transaction, graph_id: UUID) -> bool:
    """Whether a valid key has this graph as its default."""
    return await store.is_default_graph(tx, graph_id)


async def revoke_key(tx: Transaction, key_id: UUID, *, check: Check[ApiKey] = unconditional) -> ApiKey:
    """Revoke a key; doing it twice changes nothing. Raises NotFound, and as `check` does."""
    before = await store.lock_key(tx, key_id)
    if before is not None:
        check(before)
    key = await store.revoke_key(tx, key_id)
    if before is None or key is None:
        raise _no_key()
    if before.revoked_at is None:
        await audit.record(tx, Action.KEY_REVOKED, named("key", key_id))
    return key


async def require_subject_active(tx: Transaction, subject: str) -> None:
    """Raise Unauthenticated where the subject of a job may not do it any more, TenantSuspended for a suspended tenant.

    `subject`: that of the Caller that started it: a key that must be valid, a person who must be a member, a grant of
    such a person, or an issuer that must be trusted. Operators and the worker are always allowed.
    """
    kinds = (KEY_SUBJECT, PERSON_SUBJECT, GRANT_SUBJECT, ISSUER_SUBJECT)
    key_id, person_id, grant_id, issuer_id = (_id_in(subject, kind) for kind in kinds)
    is_active, is_allowed = await store.find_subject_state(
        tx, key_id=key_id, person_id=person_id, grant_id=grant_id, issuer_id=issuer_id
    )
    if key_id and not is_allowed:
        raise Unauthenticated("The key that started this was revoked or has expired.")
    if grant_id and not is_allowed:
        raise Unauthenticated("The grant with which a client started this was revoked.")
    if issuer_id and not is_allowed:
        raise Unauthenticated("The issuer of the token that started this is no longer trusted.")
    if person_id and not is_allowed:
        raise Unauthenticated("The person who started this is no longer a member.")
    if not is_active:
        raise TenantSuspended("The tenant is suspended.")


def _id_in(subject: str, kind: str) -> UUID | None:
    """The id in a subject of this kind; None for a subject of another kind."""
    return UUID(subject.removeprefix(kind).partition(":")[0]) if subject.startswith(kind) else None


def _no_key() -> NotFound:
    return NotFound("There is no such key.", code=ErrorCode.KEY_NOT_FOUND)


async def _find(databases: Databases, secret: str, pepper: bytes) -> KeyRecord | None:
    if not model.is_well_formed(secret):
        return None

    async def find(session: Session) -> KeyRecord | None:
        return await find_under_any_secret(
            pepper, lambda accepted: store.find_key(session, model.hash_secret(secret, accepted))
        )

    return await databases.find_in_any_cell(
        secret, find, stored_hashes=lambda: hashes_under(pepper, lambda accepted: model.hash_secret(secret, accepted))
    )


async def _rehash(db: TenantDatabase, record: KeyRecord, secret: str, pepper: bytes) -> None:
    """Store the key's hash under the current pepper, while others are accepted. If that fails, the key stays valid."""
    with suppress(Unavailable):
        async with db.transaction(_of_service(record, REHASHED)) as tx:
            await store.rehash_key(
                tx, record.id, key_hash=model.hash_secret(secret, pepper), hashed_with=model.fingerprint_of(pepper)
            )


def _reporting(record: KeyRecord, address: str | None) -> Caller:
    """The Caller that reports a key of the tenant, which may be suspended."""
    return _of_service(record, REPORTED, address)


def _of_service(record: KeyRecord, subject: str, address: str | None = None) -> Caller:
    return Caller(record.tenant_id, record.tenant, subject, frozenset(), address=address, of_service=True)


def _caller(record: KeyRecord) -> Caller:
    return Caller(
        tenant_id=record.tenant_id,
        tenant=record.tenant,
        subject=f"{KEY_SUBJECT}{record.id}",
        scopes=frozenset(Scope(scope) for scope in record.scopes),
        graphs=None if record.graph_ids is None else frozenset(record.graph_ids),
        toolsets=None if record.toolsets is None else frozenset(record.toolsets),
        default_graph=default_graph_of(record.default_graph, record.graph_ids),
        expires_at=record.expires_at,
        read_at=record.read_at,
        plan=record.plan,
        rates=Rates(record.requests_per_minute, record.key_requests_per_minute, record.concurrent_calls),
    )


def _require_end(creator: Caller, new: NewKey) -> None:
    """Raise Forbidden where a key that expires would create one that expires later, or never."""
    if creator.expires_at is not None and (new.expires_at is None or new.expires_at > creator.expires_at):
        end = creator.expires_at.isoformat()
        raise Forbidden(
            f"This credential expires at {end} and cannot create a key that expires later. Set expires_at to that time "
            "or earlier.",
            code=ErrorCode.EXPIRY_EXCEEDED,
            path="expires_at",
        )


def _require_toolsets(creator: Caller, new: NewKey) -> None:
    """Raise Forbidden where a key with limited toolsets would create one that has others."""
    if new.toolsets is None:
        creator.require_toolset(frozenset())
    for toolset in new.toolsets or ():
        creator.require_toolset(frozenset({toolset}))


def _scopes(new: NewKey) -> list[str]:
    if new.kind not in KIND_SCOPES:
        raise InvalidInput(f"A key's kind is one of {', '.join(KIND_SCOPES)}", path="kind")
    return sorted(KIND_SCOPES[new.kind] if new.scopes is None else new.scopes)


def _checked(new: NewKey) -> NewKey:
    name = model.key_name(new.name)
    if new.expires_at is not None and new.expires_at.tzinfo is None:
        raise InvalidInput("A time needs a UTC offset, such as 2027-01-31T00:00:00Z", path="expires_at")
    if new.requests_per_minute is not None and new.requests_per_minute < 1:
        raise InvalidInput("Must be at least 1 request per minute", path="requests_per_minute")
    if new.graph_ids is not None and new.default_graph_id not in (None, *new.graph_ids):
        raise InvalidInput("The default graph must be one of the allowed graphs", path="default_graph")
    try:
        return replace(new, name=name, expires_at=storable(new.expires_at) if new.expires_at else None)
    except OverflowError:
        raise InvalidInput("Outside the years 1 to 9999", path="expires_at") from None
