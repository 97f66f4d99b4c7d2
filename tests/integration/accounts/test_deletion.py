"""Deletion of an account: nothing of it remains in any cell, and no member loses their account, despite concurrent
acts.
"""

import asyncio
from collections.abc import Callable, Coroutine
from copy import copy
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.members import service as members
from recollect.accounts.members.model import OpenInvitation
from recollect.accounts.passkeys import store as passkeys
from recollect.accounts.passkeys.model import MAX_PASSKEYS
from recollect.accounts.people import deletion, resets, sessions, store
from recollect.accounts.people import service as people
from recollect.accounts.people.model import DeletionOutcome, Person
from recollect.caller import Caller, Role
from recollect.cells.databases import Databases
from recollect.errors import Conflict, Forbidden, InvalidInput, NotFound, TenantMoving, Unauthenticated, Unavailable
from recollect.moves import store as moves
from recollect.postgres.connections import OWNER_ROLE
from recollect.postgres.database import Database
from recollect.postgres.transactions import Session
from recollect.settings import Settings
from recollect.settings.cells import HOME, CellUrls
from recollect_operator.cells import OperatorCells
from tests.conftest import NewTenant
from tests.support.cells import OTHER, opened
from tests.support.gateway import eventually
from tests.support.people import BROWSER, PASSWORD, beside_another_password, joined, new_email, new_session

pytestmark = pytest.mark.whole_database

PEPPER = b"pepper"
AWAY = CellUrls(database_url="postgresql://nobody@127.0.0.1:9/nowhere")
WAITS = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0)"


async def tables_that_hold(owner: asyncpg.Connection, said: str) -> set[str]:
    """The tables with a row that contains this."""
    names = await owner.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'recollect'")
    found = set()
    for (name,) in names:
        if await owner.fetchval(f'SELECT EXISTS (SELECT FROM "{name}" x WHERE position($1 IN x::text) > 0)', said):
            found.add(name)
    return found


async def invited(databases: Databases, caller: Caller, email: str) -> OpenInvitation:
    async with databases.of(caller.tenant_id).transaction(caller) as tx:
        issued = await members.invite(tx, email, Role.MEMBER, pepper=PEPPER)
    return await members.open_invitation(databases, issued.secret, pepper=PEPPER)


async def leave(databases: Databases, caller: Caller, person: Person) -> None:
    async with databases.of(caller.tenant_id).transaction(caller) as tx:
        await members.remove_member(tx, person.id)


@pytest.fixture
async def other_caller(new_tenant: NewTenant) -> Caller:
    """The operator of another tenant."""
    return operator_caller(await new_tenant())


@pytest.fixture
async def person(databases: Databases) -> Person:
    """A person with an account and without a membership."""
    return await people.register(databases, new_email(), "Ada", PASSWORD)


class TestDeletedData:
    @pytest.mark.proves("security: account-deletion")
    async def test_the_address_is_in_no_table_and_the_id_only_in_logs(
        self,
        db: Database,
        databases: Databases,
        caller: Caller,
        other_caller: Caller,
        owner: asyncpg.Connection,
    ) -> None:
        """The address can open another account, by another invitation."""
        ada = await joined(databases, caller, Role.MEMBER, pepper=PEPPER)
        await resets.begin_reset(databases, ada.id, pepper=PEPPER)
        async with db.personal(ada.id) as session:
            await passkeys.insert_passkey(
                session,
                ada.id,
                credential_id=ada.id.bytes,
                public_key=b"x",
                sign_count=0,
                name="Laptop",
                most=MAX_PASSKEYS,
            )
        _revoked, expired, _open = [await invited(databases, other_caller, ada.email) for _ in range(3)]
        await owner.execute("UPDATE invitations SET expires_at = now(), revoked_at = NULL WHERE id = $1", expired.id)
        session_of_hers = await new_session(databases, ada.id, pepper=PEPPER)
        neighbour = await joined(databases, other_caller, Role.OWNER, pepper=PEPPER)
        with pytest.raises(Conflict, match=rf"\({caller.tenant}\)"):
            await deletion.delete_own_account(databases, session_of_hers, PASSWORD)
        await leave(databases, caller, ada)
        assert await tables_that_hold(owner, ada.email) == {"people", "invitations"}
        theirs = await tables_that_hold(owner, neighbour.email), await tables_that_hold(owner, str(neighbour.id))
        await deletion.delete_own_account(databases, session_of_hers, PASSWORD)
        assert await tables_that_hold(owner, ada.email) == set()
        assert await tables_that_hold(owner, str(ada.id)) == {"audit_log"}
        assert await tables_that_hold(owner, ada.id.hex) == set()
        assert theirs == (
            await tables_that_hold(owner, neighbour.email),
            await tables_that_hold(owner, str(neighbour.id)),
        )
        again = await joined(databases, caller, Role.READER, pepper=PEPPER, email=ada.email)
        assert again.id != ada.id
        assert (await people.sign_in(databases, ada.email, PASSWORD, BROWSER, pepper=PEPPER)).person_id == again.id

    async def test_deleting_an_account_twice_is_an_error(self, databases: Databases, person: Person) -> None:
        await deletion.delete_account(databases, person.id)
        with pytest.raises(NotFound):
            await deletion.delete_account(databases, person.id)

    async def test_a_member_of_an_organisation_cannot_be_deleted(
        self, db: Database, databases: Databases, caller: Caller, owner: asyncpg.Connection
    ) -> None:
        """Even if the organisation is suspended."""
        ada = await joined(databases, caller, Role.MEMBER, pepper=PEPPER)
        await owner.execute("UPDATE tenants SET status = 'suspended' WHERE id = $1", caller.tenant_id)
        with pytest.raises(Conflict, match=caller.tenant):
            await deletion.delete_account(databases, ada.id)
        assert await people.is_known(db, ada.email)
        assert await tables_that_hold(owner, ada.email) == {"people", "invitations"}

    @pytest.mark.parametrize("invited_only", [True, False])
    async def test_nobody_known_to_a_moving_tenant_is_deleted(
        self, databases: Databases, caller: Caller, owner: asyncpg.Connection, invited_only: bool
    ) -> None:
        """The tenant's rows are in both cells, and those in one would remain."""
        if invited_only:
            ada = await people.register(databases, new_email(), "Ada", PASSWORD)
            await invited(databases, caller, ada.email)
        else:
            ada = await joined(databases, caller, Role.MEMBER, pepper=PEPPER)
        for place in ("leaving", "departed", "arriving"):
            await owner.execute(
                "UPDATE tenants SET place = $2, held_until = now() + interval '1 hour' WHERE id = $1",
                caller.tenant_id,
                place,
            )
            refused = Conflict if place == "leaving" and not invited_only else TenantMoving
            with pytest.raises(refused):
                await deletion.delete_account(databases, ada.id)
            assert await tables_that_hold(owner, ada.email) == {"people", "invitations"}, "and may be tried again"


class TestPasswords:
    @pytest.mark.proves("security: account-deletion")
    async def test_deletion_requires_the_password(self, db: Database, databases: Databases, person: Person) -> None:
        session = await new_session(databases, person.id, pepper=PEPPER)
        for wrong in ("", "violet tractor under grass"):
            with pytest.raises(InvalidInput, match="not your current password"):
                await deletion.delete_own_account(databases, session, wrong)
        assert await people.is_known(db, person.email)

    async def test_deletion_without_a_password_requires_none(self, db: Database, databases: Databases) -> None:
        person = await people.register(databases, new_email(), "Ada", None)
        await deletion.delete_own_account(databases, await new_session(databases, person.id, pepper=PEPPER), "")
        assert not await people.is_known(db, person.email)

    async def test_a_password_changed_concurrently_prevents_deletion(
        self, db: Database, databases: Databases, person: Person, owner: asyncpg.Connection
    ) -> None:
        session = await new_session(databases, person.id, pepper=PEPPER)
        with pytest.raises(InvalidInput, match="not your current password"):
            await beside_another_password(owner, person, deletion.delete_own_account(databases, session, PASSWORD))
        assert await people.is_known(db, person.email)

    async def test_a_session_by_an_identity_provider_may_not_delete_the_account(
        self, databases: Databases, person: Person, caller: Caller
    ) -> None:
        session = await new_session(databases, person.id, pepper=PEPPER)
        with pytest.raises(Forbidden):
            await deletion.delete_own_account(
                databases, replace(session, confined_to=caller.tenant_id, by_provider=True), PASSWORD
            )


async def task_that_waits(owner: asyncpg.Connection, act: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """The task of an act, once it waits for another's lock."""
    doing = asyncio.create_task(act)

    async def waits() -> bool:
        return doing.done() or bool(await owner.fetchval(WAITS))

    await eventually(waits)
    assert not doing.done(), doing
    return doing


class TestRaces:
    @pytest.mark.proves("security: account-deletion")
    @pytest.mark.parametrize("act", ["join", "sign in", "sign in otherwise", "forget the password"])
    async def test_a_concurrent_act_on_a_deleted_account_is_refused(
        self,
        db: Database,
        databases: Databases,
        person: Person,
        caller: Caller,
        owner: asyncpg.Connection,
        act: str,
    ) -> None:
        invitation = await invited(databases, caller, person.email)
        acts: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
            "join": lambda: members.join(databases, invitation, person),
            "sign in": lambda: people.sign_in(databases, person.email, PASSWORD, BROWSER, pepper=PEPPER),
            "sign in otherwise": lambda: sessions.begin_session(databases, person.id, BROWSER, pepper=PEPPER),
            "forget the password": lambda: resets.begin_reset(databases, person.id, pepper=PEPPER),
        }
        async with db.personal(person.id) as session:
            assert await store.lock_account(session, person.id) is not None
            doing = await task_that_waits(owner, acts[act]())
            assert await store.delete_account(session) is DeletionOutcome.GONE
        with pytest.raises((Unauthenticated, NotFound)):
            await doing
        assert await tables_that_hold(owner, str(person.id)) == set()

    async def test_whoever_becomes_a_member_first_is_not_deleted(
        self, db: Database, databases: Databases, person: Person, caller: Caller, owner: asyncpg.Connection
    ) -> None:
        async with db.transaction(caller) as tx:
            await members.add_member(tx, person.id, Role.READER)
            doing = await task_that_waits(owner, deletion.delete_account(databases, person.id))
        with pytest.raises(Conflict, match=caller.tenant):
            await doing
        assert await people.is_known(db, person.email)


class TestCells:
    @pytest.fixture
    async def ada(self, cells: Databases, native: Caller, resident: Caller, owner_b: asyncpg.Connection) -> Person:
        """A former member of a tenant in each cell, whom both have invited again."""
        ada = await joined(cells, native, Role.MEMBER, pepper=PEPPER)
        await members.join(cells, await invited(cells, resident, ada.email), ada)
        for caller in (native, resident):
            await leave(cells, caller, ada)
            await invited(cells, caller, ada.email)
        assert await tables_that_hold(owner_b, ada.email) == {"people", "invitations"}
        return ada

    @pytest.mark.proves("security: account-deletion")
    async def test_nothing_remains_in_any_cell(
        self, cells: Databases, ada: Person, resident: Caller, owner: asyncpg.Connection, owner_b: asyncpg.Connection
    ) -> None:
        await deletion.delete_own_account(cells, await new_session(cells, ada.id, pepper=PEPPER), PASSWORD)
        for cell in (owner, owner_b):
            assert await tables_that_hold(cell, ada.email) == set()
            assert await tables_that_hold(cell, str(ada.id)) == {"audit_log"}
        again = await joined(cells, resident, Role.READER, pepper=PEPPER, email=ada.email)
        assert await tables_that_hold(owner_b, str(again.id)) == {"people", "members", "audit_log"}

    async def test_invitations_are_deleted_in_a_cell_without_a_copy_of_the_person(
        self, cells: Databases, resident: Caller, owner_b: asyncpg.Connection
    ) -> None:
        person = await people.register(cells, new_email(), "Ada", PASSWORD)
        await invited(cells, resident, person.email)
        await deletion.delete_account(cells, person.id)
        assert await tables_that_hold(owner_b, person.email) == set()

    async def test_a_membership_in_another_cell_prevents_deletion(
        self, cells: Databases, resident: Caller, owner: asyncpg.Connection
    ) -> None:
        ada = await joined(cells, resident, Role.MEMBER, pepper=PEPPER)
        with pytest.raises(Conflict, match=resident.tenant):
            await deletion.delete_account(cells, ada.id)
        assert await tables_that_hold(owner, ada.email) == {"people"}

    async def test_nothing_is_deleted_while_a_cell_is_away(
        self, celled: Settings, ada: Person, owner: asyncpg.Connection, owner_b: asyncpg.Connection
    ) -> None:
        without = celled.model_copy(update={"cells": {OTHER: AWAY}, "database_acquire_seconds": 2.0})
        async with opened(without) as gateway:
            with pytest.raises(Unavailable):
                await deletion.delete_account(gateway, ada.id)
        for cell in (owner, owner_b):
            assert await tables_that_hold(cell, ada.email) == {"people", "invitations"}

    async def test_a_deletion_that_failed_halfway_can_be_repeated(
        self,
        cells: Databases,
        ada: Person,
        owner: asyncpg.Connection,
        owner_b: asyncpg.Connection,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The copy is gone, and the account exists."""
        original, done = store.delete_account, []

        async def failing(session: Session) -> DeletionOutcome:
            done.append(await original(session))
            if len(done) == 2:  # At home, which is the last cell.
                raise Unavailable("The database is unavailable.")
            return done[-1]

        monkeypatch.setattr(store, "delete_account", failing)
        with pytest.raises(Unavailable):
            await deletion.delete_account(cells, ada.id)
        assert done == [DeletionOutcome.GONE, DeletionOutcome.GONE]
        assert await people.is_known(cells.home, ada.email)
        assert await tables_that_hold(owner_b, ada.email) == set()
        await deletion.delete_account(cells, ada.id)
        assert await tables_that_hold(owner, ada.email) == set()

    @pytest.mark.proves("security: account-deletion")
    @pytest.mark.parametrize("first", ["join", "delete"])
    async def test_joining_in_another_cell_during_deletion_leaves_no_member_without_an_account(
        self,
        cells: Databases,
        ada: Person,
        resident: Caller,
        owner: asyncpg.Connection,
        owner_b: asyncpg.Connection,
        monkeypatch: pytest.MonkeyPatch,
        first: str,
    ) -> None:
        """As with two gateways: the second waits at home for the first."""
        other = copy(cells)
        other.several_connections = asyncio.Lock()
        invitation = await invited(cells, resident, ada.email)
        module, name = (members, "_accept") if first == "join" else (store, "copy_person")
        original, reached, go_on = getattr(module, name), asyncio.Event(), asyncio.Event()

        async def slow(*arguments: Any, **more: Any) -> Any:
            reached.set()
            await go_on.wait()
            return await original(*arguments, **more)

        monkeypatch.setattr(module, name, slow)
        acts = {"join": members.join(cells, invitation, ada), "delete": deletion.delete_account(other, ada.id)}
        leading = asyncio.create_task(acts.pop(first))
        await reached.wait()
        monkeypatch.undo()
        second = await task_that_waits(owner, *acts.values())
        go_on.set()
        await leading
        with pytest.raises(Conflict if first == "join" else Unauthenticated):
            await second
        kept = first == "join"
        assert await people.is_known(cells.home, ada.email) == kept
        assert ("members" in await tables_that_hold(owner_b, str(ada.id))) == kept

    async def test_a_move_that_copies_people_leaves_no_copy_of_a_deleted_person(
        self, celled: Settings, cells: Databases, ada: Person, owner: asyncpg.Connection, owner_b: asyncpg.Connection
    ) -> None:
        await owner_b.execute("DELETE FROM people WHERE id = $1", ada.id)
        async with (
            OperatorCells.connect(celled, OWNER_ROLE, lambda its: its.migration_url) as operators,
            operators.at(HOME).session() as home,
            operators.at(OTHER).session() as target,
        ):
            async with home.transaction():
                read = await moves.read_people(home, [ada.id])
                doing = await task_that_waits(owner, deletion.delete_account(cells, ada.id))
                await moves.put_people(target, read)
            await doing
            assert await moves.read_people(home, [ada.id]) == "[]"
        assert await tables_that_hold(owner_b, ada.email) == set()
