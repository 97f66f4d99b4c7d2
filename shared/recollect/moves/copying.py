"""The copy of a tenant's rows to the target: the requirements of both servers, the replication, and its end."""

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
from recollect.moves.model import MAX_LAG_BYTES_AT_SWITCH, ROWS_AT_ONCE, Copying, TenantState, lacking, schema_mismatch
from recollect.postgres.migrate import migrations
from recollect.postgres.operator_sessions import Operator
from recollect.retrieval.vector_indexes import service as vector_indexes
from recollect.settings.cells import HOME

POLL_SECONDS = 0.05
"""How often PostgreSQL is asked for its progress: a query takes a millisecond, and writes may be waiting."""

MAX_ERRORS = 3
"""Failures of the target to apply rows, with no table copied in between, after which the move gives up.

PostgreSQL begins anew by itself, a few seconds later.
"""

UNHEARD_SECONDS = 120.0
"""How long the target may hear nothing from the source before the move gives up: both send something every half minute
by default (`wal_sender_timeout`), and failed processes restart every five seconds (`wal_retrieve_retry_interval`)."""

DROP_SECONDS = 30.0
"""How long the source may take to notice that the target does not follow any more."""


@asynccontextmanager
async def _patient(cell: Operator) -> AsyncIterator[None]:
    """Turn the lock timeout off for statements that wait for all transactions without blocking any."""
    await store.wait_for_locks(cell, most="0")
    yield
    await store.wait_for_locks(cell, most=None)


async def require_own_schema(context: MoveContext) -> None:
    """Raise Unavailable where home, source or target has another schema: a statement could fail midway."""
    own, move = [migration.name for migration in migrations()], context.move
    for name, cell in ((HOME, context.home), (move.source, context.source), (move.target, context.target)):
        if problem := schema_mismatch(name, await store.list_migrations(cell), own):
            raise Unavailable(problem, code=ErrorCode.SCHEMA_OUTDATED)


async def require_ready(context: MoveContext) -> None:
    """Raise Conflict where a server does not meet the requirements; the message lists them."""
    source, target = await store.describe_server(context.source), await store.describe_server(context.target)
    tables = await store.tables_of_tenants(context.source)
    if found := lacking(context.move, source, target, tables=len(tables)):
        raise Conflict(f"The cells cannot do this move: {'; '.join(found)}.", code=ErrorCode.TENANT_MOVING)


async def begin_copying(context: MoveContext) -> None:
    """Let the target copy the tenant's rows from the beginning, and follow. Raises Conflict, Unavailable."""
    tenant_id = context.move.id
    await stop_copying(context)  # Remove the replication of an interrupted attempt.
    await require_ready(context)
    if await store.find_tenant_state(context.target, tenant_id) in (TenantState.HERE, TenantState.LEAVING):
        raise Conflict(f"{context.move.target} already serves this organisation.", code=ErrorCode.TENANT_EXISTS)
    if not await store.mark_moving(context.source, tenant_id):
        raise Conflict("This tenant was deleted. Undo the move.", code=ErrorCode.TENANT_DELETED)
    await erase_rows(context, context.target, context.move.target)
    await put_tenant(context)
    await store.publish(context.source, tenant_id, await store.tables_of_tenants(context.source))
    context.report(f"waiting for transactions that are under way in {context.move.source}")
    async with _patient(context.source):
        await store.make_slot(context.source, tenant_id)
    try:
        await store.subscribe(context.target, tenant_id, context.source_address)
    except asyncpg.PostgresError as error:
        raise Unavailable(f"{context.move.target} cannot follow {context.move.source}: {error.args[0]}") from error


async def put_tenant(context: MoveContext) -> None:
    """Copy the tenant's own row from the source to the target, and its plan from home; raises Conflict."""
    if context.move.target != HOME:
        await plans.share_plan(context.home, context.target, await store.plan_of(context.source, context.move.id))
    if not await store.put_tenant(context.target, await store.read_tenant(context.source, context.move.id)):
        raise Conflict(f"{context.move.target} already serves this organisation.", code=ErrorCode.TENANT_EXISTS)


async def put_people(context: MoveContext) -> None:
    """Copy members, and people who are of the tenant alone, with their passkeys and sessions, to the target."""
    tenant_id = context.move.id
    if context.move.target != HOME:
        members = await store.list_members(context.source, tenant_id)
        async with context.home.transaction():  # So that a concurrent deletion of an account finds this copy.
            await store.put_people(context.target, await store.read_people(context.home, members))
    await store.put_people(context.target, await store.read_own_people(context.source, tenant_id))
    await store.put_passkeys(context.target, tenant_id, await store.read_passkeys(context.source, tenant_id))
    await store.put_sessions(context.target, tenant_id, await store.read_sessions(context.source, tenant_id))


async def end_old_sessions(context: MoveContext) -> None:
    """End sessions in the target whose person changed the password while writes were held or the source unreachable."""
    people = await store.list_session_people(context.target, context.move.id)
    changes = await store.read_password_changes(context.home, people)
    await store.end_sessions(context.target, context.move.id, changes)


async def wait_until_copied(context: MoveContext) -> None:
    """Wait until the target has all but the last moments, and the vector indexes. Raises Conflict, Unavailable."""
    last_message = ""
    async for copying in _progress(context):
        behind = await behind_by(context)
        message = f"{copying.ready} of {copying.tables} tables copied, {behind / 1_000_000:.0f} MB of the log to follow"
        if message != last_message:
            context.report(message)
            last_message = message
        if copying.ready == copying.tables and behind < MAX_LAG_BYTES_AT_SWITCH:
            break
    memory_mb = context.options.index_memory_mb
    async with _patient(context.target):
        for built in await vector_indexes.build_noted(context.target, context.move.id, memory_mb=memory_mb):
            context.report(built)


async def wait_until_equal(context: MoveContext, at: str) -> None:
    """Wait until the target has confirmed the source's log up to a position. Raises as `wait_until_copied`."""
    async for _ in _progress(context):
        if await behind_by(context, at=at) == 0:
            return


async def behind_by(context: MoveContext, *, at: str | None = None) -> int:
    """By how many bytes of the source's log the target is behind. Raises Conflict where PostgreSQL has lost them."""
    log = await store.log_of(context.source, context.move.id, at=at)
    if log is None or log.lost:
        raise Conflict(
            f"{context.move.source} no longer keeps its log for this move. Undo the move and start again.",
            code=ErrorCode.TENANT_MOVING,
        )
    return log.behind


async def _progress(context: MoveContext) -> AsyncIterator[Copying]:
    """The target's progress, repeatedly. Raises Conflict where it has stopped following, Unavailable where it fails.

    Its server counts failures over the lifetime of the subscription. Failures before the first look may be fixed, and
    those before the last copied table did no harm. A source that cannot be reached is not counted as a failure.
    """
    since: Copying | None = None
    heard_at = time.monotonic()
    while True:
        copying = await store.copying(context.target, context.move.id)
        if copying is None or not copying.enabled:
            raise Conflict(
                f"{context.move.target} no longer follows {context.move.source}. Undo the move and start again.",
                code=ErrorCode.TENANT_MOVING,
            )
        if since is None or copying.ready > since.ready:
            since = copying
        if copying.errors - since.errors >= MAX_ERRORS:
            raise Unavailable(
                f"{context.move.target} fails to store rows: the log of its PostgreSQL says why. Fix the cause and "
                "continue the move, or undo it."
            )
        if copying.heard:
            heard_at = time.monotonic()
        if time.monotonic() - heard_at > UNHEARD_SECONDS:
            raise Unavailable(
                f"{context.move.target} has received nothing from {context.move.source} for {UNHEARD_SECONDS:.0f} s: "
                "the log of its PostgreSQL says why. Fix the cause and continue the move, or undo it."
            )
        yield copying
        await asyncio.sleep(POLL_SECONDS)


async def stop_copying(context: MoveContext) -> None:
    """Drop subscription, slots and publication, where they exist."""
    if await store.find_subscription(context.target, context.move.id):
        await _end_workers(context)
        await store.unsubscribe(context.target, context.move.id)
    await _once_unused(partial(store.drop_slot, context.source, context.move.id))
    await store.unpublish(context.source, context.move.id)


async def _end_workers(context: MoveContext) -> None:
    """End the processes that copy tables before the subscription is dropped, and drop the slots that they leave.

    A process that begins to copy a table waits for all transactions of its server. If both cells are on one server, it
    and the transaction that drops the subscription would wait for each other. PostgreSQL drops these slots with the
    subscription, but not if the target cannot reach the source; and after that, nothing knows their names.
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
        context.report(f"{erased} rows erased in {name}")
