"""Use cases of e-mail domains: claim one, prove it by the DNS, and find the role in which people join by one."""

import secrets
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.accounts.email_domains import store
from recollect.accounts.email_domains.model import (
    FRESH,
    MAX_DOMAINS,
    EmailDomain,
    domain_of,
    joining_role,
    normalized_domain,
)
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.errors import Conflict, ErrorCode, InvalidInput, NotFound
from recollect.outbound.txt_records import TextRecords
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import Transaction


async def list_domains(tx: Transaction) -> list[EmailDomain]:
    """The domains that the tenant claims."""
    return await store.list_domains(tx)


async def claim_domain(tx: Transaction, domain: str, role: Role) -> EmailDomain:
    """Claim a domain, which proves nothing yet: the result has the record that its DNS must have.

    Raises InvalidInput, Forbidden if the caller may do less than the people who join by it, or Conflict if it is
    claimed already or the tenant has the most claims that it may have.
    """
    domain, role = normalized_domain(domain), joining_role(role)
    tx.caller.require_can_grant(role)
    await store.lock_domains(tx)
    if len(await store.list_domains(tx)) >= MAX_DOMAINS:
        raise Conflict(
            f"A tenant can claim at most {MAX_DOMAINS} domains. Drop one first.", code=ErrorCode.TOO_MANY_DOMAINS
        )
    claimed = await store.insert_domain(tx, domain, secrets.token_urlsafe(32), role)
    if claimed is None:
        raise Conflict("This tenant has already claimed this domain.", code=ErrorCode.DOMAIN_EXISTS, path="domain")
    await _record(tx, Action.DOMAIN_CLAIMED, claimed.id, role=role)
    return claimed


async def verify_domain(db: TenantDatabase, records: TextRecords, caller: Caller, domain_id: UUID) -> EmailDomain:
    """Query the DNS for the proof of a domain, and store the outcome.

    Raises NotFound, Forbidden as `claim_domain` does, or Conflict if the DNS does not prove it or the domain is
    verified for another tenant.
    """
    async with db.transaction(caller, read_only=True) as tx:
        claim = await store.find_domain(tx, domain_id)
    if claim is None:
        raise _no_domain()
    caller.require_can_grant(claim.role)
    verified = await _check(db, records, caller, claim)
    if verified is None:
        raise Conflict(
            f"DNS has no TXT record {claim.record_name} with the value {claim.record_value}, or another organisation "
            "has verified this domain. It can take a while until a new record is visible.",
            code=ErrorCode.DOMAIN_NOT_VERIFIED,
        )
    return verified


async def change_role(tx: Transaction, domain_id: UUID, role: Role) -> EmailDomain:
    """Change the role in which people join. Raises NotFound, InvalidInput, or Forbidden as `claim_domain`."""
    before = await store.lock_domain(tx, domain_id)
    tx.caller.require_can_grant(joining_role(role))
    changed = await store.set_role(tx, domain_id, role)
    if before is None or changed is None:
        raise _no_domain()
    if changed.role != before.role:
        await _record(tx, Action.DOMAIN_CHANGED, domain_id, role=role)
    return changed


async def drop_domain(tx: Transaction, domain_id: UUID) -> None:
    """Drop the claim of a domain: nobody joins by it any more. Members stay. Raises NotFound."""
    if not await store.delete_domain(tx, domain_id):
        raise _no_domain()
    await _record(tx, Action.DOMAIN_DROPPED, domain_id)


async def role_for(db: TenantDatabase, records: TextRecords, caller: Caller, email: str) -> Role | None:
    """The role in which a person with this verified address joins; None if its domain is not the tenant's.

    A proof that is older than a day is checked again, and lost if the DNS has the record no longer.
    """
    async with db.transaction(caller, read_only=True) as tx:
        claim = await store.find_claim(tx, domain_of(email))
        if claim is None or claim.verified_at is None:
            return None
        is_fresh = await store.is_fresh(tx, claim.id, within=FRESH)
    if not is_fresh:
        claim = await _check(db, records, caller, claim)
    return claim.role if claim else None


async def tenant_of(databases: Databases, email: str) -> str | None:
    """The slug of the tenant that has proven the domain of an address; None if no tenant has. Raises Unavailable."""
    try:
        domain = normalized_domain(domain_of(email))
    except InvalidInput:
        return None
    found = await databases.list_from_all_cells(lambda session: store.find_tenants(session, domain), strict=True)
    return found[0] if found else None


async def _check(db: TenantDatabase, records: TextRecords, caller: Caller, claim: EmailDomain) -> EmailDomain | None:
    """Query the DNS and store the outcome; return the claim, None if it is not proven.

    Nothing is stored if the DNS cannot be queried."""
    values = await records.look_up(claim.record_name, on_behalf_of=caller.tenant_id)
    if values is None:
        return None
    async with db.transaction(caller) as tx:
        stored = await _store_outcome(tx, claim, proven=claim.record_value in values)
        if stored is None:
            tx.undo_act()
        return stored


async def _store_outcome(tx: Transaction, claim: EmailDomain, *, proven: bool) -> EmailDomain | None:
    """Store whether the DNS proves the claim; return the claim, None if it is not proven."""
    if proven and not await store.release_domain(tx, claim.domain):
        return None
    before = await store.lock_domain(tx, claim.id)  # After the release, whose locks come first everywhere.
    if before is None:
        return None
    if proven != (before.verified_at is not None):
        await _record(tx, Action.DOMAIN_VERIFIED if proven else Action.DOMAIN_UNPROVEN, claim.id)
    if proven:
        return await store.note_proven(tx, claim.id)
    await store.note_unproven(tx, claim.id)
    return None


async def _record(tx: Transaction, action: Action, domain_id: UUID, **details: str) -> None:
    await audit.record(tx, action, named("email_domain", domain_id), **details)


def _no_domain() -> NotFound:
    return NotFound("There is no such domain.", code=ErrorCode.DOMAIN_NOT_FOUND)
