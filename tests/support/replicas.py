"""A primary with a streaming replica, whose replay a test controls."""

import itertools
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants import service as tenants
from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.postgres.database import Database
from recollect.postgres.migrate import migrate
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.replicas import Replica, replica_of
from recollect.retrieval.recall.questions import QuestionEncoder
from recollect.settings import Settings
from recollect_gateway.calls import Call, Services
from tests.support.clusters import Cluster
from tests.support.gateway import eventually
from tests.support.measured import Measured
from tests.support.memories import Agent, embedder
from tests.support.timeouts import MAX_WAIT_SECONDS

_serial = itertools.count(1)


@dataclass(frozen=True)
class Pair:
    """A primary and its replica, and settings of a gateway that reads from both."""

    primary: Cluster
    standby: Cluster
    settings: Settings

    async def pause(self) -> None:
        """Let the replica catch up, and then replay nothing."""
        await self.catch_up()
        await self.standby.execute("SELECT pg_wal_replay_pause()")
        await eventually(self._is_paused)

    async def resume(self) -> None:
        """Resume the replay."""
        await self.standby.execute("SELECT pg_wal_replay_resume()")

    async def catch_up(self) -> None:
        """Wait until the replica has everything that the primary has."""
        written = await self.primary.execute("SELECT pg_current_wal_lsn()::text")

        async def has_all() -> bool:
            return await self.standby.execute(f"SELECT pg_last_wal_replay_lsn() >= '{written}'") == "True"

        await eventually(has_all)

    async def disturb(self, choice: Random) -> None:
        """Pause, resume or catch up at random moments."""
        match choice.randrange(12):
            case 0:
                await self.standby.execute("SELECT pg_wal_replay_pause()")
            case 1:
                await self.resume()
            case 2:
                await self.resume()
                await self.catch_up()

    async def _is_paused(self) -> bool:
        return await self.standby.execute("SELECT pg_get_wal_replay_pause_state() = 'paused'") == "True"

    @asynccontextmanager
    async def opened(self, *, has_read: bool = True, **changed: Any) -> AsyncIterator["Reader"]:
        """The database as a gateway has it that has read before, when the log was empty; or has not read yet.

        One that has not asks the replica for all there is, and the primary may write to its log at any moment, as when
        it prunes a page.
        """
        own = self.settings.model_copy(update=changed)
        async with (
            replica_of(own) as replica,
            Database.connect(own.database_url, settings=own, replica=replica) as db,
        ):
            assert replica is not None
            if has_read:
                replica.marks.note(0)
            yield Reader(db, replica, own)


@dataclass(frozen=True)
class Reader:
    """A gateway's database with its replica."""

    db: Database
    replica: Replica
    settings: Settings

    def call(self, caller: Caller) -> Call:
        """A call that only reads."""
        return call_of(Databases(self.db), caller, self.settings)

    def agent(self, caller: Caller) -> Agent:
        """An agent that writes to the primary."""
        return Agent(self.db, caller)


def call_of(databases: Databases, caller: Caller, settings: Settings) -> Call:
    """A call that only reads."""
    return Call(caller, Services(databases, QuestionEncoder(embedder()), settings), "read", read_only=True)


def outcomes(measured: Measured) -> dict[str, int]:
    """The outcomes of reads that a replica might answer, since the fixture began."""
    return {at["recollect.replica.outcome"]: point.value for at, point in measured.of("recollect.replica.reads")}


@pytest.fixture(scope="session")
async def pair(settings: Settings) -> AsyncIterator[Pair]:
    """The pair of the run, a server each."""
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder, ExitStack() as stack:
        primary, standby = Cluster(Path(folder) / "a"), Cluster(Path(folder) / "b")
        primary.start()
        stack.callback(primary.stop)
        await migrate(primary.url())
        standby.back_up(primary.url(), "--write-recovery-conf")
        standby.start()
        stack.callback(standby.stop)
        urls = {
            "database_url": primary.url("recollect_app"),
            "owner_database_url": primary.url("recollect_owner"),
            "replica_database_url": standby.url("recollect_app"),
            "replica_wait_seconds": MAX_WAIT_SECONDS,
            "replica_max_lag_seconds": 300.0,
        }
        yield Pair(primary, standby, settings.model_copy(update=urls))


NewTenantOfPair = Callable[[], Awaitable[Caller]]


@pytest.fixture(scope="session")
def new_tenant_of_pair(pair: Pair) -> NewTenantOfPair:
    """Makes tenants on the primary, and returns their callers."""

    async def make() -> Caller:
        slug = f"replicated-{next(_serial)}"
        async with Operator.connect(pair.settings.migration_url, pair.settings) as operator:
            return operator_caller(await tenants.create_tenant(operator, slug, slug))

    return make
