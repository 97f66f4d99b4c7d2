"""A rolling upgrade from an earlier revision, and back, under load: no call fails, and nothing is lost.

From the revisions that the file `upgrade_from` names, of which 0.1.0 is one; `make upgrade-drill OLD=<revision>`
chooses another. Once by an administrator's login, and once by the owner's: all that the migrations of the chart have.
The older sources run with the libraries of this tree's lock.
"""

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
import yaml

from recollect.platform.connections import OWNER_ROLE
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres
from recollect_local.valkey import LocalValkey
from tests.conftest import FAST_AND_FORGETFUL
from tests.support.balancer import Balancer
from tests.support.fleet import Fleet, Member, fleet
from tests.support.gateway import eventually
from tests.support.load import Load, agents_of, stored_once
from tests.verify.drills import embedded
from tests.verify.older_tree import checked_out, old_revisions, recollect, unprepared

CHART = Path(__file__).parents[2] / "helm" / "recollect"
AGENTS = 4
STEP = 40
"""Calls that are answered before the next step."""


@pytest.fixture
def own_postgres() -> Iterator[LocalPostgres]:
    """A server that the old tree migrates."""
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        server = LocalPostgres(Path(folder), settings=FAST_AND_FORGETFUL)
        server.start()
        yield server
        server.stop()


@pytest.fixture
def own_valkey() -> Iterator[LocalValkey]:
    """A server in which no earlier drill's tenants wait, whom this one's database does not know."""
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        server = LocalValkey(Path(folder))
        server.start()
        yield server
        server.stop()


async def prepare(server: LocalPostgres) -> None:
    """What the chart's example of a cluster has an administrator do once; migrations have the owner's rights then."""
    prepared = yaml.safe_load_all((CHART / "examples" / "cloudnative-pg.yaml").read_text())
    cluster = next(each["spec"] for each in prepared if each["kind"] == "Cluster")
    made = cluster["bootstrap"]["initdb"]
    connection = await asyncpg.connect(server.url())
    await connection.execute(f"CREATE ROLE {made['owner']} LOGIN")
    for role in cluster["managed"]["roles"]:
        groups = "".join(f" IN ROLE {group}" for group in role.get("inRoles", []))
        await connection.execute(f"CREATE ROLE {role['name']} LOGIN{groups}")
    await connection.execute(f"ALTER DATABASE {made['database']} OWNER TO {made['owner']}")
    for statement in made["postInitApplicationSQL"]:
        await connection.execute(statement)
    await connection.close()


@pytest.fixture(params=["postgres", OWNER_ROLE])
async def own(
    request: pytest.FixtureRequest, settings: Settings, own_postgres: LocalPostgres, own_valkey: LocalValkey
) -> Settings:
    """By the login with which migrations are run."""
    if request.param == OWNER_ROLE:
        await prepare(own_postgres)
    return settings.model_copy(
        update={
            "redis_url": own_valkey.url,
            "database_url": own_postgres.url("recollect_app"),
            "owner_database_url": own_postgres.url(request.param),
            "maintenance_database_url": own_postgres.url("recollect_maintenance"),
            "drain_seconds": 2,
        }
    )


@pytest.fixture
def processes(own: Settings, tmp_path: Path) -> Iterator[Fleet]:
    with fleet(own, tmp_path) as processes:
        yield processes


@pytest.fixture
async def balancer() -> AsyncIterator[Balancer]:
    async with Balancer().balancing() as balancer:
        yield balancer


@pytest.fixture(scope="module", params=old_revisions())
def old_tree(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checked_out(request.param, tmp_path_factory.mktemp("old"))


async def out(balancer: Balancer, *members: Member) -> None:
    """Take gateways away as an operator does whose old version does not drain by itself."""
    for member in members:
        await balancer.remove(member.url)
        await member.stop()


async def test_no_call_fails_while_it_is_upgraded_and_taken_back(
    own: Settings, old_tree: Path, processes: Fleet, balancer: Balancer
) -> None:
    recollect(own, "migrate", tree=old_tree)
    recollect(own, "tenants", "create", "drill", "--name", "Drill", tree=old_tree)
    key = re.findall(r"rcl_\w+", recollect(own, "keys", "create", "drill", "agents", tree=old_tree))[0]
    old, old_worker = [processes.gateway(old_tree) for _ in range(2)], processes.worker(old_tree)
    await balancer.bring_in(old)
    async with agents_of(balancer, key) as http:
        load = Load(http)
        async with load.at_work(AGENTS):
            await load.wait_for(STEP)
            await asyncio.to_thread(recollect, own, "migrate")  # The new schema, under the old processes.
            await load.wait_for(STEP)
            again = processes.gateway(old_tree)  # An old one that starts beside it.
            await balancer.bring_in([again])
            await out(balancer, old[0])
            new, new_worker = [processes.gateway() for _ in range(2)], processes.worker()
            await balancer.bring_in(new)
            await load.wait_for(STEP)  # Both versions at work.
            await out(balancer, old[1], again)
            await old_worker.stop()
            await load.wait_for(STEP)
            back, back_worker = processes.gateway(old_tree), processes.worker(old_tree)
            await balancer.bring_in([back])
            for member in new:
                await member.stop()  # It says itself that it stops.
            await new_worker.stop()
            await load.wait_for(STEP)
        assert not load.failures, load.failures[:3]
        await stored_once(load)
        assert back_worker.process.poll() is None
    assert not [fault for member in processes.members for fault in member.faults()]
    await eventually(lambda: embedded(own))


async def test_the_new_schema_takes_every_query_of_the_old_version(
    own: Settings, old_tree: Path, own_postgres: LocalPostgres
) -> None:
    """Which would not be so had a migration dropped or renamed what one of them names: that is for the next release."""
    recollect(own, "migrate")
    assert unprepared(own, old_tree) == []
