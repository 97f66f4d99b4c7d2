"""Addresses of a database that is not there, or whose login may not what it has to: each is told by its setting."""

import asyncio
import traceback
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import asyncpg
import pytest

from recollect.errors import ErrorCode, Unavailable
from recollect.platform.connections import OPERATOR_ROLE
from recollect.platform.db import Database
from recollect.platform.operator_sessions import Operator
from recollect.platform.schema.service import SchemaCheck
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres
from recollect_operator.database import OperatorDatabase
from tests.support.gateway import serving
from tests.support.workers import working

STRANGER = "stranger_to_recollect"
SLASH_IN_PASSWORD = "postgresql://recollect_app:7hun/der@127.0.0.1/recollect"
NO_NUMBER = "postgresql://recollect_app:7hunder@127.0.0.1:port/recollect"
NO_QUERY = "postgresql://recollect_app:7hunder@127.0.0.1/recollect?7hunder"

Wrong = Callable[[LocalPostgres], str]


def nowhere(postgres: LocalPostgres) -> str:
    return postgres.url("recollect_app").replace("/recollect?", "/nowhere?")


def of_stranger(postgres: LocalPostgres) -> str:
    return postgres.url(STRANGER)


def of_nobody(postgres: LocalPostgres) -> str:
    return postgres.url("nobody_at_all")


@pytest.fixture
async def stranger(postgres: LocalPostgres) -> AsyncIterator[None]:
    """A login that may connect, and become nobody."""
    administrator = await asyncpg.connect(postgres.url())
    await administrator.execute(f"CREATE ROLE {STRANGER} LOGIN")
    yield
    await administrator.execute(f"DROP ROLE {STRANGER}")
    await administrator.close()


WRONG = [
    (nowhere, "The server has no database of that name: check RECOLLECT_DATABASE_URL."),
    (
        of_stranger,
        "The login of RECOLLECT_DATABASE_URL may not connect to the database as recollect_app: "
        "check RECOLLECT_DATABASE_URL.",
    ),
    (of_nobody, "The database refuses our login: check RECOLLECT_DATABASE_URL."),
]


@pytest.mark.usefixtures("stranger")
@pytest.mark.parametrize(("wrong", "told"), WRONG)
async def test_a_gateway_is_not_ready_and_says_which_setting_is_wrong(
    settings: Settings, postgres: LocalPostgres, wrong: Wrong, told: str
) -> None:
    with serving(settings.model_copy(update={"database_url": wrong(postgres)})) as gateway:
        async with gateway.http() as http:
            answer = await http.get("/health/ready")
    assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
    assert answer.json()["detail"] == told


@pytest.mark.usefixtures("stranger")
@pytest.mark.parametrize(("wrong", "told"), WRONG)
async def test_a_worker_waits_and_logs_which_setting_is_wrong(
    settings: Settings, postgres: LocalPostgres, tmp_path: Path, wrong: Wrong, told: str
) -> None:
    with working(settings.model_copy(update={"database_url": wrong(postgres)}), tmp_path) as worker:
        await asyncio.to_thread(worker.wait_for, "waiting for the database")
        assert worker.stop() == 0
        assert [line["reason"] for line in worker.lines("waiting for the database")] == [told]


@pytest.mark.usefixtures("stranger")
async def test_a_process_goes_on_once_the_server_lets_its_login_in(settings: Settings, postgres: LocalPostgres) -> None:
    async with Database.connect(postgres.url(STRANGER), settings=settings) as db:
        with pytest.raises(Unavailable, match="may not connect"):
            await SchemaCheck(db).require_current()
        administrator = await asyncpg.connect(postgres.url())
        await administrator.execute(f"GRANT recollect_app TO {STRANGER}")
        await administrator.close()
        await SchemaCheck(db).require_current()


async def test_a_command_without_the_owners_address_is_told_to_set_it(
    settings: Settings, postgres: LocalPostgres
) -> None:
    alone = settings.model_copy(update={"owner_database_url": None})
    with pytest.raises(Unavailable) as refused:
        async with Operator.connect(alone.migration_url, alone):
            pass
    assert refused.value.message == (
        "The login of RECOLLECT_DATABASE_URL may not connect to the database as recollect_owner: "
        "set RECOLLECT_OWNER_DATABASE_URL to one that may."
    )
    assert refused.value.code is ErrorCode.DATABASE_UNAVAILABLE


@pytest.mark.parametrize("field", ["owner_database_url", "maintenance_database_url"])
async def test_an_operators_session_names_the_setting_that_has_its_address(
    settings: Settings, postgres: LocalPostgres, field: str
) -> None:
    own = settings.model_copy(update={field: nowhere(postgres)})
    with pytest.raises(Unavailable, match=f"no database of that name: check RECOLLECT_{field.upper()}\\.$"):
        async with Operator.connect(nowhere(postgres), own):
            pass


async def test_the_operator_api_names_its_own_setting(settings: Settings, postgres: LocalPostgres) -> None:
    own = settings.model_copy(update={"operator_database_url": nowhere(postgres)})
    with pytest.raises(Unavailable, match=r"check RECOLLECT_OPERATOR_DATABASE_URL\.$"):
        async with OperatorDatabase.connect(nowhere(postgres), OPERATOR_ROLE, own) as db, db.session():
            pass


@pytest.mark.parametrize("url", [SLASH_IN_PASSWORD, NO_NUMBER, NO_QUERY])
async def test_an_address_that_cannot_be_read_is_told_without_any_of_it(settings: Settings, url: str) -> None:
    own = settings.model_copy(update={"database_url": url})
    with pytest.raises(Unavailable, match=r"^RECOLLECT_DATABASE_URL: It is no address of a Postgre") as refused:
        async with Database.connect(url, settings=own) as db:
            await db.ping()
    assert "7hun" not in "".join(traceback.format_exception(refused.value))
