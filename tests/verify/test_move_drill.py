"""An organisation moves to another server under load, and back: what was acknowledged is there, and there once."""

import asyncio
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from recollect.platform.migrate import migrate
from recollect.settings import Settings
from recollect.settings.cells import HOME, CellUrls
from tests.e2e.test_import_export import Shell
from tests.support.balancer import Balancer
from tests.support.clusters import Cluster
from tests.support.fleet import fleet
from tests.support.gateway import eventually
from tests.support.load import Load, agents_of, stored_once
from tests.support.workers import environment
from tests.verify.drills import embedded, issued_key, on

AGENTS = 3
STEP = 60
AWAY = "b"

MOVE_SECONDS = 300.0
"""Beside what agents do on all of this machine's processors."""

Servers = tuple[Cluster, Cluster]


class Timed(httpx2.AsyncBaseTransport):
    """A transport that notes how long each request took, in milliseconds."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner, self.took = inner, list[float]()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        began = time.monotonic()
        try:
            return await self._inner.handle_async_request(request)
        finally:
            self.took.append(1000 * (time.monotonic() - began))

    def percentile(self, share: float = 0.95) -> str:
        """That of all requests until now, which are forgotten."""
        took, self.took = sorted(self.took), []
        return f"{took[int(share * (len(took) - 1))]:.0f} ms of {len(took)} calls"


@pytest.fixture
def servers() -> Iterator[Servers]:
    """Two clusters, of which each may replicate to the other."""
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder, ExitStack() as stack:
        pair = tuple(Cluster(Path(folder) / name, wal_level="logical") for name in ("a", "b"))
        for server in pair:
            server.start()
            stack.callback(server.stop)
        yield pair[0], pair[1]


@pytest.fixture
async def own(settings: Settings, servers: Servers) -> Settings:
    """Settings that know both, as their superuser where the owner is asked for."""
    home, away = servers
    for server in servers:
        await migrate(server.url())
    urls = CellUrls(database_url=away.url("recollect_app"), owner_database_url=away.url())
    return on(settings, home, owner_database_url=home.url(), cells={AWAY: urls})


async def test_an_organisation_moves_under_load_and_back(
    own: Settings, servers: Servers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = [await issued_key(own, slug) for slug in ("drill", "neighbour")]
    shell = Shell(tmp_path, environment(own))
    with fleet(own, tmp_path) as processes:
        gateways = [processes.gateway() for _ in range(2)]
        workers = [processes.worker(cell=cell) for cell in (HOME, AWAY)]
        async with Balancer().balancing() as balancer:
            timed = Timed(balancer)
            async with agents_of(balancer, keys[0]) as moving, agents_of(timed, keys[1]) as staying:
                await balancer.bring_in(gateways)
                load, neighbour = Load(moving, repeats=True), Load(staying)
                async with load.at_work(AGENTS), neighbour.at_work(AGENTS):
                    await both_go_on(load, neighbour)
                    before = timed.percentile()
                    await moved(shell, "--to", AWAY)
                    during = timed.percentile()
                    assert await rows_of_drill(servers) == [0, 1]
                    await both_go_on(load, neighbour)
                    await killed_while_writes_are_held(shell, "--to", HOME)
                    await moved(shell, "--continue")
                    assert await rows_of_drill(servers) == [1, 0]
                    await both_go_on(load, neighbour)
                await stored_once(load)
                await stored_once(neighbour)
        assert {(failure.code, failure.may_be_repeated) for failure in load.failures} <= {("tenant_moving", True)}
        assert neighbour.failures == []
        assert [worker.process.poll() for worker in workers] == [None, None]
        await eventually(lambda: embedded(own))
        assert [fault for member in processes.members for fault in member.faults()] == []
    with capsys.disabled():
        print(
            f"\nthe neighbour's p95: {before} before, {during} during the move; "
            f"{len(load.failures)} calls of the one that moved were told to come again"
        )


async def both_go_on(*loads: Load) -> None:
    await asyncio.gather(*(load.wait_for(STEP) for load in loads))


async def moved(shell: Shell, *how: str) -> None:
    with shell.start("tenants", "move", "drill", *how) as process:
        _, told = await asyncio.to_thread(process.communicate, None, MOVE_SECONDS)
    assert process.returncode == 0, told


async def killed_while_writes_are_held(shell: Shell, *how: str) -> None:
    """Whoever moves it is gone, at once, without a word."""
    with shell.start("tenants", "move", "drill", *how) as process:
        assert process.stderr is not None
        told = await asyncio.to_thread(lambda: list(iter(process.stderr.readline, b"writes are held\n")))  # type: ignore[union-attr]
        process.send_signal(signal.SIGKILL)
    assert told


async def rows_of_drill(servers: Servers) -> list[int]:
    """How many tenants of that name each server knows."""
    return [
        int(await server.execute("SELECT count(*) FROM recollect.tenants WHERE slug = 'drill'")) for server in servers
    ]
