"""What people do, in the audit logs of their tenants."""

from dataclasses import dataclass
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.accounts.people import store
from recollect.platform.db import Database
from recollect.platform.transactions import Session


@dataclass(frozen=True, slots=True)
class Act:
    """What a person does, from which address, and to what. `actor` None is the person."""

    action: Action
    address: str | None
    objects: tuple[str, ...] = ()
    actor: str | None = None


async def record(session: Session, person_id: UUID, act: Act, *, within: UUID | None = None) -> None:
    """Record what a person does in the log of each of their tenants in this cell.

    Or only of the one to which a session is confined (`within`).
    """
    subject = named("person", person_id)
    memberships = await store.list_memberships(session)
    tenants = [each.tenant_id for each in memberships if within in (None, each.tenant_id)]
    actor = act.actor or subject
    await audit.record_of_person(session, tenants, act.action, subject, *act.objects, actor=actor, address=act.address)


async def record_elsewhere(db: Database, person_id: UUID, act: Act, *, within: UUID | None = None) -> None:
    """Record it in the logs of their tenants in cells other than home, best effort; not of a session `within` one."""
    if within is None:
        await db.do_in_other_cells(person_id, lambda session: record(session, person_id, act))


async def end_sessions_elsewhere(db: Database, person_id: UUID, act: Act) -> None:
    """End their sessions that identity providers began in cells other than home, and record it, best effort."""

    async def ended(session: Session) -> None:
        await store.revoke_sessions(session, person_id)
        await record(session, person_id, act)

    await db.do_in_other_cells(person_id, ended)
