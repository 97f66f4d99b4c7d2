"""`recollect tenants move` and `recollect tenants moves`: move organisations between cells."""

import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, TypeVar

from cyclopts import Parameter

from recollect.errors import InvalidInput
from recollect.moves.model import HOLD_SECONDS, Cell, MoveOptions
from recollect.settings import Settings
from recollect_cli.running import run_to_end
from recollect_cli.tables import show

if TYPE_CHECKING:
    from recollect.moves.connections import CellConnections

T = TypeVar("T")

MAX_HOLD_SECONDS = 3600


def move(
    slug: str,
    *,
    to: str | None = None,
    go_on: Annotated[bool, Parameter(name="--continue", negative=())] = False,
    undo: Annotated[bool, Parameter(negative=())] = False,
    hold: float = HOLD_SECONDS,
    keep_source: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Move an organisation to another cell while it is at work. Its writes are refused for a moment, to be repeated.

    Parameters
    ----------
    slug
        Its place in addresses.
    to
        The cell that it moves to, as `recollect operator cells` tells.
    go_on
        Go on with a move that was interrupted, at whichever step.
    undo
        Take back a move that was interrupted before the organisation had switched.
    hold
        For how many seconds its writes are refused at most. Where that is too short they go on: continue the move then.
    keep_source
        Keep the rows in the cell that it leaves, until the move is continued without this.
    """
    if [to is not None, go_on, undo].count(True) != 1:
        raise InvalidInput("Say one of --to, --continue and --undo.")
    if not 0 < hold <= MAX_HOLD_SECONDS:
        raise InvalidInput(f"Writes are held for up to {MAX_HOLD_SECONDS} seconds", path="hold")
    # Loads a database client, which other commands on tenants do not need.
    from recollect.moves import service as moves

    settings = Settings()
    options = MoveOptions(timedelta(seconds=hold), keep_source, settings.vector_index_memory_mb)

    async def work(cells: "CellConnections") -> None:
        if undo:
            await moves.undo_move(cells, slug, options, _print_progress)
        elif to is None:
            await moves.continue_move(cells, slug, options, _print_progress)
        else:
            await moves.move_tenant(cells, slug, to, options, _print_progress)

    _with_cells(settings, work)


def list_moves() -> None:
    """The moves that are under way, or were interrupted, and which step each was at."""
    from recollect.moves import service as moves  # As above.

    found = _with_cells(Settings(), moves.list_moves)
    rows = [(m.slug, m.source, m.target, m.step, f"{m.began_at:%Y-%m-%d %H:%M}") for m in found]
    show(("slug", "from", "to", "step", "began"), rows)


def _with_cells(settings: Settings, work: Callable[["CellConnections"], Awaitable[T]]) -> T:
    """Run `work` with the cells of the settings, as their owner."""
    from recollect.moves.connections import CellConnections

    async def run() -> T:
        urls = {name: settings.of_cell(name).migration_url for name in settings.cell_names}
        source = settings.move_source_url
        known = {n: Cell(n, url, source.get_secret_value() if source else url) for n, url in urls.items()}
        async with CellConnections.reaching(known, settings) as connections:
            return await work(connections)

    return run_to_end(run())


def _print_progress(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
