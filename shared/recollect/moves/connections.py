"""The connections of one command that moves a tenant, to the cells that take part in the move."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from recollect.errors import NotFound
from recollect.moves.model import Cell, Move, MoveOptions
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect.settings.cells import HOME

Report = Callable[[str], None]
"""Reports the progress of a move, one sentence a call."""


@dataclass(frozen=True, slots=True)
class CellConnections:
    """The cells of a deployment by name, and the connections that were opened to them."""

    known: Mapping[str, Cell]
    settings: Settings
    _stack: AsyncExitStack
    _open: dict[str, Operator] = field(default_factory=dict)

    @classmethod
    @asynccontextmanager
    async def reaching(cls, known: Mapping[str, Cell], settings: Settings) -> AsyncIterator["CellConnections"]:
        """Connections for the length of one command; they are closed at its end."""
        # Copying, comparing and erasing have no bound in time; the time that writes are held has a bound of its own.
        without_timeout = settings.model_copy(update={"statement_timeout_seconds": 0.0})
        async with AsyncExitStack() as stack:
            yield cls(known, without_timeout, stack)

    def named(self, name: str) -> Cell:
        """The cell of that name; raises NotFound."""
        if name not in self.known:
            raise NotFound(f"There is no cell {name!r}. The cells are: {', '.join(sorted(self.known))}.")
        return self.known[name]

    async def to(self, name: str) -> Operator:
        """The connection to a cell; raises NotFound, Unavailable."""
        cell = self.named(name)
        if name not in self._open:
            connecting = Operator.connect(cell.url, self.settings, role=None)
            self._open[name] = await self._stack.enter_async_context(connecting)
        return self._open[name]

    async def context_of(self, move: Move, options: MoveOptions, report: Report) -> "MoveContext":
        """The context of a move; raises NotFound, Unavailable."""
        return MoveContext(
            move,
            await self.to(HOME),
            await self.to(move.source),
            await self.to(move.target),
            self.named(move.source).address_for_cells,
            options,
            report,
        )


@dataclass(frozen=True, slots=True)
class MoveContext:
    """A move, and its connections: to the home cell, the source that the tenant leaves, and the target."""

    move: Move
    home: Operator
    source: Operator
    target: Operator
    source_address: str
    options: MoveOptions
    report: Report
