"""A process serves only if the database is as new as it is, or newer."""

import asyncio
import socket
from pathlib import Path

import asyncpg
import pytest
from structlog.testing import capture_logs

from recollect.accounts.tenants import service as tenants
from recollect.errors import ErrorCode, Unavailable
from recollect.postgres.connections import OPERATOR_ROLE
from recollect.postgres.database import Database
from recollect.postgres.migrate import Migration, migrations
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.schema_version import service
from recollect.postgres.schema_version.service import SchemaCheck, require_any_usable
from recollect.postgres.sql import Query
from recollect.settings import Settings
from recollect_gateway.process.readiness import Readiness, reported_readiness
from recollect_http.server.draining import Drain
from recollect_local.postgres import LocalPostgres
from recollect_operator.database import OperatorDatabase
from tests.support.gateway import eventually, serving
from tests.support.measured import Measured
from tests.support.workers import working

NAMES = [migration.name for migration in migrations()]


async def test_a_newer_database_is_accepted(db: Database) -> None:
    await SchemaCheck(db, NAMES[:-1]).require_current()


async def test_an_older_database_is_refused_and_missing_migrations_are_logged(db: Database) -> None:
    with capture_logs() as logged, pytest.raises(Unavailable, match="runs `recollect migrate`") as refused:
        await SchemaCheck(db, [*NAMES, "9998_of_tomorrow", "9999_after"]).require_current()
    assert refused.value.code is ErrorCode.SCHEMA_OUTDATED
    assert [line["lacking"] for line in logged] == ["9998_of_tomorrow"]
    assert "9998" not in refused.value.message


async def test_one_usable_cell_suffices_unless_home_is_older(db: Database, settings: Settings) -> None:
    """A cell that is away, silent or older affects only its own tenants."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        silent_url = f"postgresql://nobody@127.0.0.1:{mute.getsockname()[1]}/nowhere"
        await _require_of_several(db, settings, silent_url)


async def _require_of_several(db: Database, settings: Settings, silent_url: str) -> None:
    async with (
        Database.connect("postgresql://nobody@127.0.0.1:9/nowhere", settings=settings) as away,
        Database.connect(silent_url, settings=settings) as silent,
    ):
        of_away, of_silent = SchemaCheck(away), SchemaCheck(silent)
        current, older = SchemaCheck(db), SchemaCheck(db, [*NAMES, "9999_of_tomorrow"])
        await require_any_usable(current, [of_away, of_silent, older])
        await require_any_usable(of_away, [of_silent, older, current])
        for home, others in ((of_away, [older, of_silent]), (older, [current]), (of_away, [])):
            with pytest.raises(Unavailable) as refused:
                await require_any_usable(home, others)
            assert (refused.value.code is ErrorCode.SCHEMA_OUTDATED) is (home is older)


async def test_a_database_that_was_never_migrated_is_refused(postgres: LocalPostgres, settings: Settings) -> None:
    administrator = await asyncpg.connect(postgres.url())
    await administrator.execute("CREATE DATABASE never_migrated TEMPLATE template0")
    url = postgres.url().replace("/recollect?", "/never_migrated?")
    async with Database.connect(url, settings=settings) as database:
        with pytest.raises(Unavailable, match=r"was never migrated.*Run `recollect migrate`"):
            await SchemaCheck(database).require_current()
        empty = await asyncpg.connect(url)
        await empty.execute("CREATE EXTENSION vector SCHEMA public")
        await empty.close()
        with capture_logs() as logged, pytest.raises(Unavailable, match="runs `recollect migrate`"):
            await SchemaCheck(database).require_current()
        assert [line["lacking"] for line in logged] == [NAMES[-1]]
    await administrator.execute("DROP DATABASE never_migrated WITH (FORCE)")
    await administrator.close()


async def test_operators_are_told_to_migrate(postgres: LocalPostgres, settings: Settings, operator: Operator) -> None:
    """Commands and the operator API do not check the schema first; a missing table tells them."""
    administrator = await asyncpg.connect(postgres.url())
    await administrator.execute("CREATE DATABASE never_asked TEMPLATE template0")
    url = postgres.url().replace("/recollect?", "/never_asked?")
    with pytest.raises(Unavailable, match="runs `recollect migrate`") as of_command:
        async with Operator.connect(url, settings) as empty:
            await tenants.list_tenants(empty)
    with pytest.raises(Unavailable, match="runs `recollect migrate`") as of_api:
        async with OperatorDatabase.connect(url, OPERATOR_ROLE, settings) as db, db.session() as empty:
            await tenants.list_tenants(empty)
    assert of_command.value.code is of_api.value.code is ErrorCode.SCHEMA_OUTDATED
    await administrator.execute("DROP DATABASE never_asked WITH (FORCE)")
    await administrator.close()
    with pytest.raises(asyncpg.UndefinedTableError):  # If the database is complete, that is our fault.
        async with service.translated_schema_errors(operator):
            await operator.fetch(Query.compile("SELECT 1 FROM of_no_migration"))


async def test_a_gateway_is_not_ready_with_an_older_database(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "migrations", lambda: [*migrations(), Migration("9999_of_tomorrow", "")])
    with serving(settings) as gateway:
        async with gateway.http() as http:
            answer = await http.get("/health/ready")
            assert (answer.status_code, answer.json()["code"]) == (503, "schema_outdated")
            assert (await http.get("/health/live")).status_code == 200


async def test_metrics_report_readiness_without_requests(
    db: Database, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> list[int]:
        return [point.value for _, point in measured.of("recollect.gateway.ready")]

    async def is_told(value: int) -> bool:
        return told() == [value]

    with monkeypatch.context() as newer:
        newer.setattr(service, "migrations", lambda: [*migrations(), Migration("9999_of_tomorrow", "")])
        async with reported_readiness(Readiness(Drain(), [db])):
            await eventually(lambda: is_told(0))
    drain = Drain()
    async with reported_readiness(Readiness(drain, [db]), seconds=0.01):
        await eventually(lambda: is_told(1))
        drain.begin()
        await eventually(lambda: is_told(0))


async def test_a_worker_waits_until_the_database_is_migrated(
    settings: Settings, postgres: LocalPostgres, tmp_path: Path
) -> None:
    empty = settings.model_copy(update={"database_url": postgres.url().replace("/recollect?", "/postgres?")})
    with working(empty, tmp_path) as worker:
        await asyncio.to_thread(worker.wait_for, "waiting for the database")
        assert worker.stop() == 0
        assert not worker.lines("listening for wake-ups")
