"""Replicas: standbys of a cell's database, by which calls that only read a graph may be answered.

What a replica has is never taken on trust. The primary says first at which revision the graph is, and the replica
answers where it has that very one (`graph.graphs.replicas`). Whatever else keeps it from answering has the call read
from the primary: nobody is told of a replica that is away.
"""

import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from enum import StrEnum
from typing import Any
from uuid import UUID

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from recollect.caller import Caller
from recollect.errors import ErrorCode, RecollectError, Unavailable
from recollect.platform.db import Database
from recollect.platform.driver_errors import DRIVER_ERRORS, translate
from recollect.platform.metrics import record_replica_read
from recollect.platform.shares import Shares
from recollect.platform.transactions import Transaction
from recollect.settings import Settings

PAUSE_SECONDS = 5.0
"""How long a process reads from the primary alone after its replica was found away, or promoted."""

MARKS = 10
"""How many positions of the primary's log are remembered, at most, of the time that a replica may lag."""


class ReplicaOutcome(StrEnum):
    """Where a read went that a replica might answer: to the replica or, for the reason named, to the primary."""

    REPLICA = "replica"
    BEHIND = "behind"
    LAGGING = "lagging"
    FULL = "full"
    PAUSED = "paused"
    AWAY = "away"
    PROMOTED = "promoted"
    CONFLICT = "conflict"
    LOST = "lost"
    FAILED = "failed"


class ReplicaFailed(Unavailable):
    """A replica did not answer: what was read from it is to be read from the primary, from the beginning."""


class _NoRoom(Unavailable):
    """Others hold the connections to the replica, or the tenant its share of them."""


class LogMarks:
    """How far the primary's log was, at moments of the last `seconds`."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._marks: deque[tuple[float, int]] = deque()

    def note(self, position: int) -> int:
        """Note how far it is now; how far a replica has come that has all there was so many seconds ago.

        That is the oldest position known of that time; where none is, the one of now.
        """
        now = self._clock()
        while self._marks and self._marks[0][0] < now - self._seconds:
            self._marks.popleft()
        if not self._marks or now - self._marks[-1][0] >= self._seconds / MARKS:
            self._marks.append((now, position))
        return self._marks[0][1]


class Replica(Database):
    """A replica's own pool of connections: the same transactions, roles, limits and shares as of the primary's."""

    pool_name = "replica"

    def __init__(self, pool: asyncpg.Pool, settings: Settings, *more: Any, **others: Any) -> None:
        super().__init__(pool, settings, *more, **others)
        self.wait_seconds = self._rollback_seconds = settings.replica_wait_seconds
        self.marks = LogMarks(settings.replica_max_lag_seconds)
        self._connections = Shares(settings.database_pool_size)
        self._paused_until = 0.0

    @property
    def is_paused(self) -> bool:
        """Whether it was found away so lately that it is not asked."""
        return time.monotonic() < self._paused_until

    def note(self, outcome: ReplicaOutcome) -> None:
        """Count how a read went; after one that found it away or promoted, it is not asked for PAUSE_SECONDS."""
        record_replica_read(outcome)
        if outcome in (ReplicaOutcome.AWAY, ReplicaOutcome.PROMOTED):
            self._paused_until = time.monotonic() + PAUSE_SECONDS

    @asynccontextmanager
    async def reading(self, caller: Caller, reply_bytes: int | None) -> AsyncIterator[Transaction]:
        """A transaction that reads, as `transaction` opens one. Raises ReplicaFailed, and notes why.

        A connection that is lost once it has begun says nothing of the replica: the next call finds out.
        """
        has_begun = False
        try:
            async with self.transaction(caller, read_only=True, reply_bytes=reply_bytes) as tx:
                has_begun = True
                yield tx
        except (RecollectError, *DRIVER_ERRORS) as error:
            outcome = outcome_of(error)
            if outcome is None:
                raise
            self.note(ReplicaOutcome.LOST if outcome is ReplicaOutcome.AWAY and has_begun else outcome)
            raise ReplicaFailed("The database is away. Try again in a moment.") from error

    @asynccontextmanager
    async def _acquired(self, tenant_id: UUID) -> AsyncIterator[PoolConnectionProxy]:
        """A connection that is free, of the tenant's share: nobody waits for one, since the primary has others."""
        async with AsyncExitStack() as stack:
            try:
                for shares, key in ((self._tenants, tenant_id), (self._connections, None)):
                    held = shares.held(key, wait_seconds=self.wait_seconds, queue=0)
                    await stack.enter_async_context(held)
            except TimeoutError:
                raise _NoRoom("The connections to the replica are in use.") from None
            yield await stack.enter_async_context(self._pool.acquire(timeout=self.wait_seconds))


def outcome_of(error: BaseException) -> ReplicaOutcome | None:
    """What kept a replica from answering; None where the primary would say the same, as of what takes too long."""
    if isinstance(error, _NoRoom):
        return ReplicaOutcome.FULL
    cause = error.__cause__ if isinstance(error, RecollectError) else error
    match cause:
        case asyncpg.QueryCanceledError():
            return None
        case asyncpg.SerializationError() | asyncpg.DeadlockDetectedError() | asyncpg.LockNotAvailableError():
            return ReplicaOutcome.CONFLICT  # What it replays removed what was read, or locked it.
        case TimeoutError() | asyncpg.TooManyConnectionsError():
            return ReplicaOutcome.AWAY
        case asyncpg.DiskFullError() | asyncpg.OutOfMemoryError():
            return ReplicaOutcome.FAILED  # By what this one read takes, and not by all.
    meant = error if isinstance(error, RecollectError) else translate(error)
    if isinstance(meant, Unavailable) and meant.code in (ErrorCode.DATABASE_UNAVAILABLE, ErrorCode.SCHEMA_OUTDATED):
        return ReplicaOutcome.AWAY
    is_of_caller = meant is not None and not isinstance(meant, Unavailable)
    return ReplicaOutcome.FAILED if isinstance(cause, DRIVER_ERRORS) and not is_of_caller else None


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
