"""The connections of one command that moves a tenant: to the cells that it concerns, and to no other."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from recollect.errors import NotFound
from recollect.moves.model import Cell, Move, MoveOptions
from recollect.platform.operator_sessions import Operator
from recollect.settings import Settings
from recollect.settings.cells import HOME

Tell = Callable[[str], None]
"""Is told how a move goes, a sentence each time."""


@dataclass(frozen=True, slots=True)
class CellConnections:
    """The cells of a deployment by name, and the connections to those that were asked for."""

    known: Mapping[str, Cell]
    settings: Settings
    _stack: AsyncExitStack
    _open: dict[str, Operator] = field(default_factory=dict)

    @classmethod
    @asynccontextmanager
    async def reaching(cls, known: Mapping[str, Cell], settings: Settings) -> AsyncIterator["CellConnections"]:
        """Connections for the length of one command; they are closed at its end."""
        # To copy, to compare and to erase takes as long as it takes; how long writes may be held is a bound of its own.
        patient = settings.model_copy(update={"statement_timeout_seconds": 0.0})
        async with AsyncExitStack() as stack:
            yield cls(known, patient, stack)

    def named(self, name: str) -> Cell:
        """The cell of that name; raises NotFound."""
        if name not in self.known:
            raise NotFound(f"There is no cell {name!r}. There are: {', '.join(sorted(self.known))}.")
        return self.known[name]

    async def to(self, name: str) -> Operator:
        """The connection to a cell; raises NotFound, Unavailable."""
        cell = self.named(name)
        if name not in self._open:
            connecting = Operator.connect(cell.url, self.settings, role=None)
            self._open[name] = await self._stack.enter_async_context(connecting)
        return self._open[name]

    async def context_of(self, move: Move, options: MoveOptions, tell: Tell) -> "MoveContext":
        """What a move works on; raises NotFound, Unavailable."""
        return MoveContext(
            move,
            await self.to(HOME),
            await self.to(move.source),
            await self.to(move.target),
            self.named(move.source).address_for_cells,
            options,
            tell,
        )


@dataclass(frozen=True, slots=True)
class MoveContext:
    """A move, and what it works on: the home cell, the one that the tenant leaves, and the one where it arrives."""

    move: Move
    home: Operator
    source: Operator
    target: Operator
    source_address: str
    options: MoveOptions
    tell: Tell
