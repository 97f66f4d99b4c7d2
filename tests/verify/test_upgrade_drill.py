"""A rolling upgrade to the next release, and back, under load: no call fails, and nothing is lost.

The next release is this tree with a migration that was written for the drill (`upgrade/expand.sql`), and with queries
that need it. It is upgraded to from this tree, whose first migration is the baseline, and from the last tag;
`make upgrade-drill OLD=<revision>` chooses another. Migrations run once with an administrator's login, and once with
the owner's, as in the chart. All sources run with the libraries of this tree's lock.
"""

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
import yaml

from recollect.postgres.connections import OWNER_ROLE
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres
from recollect_local.valkey import LocalValkey
from tests.conftest import FAST_AND_FORGETFUL
from tests.support.balancer import Balancer
from tests.support.fleet import Fleet, Member, fleet
from tests.support.gateway import eventually
from tests.support.load import Load, agents_of, stored_once
from tests.verify.drills import embedded
from tests.verify.upgrade.trees import (
    next_release,
    old_revisions,
    recollect,
    rejected_queries,
    release_after,
    tree_of,
)

CHART = Path(__file__).parents[2] / "helm" / "recollect"
AGENTS = 4
STEP = 40
"""The number of answered calls before the next step."""


@pytest.fixture
def own_postgres() -> Iterator[LocalPostgres]:
    """A new server, which the old tree migrates."""
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        server = LocalPostgres(Path(folder), settings=FAST_AND_FORGETFUL)
        server.start()
        yield server
        server.stop()


@pytest.fixture
def own_valkey() -> Iterator[LocalValkey]:
    """A new server without work for tenants of earlier drills, which the database does not know."""
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        server = LocalValkey(Path(folder))
        server.start()
        yield server
        server.stop()


async def prepare(server: LocalPostgres) -> None:
    """Do what an administrator does once by the chart's example; migrations then run with the rights of the owner."""
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
    """Settings for each login with which migrations run."""
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
    return tree_of(request.param, tmp_path_factory.mktemp("old"))


@pytest.fixture(scope="module")
def new_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return next_release(tmp_path_factory.mktemp("new"))


@pytest.fixture(scope="module")
def later_tree(new_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release_after(new_tree, tmp_path_factory.mktemp("later"))


async def remove(balancer: Balancer, *members: Member) -> None:
    """Remove gateways as an operator must whose old version does not drain by itself."""
    for member in members:
        await balancer.remove(member.url)
        await member.stop()


async def test_no_call_fails_during_an_upgrade_and_a_rollback(
    own: Settings, old_tree: Path, new_tree: Path, processes: Fleet, balancer: Balancer
) -> None:
    """The schema is expanded first. Old processes start and run beside new ones, and in their place again."""
    recollect(own, "migrate", tree=old_tree)
    recollect(own, "tenants", "create", "drill", "--name", "Drill", tree=old_tree)
    key = re.findall(r"rcl_\w+", recollect(own, "keys", "create", "drill", "agents", tree=old_tree))[0]
    old, old_worker = [processes.gateway(old_tree) for _ in range(2)], processes.worker(old_tree)
    await balancer.bring_in(old)
    async with agents_of(balancer, key) as http:
        load = Load(http)
        async with load.at_work(AGENTS):
            await load.wait_for(STEP)
            await asyncio.to_thread(recollect, own, "migrate", tree=new_tree)  # Under the old processes.
            await load.wait_for(STEP)
            again = processes.gateway(old_tree)  # An old one that starts beside it.
            await balancer.bring_in([again])
            await remove(balancer, old[0])
            new, new_worker = [processes.gateway(new_tree) for _ in range(2)], processes.worker(new_tree)
            await balancer.bring_in(new)
            await load.wait_for(STEP)  # Both versions at work.
            await remove(balancer, old[1], again)
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


async def test_the_schema_is_contracted_when_no_old_process_is_left(
    own: Settings, old_tree: Path, new_tree: Path, later_tree: Path, processes: Fleet, balancer: Balancer
) -> None:
    """The migration of the release after the next drops what the old one used, while processes of the next run."""
    recollect(own, "migrate", tree=old_tree)
    recollect(own, "migrate", tree=new_tree)
    recollect(own, "tenants", "create", "drill", "--name", "Drill", tree=new_tree)
    key = re.findall(r"rcl_\w+", recollect(own, "keys", "create", "drill", "agents", tree=new_tree))[0]
    new = [processes.gateway(new_tree) for _ in range(2)]
    processes.worker(new_tree)
    await balancer.bring_in(new)
    async with agents_of(balancer, key) as http:
        load = Load(http)
        async with load.at_work(AGENTS):
            await load.wait_for(STEP)
            await asyncio.to_thread(recollect, own, "migrate", tree=later_tree)
            await load.wait_for(STEP)
            await balancer.bring_in([processes.gateway(later_tree)])
            await load.wait_for(STEP)
        assert not load.failures, load.failures[:3]
        await stored_once(load)
    assert not [fault for member in processes.members for fault in member.faults()]
    await eventually(lambda: embedded(own))


async def test_old_queries_work_until_the_schema_is_contracted(
    own: Settings, old_tree: Path, new_tree: Path, later_tree: Path
) -> None:
    """That the last step names queries shows that the others would, if a migration dropped what is still used."""
    recollect(own, "migrate", tree=old_tree)
    assert rejected_queries(own, old_tree) == []
    assert "search_epoch" in "".join(rejected_queries(own, new_tree))
    recollect(own, "migrate", tree=new_tree)
    assert rejected_queries(own, old_tree) == rejected_queries(own, new_tree) == []
    recollect(own, "migrate", tree=later_tree)
    assert rejected_queries(own, new_tree) == []
    rejected = "".join(rejected_queries(own, old_tree))
    assert "index_epoch" in rejected
    assert "count_waiting" in rejected
