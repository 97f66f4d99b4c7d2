"""Entries about acts of people in the audit logs of their tenants."""

from dataclasses import dataclass
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.accounts.people import store
from recollect.cells.databases import Databases
from recollect.postgres.transactions import Session


@dataclass(frozen=True, slots=True)
class Act:
    """An act of a person, their address, and its objects. `actor` None: the person."""

    action: Action
    address: str | None
    objects: tuple[str, ...] = ()
    actor: str | None = None


async def record(session: Session, person_id: UUID, act: Act, *, within: UUID | None = None) -> None:
    """Record an act of a person in the log of each of their tenants in this cell.

    For a session that is confined to one tenant (`within`), only in the log of that tenant.
    """
    subject = named("person", person_id)
    memberships = await store.list_memberships(session)
    tenants = [membership.tenant_id for membership in memberships if within in (None, membership.tenant_id)]
    actor = act.actor or subject
    await audit.record_of_person(session, tenants, act.action, subject, *act.objects, actor=actor, address=act.address)


async def record_in_other_cells(databases: Databases, person_id: UUID, act: Act, *, within: UUID | None = None) -> None:
    """Record an act in the logs of their tenants in cells other than home, best effort; not of a confined session."""
    if within is None:
        await databases.do_in_other_cells(person_id, lambda session: record(session, person_id, act))


async def end_sign_ins_in_other_cells(databases: Databases, person_id: UUID, act: Act) -> None:
    """As `end_sessions_in_other_cells`, with what they are at identity providers of tenants there."""

    async def end_sign_ins(session: Session) -> None:
        await store.end_sign_ins(session)
        await record(session, person_id, act)

    await databases.do_in_other_cells(person_id, end_sign_ins)


async def end_sessions_in_other_cells(databases: Databases, person_id: UUID, act: Act) -> None:
    """End their sessions that identity providers began in cells other than home, and record it, best effort."""

    async def end_sessions(session: Session) -> None:
        await store.revoke_sessions(session, person_id)
        await record(session, person_id, act)

    await databases.do_in_other_cells(person_id, end_sessions)
