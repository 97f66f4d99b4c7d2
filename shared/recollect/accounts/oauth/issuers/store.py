"""One function per query of `queries.sql`."""

from dataclasses import dataclass
from uuid import UUID

import asyncpg

from recollect.accounts.oauth.issuers.model import (
    IssuerChange,
    NewIssuer,
    Rule,
    TrustedIssuer,
    rules_as_stored,
    rules_to_store,
)
from recollect.ids import new_id
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction

queries = Queries(__package__)


@dataclass(frozen=True, slots=True)
class IssuerRecord:
    """The fields of an issuer, and of the tenant that trusts it, by which a token is checked."""

    tenant_id: UUID
    tenant: str
    tenant_status: str
    id: UUID
    issuer: str
    algorithm: str
    claim: str
    rules: tuple[Rule, ...]
    plan: str
    requests_per_minute: int | None
    key_requests_per_minute: int | None
    concurrent_calls: int | None


async def list_issuers(tx: Transaction) -> list[TrustedIssuer]:
    """All issuers that the tenant trusts, by name."""
    return [_issuer(row) for row in await tx.fetch(queries.list_issuers)]


async def lock_issuers(tx: Transaction) -> None:
    """Lock the list of issuers until the transaction ends."""
    await tx.execute(queries.lock_issuers)


async def insert_issuer(tx: Transaction, new: NewIssuer) -> TrustedIssuer | None:
    """Store an issuer; None if the tenant trusts it already."""
    row = await tx.fetchrow(
        queries.insert_issuer,
        id=new_id(),
        name=new.name.strip(),
        issuer=new.issuer,
        algorithm=new.algorithm,
        claim=new.claim,
        rules=rules_to_store(new.rules),
        subject=tx.caller.subject,
    )
    return _issuer(row) if row else None


async def lock_issuer(tx: Transaction, issuer_id: UUID) -> TrustedIssuer | None:
    """An issuer, locked until the transaction ends; or None."""
    row = await tx.fetchrow(queries.lock_issuer, id=issuer_id)
    return _issuer(row) if row else None


async def change_issuer(tx: Transaction, issuer_id: UUID, change: IssuerChange) -> TrustedIssuer | None:
    """Change an issuer; None if the tenant has no such issuer."""
    row = await tx.fetchrow(
        queries.change_issuer,
        id=issuer_id,
        name=change.name.strip() if change.name is not None else None,
        algorithm=change.algorithm,
        claim=change.claim,
        rules=rules_to_store(change.rules) if change.rules is not None else None,
        enabled=change.enabled,
    )
    return _issuer(row) if row else None


async def delete_issuer(tx: Transaction, issuer_id: UUID) -> bool:
    """Delete an issuer; False if the tenant has no such issuer."""
    return await tx.fetchval(queries.delete_issuer, id=issuer_id) is not None


async def find_issuer(session: Session, tenant: str, issuer: str) -> IssuerRecord | None:
    """The issuer as the tenant of this slug trusts it; None if it does not."""
    row = await session.fetchrow(queries.find_issuer, tenant=tenant, issuer=issuer)
    return IssuerRecord(**{**row, "rules": rules_as_stored(row["rules"])}) if row else None


async def list_addresses(session: Session, tenant: str) -> list[str]:
    """The addresses of the issuers that the tenant of this slug trusts."""
    return [row["issuer"] for row in await session.fetch(queries.list_addresses, tenant=tenant)]


def _issuer(row: asyncpg.Record) -> TrustedIssuer:
    return TrustedIssuer(**{**row, "rules": rules_as_stored(row["rules"])})
