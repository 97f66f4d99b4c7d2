"""`recollect tenants move` and `recollect tenants moves`: move tenants between cells."""

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
    """Move a tenant to another cell while it is in use. Its writes are refused for a moment, and can be repeated.

    Parameters
    ----------
    slug
        The tenant's slug.
    to
        Cell to move the tenant to, as `recollect operator cells` shows it.
    go_on
        Continue an interrupted move from its last step.
    undo
        Undo a move that was interrupted before the tenant switched cells.
    hold
        Maximum seconds for which writes are refused. If that is not enough, writes resume: continue the move then.
    keep_source
        Keep the rows in the source cell until the move is continued without this option.
    """
    if [to is not None, go_on, undo].count(True) != 1:
        raise InvalidInput("Set exactly one of --to, --continue and --undo.")
    if not 0 < hold <= MAX_HOLD_SECONDS:
        raise InvalidInput(f"The hold must be more than 0 and at most {MAX_HOLD_SECONDS} seconds", path="hold")
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
    """List the moves that are under way or were interrupted, with the last step of each."""
    from recollect.moves import service as moves  # As above.

    found = _with_cells(Settings(), moves.list_moves)
    rows = [(m.slug, m.source, m.target, m.step, f"{m.began_at:%Y-%m-%d %H:%M}") for m in found]
    show(("slug", "from", "to", "step", "began"), rows, empty="No tenant is being moved.")


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
