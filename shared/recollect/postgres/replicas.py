"""Replicas: standbys of a cell's database, which may answer calls that only read a graph.

A replica's state is never taken on trust. The primary first says at which revision the graph is, and the replica
answers if it has the same one (`graph.graphs.replicas`). If the replica cannot answer for any other reason, the call
reads from the primary: callers do not notice a replica that is unreachable.
"""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from recollect.caller import Caller
from recollect.errors import ErrorCode, RecollectError, Unavailable
from recollect.fairness.shares import Shares
from recollect.postgres.database import Database
from recollect.postgres.driver_errors import DRIVER_ERRORS, translate
from recollect.postgres.replica_lag import LogMarks, ReplicaOutcome
from recollect.postgres.sql import QueryPlan
from recollect.postgres.transactions import Transaction
from recollect.settings import Settings
from recollect.telemetry.metrics import record_replica_read

PAUSE_SECONDS = 5.0
"""How long a process reads from the primary alone after its replica was found unreachable, or promoted."""


class ReplicaFailed(Unavailable):
    """A replica did not answer: the whole read has to be done again on the primary."""


class _NoRoom(Unavailable):
    """All connections to the replica are in use, or the tenant's share of them is."""


class Replica(Database):
    """A replica's own pool of connections, with the same transactions, roles, limits and shares as the primary's."""

    pool_name = "replica"

    def __init__(self, pool: asyncpg.Pool, settings: Settings, *args: Any, **kwargs: Any) -> None:
        super().__init__(pool, settings, *args, **kwargs)
        self.wait_seconds = self._rollback_seconds = settings.replica_wait_seconds
        self.marks = LogMarks(settings.replica_max_lag_seconds)
        self._connections = Shares(settings.database_pool_size)
        self._paused_until = 0.0

    @property
    def is_paused(self) -> bool:
        """Whether it was found unreachable within PAUSE_SECONDS, and is not asked now."""
        return time.monotonic() < self._paused_until

    def note(self, outcome: ReplicaOutcome) -> None:
        """Count the outcome of a read; after AWAY or PROMOTED the replica is not asked for PAUSE_SECONDS."""
        record_replica_read(outcome)
        if outcome in (ReplicaOutcome.UNREACHABLE, ReplicaOutcome.PROMOTED):
            self._paused_until = time.monotonic() + PAUSE_SECONDS

    @asynccontextmanager
    async def reading(
        self, caller: Caller, reply_bytes: int | None, plan: QueryPlan = QueryPlan.WITH_VALUES
    ) -> AsyncIterator[Transaction]:
        """A `transaction` that only reads. Raises ReplicaFailed, and notes the outcome.

        A connection lost after the transaction began does not count as a replica that is unreachable: the next call
        finds out.
        """
        has_begun = False
        try:
            async with self.transaction(caller, read_only=True, reply_bytes=reply_bytes, plan=plan) as tx:
                has_begun = True
                yield tx
        except (RecollectError, *DRIVER_ERRORS) as error:
            outcome = outcome_of(error)
            if outcome is None:
                raise
            self.note(ReplicaOutcome.LOST if outcome is ReplicaOutcome.UNREACHABLE and has_begun else outcome)
            raise ReplicaFailed("The database is unavailable. Try again in a moment.") from error

    @asynccontextmanager
    async def _acquired(self, tenant_id: UUID) -> AsyncIterator[PoolConnectionProxy]:
        """A free connection of the tenant's share. Calls do not queue for it: the primary has connections, too."""
        async with AsyncExitStack() as stack:
            try:
                for shares, key in ((self._tenants, tenant_id), (self._connections, None)):
                    permit = shares.acquire(key, wait_seconds=self.wait_seconds, queue=0)
                    await stack.enter_async_context(permit)
            except TimeoutError:
                raise _NoRoom("The connections to the replica are in use.") from None
            yield await stack.enter_async_context(self._pool.acquire(timeout=self.wait_seconds))


def outcome_of(error: BaseException) -> ReplicaOutcome | None:
    """Why a replica did not answer; None where the primary would fail the same, such as for a statement too slow."""
    if isinstance(error, _NoRoom):
        return ReplicaOutcome.FULL
    cause = error.__cause__ if isinstance(error, RecollectError) else error
    match cause:
        case asyncpg.QueryCanceledError():
            return None
        case asyncpg.SerializationError() | asyncpg.DeadlockDetectedError() | asyncpg.LockNotAvailableError():
            return ReplicaOutcome.CONFLICT  # Its replay of the log removed or locked rows of the read.
        case TimeoutError() | asyncpg.TooManyConnectionsError():
            return ReplicaOutcome.UNREACHABLE
        case asyncpg.DiskFullError() | asyncpg.OutOfMemoryError():
            return ReplicaOutcome.FAILED  # Because of this one read; others may succeed.
    translated = error if isinstance(error, RecollectError) else translate(error)
    if isinstance(translated, Unavailable) and translated.code in (
        ErrorCode.DATABASE_UNAVAILABLE,
        ErrorCode.SCHEMA_OUTDATED,
    ):
        return ReplicaOutcome.UNREACHABLE
    is_caller_error = translated is not None and not isinstance(translated, Unavailable)
    return ReplicaOutcome.FAILED if isinstance(cause, DRIVER_ERRORS) and not is_caller_error else None


@asynccontextmanager
async def replica_of(settings: Settings) -> AsyncIterator[Replica | None]:
    """The replica that these settings name, if any. It connects when it is first used."""
    if settings.replica_database_url is None:
        yield None
        return
    answer_seconds = settings.statement_timeout_seconds + settings.replica_wait_seconds
    async with Replica.connect(
        settings.replica_database_url, settings=settings, answer_seconds=answer_seconds
    ) as replica:
        yield replica
