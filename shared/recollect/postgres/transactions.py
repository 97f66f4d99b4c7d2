"""Transactions of one tenant, and the statements that begin and end them."""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import UUID

import anyio
import asyncpg
from asyncpg.pool import PoolConnectionProxy

from recollect.caller import Caller
from recollect.fairness.computing import collect_yielding
from recollect.fairness.slots import takes_short_steps, yield_to_others
from recollect.postgres.driver_errors import DRIVER_ERRORS
from recollect.postgres.replica_lag import LogMarks, ReplicaOutcome
from recollect.postgres.shared_connections import cursor_of_shared_connection
from recollect.postgres.sql import Query, QueryPlan

if TYPE_CHECKING:
    from recollect.embedding import PreparedTexts

STREAMED = 50
"""Rows of a stream that are in memory at a time: texts of 10,000 characters take half a megabyte."""

ROLLBACK_SECONDS = 30.0
"""How long a server may take to roll back before its connection is closed: it hangs, or has stopped."""

SHORT_STEP_ROWS = 10
"""Rows of one statement of a preemptible transaction while other calls may arrive: such a statement takes a few
milliseconds of PostgreSQL's time, and one of 100 rows takes 16."""

A = TypeVar("A")

AnyConnection = asyncpg.Connection | PoolConnectionProxy

_PLAN_SETTINGS = {
    QueryPlan.ONCE: "SET LOCAL plan_cache_mode = force_generic_plan; "
    "SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off",
    QueryPlan.WITH_VALUES: "SET LOCAL plan_cache_mode = force_custom_plan; "
    "SET LOCAL enable_seqscan = on; SET LOCAL enable_sort = on",
}
"""The settings for each plan; those of WITH_VALUES are the defaults of our sessions.

A plan that was made once stays good, however small the table was at first. This includes the commit, which looks up the
rows that new rows refer to. Without sorts, a look-up in the order of an index uses that index: a planner that expects
one row of a tenant would otherwise read all rows of the tenant by a smaller index, and sort them."""

_IS_WRITABLE, _IS_HERE = "SELECT require_writable({})", "SELECT require_here({}, {})"

_IS_SAME_GRAPH = "SELECT require_graph('{}', {})"

_WAIT_FOR_NO_DISK = "SET LOCAL synchronous_commit = off"

_CHECK_AT_ONCE = "SET LOCAL plan_cache_mode = auto; SET CONSTRAINTS ALL IMMEDIATE"

_END_TRIAL = "ROLLBACK TO SAVEPOINT trial; RELEASE SAVEPOINT trial"


@dataclass(frozen=True, slots=True)
class ExpectedGraph:
    """A graph as it was when it was read: its id, and the hash of its row."""

    id: UUID
    fingerprint: int


class GraphChanged(Exception):
    """The graph that a transaction expected has changed, or was deleted; nothing was done."""


class Session:
    """Runs queries of `queries.sql` files on one connection. Parameters are given by name."""

    def __init__(self, connection: AnyConnection) -> None:
        self._connection = connection

    async def fetch(self, query: Query, **parameters: Any) -> list[asyncpg.Record]:
        """All rows."""
        await self._before(query)
        return await self._connection.fetch(query.text, *self._arguments(query, parameters))

    async def fetch_as(self, query: Query, make: Callable[[asyncpg.Record], A], /, **parameters: Any) -> list[A]:
        """What `make` makes of each row. Other calls go on while it does so for many rows."""
        return await collect_yielding(map(make, await self.fetch(query, **parameters)))

    async def fetch_objects(self, query: Query, made: Callable[..., A], /, **parameters: Any) -> list[A]:
        """All rows as objects that have the columns as fields."""
        return [made(**row) for row in await self.fetch(query, **parameters)]

    async def fetch_object(self, query: Query, made: Callable[..., A], /, **parameters: Any) -> A | None:
        """The first row as an object that has the columns as fields, or None."""
        row = await self.fetchrow(query, **parameters)
        return None if row is None else made(**row)

    async def fetch_column(self, query: Query, column: str, /, **parameters: Any) -> list[Any]:
        """The values of one column."""
        return [row[column] for row in await self.fetch(query, **parameters)]

    async def fetchrow(self, query: Query, **parameters: Any) -> asyncpg.Record | None:
        """The first row, or None."""
        await self._before(query)
        return await self._connection.fetchrow(query.text, *self._arguments(query, parameters))

    async def fetchval(self, query: Query, **parameters: Any) -> Any:
        """The first column of the first row, or None."""
        await self._before(query)
        return await self._connection.fetchval(query.text, *self._arguments(query, parameters))

    async def stream(
        self, query: Query, *, prefetch: int = STREAMED, **parameters: Any
    ) -> AsyncIterator[asyncpg.Record]:
        """All rows by a cursor, for rows that are read once and not kept. Only in a transaction.

        `prefetch`: how many rows one round trip brings; so many are in memory at a time.
        """
        arguments = self._arguments(query, parameters)
        await self._plan_as(query)
        async for row in self._cursor(query.text, *arguments, prefetch=prefetch):
            yield row

    def _cursor(self, text: str, *arguments: Any, prefetch: int) -> AsyncIterable[asyncpg.Record]:
        return self._connection.cursor(text, *arguments, prefetch=prefetch)

    async def execute(self, query: Query, **parameters: Any) -> None:
        """Run a query that returns no rows."""
        await self._before(query)
        await self._connection.execute(query.text, *self._arguments(query, parameters))

    async def _before(self, query: Query) -> None:
        """What has to be done before a query runs."""

    async def _plan_as(self, query: Query) -> None:
        """Have a query planned as it says."""

    def _arguments(self, query: Query, parameters: dict[str, Any]) -> list[Any]:
        return query.arguments(parameters)


class Transaction(Session):
    """One call's transaction, for one tenant.

    `reply_bytes`: the most bytes of text that may be read of entities for the reply; None: no limit.
    `is_preemptible`: it gives way to other calls between its statements. Transactions that only read do, since they
    hold no lock that others wait for; and so do very large writes, for which others of the tenant wait long anyway.
    `pooled`: other processes share its connection between transactions. `is_in_home_cell` False: it is in another cell.
    `replica`: the replica of its database, if there is one. `plan`: how queries are planned that do not say it.
    `prepared`: texts of the call that were embedded before it; `embedded`: how many passages it stores with vectors.
    """

    def __init__(
        self,
        connection: AnyConnection,
        caller: Caller,
        reply_bytes: int | None = None,
        *,
        is_preemptible: bool = False,
        pooled: bool = False,
        plan: QueryPlan = QueryPlan.WITH_VALUES,
    ) -> None:
        super().__init__(connection)
        self.caller, self.reply_bytes, self.is_preemptible = caller, reply_bytes, is_preemptible
        self._pooled = pooled
        self.plan = self._current_plan = plan
        self.is_in_home_cell = True
        self.replica: ReadReplica | None = None
        self.prepared: PreparedTexts | None = None
        self.embedded = 0
        self.jobs: set[str] = set()
        self.written: set[UUID] = set()
        self.acted = False
        self.undoes_act = False

    @property
    def tenant_id(self) -> UUID:
        """The tenant for which row-level security is set."""
        return self.caller.tenant_id

    def _arguments(self, query: Query, parameters: dict[str, Any]) -> list[Any]:
        """The arguments with `:tenant_id`, which is always the caller's and never given."""
        if "tenant_id" in query.parameters:
            parameters["tenant_id"] = self.tenant_id
        return query.arguments(parameters)

    def batches(self, rows: Iterable[A], size: int) -> Iterator[Sequence[A]]:
        """The rows in batches of `size` at most, one a statement; of SHORT_STEP_ROWS while steps must be short."""
        remaining = iter(rows)
        while True:
            is_short = self.is_preemptible and takes_short_steps()
            batch = list(islice(remaining, min(size, SHORT_STEP_ROWS) if is_short else size))
            if not batch:
                return
            yield batch

    async def _before(self, query: Query) -> None:
        if self.is_preemptible:
            await yield_to_others()
        await self._plan_as(query)

    async def _plan_as(self, query: Query) -> None:
        if query.plan is QueryPlan.ONCE_FROM_HERE:
            self.plan = QueryPlan.ONCE
        plan = self.plan if query.plan in (None, QueryPlan.ONCE_FROM_HERE) else query.plan
        if plan is not self._current_plan:
            await self._connection.execute(_PLAN_SETTINGS[plan])
            self._current_plan = plan

    def _cursor(self, text: str, *arguments: Any, prefetch: int) -> AsyncIterable[asyncpg.Record]:
        if self._pooled:
            return cursor_of_shared_connection(self._connection, text, *arguments, prefetch=prefetch)
        return super()._cursor(text, *arguments, prefetch=prefetch)

    def wake(self, job: str) -> None:
        """Wake the worker for `job` once this transaction has committed (best effort: the work is in the tables)."""
        self.jobs.add(job)

    def announce(self, graph_id: UUID) -> None:
        """Notify listeners that this graph was written, once this transaction has committed (best effort)."""
        self.written.add(graph_id)

    def undo_act(self) -> None:
        """Mark this transaction as one that takes the requested act back, or records that it was not done.

        A request that comes again under its idempotency key is then tried again.
        """
        self.undoes_act = True

    def change_callers(self) -> None:
        """Have the remembered callers of the tenant looked up anew, once this transaction has ended."""
        self.acted = True

    async def check_foreign_keys_at_once(self) -> None:
        """From here to the end of the transaction, check foreign keys to deleted rows at once, by plans made once.

        That takes a fifth of the time (measured). By default they are checked before the commit, for all rows together,
        which may exceed the time limit of one statement.
        """
        await self._connection.execute(_CHECK_AT_ONCE)

    @asynccontextmanager
    async def dry_run(self) -> AsyncIterator[None]:
        """Roll back the writes of the block and release their locks: a dry run, which finds the result by doing it."""
        jobs, written, plans = set(self.jobs), set(self.written), (self.plan, self._current_plan)
        await self._connection.execute("SAVEPOINT trial")
        try:
            yield
        except BaseException:
            with anyio.CancelScope(shield=True), suppress(*DRIVER_ERRORS):
                await self._connection.execute(_END_TRIAL)
            raise
        finally:
            self.jobs, self.written, (self.plan, self._current_plan) = jobs, written, plans
        await self._connection.execute(_END_TRIAL)


class ReadReplica(Protocol):
    """A replica as reads see it: `replicas.Replica`, which opens transactions of the same kind.

    `wait_seconds`: how long a read may wait for it. `marks`: the log positions that it must have reached.
    """

    wait_seconds: float
    marks: LogMarks

    @property
    def is_paused(self) -> bool:
        """Whether it was found away a moment ago, and is not asked now."""

    def note(self, outcome: ReplicaOutcome) -> None:
        """Count the outcome of a read."""

    def reading(
        self, caller: Caller, reply_bytes: int | None, plan: QueryPlan
    ) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that only reads. Raises ReplicaFailed."""


@dataclass(frozen=True, slots=True)
class TransactionTerms:
    """Conditions that a tenant's transaction must meet at its beginning and before its commit: else it fails.

    `must_be_writable`: the tenant may write. `must_be_here`: the tenant is in this cell, where there are several.
    """

    read_only: bool
    must_be_writable: bool
    must_be_here: bool


def begin_statements(
    tenant_id: UUID, terms: TransactionTerms, *, local: str, expected_graph: ExpectedGraph | None, plan: QueryPlan
) -> str:
    """The statements that begin a transaction of this tenant, in one round trip.

    `local`: settings of a shared connection. `expected_graph`: the graph as the snapshot must show it. `plan`: how
    queries are planned that do not say it.
    """
    # The id is a UUID, so that nothing can be smuggled into the text.
    mode = "ISOLATION LEVEL REPEATABLE READ READ ONLY" if terms.read_only else "ISOLATION LEVEL READ COMMITTED"
    writable = f"; {_IS_WRITABLE.format('false')}" if terms.must_be_writable else ""
    here = f"; {_IS_HERE.format(str(not terms.read_only).lower(), 'false')}" if terms.must_be_here else ""
    tenant = f"SELECT set_config('recollect.tenant_id', '{UUID(str(tenant_id))}', true)"
    graph = ""
    if expected_graph is not None:
        graph = f"; {_IS_SAME_GRAPH.format(UUID(str(expected_graph.id)), int(expected_graph.fingerprint))}"
    planning = f"; {_PLAN_SETTINGS[plan]}" if plan is QueryPlan.ONCE else ""
    return f"BEGIN {mode}; {local}{tenant}{here}{writable}{graph}{planning}"


def end_statements(terms: TransactionTerms, *, commit: bool, durable: bool) -> str:
    """The statements that end it, in one round trip, so that nothing happens between the last checks and COMMIT.

    A commit that is not `durable` does not wait for the disk.
    """
    if not commit:
        return "ROLLBACK"
    if terms.read_only:
        return "COMMIT"
    here = [_IS_HERE.format("true", "true")] if terms.must_be_here else []
    writable = [_IS_WRITABLE.format("true")] if terms.must_be_writable else []
    durability = [] if durable else [_WAIT_FOR_NO_DISK]
    return "; ".join([_PLAN_SETTINGS[QueryPlan.ONCE], *durability, *here, *writable, "COMMIT"])


async def roll_back(connection: PoolConnectionProxy, *, within: float = ROLLBACK_SECONDS) -> None:
    """Roll a transaction back, whatever its state; close its connection where the server does not answer in time.

    The cancellation of the last statement may reach the server only now, and cancel the ROLLBACK instead.
    """
    with anyio.move_on_after(within, shield=True) as ending, suppress(*DRIVER_ERRORS):
        try:
            await connection.execute("ROLLBACK")
        except asyncpg.QueryCanceledError:
            await connection.execute("ROLLBACK")
    if ending.cancelled_caught:
        connection.terminate()
