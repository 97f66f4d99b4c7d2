"""One function per query of `queries.sql`, on the connections of a move: as the tables' owner."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from recollect.moves.model import (
    Contents,
    Copying,
    Log,
    Move,
    ServerCapabilities,
    Step,
    SubscriptionWorkers,
    TenantState,
    create_publication,
    create_subscription,
    drop_publication,
    drop_subscription,
    name_of,
    stop_subscription,
)
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Queries

queries = Queries(__package__)


async def try_lock(home: Operator, slug: str) -> bool:
    """Lock the move of a tenant; False if another connection moves it."""
    return await home.fetchval(queries.try_lock, slug=slug)


async def insert_move(home: Operator, tenant_id: UUID, slug: str, *, source: str, target: str) -> Move | None:
    """Store a new move of a tenant; None if it has one already."""
    return await home.fetch_object(queries.insert_move, Move, id=tenant_id, slug=slug, source=source, target=target)


async def find_move(home: Operator, slug: str) -> Move | None:
    """The move of a tenant, or None."""
    return await home.fetch_object(queries.find_move, Move, slug=slug)


async def list_moves(home: Operator) -> list[Move]:
    """All moves, the oldest first."""
    return [Move(**row) for row in await home.fetch(queries.list_moves)]


async def record_step(home: Operator, tenant_id: UUID, step: Step) -> None:
    """Note which step comes next."""
    await home.execute(queries.record_step, id=tenant_id, step=step)


async def delete_move(home: Operator, tenant_id: UUID) -> None:
    """Delete a move, which is over."""
    await home.execute(queries.delete_move, id=tenant_id)


async def set_cell(home: Operator, tenant_id: UUID, slug: str, cell: str) -> bool:
    """Set the cell of a tenant in the directory; False if it is that already."""
    return await home.fetchval(queries.set_cell, id=tenant_id, slug=slug, cell=cell) is not None


async def find_tenant(cell: Operator, slug: str) -> tuple[UUID, TenantState, bool] | None:
    """A tenant's id, its place, and whether it is deleted; None if this cell does not know it."""
    row = await cell.fetchrow(queries.find_tenant, slug=slug)
    return (row["id"], TenantState(row["place"]), row["deleted"]) if row else None


async def find_tenant_state(cell: Operator, tenant_id: UUID) -> TenantState | None:
    """The place of a tenant as a cell has it; None if the cell does not know it."""
    state: str | None = await cell.fetchval(queries.find_tenant_state, id=tenant_id)
    return None if state is None else TenantState(state)


async def lock_writes(cell: Operator, tenant_id: UUID) -> None:
    """Block commits of the tenant's writes until the transaction ends."""
    await cell.execute(queries.lock_writes, id=tenant_id)


async def set_tenant_state(cell: Operator, tenant_id: UUID, state: TenantState, among: Sequence[TenantState]) -> bool:
    """Change the place of a tenant; False if its present place is none of `among`."""
    return await cell.fetchval(queries.set_tenant_state, id=tenant_id, state=state, among=list(among)) is not None


async def hold(source: Operator, tenant_id: UUID, most: timedelta) -> datetime | None:
    """Refuse the tenant's writes for at most this time; return until when, None if the source does not serve it."""
    return await source.fetchval(queries.hold, id=tenant_id, most=most)


async def keep_switch_secret(target: Operator, tenant_id: UUID, secret: UUID) -> bool:
    """Store in the target the secret of the switch; False if the tenant is not arriving there."""
    return await target.fetchval(queries.keep_switch_secret, id=tenant_id, secret=secret) is not None


async def depart(
    source: Operator, tenant_id: UUID, held_until: datetime, *, target: str, secret: UUID, most: timedelta
) -> bool:
    """Have the source stop serving the tenant; False if that hold of its writes is over.

    After `most`, the source answers requests for the tenant with its target and the secret that the target has.
    """
    departure = {"target": target, "secret": secret, "most": most}
    return await source.fetchval(queries.depart, id=tenant_id, held_until=held_until, **departure) is not None


async def mark_moving(cell: Operator, tenant_id: UUID) -> bool:
    """Note that another cell may have rows of the tenant; False if it is deleted, or not in this cell."""
    return await cell.fetchval(queries.mark_moving, id=tenant_id) is not None


async def unmark_moving(cell: Operator, tenant_id: UUID) -> None:
    """Note that no other cell has rows of the tenant."""
    await cell.execute(queries.unmark_moving, id=tenant_id)


async def read_tenant(cell: Operator, tenant_id: UUID) -> str:
    """The tenant's own row, as JSON."""
    return await cell.fetchval(queries.read_tenant, id=tenant_id)


async def put_tenant(cell: Operator, tenant: str) -> bool:
    """Store the tenant's own row as it is in the source, as arriving; False if this cell serves the tenant."""
    return await cell.fetchval(queries.put_tenant, tenant=tenant) is not None


async def plan_of(cell: Operator, tenant_id: UUID) -> str:
    """The name of a tenant's plan."""
    return await cell.fetchval(queries.plan_of, id=tenant_id)


async def list_members(cell: Operator, tenant_id: UUID) -> list[UUID]:
    """The people who are members of a tenant."""
    return [row["person_id"] for row in await cell.fetch(queries.list_members, id=tenant_id)]


async def read_people(home: Operator, ids: Sequence[UUID]) -> str:
    """People who sign in at home, as JSON, without their passwords."""
    return await home.fetchval(queries.read_people, ids=ids)


async def read_own_people(cell: Operator, tenant_id: UUID) -> str:
    """The people who are of a tenant alone, as JSON."""
    return await cell.fetchval(queries.read_own_people, id=tenant_id)


async def put_people(cell: Operator, people: str) -> None:
    """Store copies of people as they are now."""
    await cell.execute(queries.put_people, people=people)


async def read_passkeys(cell: Operator, tenant_id: UUID) -> str:
    """The passkeys of people who are of a tenant alone, as JSON."""
    return await cell.fetchval(queries.read_passkeys, id=tenant_id)


async def put_passkeys(cell: Operator, tenant_id: UUID, passkeys: str) -> None:
    """Store these passkeys of people who are of a tenant alone as they are now, and delete all others of theirs."""
    async with cell.transaction():
        await cell.execute(queries.delete_passkeys, id=tenant_id)
        await cell.execute(queries.put_passkeys, passkeys=passkeys)


async def read_sessions(cell: Operator, tenant_id: UUID) -> str:
    """The valid sessions that a tenant's own identity providers began, as JSON."""
    return await cell.fetchval(queries.read_sessions, id=tenant_id)


async def put_sessions(cell: Operator, tenant_id: UUID, sessions: str) -> None:
    """Store these sessions of a tenant's own identity providers as they are now, and delete all others."""
    async with cell.transaction():
        await cell.execute(queries.delete_sessions, id=tenant_id)
        await cell.execute(queries.put_sessions, sessions=sessions)


async def list_session_people(cell: Operator, tenant_id: UUID) -> list[UUID]:
    """The people with valid sessions that a tenant's own identity providers began."""
    return [row["person_id"] for row in await cell.fetch(queries.list_session_people, id=tenant_id)]


async def read_password_changes(home: Operator, ids: Sequence[UUID]) -> str:
    """When and how often these people changed their password, as JSON; people who did not are left out."""
    return await home.fetchval(queries.read_password_changes, ids=ids)


async def end_sessions(cell: Operator, tenant_id: UUID, changes: str) -> None:
    """End the sessions of a tenant's own identity providers that began before such a change."""
    await cell.execute(queries.end_sessions, id=tenant_id, changes=changes)


async def delete_people(cell: Operator) -> None:
    """Delete copies of people who are members of no tenant of this cell. Never at home, which has the originals."""
    await cell.execute(queries.delete_people)


async def describe_server(cell: Operator) -> ServerCapabilities:
    """The capabilities of a server that a move depends on."""
    row = await cell.fetchrow(queries.describe_server)
    assert row is not None
    return ServerCapabilities(**row)


async def list_migrations(cell: Operator) -> list[str]:
    """The migrations that a cell has; empty if it was never migrated."""
    try:
        return [row["name"] for row in await cell.fetch(queries.list_migrations)]
    except asyncpg.UndefinedTableError:
        return []


async def tables_of_tenants(cell: Operator) -> list[str]:
    """The tables whose rows name their tenant."""
    return await cell.fetchval(queries.tables_of_tenants)


async def digest_of_tenant(cell: Operator, tenant_id: UUID) -> list[Contents]:
    """The digest of a tenant's rows in each table; it reads all rows."""
    return [Contents(**row) for row in await cell.fetch(queries.digest_of_tenant, id=tenant_id)]


async def count_of_tenant(cell: Operator, tenant_id: UUID) -> dict[str, int]:
    """The number of a tenant's rows in each table."""
    counts: Any = await cell.fetchval(queries.count_of_tenant, id=tenant_id)
    return msgspec.json.decode(counts, type=dict[str, int])


async def publish(source: Operator, tenant_id: UUID, tables: Sequence[str]) -> None:
    """Publish the tenant's rows of these tables."""
    await source.execute(create_publication(tenant_id, tables))


async def wait_for_locks(cell: Operator, *, most: str | None) -> None:
    """Set how long this connection waits for a lock: "0" is without bound, None the value when it was opened."""
    await cell.execute(queries.wait_for_locks, most=most)


async def make_slot(source: Operator, tenant_id: UUID) -> None:
    """Make the slot that keeps the source's log for a target that will follow."""
    await source.execute(queries.make_slot, name=name_of(tenant_id))


async def subscribe(target: Operator, tenant_id: UUID, address: str) -> None:
    """Have the target copy and follow the source at that address, whose password no log of the target contains."""
    async with target.transaction():
        await target.execute(queries.hide_statements)
        await target.execute(create_subscription(tenant_id, address))


async def stop_following(target: Operator, tenant_id: UUID) -> None:
    """Have the target stop following."""
    await target.execute(stop_subscription(tenant_id))


async def find_subscription(target: Operator, tenant_id: UUID) -> bool:
    """Whether the target has the subscription."""
    return await target.fetchval(queries.find_subscription, name=name_of(tenant_id))


async def count_workers(target: Operator, tenant_id: UUID) -> SubscriptionWorkers | None:
    """The number of processes that still copy or follow; None if the target has no subscription."""
    return await target.fetch_object(queries.count_workers, SubscriptionWorkers, name=name_of(tenant_id))


async def end_copy_workers(target: Operator, *, number: int) -> None:
    """End the target's processes that copy tables for its subscription of this number."""
    await target.execute(queries.end_copy_workers, number=number)


async def end_copies(source: Operator, *, number: int, system: int) -> None:
    """End the source's processes that copy tables for the subscription of this number on that server."""
    await source.execute(queries.end_copies, number=number, system=system)


async def drop_copy_slots(source: Operator, *, number: int, system: int) -> None:
    """Drop the slots from which tables were copied for that subscription. Raises ObjectInUseError while one is read."""
    await source.execute(queries.drop_copy_slots, number=number, system=system)


async def unsubscribe(target: Operator, tenant_id: UUID) -> None:
    """Drop the subscription."""
    for statement in drop_subscription(tenant_id):
        await target.execute(statement)


async def drop_slot(source: Operator, tenant_id: UUID) -> None:
    """Drop the slot that keeps the source's log. Raises ObjectInUseError while the target still reads it."""
    await source.execute(queries.drop_slot, name=name_of(tenant_id))


async def unpublish(source: Operator, tenant_id: UUID) -> None:
    """Stop publishing the tenant's rows."""
    await source.execute(drop_publication(tenant_id))


async def copying(target: Operator, tenant_id: UUID) -> Copying | None:
    """The progress of the copy in the target; None if it has no subscription."""
    return await target.fetch_object(queries.copying, Copying, name=name_of(tenant_id))


async def mark_log(source: Operator) -> str:
    """Write a mark to the source's log, after all commits; return its position in the log."""
    return await source.fetchval(queries.mark_log)


async def log_of(source: Operator, tenant_id: UUID, *, at: str | None = None) -> Log | None:
    """How much of the source's log, until this position or until now, the target lacks; None if there is no slot."""
    return await source.fetch_object(queries.log_of, Log, name=name_of(tenant_id), at=at)


async def erase_moved_step(cell: Operator, tenant_id: UUID, *, rows: int) -> bool:
    """Erase up to `rows` rows of a tenant that is not served here; return whether none is left."""
    return await cell.fetchval(queries.erase_moved_step, id=tenant_id, rows=rows)
