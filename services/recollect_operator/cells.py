"""The operator API's connections to the cells: each request works in the cell of its tenant."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar
from uuid import UUID

from litestar.datastructures import State

from recollect.cells.directory import service as directory
from recollect.errors import InvalidInput, Unavailable
from recollect.ids import new_id
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect.settings.cells import HOME
from recollect_operator.database import OperatorDatabase
from recollect_operator.operator_identity import OperatorIdentity, OperatorRequest

T = TypeVar("T")


class OperatorCells:
    """A pool of operators' connections for each cell, home first."""

    def __init__(self, databases: Mapping[str, OperatorDatabase]) -> None:
        self._databases = databases

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, settings: Settings, role: str, url_of: Callable[[Settings], str]
    ) -> AsyncIterator["OperatorCells"]:
        """Pools that connect when they are first used; `url_of` gives the address of a cell from its settings."""
        async with AsyncExitStack() as stack:
            databases = {}
            for name in settings.cell_names:
                cell_settings = settings.of_cell(name)
                database = OperatorDatabase.connect(url_of(cell_settings), role, cell_settings, cell=name)
                databases[name] = await stack.enter_async_context(database)
            yield cls(databases)

    @property
    def home(self) -> OperatorDatabase:
        """The cell that has the operators' keys and the directory."""
        return self._databases[HOME]

    @property
    def names(self) -> list[str]:
        """The names of all cells, home first."""
        return list(self._databases)

    def at(self, cell: str) -> OperatorDatabase:
        """One cell. Raises InvalidInput."""
        if cell not in self._databases:
            raise InvalidInput(f"There is no cell {cell!r}. The cells are: {', '.join(self.names)}", path="cell")
        return self._databases[cell]

    async def cell_of(self, *, slug: str | None = None, tenant_id: UUID | None = None) -> str:
        """The cell of a tenant; home where the directory does not name the tenant, or there is one cell."""
        if len(self._databases) == 1:
            return HOME
        async with self.home.session() as operator:
            return await directory.find_cell(operator, slug=slug, tenant_id=tenant_id)

    async def query_all(
        self, identity: OperatorIdentity, query: Callable[[Operator], Awaitable[T]]
    ) -> dict[str, T | Unavailable]:
        """The results of `query` in every cell, by the cell's name; an error for a cell that is unreachable."""

        async def query_cell(name: str) -> T | Unavailable:
            try:
                async with self._databases[name].session(identity) as operator:
                    return await query(operator)
            except Unavailable as error:
                return error

        return dict(zip(self.names, await asyncio.gather(*map(query_cell, self.names)), strict=True))

    @asynccontextmanager
    async def claimed(self, slug: str, cell: str) -> AsyncIterator[UUID]:
        """The id of a tenant that the block creates with this slug, which is claimed for it in all cells.

        With one cell nothing is claimed: the slug is unique in it. Raises Conflict.
        """
        tenant_id = new_id()
        if len(self._databases) == 1:
            yield tenant_id
            return
        self.at(cell)
        await self._free(slug)
        async with self.home.session() as operator:
            await directory.claim_slug(operator, tenant_id, slug, cell)
        try:
            yield tenant_id
        except Exception:
            if not await self._may_have(cell, tenant_id):
                async with self.home.session() as operator:
                    await directory.release_slug(operator, tenant_id)
            raise

    async def _may_have(self, cell: str, tenant_id: UUID) -> bool:
        """Whether a cell has a tenant, or may have it: a commit may have succeeded whose answer was lost."""
        try:
            async with self.at(cell).session() as operator:
                return await directory.has_tenant(operator, tenant_id)
        except Unavailable:
            return True  # If the cell does not have it, `_free` releases the slug later.

    async def _free(self, slug: str) -> None:
        """Release a slug of the directory whose tenant its cell does not have: erased, or never created."""
        async with self.home.session() as operator:
            entry = await directory.find_settled(operator, slug)
        if entry is None:
            return
        async with self.at(entry.cell).session() as operator:
            if await directory.has_tenant(operator, entry.id):
                return
        async with self.home.session() as operator:
            await directory.release_slug(operator, entry.id)


async def operator_of_request(request: OperatorRequest, state: State) -> AsyncIterator[Operator]:
    """A connection for one request, in the cell of its tenant, or else in the cell that its query names."""
    cells: OperatorCells = state.cells
    slug, tenant_id = request.path_params.get("slug"), request.path_params.get("tenant_id")
    if slug is None and tenant_id is None:
        cell = request.query_params.get("cell") or HOME
    else:
        cell = await cells.cell_of(slug=slug, tenant_id=tenant_id)
    async with cells.at(cell).session(request.user) as operator:
        yield operator
