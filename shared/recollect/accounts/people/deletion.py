"""Use cases of deleting an account: its person deletes it, or an operator does for a person who cannot sign in.

The account is locked at home while its copies in other cells are deleted, and is deleted last: after a failure, the
deletion can be repeated. Meanwhile its person cannot become a member in any cell (`people.account_locked`).
"""

from contextlib import AsyncExitStack
from uuid import UUID

from recollect.accounts.people import service as people
from recollect.accounts.people import store
from recollect.accounts.people.model import DeletionOutcome, Membership, PersonSession
from recollect.cells.databases import Databases
from recollect.errors import Conflict, ErrorCode, Forbidden, NotFound
from recollect.postgres.transactions import Session

NAMED = 5
"""How many organisations are named to a person who is still a member of them."""


async def delete_own_account(databases: Databases, person: PersonSession, password: str) -> None:
    """Delete the account of the person who is signed in. `password`: theirs, if they have one.

    Raises as `delete_account` does; Forbidden for a person who signed in by a tenant's provider; Conflict for an
    account of one tenant, which ends with the membership; InvalidInput for a wrong password, also where it was changed
    meanwhile.
    """
    if person.by_provider:
        raise Forbidden(
            "You signed in through an organisation's provider. To delete your account, sign in another way, such as "
            "with your password."
        )
    if person.account_tenant is not None:
        raise Conflict(
            "Your account is of one organisation alone, and is deleted when you leave it.", code=ErrorCode.MEMBER_EXISTS
        )
    password_changes = await people.require_own_password(databases, person, password)
    await delete_account(databases, person.person_id, password_changes=password_changes)


async def delete_account(databases: Databases, person_id: UUID, *, password_changes: int | None = None) -> None:
    """Delete a person with everything that belongs to them alone, and invitations to their address, in every cell.

    `password_changes`: the result of `people.require_own_password`. Raises NotFound; Conflict for a person who is
    still a member; Unavailable where a cell is unreachable, TenantMoving where a tenant that knows them is between two
    cells. After an error the account still exists, and the call may be repeated.
    """
    async with AsyncExitStack() as stack:
        if databases.has_several_cells:
            await stack.enter_async_context(databases.several_connections)
        home = await stack.enter_async_context(databases.home.personal(person_id))
        locked = await store.lock_account(home, person_id)
        if locked is None:
            raise NotFound("There is no such account.")
        if password_changes is not None:
            await people.require_same_password(home, person_id, password_changes)
        ask = store.list_memberships
        require_no_member(await databases.list_from_all_cells(ask, person_id=person_id, strict=True, home_session=home))
        email, name = locked

        async def delete_copy(session: Session) -> None:
            # Also where there is no copy yet: the row gives the address for the invitations, and blocks joining.
            await store.copy_person(session, person_id, email=email, name=name)
            _require_deleted(await store.delete_account(session))

        await databases.do_in_other_cells(person_id, delete_copy, strict=True)
        _require_deleted(await store.delete_account(home))


def require_no_member(memberships: list[Membership]) -> None:
    """Raise Conflict if there are any memberships."""
    if memberships:
        tenants = sorted(f"{membership.tenant_name} ({membership.tenant})" for membership in memberships)
        more = f" and {len(tenants) - NAMED} more" if len(tenants) > NAMED else ""
        raise _still_member(f"of {', '.join(tenants[:NAMED])}{more}")


def _require_deleted(outcome: DeletionOutcome) -> None:
    """Raise Conflict where the person is a member."""
    if outcome is DeletionOutcome.MEMBER:
        raise _still_member("of an organisation")


def _still_member(of_what: str) -> Conflict:
    return Conflict(
        f"This person is still a member {of_what}. An account can be deleted only when its person has left every "
        "organisation.",
        code=ErrorCode.MEMBER_EXISTS,
    )
