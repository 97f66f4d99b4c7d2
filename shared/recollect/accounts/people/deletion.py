"""Use cases of the end of an account: its person deletes it, or an operator does for who cannot sign in.

It is locked at home while its copies in other cells go, and goes last: what fails in between is done by doing it again.
Meanwhile its person becomes no member in any cell (`people.account_held`).
"""

from contextlib import AsyncExitStack
from uuid import UUID

from recollect.accounts.people import service as people
from recollect.accounts.people import store
from recollect.accounts.people.model import DeletionOutcome, Membership, PersonSession
from recollect.errors import Conflict, ErrorCode, Forbidden, NotFound
from recollect.platform.db import Database
from recollect.platform.transactions import Session

NAMED = 5
"""Organisations that are named to who is a member of them still."""


async def delete_own_account(db: Database, person: PersonSession, password: str) -> None:
    """Delete the account of who is signed in, who tells the password if they have one.

    Raises as `delete_account` does; Forbidden for who signed in by a tenant's provider; InvalidInput for another
    password, also where they took one meanwhile.
    """
    if person.confined_to is not None:
        raise Forbidden("You signed in by an organisation's provider. Sign in otherwise to delete your account.")
    password_changes = await people.require_own_password(db, person, password)
    await delete_account(db, person.person_id, password_changes=password_changes)


async def delete_account(db: Database, person_id: UUID, *, password_changes: int | None = None) -> None:
    """Delete a person with all that is theirs alone, and invitations to their address, in every cell.

    `password_changes`: what `people.require_own_password` returned. Raises NotFound; Conflict for who is a member
    still; Unavailable where a cell is away, TenantMoving where a tenant that knows them is between two cells. Then
    the account is there still, and the same call may be tried again.
    """
    async with AsyncExitStack() as stack:
        if db.is_several:
            await stack.enter_async_context(db.several_connections)
        home = await stack.enter_async_context(db.personal(person_id))
        locked = await store.lock_account(home, person_id)
        if locked is None:
            raise NotFound("There is no such account.")
        if password_changes is not None:
            await people.require_same_password(home, person_id, password_changes)
        ask = store.list_memberships
        require_no_member(await db.list_from_all_cells(ask, person_id=person_id, sure=True, at_home=home))
        email, name = locked

        async def delete_copy(session: Session) -> None:
            # Also where there is no copy: by its row the address is known, whose invitations go, and who joins waits.
            await store.copy_person(session, person_id, email=email, name=name)
            _require_gone(await store.delete_account(session))

        await db.do_in_other_cells(person_id, delete_copy, sure=True)
        _require_gone(await store.delete_account(home))


def require_no_member(memberships: list[Membership]) -> None:
    """Raise Conflict where there are any."""
    if memberships:
        named = sorted(f"{each.tenant_name} ({each.tenant})" for each in memberships)
        more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
        raise _still_member(f"of {', '.join(named[:NAMED])}{more}")


def _require_gone(outcome: DeletionOutcome) -> None:
    """Raise Conflict for who is a member."""
    if outcome is DeletionOutcome.MEMBER:
        raise _still_member("of an organisation")


def _still_member(of_what: str) -> Conflict:
    return Conflict(
        f"This person is still a member {of_what}. An account is deleted once its person has left every organisation.",
        code=ErrorCode.MEMBER_EXISTS,
    )
