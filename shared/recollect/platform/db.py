"""PostgreSQL: the pool, and the one way to a tenant's rows.

`Database.transaction(caller)` opens a transaction at the edge, sets the tenant for row-level security and
is the only way to the tables. Nobody commits inside, and no network call happens inside.
"""

import asyncio
import copy
import math
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any, Protocol
from uuid import UUID

import anyio
import asyncpg
import msgspec
from asyncpg.pool import PoolConnectionProxy
from pgvector.asyncpg import register_vector

from recollect.caller import OPERATOR, Caller
from recollect.errors import ErrorCode, InvalidInput, RecollectError, TenantReadOnly, TenantSuspended, Unavailable
from recollect.platform.metrics import used_connection
from recollect.platform.shared_connections import cursor_of_shared_connection, local_settings
from recollect.platform.shares import Shares
from recollect.platform.slots import elsewhere, give_way
from recollect.platform.sql import Query
from recollect.settings import Settings

APP_ROLE = "recollect_app"
OWNER_ROLE = "recollect_owner"
OPERATOR_ROLE = "recollect_operator"
SEARCH_PATH = "recollect, public"
DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)

STREAMED = 50
"""Rows of a stream that are held at a time: texts of 10,000 characters take half a megabyte."""

AnyConnection = asyncpg.Connection | PoolConnectionProxy

OnCommit = Callable[[UUID, frozenset[str]], None]
"""Told the tenant and the jobs to wake, after a commit. Returns at once and never raises."""

OnWritten = Callable[[UUID, Mapping[UUID, int]], None]
"""Told the tenant, and of each graph that was written its newest revision, after a commit; likewise."""


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

    async def stream(self, query: Query, **parameters: Any) -> AsyncIterator[asyncpg.Record]:
        """All rows, of which STREAMED at a time are held: for what is looked at and not kept. Only in a transaction."""
        arguments = self._arguments(query, parameters)
        async for row in self._cursor(query.text, *arguments, prefetch=STREAMED):
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
    `pooled`: other processes share its connection between transactions.
    """

    def __init__(
        self,
        connection: AnyConnection,
        caller: Caller,
        reply_bytes: int | None = None,
        *,
        gives_way: bool = False,
        pooled: bool = False,
    ) -> None:
        super().__init__(connection)
        self.caller, self.reply_bytes, self.gives_way = caller, reply_bytes, gives_way
        self._pooled = pooled
        self.jobs: set[str] = set()
        self.written: dict[UUID, int] = {}

    @property
    def tenant_id(self) -> UUID:
        """The tenant that row-level security was set to."""
        return self.caller.tenant_id

    def _arguments(self, query: Query, parameters: dict[str, Any]) -> list[Any]:
        """With `:tenant_id`, which is nobody's to give: it is the caller's."""
        if "tenant_id" in query.parameters:
            parameters["tenant_id"] = self.tenant_id
        return query.arguments(parameters)

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

    async def delete_much(self) -> None:
        """From here to the end of the transaction look for what refers to deleted rows at once, by plans made once.

        That takes a fifth of the time (measured). By default it is done before the commit, for all rows together, for
        which one statement may not have the time.
        """
        await self._connection.execute(_CHECK_AT_ONCE)

    @asynccontextmanager
    async def trial(self) -> AsyncIterator[None]:
        """Roll back what is written inside, and let go of what it locked: what it comes to is found by doing it."""
        jobs, written = set(self.jobs), dict(self.written)
        await self._connection.execute("SAVEPOINT trial")
        try:
            yield
        except BaseException:
            with anyio.CancelScope(shield=True), suppress(*DRIVER_ERRORS):
                await self._connection.execute(_END_TRIAL)
            raise
        finally:
            self.jobs, self.written = jobs, written
        await self._connection.execute(_END_TRIAL)


_PLAN_ONCE = "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off"
"""Before a commit, which looks up what each new row refers to: by its key, however small the table was at first."""

_COMMIT = f"{_PLAN_ONCE}; COMMIT"
_COMMIT_WRITABLE = f"{_PLAN_ONCE}; SELECT require_writable(true); COMMIT"
"""One round trip, so that nothing is done between the two."""

_CHECK_AT_ONCE = "SET LOCAL plan_cache_mode = auto; SET CONSTRAINTS ALL IMMEDIATE"

_SET_TENANT = "SELECT set_config('recollect.tenant_id', $1, true)"
_SET_PERSON = "SELECT set_config('recollect.person_id', $1, true)"
_END_TRIAL = "ROLLBACK TO SAVEPOINT trial; RELEASE SAVEPOINT trial"


MAX_WRITERS = 2
"""Calls that write one graph and hold a connection: the one whose turn it is, and the next."""

RESERVED_CONNECTIONS = 2
"""Connections of a process beside its pool, for what asks before a tenant is known: no tenant's work delays a key."""


class Participant(Protocol):
    """What takes part in the transactions of one request that write and are kept."""

    async def begin(self, tx: Transaction) -> None:
        """A transaction has begun; what this raises ends it."""

    def commit(self) -> None:
        """It has committed."""


class Database:
    """A pool of connections that act as one role. No tenant holds more than its share of them."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        settings: Settings,
        on_commit: OnCommit | None = None,
        *,
        on_written: OnWritten | None = None,
        reserved: asyncpg.Pool | None = None,
        local: str = "",
    ) -> None:
        self._pool, self._reserved = pool, reserved or pool
        self._acquire_seconds, self._lock_seconds = settings.database_acquire_seconds, settings.lock_timeout_seconds
        self._on_commit, self._on_written = on_commit, on_written
        self._tenants = Shares(math.ceil(settings.database_pool_size * settings.database_tenant_share))
        self._writers = Shares(MAX_WRITERS)
        self._participant: Participant | None = None
        self._local = local
        self._contact = settings.operator_contact

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        url: str,
        *,
        role: str = APP_ROLE,
        settings: Settings,
        on_commit: OnCommit | None = None,
        on_written: OnWritten | None = None,
    ) -> AsyncIterator["Database"]:
        """A pool that connects when it is first used, so that a process starts while PostgreSQL is away."""
        of_session = session_settings(role, settings)
        pooled = settings.database_pooled

        def pool_of(size: int) -> asyncpg.Pool:
            return asyncpg.create_pool(
                url,
                min_size=0,
                max_size=size,
                init=register_types,
                reset=_keep_session,
                statement_cache_size=0 if pooled else 1000,
                max_inactive_connection_lifetime=300,
                timeout=settings.database_acquire_seconds,
                server_settings={"application_name": of_session["application_name"]} if pooled else of_session,
            )

        local = local_settings(of_session) if pooled else ""

        async with pool_of(settings.database_pool_size) as pool, pool_of(RESERVED_CONNECTIONS) as reserved:
            yield cls(pool, settings, on_commit, on_written=on_written, reserved=reserved, local=local)

    def taking_part(self, participant: Participant) -> "Database":
        """The same database, for one request: the participant takes part in what writes and is kept."""
        database = copy.copy(self)
        database._participant = participant
        return database

    @asynccontextmanager
    async def transaction(
        self,
        caller: Caller,
        *,
        read_only: bool = False,
        keep: bool = True,
        reply_bytes: int | None = None,
        also_suspended: bool = False,
    ) -> AsyncIterator[Transaction]:
        """Open a transaction for the caller's tenant; commit on a clean exit, roll back on any error.

        `keep` False rolls back in any case: what a call would do is found by doing it.
        Reads are REPEATABLE READ, READ ONLY: one call sees one state, and cannot write. `reply_bytes` as in
        Transaction. `also_suspended`: it may write though the tenant is suspended, as what is `of_service` may.
        Raises TenantReadOnly or TenantSuspended, where it begins or where it would commit; and Unavailable when
        PostgreSQL is away or busy, or the tenant's share of the connections is.
        """
        participant = self._participant if keep and not read_only else None
        asks = not (read_only or also_suspended or caller.of_service)
        async with self._connection_of(caller.tenant_id) as connection:
            transaction = Transaction(connection, caller, reply_bytes, gives_way=read_only, pooled=bool(self._local))
            try:
                # Inside: whoever leaves while it begins or ends leaves no transaction open behind.
                await connection.execute(_begin(caller.tenant_id, read_only, asks, self._local))
                if participant is not None:
                    await participant.begin(transaction)
                yield transaction
                ended = await connection.execute(_end(keep, read_only, asks))
            except BaseException as error:
                await _roll_back(connection)
                self._raise_suspended(error)
                if not read_only:
                    _raise_service_read_only(error)
                raise
            if not keep:
                return
            if ended != "COMMIT":  # An error was swallowed: PostgreSQL rolled back.
                raise asyncpg.InFailedSQLTransactionError("a statement failed inside the transaction")
            if participant is not None:
                participant.commit()
        if transaction.jobs and self._on_commit:
            self._on_commit(caller.tenant_id, frozenset(transaction.jobs))
        if transaction.written and self._on_written:
            self._on_written(caller.tenant_id, transaction.written)
        await give_way()

    @asynccontextmanager
    async def system(self) -> AsyncIterator[Session]:
        """A session of no tenant: row-level security shows it no rows, only the SECURITY DEFINER functions answer."""
        acquiring = self._reserved.acquire(timeout=self._acquire_seconds)
        async with (
            translated_errors(),
            used_connection("reserved", acquiring) as connection,
            self._with_settings(connection),
        ):
            with _writing():
                yield Session(connection)

    @asynccontextmanager
    async def personal(self, person_id: UUID) -> AsyncIterator[Session]:
        """A transaction of a person who has signed in, and of no tenant: their own rows are all that it shows.

        Raises Unavailable, as `transaction` does.
        """
        async with self._connection_of(person_id) as connection, connection.transaction():
            if self._local:
                await connection.execute(self._local)
            await connection.execute(_SET_PERSON, str(person_id))
            with _writing():
                yield Session(connection)

    @asynccontextmanager
    async def writing(self, caller: Caller, graph: str, *, keep: bool = True) -> AsyncIterator[Transaction]:
        """A `transaction` that writes the graph of that name or id.

        Until few others of this process do, it has no connection. Whoever then asks for the graph's lock waits with
        one. Raises Unavailable also where its turn does not come.
        """
        async with AsyncExitStack() as stack:
            try:
                key = caller.tenant_id, graph
                async with elsewhere():
                    await stack.enter_async_context(self._writers.held(key, wait_seconds=self._lock_seconds))
            except TimeoutError:
                raise Unavailable("Other writes hold this graph. Try again.", code=ErrorCode.BUSY) from None
            yield await stack.enter_async_context(self.transaction(caller, keep=keep))

    @asynccontextmanager
    async def _with_settings(self, connection: PoolConnectionProxy) -> AsyncIterator[None]:
        """Give a connection that others share its settings, which hold for a transaction; ours has them."""
        if not self._local:
            yield
            return
        async with connection.transaction():
            await connection.execute(self._local)
            yield

    async def ping(self) -> None:
        """Return if PostgreSQL answers; raise Unavailable if not."""
        async with self.system() as session:
            await session.fetchval(Query("SELECT 1"))

    def _raise_suspended(self, error: BaseException) -> None:
        """Raise what `require_writable` means, where it is that."""
        match getattr(error, "sqlstate", None):
            case "RC001":
                raise TenantReadOnly(self._contact) from error
            case "RC002":
                raise TenantSuspended("The tenant is suspended.") from error

    @asynccontextmanager
    async def _connection_of(self, tenant_id: UUID) -> AsyncIterator[PoolConnectionProxy]:
        """A connection of the tenant's share, waited for as long as for one of the pool."""
        await give_way()
        async with translated_errors(), used_connection("tenants", self._acquired(tenant_id)) as connection:
            yield connection

    @asynccontextmanager
    async def _acquired(self, tenant_id: UUID) -> AsyncIterator[PoolConnectionProxy]:
        began = time.monotonic()
        async with self._tenants.held(tenant_id, wait_seconds=self._acquire_seconds):
            left = max(self._acquire_seconds - (time.monotonic() - began), 0.01)
            async with self._pool.acquire(timeout=left) as connection:
                yield connection


class Operator(Session):
    """A connection for what operators do: no tenant. As `recollect_owner` all rows, as `recollect_operator` few.

    `actor` and `address`: who is at work, and from where, as the log of operators tells it.
    """

    def __init__(self, connection: AnyConnection, *, actor: str = OPERATOR, address: str | None = None) -> None:
        super().__init__(connection)
        self.actor, self.address = actor, address

    @classmethod
    @asynccontextmanager
    async def connect(cls, url: str, settings: Settings) -> AsyncIterator["Operator"]:
        """Connect for the length of one command; raises Unavailable."""
        async with translated_errors():
            connection = await asyncpg.connect(
                url,
                timeout=settings.database_acquire_seconds,
                server_settings=session_settings(OWNER_ROLE, settings),
            )
            try:
                yield cls(connection)
            finally:
                await connection.close()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """What is done inside is done as one, or not at all."""
        async with self._connection.transaction():
            yield

    async def enter(self, tenant_id: UUID) -> None:
        """What the transaction that is under way makes may be this tenant's from now on."""
        await self._connection.execute(_SET_TENANT, str(tenant_id))

    async def within(self, caller: Caller) -> Transaction:
        """The transaction that is under way, as one of the caller's tenant."""
        await self.enter(caller.tenant_id)
        return Transaction(self._connection, caller)


@asynccontextmanager
async def translated_errors() -> AsyncIterator[None]:
    """Turn the driver's errors into the ones that callers know; anything unforeseen passes through."""
    try:
        yield
    except (TimeoutError, *DRIVER_ERRORS) as error:
        translated = translate(error)
        if translated is None:
            raise
        raise translated from error


def translate(error: BaseException) -> RecollectError | None:
    """What a driver error means to a caller; None where it is a fault of ours."""
    match error:
        case asyncpg.LockNotAvailableError() | asyncpg.DeadlockDetectedError() | asyncpg.SerializationError():
            return Unavailable("Another write holds this graph. Try again.", code=ErrorCode.BUSY)
        case asyncpg.QueryCanceledError() | asyncpg.TooManyConnectionsError() | asyncio.TimeoutError():
            return Unavailable("The database is busy. Try again in a moment.", code=ErrorCode.BUSY)
        case asyncpg.PostgresConnectionError() | asyncpg.OperatorInterventionError() | OSError():
            return Unavailable("The database is away. Try again in a moment.")
        case asyncpg.TargetServerAttributeNotMatched():
            # Of several servers that the address names, each that answers is a standby: until one is promoted.
            return Unavailable("The database takes no writes yet. Try again in a moment.")
        case asyncpg.InvalidAuthorizationSpecificationError():
            return Unavailable("The database refuses our login: check RECOLLECT_DATABASE_URL.")
        case asyncpg.CharacterNotInRepertoireError() | asyncpg.UntranslatableCharacterError():
            return InvalidInput("Text cannot hold the character U+0000")
        case asyncpg.InternalClientError() if "another operation (2)" in str(error):
            # asyncpg's word for a session that the server ended between two statements (state 2: reading its farewell).
            return Unavailable("The database is away. Try again in a moment.")
        case asyncpg.InterfaceError() if "clos" in str(error):
            return Unavailable("The database is away. Try again in a moment.")
    return None


def session_settings(role: str, settings: Settings) -> dict[str, str]:
    """What every session is started with.

    `force_custom_plan`: a generic plan may not use a partial index or know how large a tenant is.
    """
    return {
        "role": role,
        "application_name": "recollect",
        "search_path": SEARCH_PATH,
        "timezone": "UTC",
        "jit": "off",
        # A vector index goes on searching where filters leave too few of what it found first.
        "hnsw.iterative_scan": "strict_order",
        "hnsw.ef_search": "800",
        "plan_cache_mode": "force_custom_plan",
        "statement_timeout": str(round(settings.statement_timeout_seconds * 1000)),
        "lock_timeout": str(round(settings.lock_timeout_seconds * 1000)),
        "idle_in_transaction_session_timeout": str(round(settings.statement_timeout_seconds * 2000)),
    }


@contextmanager
def _writing() -> Iterator[None]:
    """For statements that may write: where PostgreSQL takes no writes, the service is read-only."""
    try:
        yield
    except asyncpg.ReadOnlySQLTransactionError as error:
        _raise_service_read_only(error)


def _raise_service_read_only(error: BaseException) -> None:
    """Raise Unavailable where a write met a server that takes none: its operator's doing, or a standby."""
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        raise Unavailable(
            "This service is read-only for the moment: nothing was written. Reading goes on. Try again later.",
            code=ErrorCode.SERVICE_READ_ONLY,
        ) from error


async def _roll_back(connection: PoolConnectionProxy) -> None:
    """End a transaction, whatever became of it.

    Where its last statement was cancelled, the server may hear of that only now, and cancel this one instead.
    """
    with anyio.CancelScope(shield=True), suppress(*DRIVER_ERRORS):
        try:
            await connection.execute("ROLLBACK")
        except asyncpg.QueryCanceledError:
            await connection.execute("ROLLBACK")


def _begin(tenant_id: UUID, read_only: bool, asks: bool, local: str) -> str:
    # One round trip for all statements. The id is a UUID, so that nothing can be smuggled into the text.
    mode = "ISOLATION LEVEL REPEATABLE READ READ ONLY" if read_only else "ISOLATION LEVEL READ COMMITTED"
    asked = "; SELECT require_writable(false)" if asks else ""
    return f"BEGIN {mode}; {local}SELECT set_config('recollect.tenant_id', '{UUID(str(tenant_id))}', true){asked}"


def _end(keep: bool, read_only: bool, asks: bool) -> str:
    if not keep:
        return "ROLLBACK"
    if read_only:
        return "COMMIT"
    return _COMMIT_WRITABLE if asks else _COMMIT


async def register_types(connection: asyncpg.Connection) -> None:
    """Teach a connection vectors, and JSON by msgspec; raises Unavailable where the database was never migrated."""
    try:
        await register_vector(connection)
    except ValueError as error:
        never = "The database was never migrated: it has no type `vector`. Run `recollect migrate`."
        raise Unavailable(never, code=ErrorCode.SCHEMA_OUTDATED) from error
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        format="binary",
        encoder=lambda value: b"\x01" + msgspec.json.encode(value),
        decoder=lambda data: msgspec.json.decode(data[1:]),
    )


async def _keep_session(connection: asyncpg.Connection) -> None:
    """Nothing outlives a transaction here, so a released connection needs no reset (and no round trip for it)."""
