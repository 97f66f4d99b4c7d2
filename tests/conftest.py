"""Real servers for every test: PostgreSQL and Valkey from their wheels, started once per run.

Tests share one migrated database. Each makes tenants of its own, which the product keeps apart.
"""

import gc
import itertools
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from pathlib import Path
from typing import cast

import asyncpg
import pytest
import structlog
from xdist.remote import Producer

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.postgres.migrate import migrate
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres
from recollect_local.valkey import LocalValkey
from tests.support.event_loop import use_event_loop
from tests.support.examples import choose_profile
from tests.support.other_postgres import OtherPostgres
from tests.support.quick_embedder import QUICK_EMBEDDER
from tests.support.scheduling import SchedulingByFile, put_in_order
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.support.web_server import CertificateAuthority

pytest_plugins = [
    "tests.support.gateway",
    "tests.support.actors",
    "tests.support.cells",
    "tests.support.clocks",
    "tests.support.guards",
    "tests.support.mail_server",
    "tests.support.measured",
    "tests.support.moves",
    "tests.support.people",
    "tests.support.rates",
    "tests.support.replicas",
    "tests.support.slowest",
    "tests.support.stop_after",
    "tests.support.weights",
]

FAST_AND_FORGETFUL = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "wal_level": "logical",
    "max_replication_slots": "64",  # PostgreSQL 15 takes a tenant with one for each table (docs/cells.md).
}
"""Without autovacuum, the statistics of the planner are those that tests gather, not those of a random moment."""

ROUNDS, SOAK_ROUNDS = 2, 40
"""Rounds of a test with faults at random moments: in `make test`, and in `make soak`."""

PROCESSES_PER_PROCESSOR = 2
"""Processes of a run in which several share the files of tests."""

GARBAGE_THRESHOLDS = 50_000, 20, 20
"""After how many new objects Python looks for garbage, and after how many collections in older objects, too."""

_serial = itertools.count(1)

gc.disable()  # until all tests are imported and collected: pytest_collection


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--postgres", type=Path, help="the folder of another PostgreSQL than the wheel's, to run on")
    parser.addoption(
        "--soak",
        action="store_true",
        help=f"{SOAK_ROUNDS} rounds of what is left to chance, not {ROUNDS}, and new examples of what holds for all",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose examples of property tests, and the event loop; as root, let PostgreSQL's user reach the tests' folders.

    All runs of pytest share a folder under /tmp, which each closes to other users when it starts: ours has its own.
    """
    choose_profile(soak=config.getoption("soak"))
    _trust_nobody(config)
    use_event_loop()
    _log_plainly()
    if os.geteuid() == 0 and config.option.basetemp is None:
        config.option.basetemp = folder = tempfile.mkdtemp(prefix="recollect-tests-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def _log_plainly() -> None:
    """Log tracebacks without the local variables of each frame, which structlog takes a tenth of a second to draw."""
    *others, _ = structlog.get_config()["processors"]
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*others, plain])


def _trust_nobody(config: pytest.Config) -> None:
    """Let the clients of tests trust an authority of our own instead of the machine's hundred, unless they are told.

    To read those takes each new HTTP client 20 ms, also one for http://, and tests make thousands. Processes that tests
    start, and other processes of this run, inherit the variable.
    """
    if config.option.collectonly or hasattr(config, "workerinput"):
        return
    folder = Path(tempfile.mkdtemp(prefix="recollect-authority-"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    file = folder / "authority.pem"
    file.write_bytes(CertificateAuthority(folder).pem)
    os.environ["SSL_CERT_FILE"] = str(file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two processes for each processor (`-n auto`): tests wait for servers and other processes half of the time."""
    return PROCESSES_PER_PROCESSOR * (os.cpu_count() or 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SchedulingByFile | None:
    """Where each file runs in one process, files that share filled databases run in the same process."""
    return SchedulingByFile(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what one process must run alone."""
    put_in_order(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without garbage collection, and exclude them from it later: they live as long as the process.

    Each process collects all tests, some millions of objects, which every full garbage collection would traverse again.
    Afterwards Python collects after GARBAGE_THRESHOLDS new objects, not after 700: to make one gateway takes so many
    objects that a quarter of its time went into collections.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*GARBAGE_THRESHOLDS)
        gc.enable()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the argument `seed` for several seeds, unless it sets its own; a seed determines the choices."""
    named = any("seed" in str(mark.args[:1]) for mark in metafunc.definition.iter_markers("parametrize"))
    if "seed" in metafunc.fixturenames and not named:
        metafunc.parametrize("seed", range(SOAK_ROUNDS if metafunc.config.getoption("soak") else ROUNDS))


@pytest.fixture(scope="session")
def servers_dir() -> Iterator[Path]:
    """A folder for the servers' data, with a short path, because paths of sockets are limited."""
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def postgres(servers_dir: Path, request: pytest.FixtureRequest) -> Iterator[LocalPostgres]:
    """A running PostgreSQL."""
    other: Path | None = request.config.getoption("postgres")
    server = (
        OtherPostgres(other.resolve(), servers_dir, settings=FAST_AND_FORGETFUL)
        if other
        else LocalPostgres(servers_dir, settings=FAST_AND_FORGETFUL)
    )
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def redis_url(servers_dir: Path) -> Iterator[str]:
    """The address of a running Valkey."""
    server = LocalValkey(servers_dir)
    server.start()
    yield server.url
    server.stop()


@pytest.fixture(scope="session")
async def database_url(postgres: LocalPostgres) -> str:
    """A migrated database, as `recollect_app`."""
    await migrate(postgres.url())
    return postgres.url("recollect_app")


@pytest.fixture(scope="session")
def owner_url(postgres: LocalPostgres, database_url: str) -> str:
    """The same database, as `recollect_owner`."""
    return postgres.url("recollect_owner")


@pytest.fixture(scope="session")
def settings(database_url: str, owner_url: str, redis_url: str) -> Settings:
    """Settings for both servers, free of the machine's environment, with the embedder that costs tests the least.

    A busy machine may take longer to connect, or to answer, than a caller would wait.
    """
    for name in [name for name in os.environ if name.startswith("RECOLLECT_")]:
        del os.environ[name]
    return Settings(
        database_url=database_url,
        owner_database_url=owner_url,
        redis_url=redis_url,
        embedder=QUICK_EMBEDDER,
        drain_seconds=0,  # Gateways of tests have no balancer; tests of draining set another value.
        access_log=False,  # Too many lines; tests of the log enable it.
        database_acquire_seconds=MAX_WAIT_SECONDS,
        redis_timeout_seconds=5,
        bulk_share_beside_calls=1,  # The workers of a test do not rest because of another test's calls.
        failed_keys_per_minute=1_000_000,  # All tests have one address, and some try many keys.
        remember_callers_seconds=0,  # Many tests change rights in the database.
        public_requests_per_minute=1_000_000,
        sign_ins_per_minute=1_000_000,
        oauth_requests_per_minute=1_000_000,
        oauth_registrations_per_minute=1_000_000,
    )


@pytest.fixture(scope="session")
async def db(settings: Settings) -> AsyncIterator[Database]:
    """The database as gateway and worker see it."""
    async with Database.connect(settings.database_url, settings=settings) as database:
        yield database


@pytest.fixture(scope="session")
def databases(db: Database) -> Databases:
    """The databases of all cells as a gateway sees them: the one of home."""
    return Databases(db)


@pytest.fixture(scope="session")
async def operator(settings: Settings) -> AsyncIterator[Operator]:
    """A connection as the owner, for making tenants."""
    async with Operator.connect(settings.migration_url, settings) as connection:
        yield connection


@pytest.fixture
async def owner(owner_connections: asyncpg.Pool) -> AsyncIterator[asyncpg.Connection]:
    """A plain connection as the owner, which sees the rows of every tenant."""
    connection = await owner_connections.acquire()
    yield cast("asyncpg.Connection", connection)
    if not connection.is_closed():
        await connection.execute("DISCARD TEMP")
    await owner_connections.release(connection)


@pytest.fixture(scope="session")
async def owner_connections(owner_url: str) -> AsyncIterator[asyncpg.Pool]:
    """Connections as the owner, which tests take in turn: a new one first reads what PostgreSQL knows of each table."""
    search_path = {"search_path": "recollect, public"}
    async with asyncpg.create_pool(owner_url, min_size=0, server_settings=search_path) as connections:
        yield connections


@pytest.fixture
async def no_backlog(owner: asyncpg.Connection) -> None:
    """Remove the work that other tests left, because a worker works for every tenant.

    Graphs that were postponed lately stay as they are: updating those of all earlier tests costs more than most tests.
    """
    await owner.execute("DELETE FROM jobs")
    await owner.execute("DELETE FROM passages")
    await owner.execute(
        "UPDATE graphs SET compaction_check_at = now() + interval '1 day' "
        "WHERE compaction_check_at < now() + interval '12 hours'"
    )


@pytest.fixture(scope="module")
async def leaves_nothing(postgres: LocalPostgres, database_url: str) -> AsyncIterator[None]:
    """Delete all rows of the tenants of a test file after it, for files that write a lot.

    Each erasure reads tables for new statistics, which takes ten times as long with the rows of such a file.
    """
    del database_url  # It only has to exist.
    waits = {"search_path": "recollect, public", "lock_timeout": f"{MAX_WAIT_SECONDS}s"}  # for what a test left running
    superuser = await asyncpg.connect(postgres.url(), server_settings=waits)
    before = [row["id"] for row in await superuser.fetch("SELECT id FROM tenants")]
    yield
    tables = await superuser.fetch(
        "SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid WHERE attname = 'tenant_id'"
        " AND relnamespace = 'recollect'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition"
    )
    await superuser.execute(
        "SET session_replication_role = replica"
    )  # without triggers, which would look up references to each row
    for table in tables:
        await superuser.execute(f"DELETE FROM {table['relname']} WHERE tenant_id <> ALL ($1)", before)
    await superuser.execute("DELETE FROM tenants WHERE id <> ALL ($1)", before)
    await superuser.execute("VACUUM")
    await superuser.close()


NewTenant = Callable[[], Awaitable[Tenant]]


@pytest.fixture(scope="session")
def new_tenant(operator: Operator) -> NewTenant:
    """Makes tenants."""

    async def make() -> Tenant:
        slug = f"tenant-{next(_serial)}"
        return await tenants.create_tenant(operator, slug, slug.title())

    return make


@pytest.fixture
async def tenant(new_tenant: NewTenant) -> Tenant:
    """A tenant for this test."""
    return await new_tenant()


@pytest.fixture
async def caller(tenant: Tenant) -> Caller:
    """A caller of the test's tenant, with every scope."""
    return operator_caller(tenant)
