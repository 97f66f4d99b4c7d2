"""How the rows come to the target: what is asked of both servers, the replication, and its end."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import asyncpg

from recollect.accounts.plans import service as plans
from recollect.errors import Conflict, ErrorCode, Unavailable
from recollect.moves import store
from recollect.moves.connections import MoveContext
from recollect.moves.model import NEARLY_THERE, ROWS_AT_ONCE, Copying, TenantPlace, lacking, unlike_schema
from recollect.platform.migrate import migrations
from recollect.platform.operator_sessions import Operator
from recollect.retrieval.vector_indexes import service as vector_indexes
from recollect.settings.cells import HOME

POLL_SECONDS = 0.05
"""How often PostgreSQL is asked how far it is: what is asked costs a millisecond, and writes may be waiting."""

MAX_ERRORS = 3
"""Failures of the target to take rows, with no table copied meanwhile, until it is given up.

PostgreSQL begins anew by itself, a few seconds later.
"""

UNHEARD_SECONDS = 120.0
"""How long the target may hear nothing from the source until it is given up: both say something every half minute by
default (`wal_sender_timeout`), and what failed is started again every five seconds (`wal_retrieve_retry_interval`)."""

DROP_SECONDS = 30.0
"""How long the source may take to see that the target follows no longer."""


@asynccontextmanager
async def _patient(cell: Operator) -> AsyncIterator[None]:
    """What waits for everybody's transactions and holds up none of them, waits for as long as they take."""
    await store.wait_for_locks(cell, most="0")
    yield
    await store.wait_for_locks(cell, most=None)


async def require_own_schema(context: MoveContext) -> None:
    """Raise Unavailable where home or one of the two is of another version: a statement would fail in the middle."""
    own, move = [migration.name for migration in migrations()], context.move
    for name, cell in ((HOME, context.home), (move.source, context.source), (move.target, context.target)):
        if told := unlike_schema(name, await store.list_migrations(cell), own):
            raise Unavailable(told, code=ErrorCode.SCHEMA_OUTDATED)


async def require_ready(context: MoveContext) -> None:
    """Raise Conflict where one of the servers cannot take its part; the message says what it lacks."""
    source, target = await store.describe_server(context.source), await store.describe_server(context.target)
    tables = await store.tables_of_tenants(context.source)
    if found := lacking(context.move, source, target, tables=len(tables)):
        raise Conflict(f"The cells cannot do this move: {'; '.join(found)}.", code=ErrorCode.TENANT_MOVING)


async def begin_copying(context: MoveContext) -> None:
    """Have the target copy the tenant's rows from nothing, and follow. Raises Conflict, Unavailable."""
    tenant_id = context.move.id
    await stop_copying(context)  # What an interrupted one has made would be in the way.
    await require_ready(context)
    if await store.find_place(context.target, tenant_id) in (TenantPlace.HERE, TenantPlace.LEAVING):
        raise Conflict(f"{context.move.target} serves this organisation already.", code=ErrorCode.TENANT_EXISTS)
    if not await store.mark_moving(context.source, tenant_id):
        raise Conflict("This tenant was deleted. Undo the move.", code=ErrorCode.TENANT_DELETED)
    await erase_rows(context, context.target, context.move.target)
    await put_tenant(context)
    await store.publish(context.source, tenant_id, await store.tables_of_tenants(context.source))
    context.tell(f"waiting for transactions that are under way in {context.move.source}")
    async with _patient(context.source):
        await store.make_slot(context.source, tenant_id)
    try:
        await store.subscribe(context.target, tenant_id, context.source_address)
    except asyncpg.PostgresError as error:
        raise Unavailable(f"{context.move.target} cannot follow {context.move.source}: {error.args[0]}") from error


async def put_tenant(context: MoveContext) -> None:
    """Give the target the tenant's own row as it is in the source, and its plan as home has it; raises Conflict."""
    if context.move.target != HOME:
        await plans.share_plan(context.home, context.target, await store.plan_of(context.source, context.move.id))
    if not await store.put_tenant(context.target, await store.read_tenant(context.source, context.move.id)):
        raise Conflict(f"{context.move.target} serves this organisation already.", code=ErrorCode.TENANT_EXISTS)


async def put_people(context: MoveContext) -> None:
    """Give the target copies of members, and those whom the tenant's own providers brought, with their sessions."""
    tenant_id = context.move.id
    if context.move.target != HOME:
        members = await store.list_members(context.source, tenant_id)
        async with context.home.transaction():  # Whoever deletes an account meanwhile finds this copy of it.
            await store.put_people(context.target, await store.read_people(context.home, members))
    await store.put_people(context.target, await store.read_own_people(context.source, tenant_id))
    await store.put_sessions(context.target, tenant_id, await store.read_sessions(context.source, tenant_id))


async def end_old_sessions(context: MoveContext) -> None:
    """End in the target what a person ended by another password while writes were held, or the source was away."""
    people = await store.list_session_people(context.target, context.move.id)
    changes = await store.read_password_changes(context.home, people)
    await store.end_sessions(context.target, context.move.id, changes)


async def wait_until_copied(context: MoveContext) -> None:
    """Return when the target has all but the last moments, and the vector indexes. Raises Conflict, Unavailable."""
    told = ""
    async for copying in _progress(context):
        behind = await behind_by(context)
        now = f"{copying.ready} of {copying.tables} tables copied, {behind / 1_000_000:.0f} MB of the log to follow"
        if now != told:
            context.tell(told := now)
        if copying.ready == copying.tables and behind < NEARLY_THERE:
            break
    memory_mb = context.options.index_memory_mb
    async with _patient(context.target):
        for built in await vector_indexes.build_noted(context.target, context.move.id, memory_mb=memory_mb):
            context.tell(built)


async def wait_until_equal(context: MoveContext, at: str) -> None:
    """Return when the target has confirmed the source's log up to there. Raises as `wait_until_copied`."""
    async for _ in _progress(context):
        if await behind_by(context, at=at) == 0:
            return


async def behind_by(context: MoveContext, *, at: str | None = None) -> int:
    """How many bytes of the source's log the target lacks. Raises Conflict where PostgreSQL keeps them no longer."""
    log = await store.log_of(context.source, context.move.id, at=at)
    if log is None or log.lost:
        raise Conflict(
            f"{context.move.source} no longer keeps its log for this move. Undo it and begin anew.",
            code=ErrorCode.TENANT_MOVING,
        )
    return log.behind


async def _progress(context: MoveContext) -> AsyncIterator[Copying]:
    """How far the target is, again and again. Raises Conflict where it follows no longer, Unavailable where it fails.

    Its server counts failures for as long as it has the subscription. Of these, what was before somebody looked may be
    mended, and what was before a table was copied did no harm. It counts none where it does not reach the source.
    """
    since: Copying | None = None
    heard_at = time.monotonic()
    while True:
        copying = await store.copying(context.target, context.move.id)
        if copying is None or not copying.enabled:
            raise Conflict(
                f"{context.move.target} follows {context.move.source} no longer. Undo the move and begin anew.",
                code=ErrorCode.TENANT_MOVING,
            )
        if since is None or copying.ready > since.ready:
            since = copying
        if copying.errors - since.errors >= MAX_ERRORS:
            raise Unavailable(
                f"{context.move.target} fails to take rows: the log of its PostgreSQL says why. "
                "Undo the move, or mend that and continue."
            )
        if copying.heard:
            heard_at = time.monotonic()
        if time.monotonic() - heard_at > UNHEARD_SECONDS:
            raise Unavailable(
                f"{context.move.target} has heard nothing from {context.move.source} for {UNHEARD_SECONDS:.0f} s: "
                "the log of its PostgreSQL says why. Undo the move, or mend that and continue."
            )
        yield copying
        await asyncio.sleep(POLL_SECONDS)


async def stop_copying(context: MoveContext) -> None:
    """Take subscription, slots and publication away, as far as they are there."""
    if await store.find_subscription(context.target, context.move.id):
        await _end_workers(context)
        await store.unsubscribe(context.target, context.move.id)
    await _once_unused(partial(store.drop_slot, context.source, context.move.id))
    await store.unpublish(context.source, context.move.id)


async def _end_workers(context: MoveContext) -> None:
    """End what copies, before the subscription is dropped, and drop the slots that this leaves.

    What begins to copy a table waits for all transactions of the server. Where both cells are on the same one, it
    would wait for the one that drops the subscription, and that one for it. PostgreSQL drops these slots with the
    subscription, but not where the target does not reach the source; and nothing knows them by their names after that.
    """
    await store.stop_following(context.target, context.move.id)
    async with asyncio.timeout(DROP_SECONDS):
        while True:
            found = await store.count_workers(context.target, context.move.id)
            if found is None:
                return
            await store.end_copy_workers(context.target, number=found.number)
            await store.end_copies(context.source, number=found.number, system=found.system)
            if not found.workers:
                break
            await asyncio.sleep(POLL_SECONDS)
    await _once_unused(partial(store.drop_copy_slots, context.source, number=found.number, system=found.system))


async def _once_unused(drop: Callable[[], Awaitable[None]]) -> None:
    """Drop slots once the source has seen that the target reads them no longer."""
    async with asyncio.timeout(DROP_SECONDS):
        while True:
            try:
                return await drop()
            except asyncpg.ObjectInUseError:
                await asyncio.sleep(POLL_SECONDS)


async def erase_rows(context: MoveContext, cell: Operator, name: str) -> None:
    """Erase what a cell has of the tenant, which it does not serve, in batches."""
    erased = 0
    while not await store.erase_moved_step(cell, context.move.id, rows=ROWS_AT_ONCE):
        erased += ROWS_AT_ONCE
        context.tell(f"{erased} rows erased in {name}")
