"""A tenant moves to another server under load, and back: every acknowledged write is there exactly once."""

import asyncio
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants import service as tenants
from recollect.moves.model import Cell
from recollect.postgres.connections import OWNER_ROLE
from recollect.postgres.database import Database
from recollect.postgres.migrate import migrate
from recollect.settings import Settings
from recollect.settings.cells import HOME, CellUrls
from recollect_operator.cells import OperatorCells
from tests.support.balancer import Balancer
from tests.support.clusters import Cluster
from tests.support.commands import Shell
from tests.support.fleet import fleet
from tests.support.gateway import eventually, issue_key
from tests.support.load import Load, agents_of, stored_once
from tests.support.moves import COPIED, PREPARED, SWITCHED, Act, TwoCells, killed_after
from tests.support.workers import environment
from tests.verify.drills import embedded, on

AGENTS = 3
STEP = 60
TIMED, PAUSE = 300, 0.2
"""Timed calls of each tenant before the move, and seconds between two calls of one agent: without a pause, they would
wait for each other even without a move."""

MEMORIES = 5_000
"""Memories of the moving tenant, so many that its neighbours would notice the move, if it affected them."""

AWAY = "b"

NEIGHBOURS = {"neighbour": HOME, "resident": AWAY}
"""Tenants that stay: one in the cell that the moving tenant leaves, and one in the cell where it arrives."""

MOVE_SECONDS = 300.0
"""The limit of a move while agents keep all processors of this machine busy."""

Servers = tuple[Cluster, Cluster]


class Timed(httpx2.AsyncBaseTransport):
    """A transport that records the duration of each request, in milliseconds."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner, self.took = inner, list[float]()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        began = time.monotonic()
        try:
            return await self._inner.handle_async_request(request)
        finally:
            self.took.append(1000 * (time.monotonic() - began))

    def percentile(self, share: float = 0.95) -> str:
        """The percentile of the durations since the last call of this method."""
        took, self.took = sorted(self.took), []
        return f"{took[int(share * (len(took) - 1))]:.0f} ms of {len(took)} calls"


@pytest.fixture
def servers() -> Iterator[Servers]:
    """Two clusters, each of which can replicate to the other."""
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder, ExitStack() as stack:
        pair = tuple(Cluster(Path(folder) / name, wal_level="logical") for name in ("a", "b"))
        for server in pair:
            server.start()
            stack.callback(server.stop)
        yield pair[0], pair[1]


@pytest.fixture
async def own(settings: Settings, servers: Servers) -> Settings:
    """Settings with both servers, whose owner is the superuser."""
    home, away = servers
    for server in servers:
        await migrate(server.url())
    urls = CellUrls(database_url=away.url("recollect_app"), owner_database_url=away.url())
    return on(settings, home, owner_database_url=home.url(), cells={AWAY: urls})


@dataclass(frozen=True, slots=True)
class AtWork:
    """Agents of the moving tenant, and of its neighbours, whose calls are timed."""

    load: Load
    neighbours: list[Load]
    timed: list[Timed]

    async def go_on(self, calls: int = STEP) -> None:
        """Wait until each tenant has made so many more calls."""
        await asyncio.gather(*(each.wait_for(calls) for each in (self.load, *self.neighbours)))


@asynccontextmanager
async def under_load(own: Settings, folder: Path, *, pause: float = 0.0) -> AsyncIterator[AtWork]:
    """Agents that work until the block ends; then every acknowledged write is there once, and every call succeeded."""
    keys = [await key_in(own, slug, cell) for slug, cell in (("drill", HOME), *NEIGHBOURS.items())]
    with fleet(own, folder) as processes:
        gateways = [processes.gateway() for _ in range(2)]
        workers = [processes.worker(cell=cell) for cell in (HOME, AWAY)]
        async with Balancer().balancing() as balancer, AsyncExitStack() as stack:
            timed = [Timed(balancer) for _ in NEIGHBOURS]
            clients = [
                await stack.enter_async_context(agents_of(transport, key))
                for transport, key in zip((balancer, *timed), keys, strict=True)
            ]
            await balancer.bring_in(gateways)
            load, *neighbours = (Load(client, not number, pause) for number, client in enumerate(clients))
            async with AsyncExitStack() as at_work:
                for each in (load, *neighbours):
                    await at_work.enter_async_context(each.at_work(AGENTS))
                agents = AtWork(load, neighbours, timed)
                await agents.go_on()
                yield agents
                await agents.go_on()
            for each in (load, *neighbours):
                await stored_once(each)
        assert {(failure.code, failure.may_be_repeated) for failure in load.failures} <= {("tenant_moving", True)}
        assert [each.failures for each in neighbours] == [[] for _ in NEIGHBOURS]
        assert [worker.process.poll() for worker in workers] == [None, None]
        for cell in (HOME, AWAY):
            await eventually(partial(embedded, own.of_cell(cell)))
        assert [fault for member in processes.members for fault in member.faults()] == []


async def test_a_tenant_moves_under_load_and_back(
    own: Settings, servers: Servers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(tmp_path, environment(own))
    async with under_load(own, tmp_path, pause=PAUSE) as agents:
        await fill(agents.load)
        await eventually(partial(embedded, own))
        for each in agents.timed:
            each.took.clear()
        await agents.go_on(TIMED)
        before = [each.percentile() for each in agents.timed]
        await move(shell, "--to", AWAY)
        during = [each.percentile() for each in agents.timed]
        assert await count_drill_tenants(servers) == [0, 1]
        await agents.go_on()
        await kill_while_writes_are_held(shell, "--to", HOME)
        await move(shell, "--continue")
        assert await count_drill_tenants(servers) == [1, 0]
    with capsys.disabled():
        for cell, *took in zip(NEIGHBOURS.values(), before, during, strict=True):
            print("\nthe p95 of the neighbour in {}: {} before, {} during the move".format(cell, *took))
        print(f"{len(agents.load.failures)} calls of the one that moved were told to come again")


async def test_a_move_under_load_survives_a_kill_at_every_step(own: Settings, servers: Servers, tmp_path: Path) -> None:
    """Each time another process continues the move; before the switch, it is also undone and begun anew."""
    known = {name: Cell(name, server.url(), server.url()) for name, server in zip((HOME, AWAY), servers, strict=True)}
    cells = TwoCells(known, own, [])
    begin = partial(cells.move, to=AWAY)
    async with under_load(own, tmp_path) as agents:
        for function, times in (*PREPARED, ("mark_log", 1), ("record_step", 4)):
            async with killed_after(function, times):
                await begin("drill")
            await cells.undo("drill")
        assert await count_drill_tenants(servers) == [1, 0]
        await agents.go_on()
        act: Act = begin
        for function, times in PREPARED + COPIED + SWITCHED:
            async with killed_after(function, times):
                await act("drill")
            act = cells.go_on
        await cells.go_on("drill")
        assert await count_drill_tenants(servers) == [0, 1]


async def key_in(own: Settings, slug: str, cell: str) -> str:
    """The key of an administrator of a new tenant in that cell."""
    async with (
        OperatorCells.connect(own, OWNER_ROLE, lambda its: its.migration_url) as operators,
        operators.claimed(slug, cell) as tenant_id,
        operators.at(cell).session() as operator,
    ):
        caller = operator_caller(await tenants.create_tenant(operator, slug, slug.title(), tenant_id=tenant_id))
    its = own.of_cell(cell)
    async with Database.connect(its.database_url, settings=its) as db:
        return (await issue_key(db, its, caller, kind="admin")).secret


async def fill(load: Load) -> None:
    """Remember MEMORIES facts, a hundred a call."""
    for first in range(0, MEMORIES, 100):
        facts = [f"hive {number} was counted" for number in range(first, first + 100)]
        await load.tool("remember", {"graph": "load-0", "items": [{"text": fact} for fact in facts]})
        load.facts += facts


async def move(shell: Shell, *how: str) -> None:
    with shell.start("tenants", "move", "drill", *how) as process:
        moved = await asyncio.to_thread(process.communicate, b"", MOVE_SECONDS)
    assert moved.code == 0, moved.err


async def kill_while_writes_are_held(shell: Shell, *how: str) -> None:
    """Kill the process that moves the tenant while it holds writes."""
    with shell.start("tenants", "move", "drill", *how) as process:
        lines = await asyncio.to_thread(lambda: list(iter(process.stderr.readline, b"writes are held\n")))
        process.send_signal(signal.SIGKILL)
    assert lines


async def count_drill_tenants(servers: Servers) -> list[int]:
    """How many tenants named `drill` each server has."""
    return [
        int(await server.execute("SELECT count(*) FROM recollect.tenants WHERE slug = 'drill'")) for server in servers
    ]
