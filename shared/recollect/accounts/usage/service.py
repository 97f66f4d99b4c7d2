"""Use cases of usage: store counts, read them, and delete old ones.

The counts of a process are added in one short transaction for each tenant, since row-level security knows one tenant at
a time. A transaction that failed before its commit is tried again with the next flush. A transaction whose commit was
not answered is not, since it may have committed. So a call is counted once at most, and a crash loses the counts since
the last flush.
"""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import structlog

from recollect.accounts.identity import service as identity
from recollect.accounts.usage import store
from recollect.accounts.usage.model import (
    HOUR_SECONDS,
    Counter,
    Counts,
    StoredCounts,
    TenantUsage,
    UsagePoint,
    UsageRow,
    UsageSpan,
)
from recollect.accounts.usage.tally import UsageTally
from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.errors import RecollectError, TenantMoving, Unavailable
from recollect.jobs.model import EMBED_PASSAGES
from recollect.postgres.database import Database
from recollect.postgres.transactions import Transaction
from recollect.telemetry.metrics import record_uncounted

MAX_FAILED = 3
"""Tenants for which one flush fails, at most: it does not wait for an unavailable database once for each tenant."""

SAMPLED = 100
"""Passages of a graph whose size is measured, to estimate the size of all."""

FORGOTTEN_AT_ONCE = 5_000
"""Rows that one step of `forget_old` deletes, at most."""

log = structlog.get_logger(__name__)


async def flush(databases: Databases, tally: UsageTally) -> None:
    """Store the counts. Counts that the database does not take now stay in the tally; this raises nothing.

    After MAX_FAILED tenants that failed, the flush ends; the next one begins with other tenants.
    """
    failed = 0
    for tenant_id in tally.tenants():
        failed += not await _flush_tenant(databases, tally, tenant_id)
        if failed == MAX_FAILED:
            return


async def count_embedded(tx: Transaction, passages: int, now: datetime) -> None:
    """Count the passages that were embedded in this transaction, if it commits."""
    counter = Counter(int(now.timestamp()) // HOUR_SECONDS, "work", EMBED_PASSAGES)
    await store.add_usage(tx, {counter: Counts(calls=1, passages=passages)})


async def count_work(tx: Transaction, name: str, now: datetime, *, calls: int, errors: int = 0) -> None:
    """Count what the worker did in this transaction, if it commits; `name` is a word of the code."""
    counter = Counter(int(now.timestamp()) // HOUR_SECONDS, "work", name)
    await store.add_usage(tx, {counter: Counts(calls=calls, errors=errors)})


async def calls_today(tx: Transaction, name: str, now: datetime) -> int:
    """How often the worker did this for the tenant since the day (UTC) began."""
    return await store.count_calls(
        tx, name, since=now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    )


async def read_usage(tx: Transaction, span: UsageSpan, *, limit: int) -> tuple[list[UsageRow], bool]:
    """The counts of the tenant, oldest first, and whether more follow.

    Raises Forbidden for a credential that is confined to some graphs: calls are counted for the tenant, not by graph.
    """
    tx.caller.require_unconfined(", but usage is that of the whole tenant")
    found = await store.read_usage(tx, span, limit=limit + 1)
    return found[:limit], len(found) > limit


async def read_series(
    tx: Transaction, span: UsageSpan, *, kind: str | None = None, name: str | None = None
) -> list[UsagePoint]:
    """The counts of each hour, day or week, also if they are zero; of one kind or name, if given.

    Raises Forbidden as `read_usage` does.
    """
    tx.caller.require_unconfined(", but usage is that of the whole tenant")
    return await store.read_series(tx, span, kind=kind, name=name)


async def list_stored(
    tx: Transaction, *, graph_id: UUID | None = None, after: str = "", limit: int
) -> tuple[list[StoredCounts], bool]:
    """The contents of the graphs that the caller may use (or of `graph_id` alone), by name, and whether more follow."""
    found = await store.list_stored(tx, graph_id=graph_id, after=after, limit=limit + 1, sample=SAMPLED)
    return found[:limit], len(found) > limit


async def tenants_with_old_usage(db: Database, *, retention: timedelta) -> list[UUID]:
    """Active tenants with usage that is older than `retention`."""
    async with db.system() as session:
        return await store.tenants_with_old_usage(session, retention=retention)


async def forget_old(tx: Transaction, *, retention: timedelta, limit: int = FORGOTTEN_AT_ONCE) -> bool:
    """Delete usage that is older than `retention`, in one step; return whether another step may find more."""
    return await store.forget_usage(tx, retention=retention, limit=limit) == limit


async def _flush_tenant(databases: Databases, tally: UsageTally, tenant_id: UUID) -> bool:
    """Store the counts of a tenant. Return whether they are stored, or dropped because the tenant was erased."""
    usage = tally.take(tenant_id)
    is_written = False
    try:
        async with databases.of(tenant_id).transaction(_usage_caller(tenant_id)) as tx:
            await _write(tx, usage)
            is_written = True
        return True
    except TenantMoving as error:
        if await _is_erased(databases, tenant_id):
            log.info("usage dropped, its tenant was erased", tenant=str(tenant_id))
            return True
        log.warning("usage not saved", tenant=str(tenant_id), reason=str(error), again=True)
        tally.give_back(tenant_id, usage)
    except RecollectError as error:
        log.warning("usage not saved", tenant=str(tenant_id), reason=str(error), again=not is_written)
        if is_written:
            _record_loss(usage)
        else:
            tally.give_back(tenant_id, usage)
    except asyncpg.ForeignKeyViolationError:  # The tenant was erased while its counts were written.
        log.info("usage dropped, its tenant was erased", tenant=str(tenant_id))
        return True
    except Exception:
        log.exception("usage not saved", tenant=str(tenant_id))
        _record_loss(usage)
    return False


async def _is_erased(databases: Databases, tenant_id: UUID) -> bool:
    try:
        return await databases.is_erased(tenant_id)
    except Unavailable:
        return False


async def _write(tx: Transaction, usage: TenantUsage) -> None:
    if usage.counted:
        await store.add_usage(tx, usage.counted)
    if usage.keys:
        await identity.note_used(tx, usage.keys)


def _record_loss(usage: TenantUsage) -> None:
    record_uncounted(sum(counts.calls for counts in usage.counted.values()))


def _usage_caller(tenant_id: UUID) -> Caller:
    """The Caller that stores the counts of one tenant: the service itself."""
    return Caller(tenant_id, tenant="", subject="usage", scopes=frozenset(), of_service=True)
