"""Use cases of requests for deletion: an owner makes one, any owner takes it back, a worker carries it out.

The gateway may store that an owner asked, and no more: the database says when the week is over, tells operators of each
request in their log, and deletes no tenant before (ADR 3).
"""

from datetime import datetime
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.accounts.deletion_requests import store
from recollect.accounts.deletion_requests.model import FRESH, MAX_NOTIFIED, DeletionRequest
from recollect.accounts.members import service as members
from recollect.accounts.members.model import subject_of
from recollect.accounts.people import service as people
from recollect.accounts.people.model import PersonSession
from recollect.caller import Role
from recollect.cells.databases import Databases
from recollect.errors import Conflict, Forbidden, InvalidInput, NotFound
from recollect.postgres.database import Database
from recollect.postgres.transactions import Transaction


async def require_proof(databases: Databases, signed_in: PersonSession, password: str) -> None:
    """Raise InvalidInput unless the person proves anew who they are, before they ask for a deletion.

    By their password; or, where they have none or signed in by an organisation's provider, by a sign-in that is no
    older than FRESH.
    """
    if await needs_password(databases, signed_in):
        await people.require_own_password(databases, signed_in, password)
    elif signed_in.is_older_than(FRESH):
        minutes = int(FRESH.total_seconds() // 60)
        raise InvalidInput(f"Sign out and in again, and ask within {minutes} minutes after that", path="password")


async def needs_password(databases: Databases, signed_in: PersonSession) -> bool:
    """Whether the person enters their password to ask for a deletion."""
    return not signed_in.by_provider and await people.has_own_password(databases, signed_in)


async def request_deletion(tx: Transaction, signed_in: PersonSession, typed: str) -> DeletionRequest:
    """Ask for the deletion of the caller's tenant, a week from now. `typed`: its slug.

    Call `require_proof` before. Raises Forbidden for who is no owner, InvalidInput for another slug, Conflict where
    it was requested before, and TooManyRequests.
    """
    await _require_owner(tx, signed_in)
    if typed != tx.caller.tenant:
        raise InvalidInput(f"Type {tx.caller.tenant} to confirm", path="typed")
    request = await store.insert_request(tx, signed_in.person_id)
    if request is None:
        raise Conflict("The deletion of this organisation was requested before.")
    due_at = f"{request.due_at:%Y-%m-%dT%H:%M:%SZ}"
    await audit.record(tx, Action.TENANT_DELETION_REQUESTED, named("tenant", tx.tenant_id), due_at=due_at)
    return request


async def take_back_deletion(tx: Transaction, signed_in: PersonSession) -> None:
    """Take the request for the deletion of the caller's tenant back, whichever owner made it.

    Raises Forbidden for who is no owner, NotFound where there is no request.
    """
    await _require_owner(tx, signed_in)
    request = await store.delete_request(tx)
    if request is None:
        raise NotFound("The deletion of this organisation is not requested any more.")
    await audit.record(
        tx,
        Action.TENANT_DELETION_TAKEN_BACK,
        named("tenant", tx.tenant_id),
        requested_by=subject_of(request.requested_by),
    )


async def find_request(tx: Transaction) -> DeletionRequest | None:
    """The request for the deletion of the caller's tenant, None where there is none."""
    return await store.find_request(tx)


async def list_notified(tx: Transaction) -> list[str]:
    """The addresses of the owners and admins, who get a mail about a request, the first MAX_NOTIFIED."""
    return await store.list_notified(tx, limit=MAX_NOTIFIED)


async def tenants_with_due_deletion(db: Database) -> list[UUID]:
    """Tenants whose owners asked for their deletion a week ago, and did not take it back."""
    async with db.system() as session:
        return await store.tenants_with_due_deletion(session)


async def delete_requested_tenant(db: Database, tenant_id: UUID) -> datetime | None:
    """Delete such a tenant as an operator does; return when it is erased, None where it is not to be deleted now."""
    async with db.system() as session:
        return await store.delete_requested_tenant(session, tenant_id)


async def _require_owner(tx: Transaction, signed_in: PersonSession) -> None:
    member = await members.get_member(tx, signed_in.person_id)
    if member.role is not Role.OWNER:
        raise Forbidden("Only owners of this organisation may ask for its deletion, and take that back.")
