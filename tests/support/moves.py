"""Two cells on one server, and moves of tenants between them that can be killed."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest

from recollect.moves import service as moves
from recollect.moves import store
from recollect.moves.connections import CellConnections
from recollect.moves.model import Cell, MoveOptions
from recollect.postgres.migrate import migrate
from recollect.settings import Settings
from recollect.settings.cells import HOME
from recollect_local.postgres import LocalPostgres

AWAY = "away"

Act = Callable[..., Awaitable[None]]

PREPARED = [("mark_moving", 1), ("put_tenant", 1), ("publish", 1), ("make_slot", 1), ("subscribe", 1)]
COPIED = [
    ("record_step", 1),
    ("hold", 1),
    ("mark_log", 1),
    ("record_step", 2),
    ("put_people", 1),
    ("put_passkeys", 1),
    ("digest_of_tenant", 1),
    ("record_step", 3),
]
SWITCHED = [
    ("depart", 1),
    ("find_subscription", 1),
    ("stop_following", 1),
    ("set_tenant_state", 1),
    ("set_cell", 1),
    ("record_step", 1),
    ("unsubscribe", 1),
    ("drop_slot", 1),
    ("unpublish", 1),
    ("erase_moved_step", 1),
]
"""Functions of the store, and the number of a call: after that call, the process that moves a tenant is killed, and
another one continues. There is an entry for each function that changes something."""


class Killed(BaseException):
    """A killed move: from then on neither it nor its exception handlers do anything."""


@dataclass(frozen=True)
class TwoCells:
    """The home cell, which all tests share, and another database of its server. `messages`: the output of moves."""

    known: dict[str, Cell]
    settings: Settings
    messages: list[str]

    async def move(self, slug: str, to: str = AWAY, **options: Any) -> None:
        """Move a tenant."""
        async with CellConnections.reaching(self.known, self.settings) as cells:
            await moves.move_tenant(cells, slug, to, MoveOptions(**options), self.messages.append)

    async def go_on(self, slug: str, **options: Any) -> None:
        """Continue a move."""
        async with CellConnections.reaching(self.known, self.settings) as cells:
            await moves.continue_move(cells, slug, MoveOptions(**options), self.messages.append)

    async def undo(self, slug: str) -> None:
        """Undo a move."""
        async with CellConnections.reaching(self.known, self.settings) as cells:
            await moves.undo_move(cells, slug, MoveOptions(), self.messages.append)

    async def step(self, slug: str) -> str | None:
        """The last recorded step; None if no move is under way."""
        async with CellConnections.reaching(self.known, self.settings) as cells:
            return {move.slug: move.step for move in await moves.list_moves(cells)}.get(slug)

    @asynccontextmanager
    async def bare(self, cell: str) -> AsyncIterator[asyncpg.Connection]:
        """A plain connection to a cell."""
        url = self.known[cell].url
        connection = await asyncpg.connect(url, server_settings={"search_path": "recollect, public"})
        try:
            yield connection
        finally:
            await connection.close()

    async def place(self, cell: str, slug: str) -> str | None:
        """The place of a tenant in a cell."""
        async with self.bare(cell) as connection:
            place: str | None = await connection.fetchval("SELECT place FROM tenants WHERE slug = $1", slug)
            return place

    async def leftovers(self) -> list[str]:
        """Remaining publications, slots and subscriptions of moves."""
        async with self.bare(HOME) as connection:
            rows = await connection.fetch(
                """SELECT 'publication' AS what FROM pg_publication UNION ALL SELECT 'slot' FROM pg_replication_slots
                UNION ALL SELECT 'subscription' FROM pg_subscription"""
            )
            return [row["what"] for row in rows]


@pytest.fixture(scope="session")
async def two_cells(postgres: LocalPostgres, settings: Settings, database_url: str) -> TwoCells:
    """The database of the tests, and another one beside it."""
    urls = {HOME: postgres.url(), AWAY: postgres.url().replace("/recollect?", "/away?")}
    connection = await asyncpg.connect(urls[HOME])
    try:
        locale = postgres.database_locale.replace("''", "'")
        await connection.execute(f"CREATE DATABASE away ENCODING UTF8 {locale} TEMPLATE template0")
    finally:
        await connection.close()
    await migrate(urls[AWAY])
    return TwoCells({name: Cell(name, url, url) for name, url in urls.items()}, settings, [])


@asynccontextmanager
async def killed_after(function: str, times: int = 1) -> AsyncIterator[None]:
    """Kill the move inside the block right after this function of the store was called so many times.

    From then on it sends no statement, whatever it has in `finally`.
    """
    with pytest.MonkeyPatch.context() as patch:
        left, dead = times, False

        def mortal(name: str, original: Any) -> Any:
            async def call(*arguments: Any, **named: Any) -> Any:
                nonlocal left, dead
                if dead:
                    raise Killed
                answer = await original(*arguments, **named)
                if name == function:
                    left -= 1
                    if not left:
                        dead = True
                        raise Killed
                return answer

            return call

        for name, original in vars(store).copy().items():
            if getattr(original, "__module__", None) == store.__name__:
                patch.setattr(store, name, mortal(name, original))
        with pytest.raises(Killed):
            yield
    assert dead
