"""PostgreSQL: the pool of one cell, and the one way to a tenant's rows.

`Database.transaction(caller)` opens a transaction at the edge, sets the tenant for row-level security and
is the only way to the tables. Nobody commits inside, and no network call happens inside.
"""

import asyncio
import copy
import math
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import Protocol, Self
from uuid import UUID

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from recollect.caller import Caller
from recollect.errors import ErrorCode, TenantMoving, TenantReadOnly, TenantSuspended, Unavailable
from recollect.fairness.shares import Shares
from recollect.fairness.slots import released_slot, yield_to_others
from recollect.postgres.connections import (
    APP_ROLE,
    connect_as,
    keep_session,
    record_failures,
    register_types,
    session_settings,
)
from recollect.postgres.driver_errors import raise_service_read_only, translated_errors, translated_writes
from recollect.postgres.shared_connections import local_settings
from recollect.postgres.sql import Query, QueryPlan
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import (
    ROLLBACK_SECONDS,
    ExpectedGraph,
    GraphChanged,
    ReadReplica,
    Session,
    Transaction,
    TransactionTerms,
    begin_statements,
    end_statements,
    roll_back,
)
from recollect.settings import Settings
from recollect.settings.cells import HOME
from recollect.telemetry.metrics import used_connection
from recollect.valkey.caller_changes import OnCallersChanged

OnCommit = Callable[[UUID, frozenset[str]], None]
"""Called after a commit with the tenant and the jobs to wake. Returns at once and never raises."""

OnWritten = Callable[[UUID, Collection[UUID]], None]
"""Called after a commit with the tenant and the graphs that were written. Returns at once and never raises."""

_SET_PERSON = "SELECT set_config('recollect.person_id', $1, true)"
_SET_PERSON_WITHIN = f"{_SET_PERSON}, require_served($2)"

MAX_WRITERS = 2
"""Calls that hold a connection to write one graph: the one whose turn it is, and the next."""

RESERVED_CONNECTIONS = 2
"""Connections of a process in addition to its pool, for queries before the tenant is known: no tenant's work delays the
look-up of a key."""


class Participant(Protocol):
    """Takes part in the transactions of one request that write and are kept."""

    async def begin(self, tx: Transaction) -> None:
        """Called when a transaction has begun; an error raised here ends the transaction."""

    async def withdraw(self, tx: Transaction) -> None:
        """Called before the commit of a transaction that undoes the act for which the request came."""

    def commit(self, *, undone: bool) -> None:
        """Called after the commit; `undone` where the transaction undoes the act."""


class Database(TenantDatabase):
    """The database of one cell: a pool of connections that act as one role. No tenant holds more than its share.

    `acquire_seconds`: how long a transaction waits for a connection.
    """

    pool_name = "tenants"
    _rollback_seconds = ROLLBACK_SECONDS

    def __init__(
        self,
        pool: asyncpg.Pool,
        settings: Settings,
        on_commit: OnCommit | None = None,
        *,
        on_written: OnWritten | None = None,
        on_callers_changed: OnCallersChanged | None = None,
        reserved: asyncpg.Pool | None = None,
        local: str = "",
        replica: ReadReplica | None = None,
    ) -> None:
        self._pool, self._reserved = pool, reserved or pool
        self.acquire_seconds, self._lock_seconds = settings.database_acquire_seconds, settings.lock_timeout_seconds
        self._on_commit, self._on_written, self._on_callers_changed = on_commit, on_written, on_callers_changed
        self._tenants = Shares(math.ceil(settings.database_pool_size * settings.database_tenant_share))
        self._writers = Shares(MAX_WRITERS)
        self._participant: Participant | None = None
        self._local = local
        self._contact = settings.operator_contact
        self._is_one_of_several, self._is_home = bool(settings.cells), settings.cell == HOME
        self._measured_cell = settings.measured_cell
        self._replica = replica

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
        on_callers_changed: OnCallersChanged | None = None,
        replica: ReadReplica | None = None,
        answer_seconds: float | None = None,
    ) -> AsyncIterator[Self]:
        """A pool that connects when it is first used, so that a process starts while PostgreSQL is unreachable.

        `answer_seconds`: how long the server may take to answer a statement before it counts as away.
        """
        server_settings = session_settings(role, settings)
        pooled = settings.database_pooled
        local = local_settings(server_settings) if pooled else ""

        def create_pool(size: int, name: str) -> asyncpg.Pool:
            return asyncpg.create_pool(
                url,
                connect=record_failures(connect_as(role, settings, local), name, settings),
                min_size=0,
                max_size=size,
                init=register_types,
                reset=keep_session,
                statement_cache_size=0 if pooled else 1000,
                max_inactive_connection_lifetime=300,
                timeout=settings.database_acquire_seconds,
                command_timeout=answer_seconds,
                server_settings=(
                    {"application_name": server_settings["application_name"]} if pooled else server_settings
                ),
            )

        async with (
            create_pool(settings.database_pool_size, cls.pool_name) as pool,
            create_pool(RESERVED_CONNECTIONS, "reserved") as reserved,
        ):
            yield cls(
                pool,
                settings,
                on_commit,
                on_written=on_written,
                on_callers_changed=on_callers_changed,
                reserved=reserved,
                local=local,
                replica=replica,
            )

    def with_participant(self, participant: Participant) -> Self:
        """The same database for one request, with a participant in its transactions that write and are kept."""
        database = copy.copy(self)
        database._participant = participant
        return database

    @asynccontextmanager
    async def transaction(
        self,
        caller: Caller,
        *,
        read_only: bool = False,
        commit: bool = True,
        reply_bytes: int | None = None,
        also_suspended: bool = False,
        expected_graph: ExpectedGraph | None = None,
        plan: QueryPlan = QueryPlan.WITH_VALUES,
        durable: bool = True,
    ) -> AsyncIterator[Transaction]:
        """Open a transaction for the caller's tenant; commit on a clean exit, roll back on any error.

        `commit` False rolls back in any case: a dry run, which finds what a call would do by doing it.
        Reads are REPEATABLE READ, READ ONLY: one call sees one state, and cannot write. `reply_bytes` as in
        Transaction. `also_suspended`: the transaction may write while the tenant is suspended, which otherwise only a
        caller that is `of_service` may. `expected_graph`: a graph that must still be the same; raises GraphChanged at
        the beginning otherwise. `plan`: how queries are planned that do not say it. `durable` False: the commit does
        not wait for the disk, for data that can be made again; a server that dies may lose what was committed within
        the last second.
        Raises TenantReadOnly, TenantSuspended or TenantMoving at the beginning or before the commit; and Unavailable
        when PostgreSQL is unreachable or busy, or the tenant's share of the connections is in use.
        """
        participant = self._participant if commit and not read_only else None
        must_be_writable = not (read_only or also_suspended or caller.of_service)
        terms = TransactionTerms(read_only, must_be_writable, must_be_here=self._is_one_of_several)
        async with self._connection_of(caller.tenant_id) as connection:
            transaction = Transaction(
                connection, caller, reply_bytes, is_preemptible=read_only, pooled=bool(self._local), plan=plan
            )
            transaction.replica, transaction.is_in_home_cell = self._replica, self._is_home
            try:
                # Inside the try: a call cancelled while the transaction begins or ends leaves none open.
                await connection.execute(
                    begin_statements(
                        caller.tenant_id, terms, local=self._local, expected_graph=expected_graph, plan=plan
                    )
                )
                if participant is not None:
                    await participant.begin(transaction)
                yield transaction
                if participant is not None and transaction.undoes_act:
                    await participant.withdraw(transaction)
                status = await connection.execute(end_statements(terms, commit=commit, durable=durable))
            except BaseException as error:
                await roll_back(connection, within=self._rollback_seconds)
                self._raise_suspended(error)
                if not read_only:
                    raise_service_read_only(error)
                raise
            finally:
                if transaction.acted and self._on_callers_changed:  # Even where it is not known whether it committed.
                    self._on_callers_changed(caller.tenant_id)
            if not commit:
                return
            if status != "COMMIT":  # An error was swallowed: PostgreSQL rolled back.
                raise asyncpg.InFailedSQLTransactionError("a statement failed inside the transaction")
            if participant is not None:
                participant.commit(undone=transaction.undoes_act)
        if transaction.jobs and self._on_commit:
            self._on_commit(caller.tenant_id, frozenset(transaction.jobs))
        if transaction.written and self._on_written:
            self._on_written(caller.tenant_id, transaction.written)
        await yield_to_others()

    @asynccontextmanager
    async def system(self) -> AsyncIterator[Session]:
        """A session without a tenant: row-level security shows it no rows; it reads by SECURITY DEFINER functions."""
        acquiring = self._reserved.acquire(timeout=self.acquire_seconds)
        async with (
            translated_errors(),
            used_connection("reserved", acquiring, self._measured_cell) as connection,
            self._with_settings(connection),
        ):
            with translated_writes():
                yield Session(connection)

    @asynccontextmanager
    async def personal(self, person_id: UUID, *, within: UUID | None = None) -> AsyncIterator[Session]:
        """A transaction of a person who has signed in, without a tenant: row-level security shows it only their rows.

        `within`: the tenant to which their session is confined; the session is in that tenant's cell. Raises
        Unavailable, as `transaction` does, and TenantMoving where that tenant is not in this cell, or is leaving it and
        such a session is written.
        """
        async with self._connection_of(person_id) as connection, connection.transaction():
            if self._local:
                await connection.execute(self._local)
            if within is not None and self._is_one_of_several:
                await connection.execute(_SET_PERSON_WITHIN, str(person_id), within)
            else:
                await connection.execute(_SET_PERSON, str(person_id))
            with translated_writes():
                yield Session(connection)

    @asynccontextmanager
    async def writing(
        self,
        caller: Caller,
        graph: str,
        *,
        commit: bool = True,
        reply_bytes: int | None = None,
        plan: QueryPlan = QueryPlan.WITH_VALUES,
        within_seconds: float | None = None,
    ) -> AsyncIterator[Transaction]:
        """A `transaction` that writes the graph of that name or id.

        It takes a connection once fewer than MAX_WRITERS calls of this process write the graph, and waits for the
        graph's lock with that. Raises Unavailable also where its turn does not come, and where it was not done
        `within_seconds`: then nothing is written.
        """
        async with AsyncExitStack() as stack:
            try:
                key = caller.tenant_id, graph
                async with released_slot():
                    await stack.enter_async_context(self._writers.acquire(key, wait_seconds=self._lock_seconds))
            except TimeoutError:
                raise Unavailable("Another write is changing this graph. Try again.", code=ErrorCode.BUSY) from None
            transaction = self.transaction(caller, commit=commit, reply_bytes=reply_bytes, plan=plan)
            tx = await stack.enter_async_context(transaction)
            await stack.enter_async_context(_done_within(within_seconds))
            yield tx

    @asynccontextmanager
    async def _with_settings(self, connection: PoolConnectionProxy) -> AsyncIterator[None]:
        """Set the session's settings for a transaction on a shared connection; a connection of our own has them."""
        if not self._local:
            yield
            return
        async with connection.transaction():
            await connection.execute(self._local)
            yield

    async def ping(self) -> datetime:
        """The time by the clock of PostgreSQL, if that answers; raise Unavailable if not."""
        async with self.system() as session:
            at: datetime = await session.fetchval(Query("SELECT clock_timestamp()"))
        return at

    def _raise_suspended(self, error: BaseException) -> None:
        """Raise the error that a SQLSTATE of our own functions (`require_writable` and others) stands for, if any."""
        match getattr(error, "sqlstate", None):
            case "RC001":
                raise TenantReadOnly(self._contact) from error
            case "RC002":
                raise TenantSuspended("The tenant is suspended.") from error
            case "RC003":
                raise TenantMoving from error
            case "RC004":
                raise GraphChanged from error

    @asynccontextmanager
    async def _connection_of(self, tenant_id: UUID) -> AsyncIterator[PoolConnectionProxy]:
        """A connection from the tenant's share of the pool."""
        await yield_to_others()
        acquiring = self._acquired(tenant_id)
        async with translated_errors(), used_connection(self.pool_name, acquiring, self._measured_cell) as connection:
            yield connection

    @asynccontextmanager
    async def _acquired(self, tenant_id: UUID) -> AsyncIterator[PoolConnectionProxy]:
        """A connection of the pool; the waits for the tenant's share and for the pool have one time limit."""
        began = time.monotonic()
        async with self._tenants.acquire(tenant_id, wait_seconds=self.acquire_seconds):
            remaining = max(self.acquire_seconds - (time.monotonic() - began), 0.01)
            async with self._pool.acquire(timeout=remaining) as connection:
                yield connection


@asynccontextmanager
async def _done_within(seconds: float | None) -> AsyncIterator[None]:
    """Raise Unavailable in what goes on inside after these seconds: other writers of its graph wait for it."""
    try:
        async with asyncio.timeout(seconds) as limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        message = f"This write took more than {seconds:g} seconds, so nothing was written. Ask for less in one call"
        raise Unavailable(message, code=ErrorCode.BUSY) from None
