"""Sign-ins do not delay a move of the person's organisations, and their audit logs are equal in both cells."""

import asyncio
from uuid import UUID

import asyncpg
import pytest

from recollect.accounts.audit.model import Action
from recollect.accounts.people import acts
from recollect.accounts.people.model import Browser
from recollect.accounts.people.service import note_refused_sign_in
from recollect.accounts.people.sessions import begin_session
from recollect.accounts.tenants.model import Tenant
from recollect.cells.databases import Databases
from recollect.ids import new_id
from recollect.moves import store
from recollect.moves.model import Step
from recollect.postgres.operator_sessions import Operator
from recollect.settings.cells import HOME
from tests.conftest import NewTenant
from tests.slow.moves.test_holds import MINUTE, let_time_pass, mover, somebody_waits
from tests.support.gateway import eventually
from tests.support.memories import Agent
from tests.support.moves import AWAY, TwoCells

BROWSER = Browser("", "203.0.113.9")


@pytest.fixture
async def person(owner: asyncpg.Connection, tenant: Tenant) -> UUID:
    """A member of the tenant."""
    person = new_id()
    await owner.execute(
        "INSERT INTO people (id, email, name, password_hash) VALUES ($1, $2, 'Ada', 'old')", person, email_of(person)
    )
    await join(owner, person, tenant.id)
    return person


async def join(owner: asyncpg.Connection, person: UUID, tenant_id: UUID) -> None:
    await owner.execute("INSERT INTO members (tenant_id, person_id, role) VALUES ($1, $2, 'owner')", tenant_id, person)


def email_of(person: UUID) -> str:
    return f"{person}@example.com"


async def sign_in(gateway: Databases, person: UUID) -> None:
    """A refused sign-in, and then a successful one."""
    await note_refused_sign_in(gateway, email_of(person), BROWSER)
    await begin_session(gateway, person, BROWSER, pepper=b"pepper" * 6)


async def logged_sign_ins(two_cells: TwoCells, cell: str, tenant_id: UUID) -> list[str]:
    """Sign-ins in the tenant's log in that cell."""
    async with two_cells.bare(cell) as connection:
        rows = await connection.fetch(
            "SELECT action FROM audit_log WHERE tenant_id = $1 AND action LIKE 'session.%' ORDER BY id", tenant_id
        )
    return [row["action"] for row in rows]


@pytest.mark.proves("security: moves-and-sign-ins")
@pytest.mark.parametrize("moment", [Step.CHECK, Step.SWITCH], ids=["before the check", "after the check"])
async def test_sign_ins_during_a_hold_do_not_end_it_and_are_logged_in_other_tenants(
    two_cells: TwoCells,
    gateway: Databases,
    agent: Agent,
    tenant: Tenant,
    owner: asyncpg.Connection,
    new_tenant: NewTenant,
    person: UUID,
    monkeypatch: pytest.MonkeyPatch,
    moment: Step,
) -> None:
    staying = (await new_tenant()).id
    await join(owner, person, staying)
    original = store.record_step

    async def at_step(home: Operator, tenant_id: UUID, step: Step) -> None:
        await original(home, tenant_id, step)
        if step is moment:
            await sign_in(gateway, person)
            assert await logged_sign_ins(two_cells, HOME, tenant.id) == ["session.refused", "session.started"]

    await sign_in(gateway, person)
    with monkeypatch.context() as patch:
        patch.setattr(store, "record_step", at_step)
        await two_cells.move(tenant.slug)
    assert await logged_sign_ins(two_cells, AWAY, tenant.id) == ["session.refused", "session.started"]
    assert await logged_sign_ins(two_cells, HOME, staying) == ["session.refused", "session.started"] * 2
    await sign_in(gateway, person)
    assert await logged_sign_ins(two_cells, AWAY, tenant.id) == ["session.refused", "session.started"] * 2


async def test_a_hold_waits_for_an_entry_that_is_about_to_commit(
    two_cells: TwoCells, gateway: Databases, tenant: Tenant, owner: asyncpg.Connection, person: UUID
) -> None:
    async with mover(two_cells) as source:

        async def hold() -> list[str]:
            async with source.transaction():
                await store.lock_writes(source, tenant.id)
                return await logged_sign_ins(two_cells, HOME, tenant.id)

        async with gateway.home.personal(person) as session:
            await acts.record(session, person, acts.Act(Action.SESSION_STARTED, BROWSER.address))
            holding = asyncio.create_task(hold())
            await eventually(lambda: somebody_waits(owner))
        assert await holding == ["session.started"]


async def test_the_first_sign_in_after_a_hold_has_expired_ends_it_and_is_logged(
    two_cells: TwoCells, gateway: Databases, agent: Agent, tenant: Tenant, person: UUID
) -> None:
    async with mover(two_cells) as source:
        await store.hold(source, tenant.id, MINUTE)
        await sign_in(gateway, person)
        assert await logged_sign_ins(two_cells, HOME, tenant.id) == []
        await let_time_pass(two_cells, tenant)
        await sign_in(gateway, person)
    assert await logged_sign_ins(two_cells, HOME, tenant.id) == ["session.refused", "session.started"]
    assert await two_cells.place(HOME, tenant.slug) == "here"


@pytest.mark.proves("security: moves-and-sign-ins")
async def test_a_sign_in_does_not_wait_long_for_a_lock_on_writes(
    two_cells: TwoCells, gateway: Databases, tenant: Tenant, person: UUID
) -> None:
    async with mover(two_cells) as source:
        async with source.transaction():
            await store.lock_writes(source, tenant.id)
            await sign_in(gateway, person)
        await sign_in(gateway, person)
    assert await logged_sign_ins(two_cells, HOME, tenant.id) == ["session.refused", "session.started"]
