"""A tenant moves whole from one cell to another; the mover may be killed at any moment."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import asyncpg
import pytest

from recollect.accounts.deletions import service as deletions
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant
from recollect.errors import Conflict, NotFound, TenantMoving, Unavailable
from recollect.moves import store
from recollect.moves.model import Cell, Contents
from recollect.postgres.driver_errors import translated_errors
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect.settings.cells import HOME
from recollect_local.postgres import LocalPostgres
from tests.support.cells import OTHER, cell_url
from tests.support.erasures import erase_now
from tests.support.memories import Agent
from tests.support.moves import AWAY, COPIED, PREPARED, SWITCHED, TwoCells, killed_after


async def contents(cells: TwoCells, cell: str, tenant: Tenant) -> list[Contents]:
    async with cells.bare(cell) as connection:
        rows = await connection.fetch("SELECT * FROM digest_of_tenant($1)", tenant.id)
        return [Contents(**row) for row in rows if row["total"]]


async def test_a_tenant_moves_with_all_its_data_and_back(two_cells: TwoCells, agent: Agent, tenant: Tenant) -> None:
    before = await contents(two_cells, HOME, tenant)
    assert {"nodes", "passages", "searched_vectors", "relations", "tenants"} <= {each.name for each in before}
    for source, target in ((HOME, AWAY), (AWAY, HOME)):
        await two_cells.move(tenant.slug, to=target)
        assert await contents(two_cells, target, tenant) == before
        assert await contents(two_cells, source, tenant) == []
        assert await two_cells.place(target, tenant.slug) == "here"
        assert await two_cells.step(tenant.slug) is None
        assert await two_cells.leftovers() == []
        async with two_cells.bare(HOME) as connection:
            assert await connection.fetchval("SELECT cell FROM tenant_cells WHERE id = $1", tenant.id) == target


async def test_the_target_gets_the_plan_of_home(two_cells: TwoCells, agent: Agent, tenant: Tenant) -> None:
    """Even if it knew another version of the plan, which was changed at home while the target could not be reached."""
    async with two_cells.bare(HOME) as home, two_cells.bare(AWAY) as away:
        await home.execute("INSERT INTO plans (name, graphs, observations) VALUES ('of-moves', 2, 9)")
        await away.execute("INSERT INTO plans (name, graphs) VALUES ('of-moves', 3)")
        await home.execute("UPDATE tenants SET plan = 'of-moves' WHERE id = $1", tenant.id)
        await two_cells.move(tenant.slug)
        limits = await away.fetch("SELECT graphs, observations FROM plans WHERE name = 'of-moves'")
        assert [tuple(row) for row in limits] == [(2, 9)]


async def test_a_move_can_be_continued_after_the_mover_was_killed_at_any_statement(
    two_cells: TwoCells, agent: Agent, tenant: Tenant
) -> None:
    """One after the other, at every statement that writes. Never do both cells serve the tenant."""
    before = await contents(two_cells, HOME, tenant)
    act: Callable[[str], Awaitable[None]] = two_cells.move
    for function, times in PREPARED + COPIED + SWITCHED:
        async with killed_after(function, times):
            await act(tenant.slug)
        act = two_cells.go_on
        places = [await two_cells.place(cell, tenant.slug) for cell in (HOME, AWAY)]
        assert len([place for place in places if place in ("here", "leaving")]) <= 1, (function, times)
    await two_cells.go_on(tenant.slug)
    assert await contents(two_cells, AWAY, tenant) == before
    assert await contents(two_cells, HOME, tenant) == []
    assert await two_cells.leftovers() == []


async def test_a_move_killed_before_the_switch_can_be_undone(two_cells: TwoCells, agent: Agent, tenant: Tenant) -> None:
    before = await contents(two_cells, HOME, tenant)
    for function, times in [*PREPARED, ("mark_log", 1), ("record_step", 4)]:
        async with killed_after(function, times):
            await two_cells.move(tenant.slug)
        for interrupted in ("record_step", "erase_moved_step"):
            async with killed_after(interrupted):
                await two_cells.undo(tenant.slug)
        await two_cells.undo(tenant.slug)
        assert await two_cells.place(HOME, tenant.slug) == "here", function
        assert await contents(two_cells, HOME, tenant) == before
        assert await contents(two_cells, AWAY, tenant) == []
        assert await two_cells.leftovers() == []
    assert await agent.create("Babbage") == ["Babbage"]


async def test_a_move_cannot_be_undone_after_the_switch(two_cells: TwoCells, agent: Agent, tenant: Tenant) -> None:
    async with killed_after("find_subscription", 2):
        await two_cells.move(tenant.slug)
    assert [await two_cells.place(cell, tenant.slug) for cell in (HOME, AWAY)] == ["departed", "arriving"]
    with pytest.raises(Conflict, match="has left home"):
        await two_cells.undo(tenant.slug)
    await two_cells.go_on(tenant.slug, keep_source=True)
    assert [await two_cells.place(cell, tenant.slug) for cell in (HOME, AWAY)] == ["departed", "here"]
    with pytest.raises(Conflict, match="has left home"):
        await two_cells.undo(tenant.slug)
    await two_cells.go_on(tenant.slug)
    assert [await two_cells.place(cell, tenant.slug) for cell in (HOME, AWAY)] == [None, "here"]


async def test_an_impossible_move_is_refused_and_leaves_nothing(
    two_cells: TwoCells, agent: Agent, tenant: Tenant, operator: Operator
) -> None:
    with pytest.raises(NotFound, match="no cell 'nowhere'"):
        await two_cells.move(tenant.slug, to="nowhere")
    with pytest.raises(NotFound, match="no tenant 'nobody'"):
        await two_cells.move("nobody")
    with pytest.raises(Conflict, match="already in home"):
        await two_cells.move(tenant.slug, to=HOME)
    with pytest.raises(NotFound, match="is not being moved"):
        await two_cells.go_on(tenant.slug)
    await deletions.delete_tenant(operator, tenant.slug, grace=timedelta(days=1))
    with pytest.raises(Conflict, match="Restore it first"):
        await two_cells.move(tenant.slug)
    assert await two_cells.step(tenant.slug) is None
    assert await two_cells.place(AWAY, tenant.slug) is None


async def test_a_tenant_with_rows_in_two_cells_cannot_be_deleted(
    two_cells: TwoCells, agent: Agent, tenant: Tenant, operator: Operator
) -> None:
    async with killed_after("subscribe"):
        await two_cells.move(tenant.slug)
    with pytest.raises(Conflict, match="is already being moved"):
        await two_cells.move(tenant.slug)
    with pytest.raises(Conflict, match="is being moved"):
        await deletions.delete_tenant(operator, tenant.slug, grace=timedelta(days=1))
    await two_cells.go_on(tenant.slug, keep_source=True)
    async with Operator.connect(two_cells.known[AWAY].url, two_cells.settings) as away:
        with pytest.raises(Conflict, match="still has its rows"):
            await erase_now(away, tenant.slug)
        assert await contents(two_cells, HOME, tenant) != []
        await two_cells.go_on(tenant.slug)
        await erase_now(away, tenant.slug)
    assert [await two_cells.place(cell, tenant.slug) for cell in (HOME, AWAY)] == [None, None]
    assert await two_cells.leftovers() == []


async def test_after_undo_a_tenant_can_be_deleted_and_a_deleted_one_is_not_copied(
    two_cells: TwoCells, agent: Agent, tenant: Tenant, operator: Operator
) -> None:
    async with killed_after("lock_writes"):
        await two_cells.move(tenant.slug)
    await two_cells.undo(tenant.slug)
    async with killed_after("find_subscription"):
        await two_cells.move(tenant.slug)
    await deletions.delete_tenant(operator, tenant.slug, grace=timedelta(days=1))
    with pytest.raises(Conflict, match="was deleted"):
        await two_cells.go_on(tenant.slug)
    await erase_now(operator, tenant.slug)
    await two_cells.undo(tenant.slug)
    assert [await two_cells.place(cell, tenant.slug) for cell in (HOME, AWAY)] == [None, None]
    assert await two_cells.leftovers() == []


async def test_held_writes_get_a_retryable_error_and_reads_continue(
    two_cells: TwoCells, agent: Agent, tenant: Tenant, operator: Operator
) -> None:
    async with killed_after("mark_log"):
        await two_cells.move(tenant.slug)
    with pytest.raises(TenantMoving):
        await agent.create("Babbage")
    with pytest.raises(TenantMoving):
        async with translated_errors():
            await tenants.suspend_tenant(operator, tenant.slug)
    assert {node.name for node in (await agent.read()).entities} == {"Ada", "Grace"}
    await two_cells.undo(tenant.slug)
    assert await agent.create("Babbage") == ["Babbage"]


async def test_writes_continue_if_the_target_is_not_ready_in_time(
    two_cells: TwoCells, agent: Agent, tenant: Tenant
) -> None:
    with pytest.raises(Unavailable, match="writes are allowed again"):
        await two_cells.move(tenant.slug, hold=timedelta(microseconds=1))
    assert await two_cells.place(HOME, tenant.slug) == "here"
    assert await two_cells.step(tenant.slug) == "copy"
    assert await agent.create("Babbage") == ["Babbage"]
    async with two_cells.bare(AWAY) as connection:
        await connection.execute("UPDATE nodes SET content = 'forged' WHERE tenant_id = $1", tenant.id)
    with pytest.raises(Conflict, match=r"home and away differ in nodes \(3 and 3 rows\)"):
        await two_cells.go_on(tenant.slug)
    assert await two_cells.place(HOME, tenant.slug) == "here"
    await two_cells.undo(tenant.slug)


async def test_writes_during_a_move_are_included(two_cells: TwoCells, agent: Agent, tenant: Tenant) -> None:
    acknowledged = []

    async def write() -> None:
        for number in itertools.count():
            try:
                acknowledged.extend(await agent.create(f"entity {number}"))
            except TenantMoving:
                return

    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        await two_cells.move(tenant.slug, keep_source=True)
    assert len(acknowledged) > 2
    async with two_cells.bare(AWAY) as connection:
        rows = await connection.fetch("SELECT name FROM nodes WHERE tenant_id = $1", tenant.id)
    assert {row["name"] for row in rows} == {"Ada", "Grace", *acknowledged}
    await two_cells.go_on(tenant.slug)


async def test_vector_indexes_are_built_before_the_switch(two_cells: TwoCells, agent: Agent, tenant: Tenant) -> None:
    async with two_cells.bare(HOME) as connection:
        graph = await connection.fetchval(
            """UPDATE graph_indexes i SET (vector_model, vector_dimensions) = (
                SELECT model, vector_dims(embedding) FROM searched_vectors v WHERE v.tenant_id = i.tenant_id LIMIT 1
            ) WHERE i.tenant_id = $1 RETURNING graph_id""",
            tenant.id,
        )
    of_graph = f"WHERE indexrelid::regclass::text LIKE 'searched_vectors_{graph.hex}%'"
    valid = f"SELECT indisvalid FROM pg_index {of_graph}"
    async with two_cells.bare(AWAY) as connection:
        with pytest.raises(Unavailable, match="writes are allowed again"):
            await two_cells.move(tenant.slug, hold=timedelta(microseconds=1))
        assert await connection.fetchval(valid) is True
        await connection.execute(f"UPDATE pg_index SET indisvalid = false {of_graph}")
        async with killed_after("lock_writes"):
            await two_cells.go_on(tenant.slug)
        assert await connection.fetchval(valid) is True, "what an interrupted build left was taken for an index"
    await two_cells.undo(tenant.slug)


async def test_a_move_waits_for_open_transactions_without_a_time_limit(
    two_cells: TwoCells, agent: Agent, tenant: Tenant
) -> None:
    hasty = replace(two_cells, settings=two_cells.settings.model_copy(update={"lock_timeout_seconds": 0.05}))
    waits = """SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_create_logical_replication_slot%'
        AND wait_event_type = 'Lock' AND clock_timestamp() > query_start + interval '0.3 s'"""

    async def move() -> None:
        async with killed_after("make_slot"):
            await hasty.move(tenant.slug)

    async with two_cells.bare(HOME) as connection, two_cells.bare(HOME) as another:
        async with connection.transaction():
            await connection.execute("SELECT pg_current_xact_id()")
            moving = asyncio.create_task(move())
            while not moving.done() and not await another.fetchval(waits):  # noqa: ASYNC110 -- PostgreSQL tells
                await asyncio.sleep(0.05)
            assert not moving.done()
        await moving
    await two_cells.undo(tenant.slug)


async def test_a_same_numbered_subscription_of_another_server_is_left_alone(two_cells: TwoCells) -> None:
    """Its process is at work with its slot while it waits for a transaction."""
    number, system = 4_000_000_000, 7_000_000_000_000_000_000
    slots = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = $1 AND active_pid IS NOT NULL"
    name = f"pg_{number}_sync_16400_{system}"
    async with (
        two_cells.bare(HOME) as busy,
        two_cells.bare(HOME) as copying,
        Operator.connect(two_cells.known[HOME].url, two_cells.settings, role=None) as source,
        busy.transaction(),
    ):
        await busy.execute("SELECT pg_current_xact_id()")
        make = "SELECT pg_create_logical_replication_slot($1, 'pgoutput', true)"
        made = asyncio.create_task(copying.execute(make, name))
        while not await busy.fetchval(slots, name):
            if made.done():
                await made
            await asyncio.sleep(0.05)
        for other in ((number, system + 1), (number + 1, system), (number, system // 10)):
            await store.end_copies(source, number=other[0], system=other[1])
        assert await busy.fetchval(slots, name)
        await store.end_copies(source, number=number, system=system)
        with pytest.raises(asyncpg.ConnectionDoesNotExistError):
            await made


async def test_the_targets_log_does_not_contain_the_sources_password(
    two_cells: TwoCells, postgres: LocalPostgres, agent: Agent, tenant: Tenant
) -> None:
    """If a subscription fails, PostgreSQL logs the statement."""
    home = two_cells.known[HOME]
    unreachable = replace(home, address_for_cells="postgresql://recollect_owner:of-the-source@127.0.0.1:9/recollect")
    with pytest.raises(Unavailable, match="away cannot follow home"):
        await replace(two_cells, known=two_cells.known | {HOME: unreachable}).move(tenant.slug)
    log = postgres.log.read_text()
    assert "could not connect to the publisher" in log
    assert "of-the-source" not in log
    await two_cells.undo(tenant.slug)


async def test_a_tenant_moves_between_two_cells_other_than_home(
    two_cells: TwoCells, celled: Settings, postgres: LocalPostgres, agent: Agent, tenant: Tenant
) -> None:
    """The people, the directory and the notes of the move are then in a third cell, home."""
    url = cell_url(postgres, "postgres", "recollect_b")
    three_cells = replace(two_cells, known=two_cells.known | {OTHER: Cell(OTHER, url, url)})
    async with two_cells.bare(HOME) as connection:
        await connection.execute(
            """WITH person AS (INSERT INTO people (id, email, name, password_hash)
                VALUES ($1::uuid, $1::uuid || '@example.com', 'Ada', 'secret') RETURNING id)
            INSERT INTO members SELECT $1::uuid, id, 'owner' FROM person""",
            tenant.id,
        )
    before = await contents(two_cells, HOME, tenant)
    for cell, left in ((AWAY, HOME), (OTHER, AWAY), (HOME, OTHER)):
        await three_cells.move(tenant.slug, to=cell)
        assert await contents(three_cells, cell, tenant) == before
        assert await contents(three_cells, left, tenant) == []
        for name in (HOME, AWAY, OTHER):
            async with three_cells.bare(name) as connection:
                people = await connection.fetch("SELECT password_hash FROM people WHERE id = $1", tenant.id)
            known = {cell: [None]} | {HOME: ["secret"]}
            assert [person[0] for person in people] == known.get(name, []), (cell, name)
