"""One function per query of `queries.sql`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from recollect.accounts.identity.model import ApiKey, NewKey
from recollect.ids import new_id
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction

queries = Queries(__package__)


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """The data of a key and its tenant that a credential check needs."""

    tenant_id: UUID
    tenant: str
    tenant_status: str
    id: UUID
    kind: str
    scopes: list[str]
    graph_ids: list[UUID] | None
    default_graph: str | None
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    toolsets: list[str] | None
    plan: str
    requests_per_minute: int | None
    key_requests_per_minute: int | None
    concurrent_calls: int | None
    read_at: datetime

    @property
    def is_valid(self) -> bool:
        """Whether it was neither revoked nor expired when it was read, by the database's clock."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > self.read_at)


async def find_key(session: Session, key_hash: bytes) -> KeyRecord | None:
    """The key with this hash, of any tenant; None if there is none."""
    return await session.fetch_object(queries.find_api_key, KeyRecord, key_hash=key_hash)


async def rehash_key(tx: Transaction, key_id: UUID, *, key_hash: bytes, hashed_with: bytes) -> None:
    """Store the hash of a key under another pepper, where that is not done yet."""
    await tx.execute(queries.rehash_api_key, key_id=key_id, key_hash=key_hash, hashed_with=hashed_with)


async def insert_key(
    tx: Transaction, new: NewKey, *, scopes: list[str], key_hash: bytes, hint: str, hashed_with: bytes
) -> ApiKey:
    """Store a new key."""
    row = await tx.fetchrow(
        queries.insert_api_key,
        id=new_id(),
        name=new.name,
        kind=new.kind,
        key_hash=key_hash,
        hashed_with=hashed_with,
        hint=hint,
        scopes=scopes,
        graph_ids=new.graph_ids,
        default_graph_id=new.default_graph_id,
        subject=tx.caller.subject,
        expires_at=new.expires_at,
        toolsets=new.toolsets,
        requests_per_minute=new.requests_per_minute,
    )
    assert row is not None
    return _key(row)


async def lock_keys(tx: Transaction) -> None:
    """Lock the number of the tenant's keys until the transaction ends."""
    await tx.execute(queries.lock_keys)


async def count_keys(tx: Transaction, *, most: int) -> int:
    """The number of the tenant's keys, void ones included, counted up to `most`."""
    return await tx.fetchval(queries.count_keys, most=most)


async def forget_void_key(tx: Transaction) -> bool:
    """Delete the key that has been void for the longest time; False if none is void."""
    return await tx.fetchval(queries.forget_void_key)


async def list_keys(tx: Transaction, *, after: UUID | None, limit: int) -> list[ApiKey]:
    """The tenant's keys, oldest first."""
    return [_key(row) for row in await tx.fetch(queries.list_api_keys, after=after, limit=limit)]


async def find_key_by_id(tx: Transaction, key_id: UUID) -> ApiKey | None:
    """A key; None if the tenant has no such key."""
    row = await tx.fetchrow(queries.find_key_by_id, key_id=key_id)
    return _key(row) if row else None


async def lock_key(tx: Transaction, key_id: UUID) -> ApiKey | None:
    """A key, locked until the transaction ends; None if the tenant has no such key."""
    row = await tx.fetchrow(queries.lock_api_key, key_id=key_id)
    return _key(row) if row else None


async def expire_key(tx: Transaction, key_id: UUID, *, overlap: timedelta) -> None:
    """Let a key expire after this time, unless it expires earlier."""
    await tx.execute(queries.expire_api_key, key_id=key_id, overlap=overlap)


async def is_void(tx: Transaction, key_id: UUID) -> bool:
    """Whether a key of the tenant was revoked or has expired."""
    return bool(await tx.fetchval(queries.is_void, key_id=key_id))


async def revoke_key(tx: Transaction, key_id: UUID) -> ApiKey | None:
    """Revoke a key; None if the tenant has no such key."""
    row = await tx.fetchrow(queries.revoke_api_key, key_id=key_id)
    return _key(row) if row else None


async def touch_keys(tx: Transaction, keys: Mapping[UUID, datetime], *, every: timedelta) -> None:
    """Store when keys were used, where the last stored use is longer ago than `every`."""
    await tx.execute(queries.touch_api_keys, key_ids=list(keys), used_at=list(keys.values()), every=every)


async def is_default_graph(tx: Transaction, graph_id: UUID) -> bool:
    """Whether a valid key has this graph as its default."""
    return await tx.fetchval(queries.is_default_graph, graph_id=graph_id)


async def find_subject_state(
    tx: Transaction, *, key_id: UUID | None, person_id: UUID | None, grant_id: UUID | None, issuer_id: UUID | None
) -> tuple[bool, bool]:
    """Whether the tenant is active, and whether the subject of a job may still do it.

    That is a valid key, a person who is a member, a grant of a member, or a trusted issuer.
    """
    row = await tx.fetchrow(
        queries.find_subject_state, key_id=key_id, person_id=person_id, grant_id=grant_id, issuer_id=issuer_id
    )
    return (row["is_active"], row["holds"]) if row else (False, False)


def _key(row: asyncpg.Record) -> ApiKey:
    graph_ids, toolsets = row["graph_ids"], row["toolsets"]
    return ApiKey(
        **{
            **row,
            "scopes": tuple(row["scopes"]),
            "graph_ids": None if graph_ids is None else tuple(graph_ids),
            "toolsets": None if toolsets is None else tuple(toolsets),
        }
    )
