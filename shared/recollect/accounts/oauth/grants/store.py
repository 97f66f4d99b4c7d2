"""One function per query of `queries.sql`."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from recollect.accounts.oauth.grants.model import (
    Approval,
    Grant,
    GrantStatus,
    OwnGrant,
    PresentedCode,
    TokenFacts,
    TokenKind,
)
from recollect.caller import Role
from recollect.ids import new_id
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction

queries = Queries(__package__)


@dataclass(frozen=True, slots=True)
class AccessRecord:
    """The fields of an access token, its grant and its tenant by which a credential is checked."""

    tenant_id: UUID
    tenant: str
    tenant_status: str
    grant_id: UUID
    role: Role
    scopes: tuple[str, ...]
    graph_ids: tuple[UUID, ...] | None
    toolsets: tuple[str, ...] | None
    default_graph: str | None
    resource: str
    expires_at: datetime
    revoked_at: datetime | None
    plan: str
    requests_per_minute: int | None
    key_requests_per_minute: int | None
    concurrent_calls: int | None
    read_at: datetime
    """When it was read, by the clock of the database, which set the other times."""


@dataclass(frozen=True, slots=True)
class CodeRecord:
    """A code as it is stored; `just_used`: it was used, and no longer ago than a reloaded page explains."""

    presented: PresentedCode
    used: bool
    just_used: bool
    ended: bool


@dataclass(frozen=True, slots=True)
class RefreshRecord:
    """A refresh token as it is stored; `late`: it was used before, longer ago than parallel sessions explain."""

    grant: GrantStatus
    id: UUID
    generation: int
    uses: int
    ended: bool
    late: bool


async def find_access_token(session: Session, token_hash: bytes) -> AccessRecord | None:
    """The access token with this hash, of any tenant; None if there is none whose person is still a member."""
    row = await session.fetchrow(queries.find_access_token, hash=token_hash)
    return AccessRecord(**_tuples(row)) if row else None


async def find_tenant(session: Session, secret_hash: bytes) -> UUID | None:
    """The tenant of the code or token with this hash, or None."""
    return await session.fetchval(queries.find_tenant, hash=secret_hash)


async def insert_grant(tx: Transaction, approval: Approval, *, lifetime: timedelta) -> UUID:
    """Store a grant; return its id."""
    grant_id = new_id()
    await tx.execute(
        queries.insert_grant,
        id=grant_id,
        person_id=approval.person_id,
        client_id=approval.client_id,
        client_name=approval.client_name,
        scopes=list(approval.scopes),
        graph_ids=approval.graph_ids,
        toolsets=approval.toolsets,
        resource=approval.resource,
        subject=tx.caller.subject,
        lifetime=lifetime,
    )
    return grant_id


async def forget_grants(tx: Transaction, person_id: UUID, *, remembered: int) -> None:
    """Delete a person's grants that ended long ago, and ended ones beyond the last `remembered`."""
    await tx.execute(queries.forget_grants, person_id=person_id, remembered=remembered)


async def revoke_oldest_grants(tx: Transaction, person_id: UUID, *, max_stored: int) -> list[UUID]:
    """End a person's grants beyond `max_stored`; return their ids."""
    return [
        row["id"] for row in await tx.fetch(queries.revoke_oldest_grants, person_id=person_id, max_stored=max_stored)
    ]


async def insert_code(
    tx: Transaction, grant_id: UUID, approval: Approval, *, code_hash: bytes, lifetime: timedelta
) -> None:
    """Store the code of a grant."""
    await tx.execute(
        queries.insert_code,
        grant_id=grant_id,
        hash=code_hash,
        redirect_uri=approval.redirect_uri,
        code_challenge=approval.code_challenge,
        nonce=approval.nonce,
        lifetime=lifetime,
    )


async def lock_code(tx: Transaction, code_hash: bytes, *, repeats: timedelta) -> CodeRecord | None:
    """The code with this hash, locked until the transaction ends."""
    row = await tx.fetchrow(queries.lock_code, hash=code_hash, repeats=repeats)
    if row is None:
        return None
    presented = PresentedCode(_grant_status(row), row["redirect_uri"], row["code_challenge"], row["nonce"])
    return CodeRecord(presented, row["used"], row["just_used"], row["ended"])


async def use_code(tx: Transaction, grant_id: UUID) -> None:
    """Note that a grant's code is used."""
    await tx.execute(queries.use_code, grant_id=grant_id)


async def lock_refresh_token(tx: Transaction, token_hash: bytes, *, grace: timedelta) -> RefreshRecord | None:
    """The refresh token with this hash, locked until the transaction ends."""
    row = await tx.fetchrow(queries.lock_refresh_token, hash=token_hash, grace=grace)
    if row is None:
        return None
    return RefreshRecord(_grant_status(row), row["id"], row["generation"], row["uses"], row["ended"], row["late"])


async def use_refresh_token(tx: Transaction, token_id: UUID) -> None:
    """Count a use of a refresh token."""
    await tx.execute(queries.use_refresh_token, id=token_id)


async def insert_access_token(
    tx: Transaction, grant_id: UUID, *, token_hash: bytes, scopes: tuple[str, ...], lifetime: timedelta
) -> None:
    """Store an access token."""
    await tx.execute(
        queries.insert_access_token,
        id=new_id(),
        grant_id=grant_id,
        hash=token_hash,
        scopes=list(scopes),
        lifetime=lifetime,
    )


async def insert_refresh_token(
    tx: Transaction, grant_id: UUID, *, token_hash: bytes, generation: int, lifetime: timedelta
) -> None:
    """Store a refresh token."""
    await tx.execute(
        queries.insert_refresh_token,
        id=new_id(),
        grant_id=grant_id,
        hash=token_hash,
        generation=generation,
        lifetime=lifetime,
    )


async def extend_grant(tx: Transaction, grant_id: UUID, *, lifetime: timedelta) -> None:
    """Note that a grant was used, and make it valid as long as its tokens."""
    await tx.execute(queries.extend_grant, grant_id=grant_id, lifetime=lifetime)


async def forget_tokens(
    tx: Transaction, grant_id: UUID, *, access_remembered: timedelta, remembered: timedelta
) -> None:
    """Delete a grant's tokens that have expired, or were used, too long ago to be recognised when used again."""
    await tx.execute(queries.forget_access_tokens, grant_id=grant_id, remembered=access_remembered)
    await tx.execute(queries.forget_refresh_tokens, grant_id=grant_id, remembered=remembered)


async def end_oldest_tokens(tx: Transaction, grant_id: UUID, *, unused: int, remembered: int) -> None:
    """Delete a grant's oldest tokens beyond `unused` refresh tokens, and `remembered` used ones and access tokens."""
    await tx.execute(queries.end_oldest_refresh_tokens, grant_id=grant_id, unused=unused, remembered=remembered)
    await tx.execute(queries.end_oldest_access_tokens, grant_id=grant_id, remembered=remembered)


async def find_facts(tx: Transaction, kind: TokenKind, token_hash: bytes) -> tuple[TokenFacts, Role] | None:
    """The token with this hash, if it is valid, and the present role of its person."""
    query = queries.find_access_facts if kind is TokenKind.ACCESS else queries.find_refresh_facts
    row = await tx.fetchrow(query, hash=token_hash)
    if row is None:
        return None
    facts = TokenFacts(
        kind,
        id=row["id"],
        used=row["used"],
        grant_id=row["grant_id"],
        person_id=row["person_id"],
        client_id=row["client_id"],
        scopes=tuple(row["scopes"]),
        resource=row["resource"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
    )
    return facts, Role(row["role"])


async def revoke_access_token(tx: Transaction, token_id: UUID) -> None:
    """Make an access token void."""
    await tx.execute(queries.revoke_access_token, id=token_id)


async def revoke_grant(tx: Transaction, grant_id: UUID, *, revoked_by: str) -> bool:
    """Make a grant and all its tokens void; return whether it was valid before. False if there is no such grant."""
    was_valid: bool | None = await tx.fetchval(queries.revoke_grant, grant_id=grant_id, revoked_by=revoked_by)
    return bool(was_valid)


async def get_grant(tx: Transaction, grant_id: UUID) -> Grant | None:
    """The grant with this id; None if the tenant has no such grant."""
    row = await tx.fetchrow(queries.get_grant, grant_id=grant_id)
    return Grant(**_tuples(row)) if row else None


async def list_own_grants(session: Session, *, most: int) -> list[OwnGrant]:
    """The valid grants of the person who has signed in, in all tenants."""
    return [OwnGrant(**_tuples(row)) for row in await session.fetch(queries.list_own_grants, most=most)]


async def list_grants(tx: Transaction, *, person_id: UUID | None, after: UUID | None, limit: int) -> list[Grant]:
    """The tenant's grants, oldest first."""
    rows = await tx.fetch(queries.list_grants, person_id=person_id, after=after, limit=limit)
    return [Grant(**_tuples(row)) for row in rows]


def _grant_status(row: asyncpg.Record) -> GrantStatus:
    return GrantStatus(
        row["grant_id"],
        row["person_id"],
        row["client_id"],
        row["resource"],
        tuple(row["scopes"]),
        Role(row["role"]),
        row["is_valid"],
    )


def _tuples(row: asyncpg.Record) -> dict[str, Any]:
    """The fields of a row, with tuples for lists and a Role for the name of a role."""
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    return fields | {"role": Role(fields["role"])} if "role" in fields else fields
