"""What people do, in the audit logs of their tenants."""

from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.accounts.people import store
from recollect.platform.transactions import Session


async def record(
    session: Session,
    person_id: UUID,
    action: Action,
    address: str | None,
    *objects: str,
    actor: str | None = None,
    within: UUID | None = None,
) -> None:
    """Record what a person does in the log of each of their tenants, or of the one to which a session is confined.

    `actor` None is the person.
    """
    subject = named("person", person_id)
    memberships = await store.list_memberships(session)
    tenants = [each.tenant_id for each in memberships if within in (None, each.tenant_id)]
    await audit.record_of_person(session, tenants, action, subject, *objects, actor=actor or subject, address=address)
