"""Transactions of one tenant, and the statements that begin and end them."""

from collections.abc import AsyncIterable, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar
from uuid import UUID

import anyio
import asyncpg
from asyncpg.pool import PoolConnectionProxy

from recollect.caller import Caller
from recollect.platform.driver_errors import DRIVER_ERRORS
from recollect.platform.shared_connections import cursor_of_shared_connection
from recollect.platform.slots import give_way, takes_short_steps
from recollect.platform.sql import Query

if TYPE_CHECKING:
    from recollect.platform.replicas import Replica

STREAMED = 50
"""Rows of a stream that are held at a time: texts of 10,000 characters take half a megabyte."""

ROLLBACK_SECONDS = 30.0
"""How long a server is asked to roll back before its connection is given up: it hears nothing, or is not there."""

SHORT_STEP_ROWS = 10
"""Rows of one statement of a transaction that gives way, while calls of others may come to which it does: such a
statement takes a few milliseconds of PostgreSQL's time, and one of 100 rows takes 16."""

A = TypeVar("A")

AnyConnection = asyncpg.Connection | PoolConnectionProxy

_PLAN_ONCE = (
    "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off"
)
"""Where all that is asked is looked up by keys: then a plan that was made once is as good as one for these values, and
stays so, however small the table was at first. Such is a commit, too, which looks up what each new row refers to. What
is looked up in the order of an index is found by that index: a planner that expects one row of a tenant would read all
of the tenant's by a smaller one, and sort."""

_PLAN_WITH_VALUES = (
    "SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL enable_seqscan = on; SET LOCAL enable_sort = on"
)
"""As sessions do by default."""

_IS_WRITABLE, _IS_HERE = "SELECT require_writable({})", "SELECT require_here({}, {})"

_IS_SAME = "SELECT require_graph('{}', {})"

_WAIT_FOR_NO_DISK = "SET LOCAL synchronous_commit = off"

_CHECK_AT_ONCE = "SET LOCAL plan_cache_mode = auto; SET CONSTRAINTS ALL IMMEDIATE"

_END_TRIAL = "ROLLBACK TO SAVEPOINT trial; RELEASE SAVEPOINT trial"


@dataclass(frozen=True, slots=True)
class ExpectedGraph:
    """A graph as it was when it was read: its id, and what its row hashed to."""

    id: UUID
    fingerprint: int


class GraphChanged(Exception):
    """The graph that a transaction expected is not what it was, or not there; nothing was done."""


class Session:
    """Queries on one connection, all of which stand in a `queries.sql`. Their parameters are given by name."""

    def __init__(self, connection: AnyConnection) -> None:
        self._connection = connection

    async def fetch(self, query: Query, **parameters: Any) -> list[asyncpg.Record]:
        """All rows."""
        await self._give_way()
        return await self._connection.fetch(query.text, *self._arguments(query, parameters))

    async def fetchrow(self, query: Query, **parameters: Any) -> asyncpg.Record | None:
        """The first row, or None."""
        await self._give_way()
        return await self._connection.fetchrow(query.text, *self._arguments(query, parameters))

    async def fetchval(self, query: Query, **parameters: Any) -> Any:
        """The first column of the first row, or None."""
        await self._give_way()
        return await self._connection.fetchval(query.text, *self._arguments(query, parameters))

    async def stream(
        self, query: Query, *, prefetch: int = STREAMED, **parameters: Any
    ) -> AsyncIterator[asyncpg.Record]:
        """All rows, for what is looked at and not kept. Only in a transaction.

        `prefetch`: rows that are held at a time, which one round trip brings.
        """
        arguments = self._arguments(query, parameters)
        async for row in self._cursor(query.text, *arguments, prefetch=prefetch):
            yield row

    def _cursor(self, text: str, *arguments: Any, prefetch: int) -> AsyncIterable[asyncpg.Record]:
        return self._connection.cursor(text, *arguments, prefetch=prefetch)

    async def execute(self, query: Query, **parameters: Any) -> None:
        """No rows."""
        await self._give_way()
        await self._connection.execute(query.text, *self._arguments(query, parameters))

    async def _give_way(self) -> None:
        """Have other calls go first, where this one holds nothing that they need."""

    def _arguments(self, query: Query, parameters: dict[str, Any]) -> list[Any]:
        return query.arguments(parameters)


class Transaction(Session):
    """One call's transaction, for one tenant.

    `reply_bytes`: what is read of entities to be answered may hold so many bytes of text at most; None bounds nothing.
    `gives_way`: to others' calls, between its statements. What only reads does, for it holds no lock that anybody waits
    for; and what writes very much, for whose graph others of its tenant wait for long as it is.
    `pooled`: other processes share its connection between transactions. `at_home` False: it is in another cell.
    `replica`: of the database that it is in, where there is one. `keyed`: all that is asked of it is looked up by keys.
    """

    def __init__(
        self,
        connection: AnyConnection,
        caller: Caller,
        reply_bytes: int | None = None,
        *,
        gives_way: bool = False,
        pooled: bool = False,
        keyed: bool = False,
    ) -> None:
        super().__init__(connection)
        self.caller, self.reply_bytes, self.gives_way = caller, reply_bytes, gives_way
        self._pooled, self._keyed = pooled, keyed
        self.at_home = True
        self.replica: Replica | None = None
        self.jobs: set[str] = set()
        self.written: dict[UUID, int] = {}
        self.acted = False
        self.undoes_act = False

    @property
    def tenant_id(self) -> UUID:
        """The tenant that row-level security was set to."""
        return self.caller.tenant_id

    def _arguments(self, query: Query, parameters: dict[str, Any]) -> list[Any]:
        """With `:tenant_id`, which is nobody's to give: it is the caller's."""
        if "tenant_id" in query.parameters:
            parameters["tenant_id"] = self.tenant_id
        return query.arguments(parameters)

    def batches(self, rows: Sequence[A], size: int) -> Iterator[Sequence[A]]:
        """These in pieces of `size` at most, a statement for each; of SHORT_STEP_ROWS while steps are to be short."""
        start = 0
        while start < len(rows):
            is_short = self.gives_way and takes_short_steps()
            end = start + (min(size, SHORT_STEP_ROWS) if is_short else size)
            yield rows[start:end]
            start = end

    async def _give_way(self) -> None:
        if self.gives_way:
            await give_way()

    def _cursor(self, text: str, *arguments: Any, prefetch: int) -> AsyncIterable[asyncpg.Record]:
        if self._pooled:
            return cursor_of_shared_connection(self._connection, text, *arguments, prefetch=prefetch)
        return super()._cursor(text, *arguments, prefetch=prefetch)

    def wake(self, job: str) -> None:
        """Wake the worker for `job` once this transaction has committed (best effort: the work is in the tables)."""
        self.jobs.add(job)

    def announce(self, graph_id: UUID, revision: int = 0) -> None:
        """Tell listeners that this graph was written, once this transaction has committed (best effort).

        `revision` 0: it was made or deleted.
        """
        self.written[graph_id] = max(revision, self.written.get(graph_id, 0))

    def undo_act(self) -> None:
        """What is written here says that the act was not done which was asked for, or takes it back.

        So a request that comes again under its idempotency key is tried again.
        """
        self.undoes_act = True

    def change_callers(self) -> None:
        """Have callers of the tenant be looked up anew who are remembered, once this transaction has ended."""
        self.acted = True

    async def look_up(self) -> None:
        """From here on all that is asked is looked up by keys, as in a transaction that is `keyed`."""
        if not self._keyed:
            await self._connection.execute(_PLAN_ONCE)
            self._keyed = True

    async def search(self) -> None:
        """From here on what is asked is searched for: each statement is planned with its values."""
        if self._keyed:
            await self._connection.execute(_PLAN_WITH_VALUES)
            self._keyed = False

    @asynccontextmanager
    async def looking_up(self) -> AsyncIterator[None]:
        """Look up by keys inside of it, and go on as before."""
        keyed = self._keyed
        await self.look_up()
        yield
        if not keyed:
            await self.search()

    @asynccontextmanager
    async def searching(self) -> AsyncIterator[None]:
        """Search inside of it, and go on as before."""
        keyed = self._keyed
        await self.search()
        yield
        if keyed:
            await self.look_up()

    async def delete_much(self) -> None:
        """From here to the end of the transaction look for what refers to deleted rows at once, by plans made once.

        That takes a fifth of the time (measured). By default it is done before the commit, for all rows together, for
        which one statement may not have the time.
        """
        await self._connection.execute(_CHECK_AT_ONCE)

    @asynccontextmanager
    async def trial(self) -> AsyncIterator[None]:
        """Roll back what is written inside, and let go of what it locked: what it comes to is found by doing it."""
        jobs, written, keyed = set(self.jobs), dict(self.written), self._keyed
        await self._connection.execute("SAVEPOINT trial")
        try:
            yield
        except BaseException:
            with anyio.CancelScope(shield=True), suppress(*DRIVER_ERRORS):
                await self._connection.execute(_END_TRIAL)
            raise
        finally:
            self.jobs, self.written, self._keyed = jobs, written, keyed
        await self._connection.execute(_END_TRIAL)


class TransactionOptions(TypedDict, total=False):
    """How a tenant's transaction is opened: what `Database.transaction` takes by name, and says of each."""

    read_only: bool
    keep: bool
    reply_bytes: int | None
    also_suspended: bool
    expects: ExpectedGraph | None
    keyed: bool
    durable: bool


@dataclass(frozen=True, slots=True)
class TransactionTerms:
    """What must hold of a tenant's transaction where it begins and where it would commit: else it fails.

    `must_be_writable`: the tenant may write. `must_be_here`: of several cells, the tenant is in this one.
    """

    read_only: bool
    must_be_writable: bool
    must_be_here: bool


def begin_statements(
    tenant_id: UUID, terms: TransactionTerms, *, local: str, expects: ExpectedGraph | None, keyed: bool
) -> str:
    """What begins a transaction of this tenant, in one round trip.

    `local`: settings of a connection that others share. `expects`: what its snapshot must show. `keyed`: all that is
    asked in it is looked up by keys.
    """
    # The id is a UUID, so that nothing can be smuggled into the text.
    mode = "ISOLATION LEVEL REPEATABLE READ READ ONLY" if terms.read_only else "ISOLATION LEVEL READ COMMITTED"
    writable = f"; {_IS_WRITABLE.format('false')}" if terms.must_be_writable else ""
    here = f"; {_IS_HERE.format(str(not terms.read_only).lower(), 'false')}" if terms.must_be_here else ""
    tenant = f"SELECT set_config('recollect.tenant_id', '{UUID(str(tenant_id))}', true)"
    graph = f"; {_IS_SAME.format(UUID(str(expects.id)), int(expects.fingerprint))}" if expects else ""
    planned = f"; {_PLAN_ONCE}" if keyed else ""
    return f"BEGIN {mode}; {local}{tenant}{here}{writable}{graph}{planned}"


def end_statements(terms: TransactionTerms, *, keep: bool, durable: bool) -> str:
    """What ends it, in one round trip, so that nothing is done between a last question and COMMIT.

    What is not `durable` waits for no disk.
    """
    if not keep:
        return "ROLLBACK"
    if terms.read_only:
        return "COMMIT"
    here = [_IS_HERE.format("true", "true")] if terms.must_be_here else []
    writable = [_IS_WRITABLE.format("true")] if terms.must_be_writable else []
    waits = [] if durable else [_WAIT_FOR_NO_DISK]
    return "; ".join([_PLAN_ONCE, *waits, *here, *writable, "COMMIT"])


async def roll_back(connection: PoolConnectionProxy, *, within: float = ROLLBACK_SECONDS) -> None:
    """End a transaction, whatever became of it; and its connection, where the server says nothing for so many seconds.

    Where its last statement was cancelled, the server may hear of that only now, and cancel this one instead.
    """
    with anyio.move_on_after(within, shield=True) as ending, suppress(*DRIVER_ERRORS):
        try:
            await connection.execute("ROLLBACK")
        except asyncpg.QueryCanceledError:
            await connection.execute("ROLLBACK")
    if ending.cancelled_caught:
        connection.terminate()
