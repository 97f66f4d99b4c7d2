"""Connections to PostgreSQL: their roles, the settings that they start with, and their type codecs."""

import asyncio
import math
import os
import socket
import ssl
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import asyncpg
import msgspec
import structlog
from pgvector.asyncpg import register_vector

from recollect.errors import ErrorCode, RecollectError, Unavailable
from recollect.postgres.driver_errors import DRIVER_ERRORS
from recollect.settings import Settings
from recollect.settings.database import NO_DATABASE_ADDRESS, server_of
from recollect.telemetry.metrics import record_unanswered

APP_ROLE = "recollect_app"
OWNER_ROLE = "recollect_owner"
OPERATOR_ROLE = "recollect_operator"
SEARCH_PATH = "recollect, public"

Connect = Callable[..., Coroutine[Any, Any, asyncpg.Connection]]
"""A function with the signature of `asyncpg.connect`."""

UNANSWERED_SECONDS = 1.0
"""When the wait for a connection ends after this time or later, the server is counted as one that does not answer."""

LOG_AGAIN_SECONDS = 60.0
"""How often the reason why a pool has no connection is logged while it stays the same."""

FILES_OF_ADDRESSES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
"""Parameters of an address of PostgreSQL that name files."""

log = structlog.get_logger(__name__)


def session_settings(role: str, settings: Settings) -> dict[str, str]:
    """The settings that every session starts with.

    `force_custom_plan`: a generic plan may not use a partial index, and does not know how large a tenant is.
    """
    return {
        "role": role,
        "application_name": "recollect",
        "search_path": SEARCH_PATH,
        "timezone": "UTC",
        "jit": "off",
        # A vector index goes on searching where filters leave too few of what it found first.
        "hnsw.iterative_scan": "strict_order",
        "plan_cache_mode": "force_custom_plan",
        # Most reads come from memory, and disks have no arms any more. The default of 4 is meant for such disks: with
        # it, all vectors of a graph are sorted where its vector index answers in a fifth of the time.
        "random_page_cost": "1.1",
        "statement_timeout": str(round(settings.statement_timeout_seconds * 1000)),
        "lock_timeout": str(round(settings.lock_timeout_seconds * 1000)),
        "idle_in_transaction_session_timeout": str(round(settings.statement_timeout_seconds * 2000)),
    }


@contextmanager
def translated_connection_errors(url: str, role: str | None, settings: Settings) -> Iterator[None]:
    """Turn errors of connecting as this role (None: as the login itself) into Unavailable that names the wrong setting.

    It is Unavailable because a wrong setting may be mended on the server's side, so callers try again.
    """
    name = settings.setting_of(url)
    try:
        yield
    except asyncpg.InvalidAuthorizationSpecificationError as error:
        raise Unavailable(f"The database refuses the login: check {name}.") from error
    except asyncpg.InvalidCatalogNameError as error:
        raise Unavailable(f"The server has no database with that name: check {name}.") from error
    except asyncpg.InsufficientPrivilegeError as error:
        needs_owner_url = role == OWNER_ROLE and url == settings.database_url
        owner_setting = settings.display_name("owner_database_url")
        advice = f"set {owner_setting} to one that may" if needs_owner_url else f"check {name}"
        raise Unavailable(
            f"The login of {name} may not connect to the database{f' as {role}' if role else ''}: {advice}."
        ) from error
    except asyncpg.InvalidParameterValueError as error:
        if role and role in str(error):  # In whatever language the server answers, it names the role.
            message = f"The database was never migrated: its server has no role `{role}`. Run `recollect migrate`."
            raise Unavailable(message, code=ErrorCode.SCHEMA_OUTDATED) from error
        raise _refused_option(name) from error
    except (asyncpg.UndefinedObjectError, asyncpg.CantChangeRuntimeParamError) as error:
        raise _refused_option(name) from error
    except asyncpg.ProtocolViolationError as error:
        if "startup parameter" not in str(error):
            raise
        may_be_pooled = url in (settings.database_url, settings.replica_database_url)
        advice = (
            "set RECOLLECT_DATABASE_POOLED, or connect directly" if may_be_pooled else "this address must bypass it"
        )
        raise Unavailable(f"The server at {name} refuses session settings, as PgBouncer does: {advice}.") from error
    except socket.gaierror as error:
        raise Unavailable(f"The host of {name} cannot be found.") from error
    except ssl.SSLCertVerificationError as error:  # A ValueError, too.
        raise Unavailable(f"The certificate of the server at {name} cannot be verified.") from error
    except ssl.SSLError as error:
        raise Unavailable(f"TLS with the server at {name} fails: check its sslmode and its files.") from error
    except ConnectionError as error:
        if "rejected SSL" not in str(error):  # A message of asyncpg.
            raise
        raise Unavailable(f"The server at {name} does not support TLS: check its sslmode.") from error
    except OSError as error:
        if (parameter := _unreadable_file(url)) is None:  # Such as the socket of a server that is unreachable.
            raise
        raise Unavailable(f"{name}: the file that its {parameter} names cannot be read.") from error
    except ValueError as error:  # Without its cause, which shows parts of the address: they may hold a password.
        if str(error).startswith("root certificate file"):  # A message of asyncpg about its default file.
            raise Unavailable(
                f"{name}: its sslmode needs an sslrootcert, the file of the server's authority."
            ) from None
        raise Unavailable(f"{name}: {NO_DATABASE_ADDRESS}.") from None


def _refused_option(name: str) -> Unavailable:
    return Unavailable(f"The server refuses a session setting that {name} asks for: check its options.")


def _unreadable_file(url: str) -> str | None:
    """The parameter of an address that names a file that we cannot read, if any."""
    parameters = parse_qsl(urlsplit(url).query)
    return next(
        (name for name, file in parameters if name in FILES_OF_ADDRESSES and not os.access(file, os.R_OK)), None
    )


def connect_as(role: str, settings: Settings, local: str = "") -> Connect:
    """`asyncpg.connect` for a pool of this role; it raises Unavailable as `translated_connection_errors` does.

    `local`: settings that are sent with each transaction, the role among them, since others share the connection. They
    are tried once, so that a login that may not become its role fails while connecting, as it does where the role is
    set from the start.
    """

    async def connect(url: str, **options: Any) -> asyncpg.Connection:
        with translated_connection_errors(url, role, settings):
            connection: asyncpg.Connection = await asyncpg.connect(url, **options)
            if local:
                try:
                    await connection.execute(f"BEGIN; {local}ROLLBACK")
                except BaseException:
                    connection.terminate()
                    raise
            return connection

    return connect


def record_failures(connect: Connect, pool: str, settings: Settings) -> Connect:
    """The same function for a pool of this name: attempts without an answer are counted, and errors are logged.

    A caller that waits for the pool only sees that it got no connection, as when all of them are in use.
    """
    unanswered_seconds = min(UNANSWERED_SECONDS, settings.database_acquire_seconds / 2)
    failures = _FailureLog(pool, settings)

    async def recorded_connect(*arguments: Any, **options: Any) -> asyncpg.Connection:
        began, server = time.monotonic(), server_of(arguments[0])
        try:
            return await connect(*arguments, **options)
        except (TimeoutError, asyncio.CancelledError):
            if time.monotonic() - began >= unanswered_seconds:  # Else the caller has left.
                record_unanswered(pool, settings.measured_cell)
                failures.report(server, "the server does not answer")
            raise
        except (RecollectError, *DRIVER_ERRORS) as error:
            failures.report(server, str(error), str(error.__cause__ or ""))
            raise

    return recorded_connect


class _FailureLog:
    """Logs why a pool has no connection, once a minute: callers get a general message, and one for each call."""

    def __init__(self, pool: str, settings: Settings) -> None:
        self._labels = {"pool": pool} | ({"cell": settings.measured_cell} if settings.measured_cell else {})
        self._reason, self._logged_at = "", -math.inf

    def report(self, server: str, reason: str, answer: str = "") -> None:
        """Log the reason and the server's answer, unless the same reason was logged within the last minute."""
        now = time.monotonic()
        if reason == self._reason and now - self._logged_at < LOG_AGAIN_SECONDS:
            return
        self._reason, self._logged_at = reason, now
        details = {"answer": answer} if answer else {}
        log.warning("cannot connect to PostgreSQL", server=server, **self._labels, reason=reason, **details)


async def register_types(connection: asyncpg.Connection) -> None:
    """Register codecs for vectors and JSON (by msgspec); raises Unavailable where the database was never migrated."""
    try:
        await register_vector(connection)
    except ValueError as error:
        message = "The database was never migrated: it has no type `vector`. Run `recollect migrate`."
        raise Unavailable(message, code=ErrorCode.SCHEMA_OUTDATED) from error
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        format="binary",
        encoder=lambda value: b"\x01" + msgspec.json.encode(value),
        decoder=lambda data: msgspec.json.decode(data[1:]),
    )


async def keep_session(connection: asyncpg.Connection) -> None:
    """Reset nothing on release: no state of a session outlives a transaction, and a reset takes a round trip."""
