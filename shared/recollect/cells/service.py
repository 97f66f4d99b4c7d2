"""Cells: several PostgreSQL clusters as one database, where each tenant's work goes to the tenant's cell.

The home cell holds the data that belongs to no tenant (people, clients, signing keys) and the directory. A process
remembers where it found a tenant or a credential. That may be outdated: a cell refuses tenants that are not in it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Self, TypeVar, Unpack
from uuid import UUID

import structlog
from cachetools import LRUCache
from redis.asyncio import Redis

from recollect.caller import Caller
from recollect.cells import store
from recollect.cells.model import OTHER_CELLS_SECONDS, REMEMBERED, memory_key, served_in_both, tenant_of
from recollect.cells.switches import end_switches
from recollect.errors import ErrorCode, TenantMoving, Unavailable
from recollect.postgres.database import CellQuery, Database, OnWritten
from recollect.postgres.replicas import replica_of
from recollect.postgres.schema_version.service import SchemaCheck
from recollect.postgres.transactions import Session, Transaction, TransactionOptions
from recollect.settings import Settings
from recollect.settings.cells import HOME
from recollect.valkey.caller_changes import OnCallersChanged
from recollect.valkey.wakeups import Wakeups

T = TypeVar("T")
D = TypeVar("D", bound=Database)

log = structlog.get_logger(__name__)


class Cells(Database):
    """The home cell, which knows the others and sends each tenant's work to the tenant's cell."""

    _others: Mapping[str, Database]
    _schemas: Mapping[str, SchemaCheck]
    _cells_of_tenants: LRUCache[UUID, str]
    _holders: LRUCache[bytes, str]
    _asking: set[asyncio.Task[Any]]

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings, redis: Redis, on_written: OnWritten, on_callers_changed: OnCallersChanged | None = None
    ) -> AsyncIterator[Self]:
        """All cells of the settings, each of which wakes its own workers. They connect when they are first used."""
        async with AsyncExitStack() as stack:

            async def connect(kind: type[D], name: str) -> D:
                wakeups, cell_settings = Wakeups(redis, name), settings.of_cell(name)
                stack.push_async_callback(wakeups.aclose)
                database = kind.connect(
                    cell_settings.database_url,
                    settings=cell_settings,
                    on_commit=wakeups.notify,
                    on_written=on_written,
                    on_callers_changed=on_callers_changed,
                    replica=await stack.enter_async_context(replica_of(cell_settings)),
                )
                return await stack.enter_async_context(database)

            home = await connect(cls, HOME)
            home._others = {name: await connect(Database, name) for name in settings.cells}
            home._schemas = {name: SchemaCheck(other) for name, other in home._others.items()}
            home._cells_of_tenants, home._holders, home._asking = LRUCache(REMEMBERED), LRUCache(REMEMBERED), set()
            try:
                yield home
            finally:
                await home._stop_asking()

    @property
    def names(self) -> list[str]:
        """The names of all cells, home first."""
        return [HOME, *self._others]

    @property
    def other_cells(self) -> Sequence[Database]:
        """All cells but home."""
        return tuple(self._others.values())

    def known_cell(self, tenant_id: UUID) -> str | None:
        """The cell in which a tenant was last found, without a query; None where it is not known."""
        return self._cells_of_tenants.get(tenant_id)

    @asynccontextmanager
    async def transaction(self, caller: Caller, **options: Unpack[TransactionOptions]) -> AsyncIterator[Transaction]:
        """A transaction in the tenant's cell. Raises TenantMoving while the tenant is in no cell, or leaving one."""
        async with AsyncExitStack() as stack:
            cell, tx = await self._enter_cell(
                stack, caller.tenant_id, lambda name: self._transaction_at(name, caller, **options)
            )
            tx.is_in_home_cell = cell == HOME
            yield tx

    @asynccontextmanager
    async def personal(self, person_id: UUID, *, within: UUID | None = None) -> AsyncIterator[Session]:
        """A session of a person, at home or in the cell of the tenant `within`, to which their sign-in is confined."""
        async with AsyncExitStack() as stack:
            if within is None:
                yield await stack.enter_async_context(super().personal(person_id))
                return
            _, session = await self._enter_cell(stack, within, lambda name: self._session_at(name, person_id, within))
            yield session

    async def _enter_cell(
        self, stack: AsyncExitStack, tenant_id: UUID, begin: Callable[[str], AbstractAsyncContextManager[T]]
    ) -> tuple[str, T]:
        """The cell of a tenant, and the context that `begin` opened there; tried again where the tenant has moved."""
        cell = await self._cell_of(tenant_id)
        try:
            return cell, await stack.enter_async_context(begin(cell))
        except TenantMoving:
            self._cells_of_tenants.pop(tenant_id, None)
            current = await self._cell_of(tenant_id)
            if current == cell:
                if not await end_switches(self._short_session_at, [cell], tenants=[tenant_id]):
                    raise
                self._cells_of_tenants.pop(tenant_id, None)
                current = await self._cell_of(tenant_id)
            return current, await stack.enter_async_context(begin(current))

    async def find_in_any_cell(
        self,
        lookup_key: str,
        query: CellQuery[T | None],
        *,
        person_id: UUID | None = None,
        stored_hashes: Callable[[], list[bytes]] | None = None,
        slug: str | None = None,
    ) -> T | None:
        """What `query` finds in the first cell that has it; None where none has.

        It asks the cell where `lookup_key` was found before, then all cells at once. Raises TenantMoving where the
        tenant is between two cells.
        """
        key = memory_key(lookup_key, person_id)
        if (known_cell := self._holders.get(key)) is not None:
            _, found = await self._first([known_cell], query, person_id)
            if found is not None:
                return found
            self._holders.pop(key, None)
        slugs = None if slug is None else [slug]
        found = await self._find_among(await self._cells_named(slugs), key, query, person_id)
        if found is not None or (stored_hashes is None and slugs is None):
            return found
        hashes = stored_hashes() if stored_hashes else []
        before = await self._states_of(slugs, hashes)
        if not any(before.values()):
            return None
        # Both cells of a move may have been asked at the wrong moment: the source after the switch, the target before.
        found = await self._find_among(await self._cells_named(slugs), key, query, person_id)
        if found is None and not served_in_both(before, after := await self._states_of(slugs, hashes)):
            sources = [name for name, states in after.items() if "departed" in states]
            if await end_switches(self._short_session_at, sources, slugs=slugs or (), hashes=hashes):
                found = await self._find_among(await self._cells_named(slugs), key, query, person_id)
            if found is None:
                raise TenantMoving
        return found

    async def _find_among(
        self, cells: list[str], key: bytes, query: CellQuery[T | None], person_id: UUID | None
    ) -> T | None:
        """What one of these cells finds; the cell is remembered for the key, and for the tenant of the value."""
        cell, found = await self._first(cells, query, person_id)
        if found is not None:
            self._holders[key] = cell
            if (tenant_id := tenant_of(found)) is not None:
                self._cells_of_tenants[tenant_id] = cell
        return found

    async def list_from_all_cells(
        self,
        query: CellQuery[list[T]],
        *,
        person_id: UUID | None = None,
        slugs: Sequence[str] | None = None,
        strict: bool = False,
        home_session: Session | None = None,
    ) -> list[T]:
        """The rows of `query` from all cells: home's first, then the others' by name.

        Raises Unavailable where home is unreachable; with `slugs`, where any of their cells is; with `strict`, also
        where any cell is and the others have no rows.
        """
        names = [name for name in await self._cells_named(slugs) if home_session is None or name != HOME]
        tasks = {name: self._begin(name, query, person_id) for name in names}
        rows: list[T] = [] if home_session is None else await query(home_session)
        if tasks:
            await asyncio.wait(tasks.values(), timeout=self._acquire_seconds)
        failure: Unavailable | None = None
        for name, task in tasks.items():
            try:
                rows += _answer(task)
            except Unavailable as error:
                if name == HOME or slugs is not None:
                    raise
                failure = error
                log.warning("cell unavailable, left out of a list", cell=name, reason=str(error))
        if strict and failure is not None and not rows:
            raise failure
        return rows

    async def is_erased(self, tenant_id: UUID) -> bool:
        """Whether no cell has the tenant, whether it serves the tenant or not."""

        async def find_tenant_states(session: Session) -> list[str]:
            return await store.find_tenant_states(session, tenants=[tenant_id])

        return not any((await self._ask_each(self.names, find_tenant_states)).values())

    async def do_in_other_cells(self, person_id: UUID, query: CellQuery[object], *, strict: bool = False) -> None:
        """Run `query` in each cell but home. A cell that is unreachable or too slow is left out, and the log says so.

        With `strict`, Unavailable is raised instead; the others may have run it.
        """
        tasks = {name: self._begin(name, query, person_id) for name in self._others}
        await asyncio.wait(tasks.values(), timeout=self._acquire_seconds if strict else OTHER_CELLS_SECONDS)
        for name, task in tasks.items():
            try:
                _answer(task)
            except Unavailable as error:
                if strict:
                    raise
                log.warning("cell unavailable, change by a person not applied", cell=name, reason=str(error))

    async def _states_of(self, slugs: Sequence[str] | None, hashes: Sequence[bytes]) -> dict[str, list[str]]:
        """By cell: the places that it names for tenants of these slugs, or with a credential of one of these hashes.

        Asks the cells of the slugs, or all.
        """

        async def find_tenant_states(session: Session) -> list[str]:
            return await store.find_tenant_states(session, slugs=slugs or (), hashes=hashes)

        return await self._ask_each(await self._cells_named(slugs), find_tenant_states)

    async def _ask_each(self, cells: list[str], query: CellQuery[T]) -> dict[str, T]:
        """The answer of each of these cells. Raises Unavailable where one is unreachable."""
        tasks = {name: self._begin(name, query, None) for name in cells}
        await asyncio.wait(tasks.values(), timeout=self._acquire_seconds)
        return {name: _answer(task) for name, task in tasks.items()}

    async def _cells_named(self, slugs: Sequence[str] | None) -> list[str]:
        """The cells of the tenants of these slugs; all cells without slugs. Raises Unavailable."""
        if slugs is None:
            return self.names
        async with self.system() as session:
            return [self._require_known(cell) for cell in await store.find_cells(session, slugs)]

    def _require_known(self, cell: str) -> str:
        if cell not in self.names:
            raise Unavailable(f"RECOLLECT_CELLS does not say where the cell {cell!r} is.")
        return cell

    async def _cell_of(self, tenant_id: UUID) -> str:
        """The tenant's cell, remembered or from the directory. Raises Unavailable."""
        if (cell := self._cells_of_tenants.get(tenant_id)) is None:
            async with self.system() as session:
                cell = self._require_known(await store.find_cell(session, tenant_id))
            self._cells_of_tenants[tenant_id] = cell
        return cell

    @asynccontextmanager
    async def _short_session_at(self, cell: str) -> AsyncIterator[Session]:
        """A session without a person in the cell of that name. Raises Unavailable, also where it does not answer."""
        name = self._require_known(cell)
        try:
            async with asyncio.timeout(self._acquire_seconds), self._session_at(name, None) as session:
                yield session
        except TimeoutError:
            raise _unanswered() from None

    @asynccontextmanager
    async def _transaction_at(
        self, cell: str, caller: Caller, **options: Unpack[TransactionOptions]
    ) -> AsyncIterator[Transaction]:
        if cell == HOME:
            async with super().transaction(caller, **options) as tx:
                yield tx
            return
        await self._schemas[cell].require_current()
        other = self._others[cell]
        if self._participant is not None:
            other = other.with_participant(self._participant)
        async with other.transaction(caller, **options) as tx:
            yield tx

    @asynccontextmanager
    async def _session_at(
        self, cell: str, person_id: UUID | None, within: UUID | None = None
    ) -> AsyncIterator[Session]:
        """A session of that person, or without a person."""
        if cell != HOME:
            await self._schemas[cell].require_current()
            other = self._others[cell]
            async with other.system() if person_id is None else other.personal(person_id, within=within) as session:
                yield session
            return
        async with super().system() if person_id is None else super().personal(person_id, within=within) as session:
            yield session

    async def _first(
        self, cells: list[str], query: CellQuery[T | None], person_id: UUID | None
    ) -> tuple[str, T | None]:
        """The first cell that finds a value, and the value. Raises Unavailable if none does and one is unreachable."""
        pending = {self._begin(name, query, person_id): name for name in cells}
        failure: Unavailable | None = None
        deadline = asyncio.get_running_loop().time() + self._acquire_seconds
        while pending:
            remaining = deadline - asyncio.get_running_loop().time()
            done, _ = await asyncio.wait(pending, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
            for task in done or set(pending):
                name = pending.pop(task)
                try:
                    found = _answer(task)
                except Unavailable as error:
                    failure = error
                    continue
                if found is not None:
                    return name, found
        if failure is not None:
            raise failure
        return HOME, None

    def _begin(self, cell: str, query: CellQuery[T], person_id: UUID | None) -> asyncio.Task[T]:
        """Ask a cell in a task of its own: a cell that hangs delays no caller that has its answer from another cell."""

        async def ask_cell() -> T:
            try:
                async with asyncio.timeout(self._acquire_seconds), self._session_at(cell, person_id) as session:
                    return await query(session)
            except TimeoutError:
                raise _unanswered() from None

        task = asyncio.create_task(ask_cell(), name=f"ask {cell}")
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # The caller may have left.
        return task

    async def _stop_asking(self) -> None:
        """Cancel all tasks that ask cells, which hold connections that their pools need back to close."""
        tasks = list(self._asking)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _answer(task: asyncio.Task[T]) -> T:
    """The answer of a cell. Raises the task's error, or Unavailable where the cell has not answered yet."""
    if not task.done():
        task.cancel()
        raise _unanswered()
    return task.result()


def _unanswered() -> Unavailable:
    return Unavailable("The database is busy. Try again in a moment.", code=ErrorCode.BUSY)
