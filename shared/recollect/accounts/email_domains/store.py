"""One function per query of `queries.sql`."""

from datetime import timedelta
from uuid import UUID

import asyncpg

from recollect.accounts.email_domains.model import EmailDomain
from recollect.caller import Role
from recollect.ids import new_id
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction

queries = Queries(__package__)


async def list_domains(tx: Transaction) -> list[EmailDomain]:
    """All domains that the tenant claims."""
    return [_domain(row) for row in await tx.fetch(queries.list_domains)]


async def lock_domains(tx: Transaction) -> None:
    """Lock the list of claims until the transaction ends."""
    await tx.execute(queries.lock_domains)


async def insert_domain(tx: Transaction, domain: str, secret: str, role: Role) -> EmailDomain | None:
    """Store a claim; None if the tenant claims the domain already."""
    row = await tx.fetchrow(
        queries.insert_domain, id=new_id(), domain=domain, secret=secret, role=role, subject=tx.caller.subject
    )
    return _domain(row) if row else None


async def find_domain(tx: Transaction, domain_id: UUID) -> EmailDomain | None:
    """A claim by its id, or None."""
    row = await tx.fetchrow(queries.find_domain, id=domain_id)
    return _domain(row) if row else None


async def lock_domain(tx: Transaction, domain_id: UUID) -> EmailDomain | None:
    """A claim, locked until the transaction ends; or None."""
    row = await tx.fetchrow(queries.lock_domain, id=domain_id)
    return _domain(row) if row else None


async def find_claim(tx: Transaction, domain: str) -> EmailDomain | None:
    """A claim by its domain, or None."""
    row = await tx.fetchrow(queries.find_claim, domain=domain)
    return _domain(row) if row else None


async def is_fresh(tx: Transaction, domain_id: UUID, *, within: timedelta) -> bool:
    """Whether a claim is proven, and was within this time, by the clock of the database."""
    return bool(await tx.fetchval(queries.is_fresh, id=domain_id, within=within))


async def set_role(tx: Transaction, domain_id: UUID, role: Role) -> EmailDomain | None:
    """Change the role in which people join; None if the tenant has no such claim."""
    row = await tx.fetchrow(queries.set_role, id=domain_id, role=role)
    return _domain(row) if row else None


async def release_domain(tx: Transaction, domain: str) -> bool:
    """Remove another tenant's old proof of the domain; False if that proof is still good."""
    return bool(await tx.fetchval(queries.release_domain, domain=domain))


async def note_proven(tx: Transaction, domain_id: UUID) -> EmailDomain | None:
    """Store that the DNS proves a claim; None if the claim was deleted. The domain must have been released."""
    row = await tx.fetchrow(queries.note_proven, id=domain_id)
    return _domain(row) if row else None


async def note_unproven(tx: Transaction, domain_id: UUID) -> None:
    """Store that the DNS does not prove a claim."""
    await tx.execute(queries.note_unproven, id=domain_id)


async def delete_domain(tx: Transaction, domain_id: UUID) -> bool:
    """Delete a claim; False if the tenant has no such claim."""
    return await tx.fetchval(queries.delete_domain, id=domain_id) is not None


async def find_tenants(session: Session, domain: str) -> list[str]:
    """The slug of the tenant that has proven a domain; empty if no tenant has."""
    return [row["tenant"] for row in await session.fetch(queries.find_tenant, domain=domain)]


def _domain(row: asyncpg.Record) -> EmailDomain:
    return EmailDomain(**{**row, "role": Role(row["role"])})
