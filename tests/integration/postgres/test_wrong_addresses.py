"""Wrong database addresses, and logins without the necessary rights: each error names its setting."""

import asyncio
import struct
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
from structlog.testing import capture_logs

from recollect.errors import ErrorCode, InvalidInput, Unavailable
from recollect.postgres.connections import OPERATOR_ROLE
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.schema_version.service import SchemaCheck
from recollect.settings import Settings
from recollect.settings.database import server_of
from recollect.valkey.client import connect_redis
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
    """A login that may connect, and may not change its role."""
    administrator = await asyncpg.connect(postgres.url())
    await administrator.execute(f"CREATE ROLE {STRANGER} LOGIN")
    yield
    await administrator.execute(f"DROP ROLE {STRANGER}")
    await administrator.close()


WRONG: list[tuple[Wrong, str]] = [
    (nowhere, "The server has no database with that name: check RECOLLECT_DATABASE_URL."),
    (
        of_stranger,
        "The login of RECOLLECT_DATABASE_URL may not connect to the database as recollect_app: "
        "check RECOLLECT_DATABASE_URL.",
    ),
    (of_nobody, "The database refuses the login: check RECOLLECT_DATABASE_URL."),
]


@pytest.mark.usefixtures("stranger")
@pytest.mark.parametrize(("wrong", "told"), WRONG)
async def test_a_gateway_is_not_ready_and_names_the_wrong_setting(
    settings: Settings, postgres: LocalPostgres, wrong: Wrong, told: str
) -> None:
    with serving(settings.model_copy(update={"database_url": wrong(postgres)})) as gateway:
        async with gateway.http() as http:
            answer = await http.get("/health/ready")
    assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
    assert answer.json()["detail"] == told


@pytest.mark.usefixtures("stranger")
@pytest.mark.parametrize(("wrong", "told"), WRONG)
async def test_a_worker_waits_and_logs_the_wrong_setting(
    settings: Settings, postgres: LocalPostgres, tmp_path: Path, wrong: Wrong, told: str
) -> None:
    with working(settings.model_copy(update={"database_url": wrong(postgres)}), tmp_path) as worker:
        await asyncio.to_thread(worker.wait_for, "waiting for the database")
        assert worker.stop() == 0
        assert [line["reason"] for line in worker.lines("waiting for the database")] == [told]


@pytest.mark.usefixtures("stranger")
async def test_a_process_continues_once_its_login_gets_access(settings: Settings, postgres: LocalPostgres) -> None:
    async with Database.connect(postgres.url(STRANGER), settings=settings) as db:
        with pytest.raises(Unavailable, match="may not connect"):
            await SchemaCheck(db).require_current()
        administrator = await asyncpg.connect(postgres.url())
        await administrator.execute(f"GRANT recollect_app TO {STRANGER}")
        await administrator.close()
        await SchemaCheck(db).require_current()


async def test_a_command_without_the_owners_address_names_the_missing_setting(
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
async def test_an_operators_session_names_the_setting_of_its_address(
    settings: Settings, postgres: LocalPostgres, field: str
) -> None:
    own = settings.model_copy(update={field: nowhere(postgres)})
    with pytest.raises(Unavailable, match=f"no database with that name: check RECOLLECT_{field.upper()}\\.$"):
        async with Operator.connect(nowhere(postgres), own):
            pass


async def test_the_operator_api_names_its_own_setting(settings: Settings, postgres: LocalPostgres) -> None:
    own = settings.model_copy(update={"operator_database_url": nowhere(postgres)})
    with pytest.raises(Unavailable, match=r"check RECOLLECT_OPERATOR_DATABASE_URL\.$"):
        async with OperatorDatabase.connect(nowhere(postgres), OPERATOR_ROLE, own) as db, db.session():
            pass


@pytest.mark.parametrize("url", [SLASH_IN_PASSWORD, NO_NUMBER, NO_QUERY])
async def test_an_unreadable_address_is_not_shown(settings: Settings, url: str) -> None:
    own = settings.model_copy(update={"database_url": url})
    with pytest.raises(Unavailable, match=r"^RECOLLECT_DATABASE_URL: It is not the address of a Postgre") as refused:
        async with Database.connect(url, settings=own) as db:
            await db.ping()
    assert "7hun" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (
            "sslmode=verify-full&sslrootcert=/nowhere/ca.crt",
            "RECOLLECT_DATABASE_URL: the file that its sslrootcert names cannot be read.",
        ),
        (
            f"sslmode=verify-full&sslrootcert={__file__}",
            "TLS with the server at RECOLLECT_DATABASE_URL fails: check its sslmode and its files.",
        ),
        (
            "sslmode=verify-full",
            "RECOLLECT_DATABASE_URL: its sslmode needs an sslrootcert, the file of the server's authority.",
        ),
        (
            "colour=blue",
            "The server refuses a session setting that RECOLLECT_DATABASE_URL asks for: check its options.",
        ),
    ],
)
async def test_unusable_options_of_an_address_are_reported(
    settings: Settings, postgres: LocalPostgres, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, option: str, told: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # The driver looks there for an authority that nobody names.
    url = f"{postgres.url('recollect_app')}&{option}"
    assert await refusal(settings.model_copy(update={"database_url": url})) == told


async def test_an_unknown_host_is_reported(settings: Settings) -> None:
    url = "postgresql://recollect_app@nowhere.invalid/recollect"
    assert await refusal(settings.model_copy(update={"database_url": url})) == (
        "The host of RECOLLECT_DATABASE_URL cannot be found."
    )


async def test_a_server_without_tls_is_reported(settings: Settings) -> None:
    async with answering(b"N") as port:
        url = f"postgresql://recollect_app@127.0.0.1:{port}/recollect?sslmode=require"
        assert await refusal(settings.model_copy(update={"database_url": url})) == (
            "The server at RECOLLECT_DATABASE_URL does not support TLS: check its sslmode."
        )


async def test_a_pooler_that_accepts_no_settings_is_reported(settings: Settings) -> None:
    """As PgBouncer answers if `RECOLLECT_DATABASE_POOLED` is not set."""
    async with answering(error_response("08P01", "unsupported startup parameter: role")) as port:
        url = f"postgresql://recollect_app@127.0.0.1:{port}/recollect?sslmode=disable"
        assert await refusal(settings.model_copy(update={"database_url": url})) == (
            "The server at RECOLLECT_DATABASE_URL refuses session settings, as PgBouncer does: "
            "set RECOLLECT_DATABASE_POOLED, or connect directly."
        )


@pytest.mark.usefixtures("stranger")
async def test_a_login_without_rights_behind_a_pooler_is_reported(settings: Settings, postgres: LocalPostgres) -> None:
    """Each transaction sets its role, which is also tried when connecting."""
    told = next(told for wrong, told in WRONG if wrong is of_stranger)
    pooled = settings.model_copy(update={"database_url": of_stranger(postgres), "database_pooled": True})
    assert await refusal(pooled) == told
    async with Database.connect(pooled.database_url, settings=pooled) as db:
        with pytest.raises(Unavailable, match="may not connect"):
            async with db.personal(uuid4()):
                pass


@pytest.mark.parametrize("is_pooled", [False, True])
async def test_a_server_without_our_roles_was_never_migrated(
    settings: Settings, postgres: LocalPostgres, is_pooled: bool
) -> None:
    own = settings.model_copy(update={"database_url": postgres.url(), "database_pooled": is_pooled})
    async with Database.connect(own.database_url, role="no_role_at_all", settings=own) as db:
        with pytest.raises(Unavailable, match="never migrated: its server has no role `no_role_at_all`") as refused:
            await db.ping()
    assert refused.value.code is ErrorCode.SCHEMA_OUTDATED


async def test_a_connection_error_is_logged_once(settings: Settings, postgres: LocalPostgres) -> None:
    """Each caller gets the error; the log has it once for operators, with the server's answer."""
    own = settings.model_copy(update={"database_url": of_nobody(postgres)})
    with capture_logs() as logs:
        async with Database.connect(own.database_url, settings=own) as db:
            for _ in range(3):
                with pytest.raises(Unavailable):
                    await db.ping()
    assert logs == [
        {
            "event": "cannot connect to PostgreSQL",
            "log_level": "warning",
            "server": server_of(own.database_url),
            "pool": "reserved",
            "reason": "The database refuses the login: check RECOLLECT_DATABASE_URL.",
            "answer": 'role "nobody_at_all" does not exist',
        }
    ]


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://127.0.0.1:6379/0", "It must be a redis://, rediss:// or unix:// address"),
        ("redis://127.0.0.1:port/0", "It must be a redis://, rediss:// or unix:// address"),
        (
            "rediss://:7hunder@127.0.0.1:6379/0?ssl_ca_cert=/ca.crt",
            "It has an option after the `?` that the client does not support",
        ),
        (
            "rediss://:7hunder@127.0.0.1:6379/0?ssl_cert_reqs=7hunder",
            "It has an option after the `?` that the client does not support",
        ),
    ],
)
async def test_an_unusable_redis_address_is_refused_at_start(settings: Settings, url: str, told: str) -> None:
    """And not at each call, although the client reads its options when it first connects."""
    with pytest.raises(InvalidInput) as refused:
        connect_redis(settings.model_copy(update={"redis_url": url}))
    assert str(refused.value) == f"RECOLLECT_REDIS_URL: {told}"
    assert "7hun" not in "".join(traceback.format_exception(refused.value))


async def refusal(settings: Settings) -> str:
    """The message that somebody gets who uses the database of these settings."""
    async with Database.connect(settings.database_url, settings=settings) as db:
        with pytest.raises(Unavailable) as refused:
            await db.ping()
    assert refused.value.code is ErrorCode.DATABASE_UNAVAILABLE
    return refused.value.message


def error_response(sqlstate: str, message: str) -> bytes:
    """A refusal of a connection in PostgreSQL's protocol."""
    said = ((b"S", "FATAL"), (b"C", sqlstate), (b"M", message))
    fields = b"".join(code + text.encode() + b"\0" for code, text in said)
    return b"E" + struct.pack("!i", len(fields) + 5) + fields + b"\0"


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[int]:
    """The port of a server that answers the first bytes of a connection with this, and hangs up."""

    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer_once, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
