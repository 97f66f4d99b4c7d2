"""How the rows come to the target: what is asked of both servers, the replication, and its end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from recollect.accounts.plans import service as plans
from recollect.errors import Conflict, ErrorCode, Unavailable
from recollect.moves import store
from recollect.moves.connections import Ends
from recollect.moves.model import NEARLY_THERE, ROWS_AT_ONCE, Copying, Place, lacking
from recollect.platform.operator_sessions import Operator
from recollect.retrieval.vector_indexes import service as vector_indexes
from recollect.settings.cells import HOME

POLL_SECONDS = 0.05
"""How often PostgreSQL is asked how far it is: what is asked costs a millisecond, and writes may be waiting."""

MAX_ERRORS = 3
"""Failures of the target to take rows until it is given up: PostgreSQL begins anew by itself, a few seconds later."""

DROP_SECONDS = 30.0
"""How long the source may take to see that the target follows no longer."""


@asynccontextmanager
async def _patient(cell: Operator) -> AsyncIterator[None]:
    """What waits for everybody's transactions and holds up none of them, waits for as long as they take."""
    await store.wait_for_locks(cell, most="0")
    yield
    await store.wait_for_locks(cell, most=None)


async def require_ready(ends: Ends) -> None:
    """Raise Conflict where one of the servers cannot take its part; the message says what it lacks."""
    source, target = await store.describe_server(ends.source), await store.describe_server(ends.target)
    if found := lacking(ends.move, source, target):
        raise Conflict(f"The cells cannot do this move: {'; '.join(found)}.", code=ErrorCode.TENANT_MOVING)


async def begin_copying(ends: Ends) -> None:
    """Have the target copy the tenant's rows from nothing, and follow. Raises Conflict, Unavailable."""
    tenant_id = ends.move.id
    await stop_copying(ends)  # What an interrupted one has made would be in the way.
    await require_ready(ends)
    if await store.find_place(ends.target, tenant_id) in (Place.HERE, Place.LEAVING):
        raise Conflict(f"{ends.move.target} serves this organisation already.", code=ErrorCode.TENANT_EXISTS)
    if not await store.mark_moving(ends.source, tenant_id):
        raise Conflict("This tenant was deleted. Undo the move.", code=ErrorCode.TENANT_DELETED)
    await erase_rows(ends, ends.target, ends.move.target)
    await put_tenant(ends)
    await store.publish(ends.source, tenant_id, await store.tables_of_tenants(ends.source))
    ends.tell(f"waiting for transactions that are under way in {ends.move.source}")
    async with _patient(ends.source):
        await store.make_slot(ends.source, tenant_id)
    try:
        await store.subscribe(ends.target, tenant_id, ends.source_address)
    except asyncpg.PostgresError as error:
        raise Unavailable(f"{ends.move.target} cannot follow {ends.move.source}: {error.args[0]}") from error


async def put_tenant(ends: Ends) -> None:
    """Give the target the tenant's own row as it is in the source, and its plan as home has it; raises Conflict."""
    if ends.move.target != HOME:
        await plans.share_plan(ends.home, ends.target, await store.plan_of(ends.source, ends.move.id))
    if not await store.put_tenant(ends.target, await store.read_tenant(ends.source, ends.move.id)):
        raise Conflict(f"{ends.move.target} serves this organisation already.", code=ErrorCode.TENANT_EXISTS)


async def put_people(ends: Ends) -> None:
    """Give the target copies of members, and those whom the tenant's own providers brought, with their sessions."""
    tenant_id = ends.move.id
    if ends.move.target != HOME:
        members = await store.list_members(ends.source, tenant_id)
        await store.put_people(ends.target, await store.read_people(ends.home, members))
    await store.put_people(ends.target, await store.read_own_people(ends.source, tenant_id))
    await store.put_sessions(ends.target, tenant_id, await store.read_sessions(ends.source, tenant_id))


async def wait_until_copied(ends: Ends) -> None:
    """Return when the target has all but the last moments, and the vector indexes. Raises Conflict, Unavailable."""
    told = ""
    while True:
        copying, behind = await _copying(ends), await behind_by(ends)
        now = f"{copying.ready} of {copying.tables} tables copied, {behind / 1_000_000:.0f} MB of the log to follow"
        if now != told:
            ends.tell(told := now)
        if copying.ready == copying.tables and behind < NEARLY_THERE:
            break
        await asyncio.sleep(POLL_SECONDS)
    memory_mb = ends.options.index_memory_mb
    async with _patient(ends.target):
        for built in await vector_indexes.build_noted(ends.target, ends.move.id, memory_mb=memory_mb):
            ends.tell(built)


async def wait_until_equal(ends: Ends, at: str) -> None:
    """Return when the target has confirmed the source's log up to there. Raises as `wait_until_copied`."""
    while await behind_by(ends, at=at) > 0:
        await _copying(ends)
        await asyncio.sleep(POLL_SECONDS)


async def behind_by(ends: Ends, *, at: str | None = None) -> int:
    """How many bytes of the source's log the target lacks. Raises Conflict where PostgreSQL keeps them no longer."""
    log = await store.log_of(ends.source, ends.move.id, at=at)
    if log is None or log.lost:
        raise Conflict(
            f"{ends.move.source} no longer keeps its log for this move. Undo it and begin anew.",
            code=ErrorCode.TENANT_MOVING,
        )
    return log.behind


async def _copying(ends: Ends) -> Copying:
    copying = await store.copying(ends.target, ends.move.id)
    if copying is None or not copying.enabled:
        raise Conflict(
            f"{ends.move.target} follows {ends.move.source} no longer. Undo the move and begin anew.",
            code=ErrorCode.TENANT_MOVING,
        )
    if copying.errors >= MAX_ERRORS:
        raise Unavailable(
            f"{ends.move.target} fails to take rows: the log of its PostgreSQL says why. Undo the move, or mend that "
            "and continue."
        )
    return copying


async def stop_copying(ends: Ends) -> None:
    """Take subscription, slot and publication away, as far as they are there."""
    if await store.find_subscription(ends.target, ends.move.id):
        await _end_workers(ends)
        await store.unsubscribe(ends.target, ends.move.id)
    async with asyncio.timeout(DROP_SECONDS):
        while True:
            try:
                await store.drop_slot(ends.source, ends.move.id)
                break
            except asyncpg.ObjectInUseError:
                await asyncio.sleep(POLL_SECONDS)
    await store.unpublish(ends.source, ends.move.id)


async def _end_workers(ends: Ends) -> None:
    """Wait until nothing copies any more, before the subscription is dropped.

    What begins to copy a table waits for all transactions of the server. Where both cells are on the same one, it
    would wait for the one that drops the subscription, and that one for it.
    """
    await store.stop_following(ends.target, ends.move.id)
    async with asyncio.timeout(DROP_SECONDS):
        while True:
            number, workers = await store.count_workers(ends.target, ends.move.id)
            await store.end_copies(ends.source, number)
            if not workers:
                return
            await asyncio.sleep(POLL_SECONDS)


async def erase_rows(ends: Ends, cell: Operator, name: str) -> None:
    """Erase what a cell has of the tenant, which it does not serve, in batches."""
    erased = 0
    while not await store.erase_moved_step(cell, ends.move.id, rows=ROWS_AT_ONCE):
        erased += ROWS_AT_ONCE
        ends.tell(f"{erased} rows erased in {name}")
