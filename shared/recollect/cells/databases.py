"""The databases of all cells: where a tenant's transactions run, and queries before a tenant is known.

The home cell holds the data that belongs to no tenant (people, clients, signing keys) and the directory. A process
remembers where it found a tenant or a credential. That may be outdated: a cell refuses tenants that are not in it.
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from types import MappingProxyType
from typing import Self, TypeVar, Unpack
from uuid import UUID

import structlog
from cachetools import LRUCache
from redis.asyncio import Redis

from recollect.caller import Caller
from recollect.cells import store
from recollect.cells.fan_out import CellQuery, FanOut, answer_of, unanswered
from recollect.cells.model import OTHER_CELLS_SECONDS, REMEMBERED, memory_key, served_in_both, tenant_of
from recollect.cells.switches import end_switches
from recollect.errors import TenantMoving, Unavailable
from recollect.postgres.database import Database, OnWritten, Participant
from recollect.postgres.replicas import replica_of
from recollect.postgres.schema_version.service import SchemaCheck
from recollect.postgres.tenant_database import TenantDatabase, TransactionOptions, WritingOptions
from recollect.postgres.transactions import Session, Transaction
from recollect.settings import Settings
from recollect.settings.cells import HOME
from recollect.valkey.caller_changes import OnCallersChanged
from recollect.valkey.wakeups import Wakeups

T = TypeVar("T")

log = structlog.get_logger(__name__)


class Databases:
    """The database of each cell: of `home`, and of the others, if there are any.

    Code of one tenant takes what `of` returns, and code of what belongs to no tenant takes `home`.
    """

    def __init__(self, home: Database, others: Mapping[str, Database] = MappingProxyType({})) -> None:
        self.home = home
        self.has_several_cells = bool(others)
        self.several_connections = asyncio.Lock()
        """Held while a caller that has a connection asks for another: otherwise a few such callers could take the whole
        pool and wait for each other."""
        self._by_cell = {HOME: home, **others}
        self._schemas = {name: SchemaCheck(other) for name, other in others.items()}
        self._cells_of_tenants = LRUCache[UUID, str](REMEMBERED)
        self._holders = LRUCache[bytes, str](REMEMBERED)
        self._fan_out = FanOut(self._session_at, seconds=home.acquire_seconds)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings, redis: Redis, on_written: OnWritten, on_callers_changed: OnCallersChanged | None = None
    ) -> AsyncIterator[Self]:
        """The databases of all cells of the settings, each of which wakes its own workers.

        They connect when they are first used.
        """
        async with AsyncExitStack() as stack:

            async def connect(name: str) -> Database:
                wakeups, cell_settings = Wakeups(redis, name), settings.of_cell(name)
                stack.push_async_callback(wakeups.aclose)
                database = Database.connect(
                    cell_settings.database_url,
                    settings=cell_settings,
                    on_commit=wakeups.notify,
                    on_written=on_written,
                    on_callers_changed=on_callers_changed,
                    replica=await stack.enter_async_context(replica_of(cell_settings)),
                )
                return await stack.enter_async_context(database)

            home = await connect(HOME)
            databases = cls(home, {name: await connect(name) for name in settings.cells})
            stack.push_async_callback(databases._fan_out.stop)
            yield databases

    def with_participant(self, participant: Participant) -> Self:
        """The same databases for one request, with a participant in their transactions that write and are kept."""
        databases = copy.copy(self)
        databases._by_cell = {name: its.with_participant(participant) for name, its in self._by_cell.items()}
        databases.home = databases._by_cell[HOME]
        return databases

    @property
    def names(self) -> list[str]:
        """The names of all cells, home first."""
        return list(self._by_cell)

    @property
    def all(self) -> list[Database]:
        """The databases of all cells, home first."""
        return list(self._by_cell.values())

    def known_cell(self, tenant_id: UUID) -> str | None:
        """The cell in which a tenant was last found, without a query; None where it is not known."""
        return self._cells_of_tenants.get(tenant_id) if self.has_several_cells else HOME

    def of(self, tenant_id: UUID) -> TenantDatabase:
        """The database of a tenant.

        With several cells, its transactions raise TenantMoving while the tenant is in no cell, or leaving one.
        """
        return _DatabaseOfTenant(self, tenant_id) if self.has_several_cells else self.home

    def personal(self, person_id: UUID, *, within: UUID | None) -> AbstractAsyncContextManager[Session]:
        """A session of a person, at home or in the cell of the tenant `within`, to which their sign-in is confined."""
        if within is None or not self.has_several_cells:
            return self.home.personal(person_id, within=within)
        return self.in_cell_of(within, lambda database: database.personal(person_id, within=within))

    @asynccontextmanager
    async def in_cell_of(
        self, tenant_id: UUID, begin: Callable[[Database], AbstractAsyncContextManager[T]]
    ) -> AsyncIterator[T]:
        """What `begin` opens in the database of a tenant's cell; it is tried again where the tenant has moved."""
        async with AsyncExitStack() as stack:
            cell = await self._cell_of(tenant_id)
            try:
                opened = await stack.enter_async_context(begin(await self._usable(cell)))
            except TenantMoving:
                current = await self._cell_after(tenant_id, cell)
                opened = await stack.enter_async_context(begin(await self._usable(current)))
            yield opened

    async def find_in_any_cell(
        self,
        lookup_key: str,
        query: CellQuery[T | None],
        *,
        person_id: UUID | None = None,
        stored_hashes: Callable[[], list[bytes]] | None = None,
        slug: str | None = None,
    ) -> T | None:
        """What `query` finds in the first cell that has it, before a tenant is known; None where no cell has it.

        `lookup_key` is the secret or the name that is looked up. The cell where it was found before is asked first,
        then all cells at once. With `person_id`, `query` runs in a transaction of that person (`personal`), else in a
        session without a tenant; with `slug`, in that tenant's cell alone. `stored_hashes` returns the hashes under
        which the secret may be stored. Raises Unavailable where nothing is found and a cell is unreachable, and
        TenantMoving where the tenant of the slug or of the secret is between two cells.
        """
        if not self.has_several_cells:
            return await self._ask_home(query, person_id)
        key = memory_key(lookup_key, person_id)
        if (known_cell := self._holders.get(key)) is not None:
            _, found = await self._fan_out.first([known_cell], query, person_id)
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

        Cells that are unreachable are left out. `query` runs as in `find_in_any_cell`; in the home cell by
        `home_session`, if that is given. With `slugs`, only the cells of these tenants are asked. Raises Unavailable
        where home is unreachable; with `slugs`, where any of their cells is; with `strict`, also where any cell is and
        the others have no rows.
        """
        if not self.has_several_cells:
            return await (self._ask_home(query, person_id) if home_session is None else query(home_session))
        names = [name for name in await self._cells_named(slugs) if home_session is None or name != HOME]
        tasks = {name: self._fan_out.begin(name, query, person_id) for name in names}
        rows: list[T] = [] if home_session is None else await query(home_session)
        if tasks:
            await asyncio.wait(tasks.values(), timeout=self._fan_out.seconds)
        failure: Unavailable | None = None
        for name, task in tasks.items():
            try:
                rows += answer_of(task)
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

        return not any((await self._fan_out.each(self.names, find_tenant_states)).values())

    async def do_in_other_cells(self, person_id: UUID, query: CellQuery[object], *, strict: bool = False) -> None:
        """Run `query` in each cell but home, in a transaction of the person.

        A cell that is unreachable or too slow is left out, and the log says so. With `strict`, Unavailable is raised
        instead; the others may have run it.
        """
        tasks = {name: self._fan_out.begin(name, query, person_id) for name in self.names if name != HOME}
        if tasks:
            await asyncio.wait(tasks.values(), timeout=self._fan_out.seconds if strict else OTHER_CELLS_SECONDS)
        for name, task in tasks.items():
            try:
                answer_of(task)
            except Unavailable as error:
                if strict:
                    raise
                log.warning("cell unavailable, change by a person not applied", cell=name, reason=str(error))

    async def _ask_home(self, query: CellQuery[T], person_id: UUID | None) -> T:
        async with self._session_at(HOME, person_id) as session:
            return await query(session)

    async def _find_among(
        self, cells: list[str], key: bytes, query: CellQuery[T | None], person_id: UUID | None
    ) -> T | None:
        """What one of these cells finds; the cell is remembered for the key, and for the tenant of the value."""
        cell, found = await self._fan_out.first(cells, query, person_id)
        if found is not None:
            self._holders[key] = cell
            if (tenant_id := tenant_of(found)) is not None:
                self._cells_of_tenants[tenant_id] = cell
        return found

    async def _states_of(self, slugs: Sequence[str] | None, hashes: Sequence[bytes]) -> dict[str, list[str]]:
        """By cell: its states for tenants of these slugs, or with a credential of one of these hashes.

        Asks the cells of the slugs, or all.
        """

        async def find_tenant_states(session: Session) -> list[str]:
            return await store.find_tenant_states(session, slugs=slugs or (), hashes=hashes)

        return await self._fan_out.each(await self._cells_named(slugs), find_tenant_states)

    async def _cells_named(self, slugs: Sequence[str] | None) -> list[str]:
        """The cells of the tenants of these slugs; all cells without slugs. Raises Unavailable."""
        if slugs is None:
            return self.names
        async with self.home.system() as session:
            return [self._require_known(cell) for cell in await store.find_cells(session, slugs)]

    async def _cell_of(self, tenant_id: UUID) -> str:
        """The tenant's cell, remembered or from the directory. Raises Unavailable."""
        if (cell := self._cells_of_tenants.get(tenant_id)) is None:
            async with self.home.system() as session:
                cell = self._require_known(await store.find_cell(session, tenant_id))
            self._cells_of_tenants[tenant_id] = cell
        return cell

    async def _cell_after(self, tenant_id: UUID, before: str) -> str:
        """The cell of a tenant that the cell `before` does not serve. Raises TenantMoving where it is in no other."""
        self._cells_of_tenants.pop(tenant_id, None)
        if (current := await self._cell_of(tenant_id)) != before:
            return current
        if not await end_switches(self._short_session_at, [before], tenants=[tenant_id]):
            raise TenantMoving
        self._cells_of_tenants.pop(tenant_id, None)
        return await self._cell_of(tenant_id)

    def _require_known(self, cell: str) -> str:
        if cell not in self._by_cell:
            raise Unavailable(f"RECOLLECT_CELLS does not say where the cell {cell!r} is.")
        return cell

    async def _usable(self, cell: str) -> Database:
        """The database of a cell. Raises Unavailable where it is not home and its schema is older than this version."""
        if cell != HOME:
            await self._schemas[cell].require_current()
        return self._by_cell[cell]

    @asynccontextmanager
    async def _session_at(self, cell: str, person_id: UUID | None) -> AsyncIterator[Session]:
        """A session of that person, or without a person."""
        database = await self._usable(cell)
        async with database.system() if person_id is None else database.personal(person_id) as session:
            yield session

    @asynccontextmanager
    async def _short_session_at(self, cell: str) -> AsyncIterator[Session]:
        """A session without a person in the cell of that name. Raises Unavailable, also where it does not answer."""
        name = self._require_known(cell)
        try:
            async with asyncio.timeout(self._fan_out.seconds), self._session_at(name, None) as session:
                yield session
        except TimeoutError:
            raise unanswered() from None


class _DatabaseOfTenant(TenantDatabase):
    """The database of a tenant that one of several cells has: each transaction runs in the cell of that moment."""

    def __init__(self, databases: Databases, tenant_id: UUID) -> None:
        self._databases, self._tenant_id = databases, tenant_id

    def transaction(
        self, caller: Caller, **options: Unpack[TransactionOptions]
    ) -> AbstractAsyncContextManager[Transaction]:
        """As in `Database`, after the tenant if it has moved."""
        return self._databases.in_cell_of(self._tenant_id, lambda database: database.transaction(caller, **options))

    def writing(
        self, caller: Caller, graph: str, **options: Unpack[WritingOptions]
    ) -> AbstractAsyncContextManager[Transaction]:
        """As in `Database`, after the tenant if it has moved."""
        return self._databases.in_cell_of(self._tenant_id, lambda database: database.writing(caller, graph, **options))
