"""Sessions that a tenant's own identity providers began move with it, unless they have ended."""

from uuid import UUID

import asyncpg
import pytest

from recollect.accounts.people import store as people
from recollect.accounts.people.model import Browser, Confinement
from recollect.accounts.people.sessions import begin_session
from recollect.accounts.tenants.model import Tenant
from recollect.cells.databases import Databases
from recollect.ids import new_id
from recollect.moves import store
from recollect.moves.model import Step
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from tests.support.memories import Agent
from tests.support.moves import AWAY, TwoCells

ADD_PROVIDER = """
    INSERT INTO identity_providers (tenant_id, id, name, issuer, client_id, client_secret, algorithm, created_by)
    VALUES ($1, $1, 'idp', 'https://idp.example', 'recollect', '', 'RS256', 'test')"""

BEGIN_SESSION = """
    WITH person AS (
        INSERT INTO people (id, email, name, password_hash) VALUES ($2, $2 || '@example.com', 'Ada', 'old') RETURNING id
    ), member AS (INSERT INTO members SELECT $1, id, 'owner' FROM person)
    INSERT INTO sessions (id, person_id, hash, expires_at, user_agent, address, confined_to, provider_id)
    SELECT id, id, sha256(id::text::bytea), now() + interval '1 hour', '', '', $1, $1 FROM person"""
"""A session by the tenant's own provider, whose id is the tenant's."""


@pytest.mark.parametrize("late", [False, True], ids=["while writes are held", "while no cell serves the tenant"])
async def test_a_session_ended_by_a_changed_password_has_ended_in_the_new_cell(
    two_cells: TwoCells,
    agent: Agent,
    tenant: Tenant,
    db: Database,
    owner: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    late: bool,
) -> None:
    """The source refuses to end a session while it is copied."""
    changed, unchanged = new_id(), new_id()
    await owner.execute(ADD_PROVIDER, tenant.id)
    for person in (changed, unchanged):
        await owner.execute(BEGIN_SESSION.replace("$2", f"'{person}'::uuid"), tenant.id)

    async def change() -> None:
        async with db.personal(changed) as session:
            await people.set_password(session, changed, "new")

    original_step, original_ending = store.record_step, store.end_sessions

    async def at_step(home: Operator, tenant_id: UUID, step: Step) -> None:
        await original_step(home, tenant_id, step)
        if step is Step.SWITCH and not late:
            await change()

    async def ending(cell: Operator, tenant_id: UUID, changes: str) -> None:
        await original_ending(cell, tenant_id, changes)
        if late and await two_cells.place(AWAY, tenant.slug) == "arriving":
            await change()

    with monkeypatch.context() as patch:
        patch.setattr(store, "record_step", at_step)
        patch.setattr(store, "end_sessions", ending)
        await two_cells.move(tenant.slug)
    async with two_cells.bare(AWAY) as away:
        rows = await away.fetch(
            "SELECT person_id, revoked_at IS NULL AS holds FROM sessions WHERE confined_to = $1", tenant.id
        )
        assert {row["person_id"]: row["holds"] for row in rows} == {changed: False, unchanged: True}
        known = await away.fetch("SELECT password_hash, password_changed_at FROM people WHERE id = $1", changed)
        assert [tuple(row) for row in known] == [(None, None)]


@pytest.mark.parametrize("skew", ["1 hour", "-1 hour"], ids=["ahead", "behind"])
async def test_clock_skew_does_not_decide_whether_a_session_began_before_a_password_change(
    two_cells: TwoCells, gateway: Databases, agent: Agent, tenant: Tenant, owner: asyncpg.Connection, skew: str
) -> None:
    """The clock of the server where it began is an hour ahead of home's, or behind it."""
    before, after = new_id(), new_id()
    await owner.execute(ADD_PROVIDER, tenant.id)

    async def change(person: UUID) -> None:
        async with gateway.home.personal(person) as session:
            await people.set_password(session, person, "new")

    for person in (before, after):
        await owner.execute(
            "INSERT INTO people (id, email, name, password_hash) VALUES ($1, $2, 'Ada', 'old')",
            person,
            f"{person}@example.com",
        )
        await owner.execute(
            "INSERT INTO members (tenant_id, person_id, role) VALUES ($1, $2, 'owner')", tenant.id, person
        )
        if person == after:
            await change(person)
        await begin_session(
            gateway, person, Browser("", ""), pepper=b"pepper" * 6, confinement=Confinement(tenant.id, tenant.id)
        )
    await owner.execute(
        "UPDATE sessions SET created_at = created_at + $2::text::interval WHERE confined_to = $1", tenant.id, skew
    )
    await change(before)
    await two_cells.move(tenant.slug)
    async with two_cells.bare(AWAY) as away:
        rows = await away.fetch(
            "SELECT person_id, revoked_at IS NULL AS holds FROM sessions WHERE confined_to = $1", tenant.id
        )
    assert {row["person_id"]: row["holds"] for row in rows} == {before: False, after: True}
