"""The primary is killed under load and its standby promoted: every acknowledged write is there exactly once."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from recollect.errors import Unavailable
from recollect.postgres.database import Database
from recollect.postgres.migrate import migrate
from recollect.settings import Settings
from tests.support.balancer import Balancer
from tests.support.clusters import Cluster
from tests.support.fleet import fleet
from tests.support.gateway import eventually
from tests.support.load import Load, agents_of, stored_once
from tests.verify.drills import embedded, issued_key, on

AGENTS = 4
STEP = 40
MAY_BE_REPEATED = {"database_unavailable", "busy"}


@pytest.fixture
def pair() -> Iterator[tuple[Cluster, Cluster]]:
    """A primary with synchronous replication, and its standby."""
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder, ExitStack() as stack:
        primary, standby = Cluster(Path(folder) / "a"), Cluster(Path(folder) / "b")
        primary.start()
        stack.callback(primary.stop)
        standby.back_up(primary.url(), "--write-recovery-conf")
        standby.start()
        stack.callback(standby.stop)
        yield primary, standby


async def test_a_failover_keeps_acknowledged_writes_and_repetitions_double_nothing(
    settings: Settings, pair: tuple[Cluster, Cluster], tmp_path: Path
) -> None:
    primary, standby = pair
    await migrate(primary.url())
    follow = ("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
    await primary.execute(*follow)
    await eventually(lambda: is_synchronous(primary))
    own = on(settings, primary, standby, database_acquire_seconds=2)
    key = await issued_key(own)
    with fleet(own, tmp_path) as processes:
        async with Balancer().balancing() as balancer, agents_of(balancer, key) as http:
            gateways, worker = [processes.gateway() for _ in range(2)], processes.worker()
            await balancer.bring_in(gateways)
            load = Load(http, repeats=True)
            async with load.at_work(AGENTS):
                await load.wait_for(STEP)
                primary.kill()
                await eventually(lambda: has_failed(load))
                for servers in ((primary, standby), (standby,)):
                    await takes_no_writes(on(settings, *servers))
                await standby.execute("SELECT pg_promote()")
                await load.wait_for(STEP)
            await stored_once(load)
            answered = [failure for failure in load.failures if not failure.went_unsent]
            assert answered
            assert not [each for each in answered if not each.may_be_repeated or each.code not in MAY_BE_REPEATED]
            assert worker.process.poll() is None
            await eventually(lambda: embedded(own))
        assert [fault for member in processes.members for fault in member.faults()] == []


async def is_synchronous(primary: Cluster) -> bool:
    return await primary.execute("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1"


async def has_failed(load: Load) -> bool:
    return len(load.failures) >= AGENTS


async def takes_no_writes(own: Settings) -> None:
    """Until the standby is promoted, clients get an error that asks them to retry."""
    async with Database.connect(own.database_url, settings=own) as db:
        with pytest.raises(Unavailable):
            await db.ping()
