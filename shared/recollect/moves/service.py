"""Use cases of moves: begin one, go on with one that was interrupted, undo one that has not switched, list them.

Each step is recorded in the home cell before it is done, and can be repeated: the mover may be killed at any moment. At
any moment one cell serves the tenant, except between two statements of the switch. If the mover is killed there,
gateways and workers end the switch (`cells.switches`).
"""

import asyncio
from datetime import datetime
from uuid import uuid4

import anyio

from recollect.accounts.audit.model import named
from recollect.accounts.operator_log import service as operator_log
from recollect.accounts.operator_log.model import OperatorAction
from recollect.cells.directory import service as directory
from recollect.errors import Conflict, ErrorCode, NotFound, Unavailable
from recollect.moves import copying, store
from recollect.moves.connections import CellConnections, MoveContext, Report
from recollect.moves.model import Move, MoveOptions, Step, TenantState, differences
from recollect.postgres.operator_sessions import Operator
from recollect.settings.cells import HOME


async def move_tenant(cells: CellConnections, slug: str, target: str, options: MoveOptions, report: Report) -> None:
    """Move a tenant to another cell. Raises NotFound, Conflict, Unavailable; then it can be continued, or undone."""
    home = await _locked(cells, slug)
    if await store.find_move(home, slug) is not None:
        raise Conflict(f"{slug!r} is already being moved: continue or undo that move.", code=ErrorCode.TENANT_MOVING)
    cells.named(target)
    source = await directory.find_cell(home, slug=slug)
    if source == target:
        raise Conflict(f"{slug!r} is already in {target}.", code=ErrorCode.TENANT_EXISTS)
    found = await store.find_tenant(await cells.to(source), slug)
    if found is None:
        raise NotFound(f"There is no tenant {slug!r}.", code=ErrorCode.TENANT_NOT_FOUND)
    tenant_id, _, deleted = found
    if deleted:
        raise Conflict("This tenant is deleted. Restore it first.", code=ErrorCode.TENANT_DELETED)
    async with home.transaction():
        move = await store.insert_move(home, tenant_id, slug, source=source, target=target)
        assert move is not None
        context = await _context_of(cells, move, options, report)
        await copying.require_ready(context)
        await _log(context, OperatorAction.TENANT_MOVE_BEGUN)
    await _go_on(context)


async def continue_move(cells: CellConnections, slug: str, options: MoveOptions, report: Report) -> None:
    """Go on with a move from its last recorded step. Raises as `move_tenant`."""
    move = await _interrupted(cells, slug)
    if move.step == Step.UNDO:
        raise Conflict("This move is being undone. Run the undo again to complete it.", code=ErrorCode.TENANT_MOVING)
    await _go_on(await _context_of(cells, move, options, report))


async def undo_move(cells: CellConnections, slug: str, options: MoveOptions, report: Report) -> None:
    """Undo a move, so that the tenant stays in the source. Raises NotFound, and Conflict after the switch."""
    context = await _context_of(cells, await _interrupted(cells, slug), options, report)
    move = context.move
    stays = await store.set_tenant_state(
        context.source, move.id, TenantState.HERE, (TenantState.HERE, TenantState.LEAVING)
    )
    if not stays and not await _is_erased(context):
        raise Conflict(
            f"{slug!r} has left {move.source}: continue the move, and then move the tenant back.",
            code=ErrorCode.TENANT_MOVING,
        )
    await store.record_step(context.home, move.id, Step.UNDO)
    await copying.stop_copying(context)
    await copying.erase_rows(context, context.target, move.target)
    await _forget_people(context.target, move.target)
    await store.unmark_moving(context.source, move.id)
    async with context.home.transaction():
        await store.delete_move(context.home, move.id)
        await _log(context, OperatorAction.TENANT_MOVE_UNDONE)
    report(f"{slug} stays in {move.source}")


async def list_moves(cells: CellConnections) -> list[Move]:
    """The moves that are under way, or were interrupted."""
    return await list_moves_from(await cells.to(HOME))


async def list_moves_from(home: Operator) -> list[Move]:
    """The same, by an operator's session in the home cell, which is all that it needs."""
    return await store.list_moves(home)


async def _context_of(cells: CellConnections, move: Move, options: MoveOptions, report: Report) -> MoveContext:
    """The context of a move, whose cells have the schema of this version. Raises NotFound, Unavailable."""
    context = await cells.context_of(move, options, report)
    await copying.require_own_schema(context)
    return context


async def _locked(cells: CellConnections, slug: str) -> Operator:
    home = await cells.to(HOME)
    if not await store.try_lock(home, slug):
        raise Conflict(f"Somebody else is moving {slug!r}.", code=ErrorCode.TENANT_MOVING)
    return home


async def _is_erased(context: MoveContext) -> bool:
    """Whether the tenant was deleted and erased while its rows were copied."""
    states = [await store.find_tenant_state(cell, context.move.id) for cell in (context.source, context.target)]
    return states[0] is None and states[1] in (None, TenantState.ARRIVING)


async def _interrupted(cells: CellConnections, slug: str) -> Move:
    move = await store.find_move(await _locked(cells, slug), slug)
    if move is None:
        raise NotFound(f"{slug!r} is not being moved.")
    return move


async def _go_on(context: MoveContext) -> None:
    """Do the remaining steps of a move."""
    step = Step(context.move.step)
    if step is Step.PREPARE:
        await copying.begin_copying(context)
        await store.record_step(context.home, context.move.id, Step.COPY)
    if step is not Step.CLEAN:
        if not await _has_departed(context):
            await copying.wait_until_copied(context)
            await _leave(context)
        await _arrive(context)
    await _clean(context)


async def _has_departed(context: MoveContext) -> bool:
    """Whether the tenant departed, regardless of the recorded step: if not, writes may have gone on since."""
    return await store.find_tenant_state(context.source, context.move.id) is TenantState.DEPARTED


async def _leave(context: MoveContext) -> None:
    """Stop serving the tenant in the source once the target has equal rows. Raises Conflict, Unavailable."""
    held_until = await _hold_and_check(context)
    try:
        await store.record_step(context.home, context.move.id, Step.SWITCH)
        await _depart(context, held_until)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await _let_writes_go_on(context)
        raise


async def _depart(context: MoveContext, held_until: datetime) -> None:
    """Store the switch secret in the target, then in the source with the departure. Raises Conflict, Unavailable."""
    move, secret = context.move, uuid4()
    if not await store.keep_switch_secret(context.target, move.id, secret):
        raise _unknown(context)
    async with context.source.transaction():
        # With the lock, no write is between its last check and its commit: a later one finds the tenant departed.
        await store.lock_writes(context.source, move.id)
        if not await store.depart(
            context.source, move.id, held_until, target=move.target, secret=secret, most=context.options.switch
        ):
            raise _too_late(context)


async def _hold_and_check(context: MoveContext) -> datetime:
    """Refuse the tenant's writes until the target has all of them; if that takes too long, let them go on.

    Returns when the hold ends: the source lets writes go on then, even if the mover is gone.
    """
    try:
        async with asyncio.timeout(context.options.hold.total_seconds()):
            await store.record_step(context.home, context.move.id, Step.HOLD)
            held_until, at = await _hold(context)
            await copying.wait_until_equal(context, at)
            await store.record_step(context.home, context.move.id, Step.CHECK)
            await _check(context)
            return held_until
    except BaseException as error:
        with anyio.CancelScope(shield=True):
            await _let_writes_go_on(context)
        if isinstance(error, TimeoutError):
            raise _too_late(context) from error
        raise


def _too_late(context: MoveContext) -> Unavailable:
    return Unavailable(
        f"{context.move.target} did not catch up within {context.options.hold.total_seconds():.0f} s, so writes are "
        "allowed again. Continue the move when the tenant writes less, or hold its writes for longer."
    )


async def _let_writes_go_on(context: MoveContext) -> None:
    """Let writes go on, unless the tenant has departed: a departure is never taken back."""
    move, among = context.move, (TenantState.HERE, TenantState.LEAVING)
    if await store.set_tenant_state(context.source, move.id, TenantState.HERE, among):
        await store.record_step(context.home, move.id, Step.COPY)


async def _hold(context: MoveContext) -> tuple[datetime, str]:
    """Refuse writes from now on; until when, and the log position of the last one. Raises Conflict."""
    async with context.source.transaction():
        await store.lock_writes(context.source, context.move.id)
        found = await store.find_tenant(context.source, context.move.slug)
        if found is None or found[2]:
            raise Conflict("This tenant was deleted. Undo the move.", code=ErrorCode.TENANT_DELETED)
        held_until = await store.hold(context.source, context.move.id, context.options.hold)
        if held_until is None:
            raise Conflict(f"{context.move.source} does not serve this tenant.", code=ErrorCode.TENANT_MOVING)
    context.report("writes are held")
    return held_until, await store.mark_log(context.source)


async def _check(context: MoveContext) -> None:
    """Raise Conflict unless both cells have the same rows; rows that are not replicated are copied first."""
    await copying.put_tenant(context)
    await copying.put_people(context)
    await copying.end_old_sessions(context)
    source, target = await asyncio.gather(
        store.digest_of_tenant(context.source, context.move.id), store.digest_of_tenant(context.target, context.move.id)
    )
    if found := differences(source, target):
        raise Conflict(
            f"{context.move.source} and {context.move.target} differ in {', '.join(found)}. Undo the move.",
            code=ErrorCode.TENANT_MOVING,
        )
    context.report(f"{sum(table.total for table in source)} rows of {len(source)} tables are equal")


async def _arrive(context: MoveContext) -> None:
    """Begin to serve the tenant in the target, then enter the target in the directory."""
    move = context.move
    if await store.find_subscription(context.target, move.id):
        await store.stop_following(context.target, move.id)
    among = TenantState.ARRIVING, TenantState.HERE  # Another operator may have ended the switch.
    if not await store.set_tenant_state(context.target, move.id, TenantState.HERE, among):
        raise _unknown(context)
    await copying.end_old_sessions(context)  # Of passwords that were changed before the target was asked to end any.
    async with context.home.transaction():
        await store.set_cell(context.home, move.id, move.slug, move.target)
        await store.record_step(context.home, move.id, Step.CLEAN)
        await _log(context, OperatorAction.TENANT_MOVED)
    context.report(f"{move.slug} is in {move.target}")


def _unknown(context: MoveContext) -> Conflict:
    move = context.move
    return Conflict(f"{move.target} does not know {move.slug!r}.", code=ErrorCode.TENANT_NOT_FOUND)


async def _clean(context: MoveContext) -> None:
    """Remove the replication of the move, and the source's rows unless they are kept for now."""
    await copying.stop_copying(context)
    if context.options.keep_source:
        context.report(f"the rows in {context.move.source} are kept: continue the move to erase them")
        return
    await copying.erase_rows(context, context.source, context.move.source)
    await _forget_people(context.source, context.move.source)
    await store.unmark_moving(context.target, context.move.id)
    await store.delete_move(context.home, context.move.id)


async def _forget_people(cell: Operator, name: str) -> None:
    if name != HOME:
        await store.delete_people(cell)


async def _log(context: MoveContext, action: OperatorAction) -> None:
    details = {"source": context.move.source, "target": context.move.target}
    await operator_log.record(context.home, action, named("tenant", context.move.slug), **details)
