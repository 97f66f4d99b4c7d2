"""Connections: the roles they act as, the settings they are started with, and the types they know."""

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
from recollect.platform.driver_errors import DRIVER_ERRORS
from recollect.platform.metrics import record_unanswered
from recollect.settings import Settings
from recollect.settings.storage import NO_DATABASE_ADDRESS

APP_ROLE = "recollect_app"
OWNER_ROLE = "recollect_owner"
OPERATOR_ROLE = "recollect_operator"
SEARCH_PATH = "recollect, public"

Connect = Callable[..., Coroutine[Any, Any, asyncpg.Connection]]
"""As `asyncpg.connect`."""

UNANSWERED_SECONDS = 1.0
"""A server that has not answered for so long counts as one that does not, once nobody waits for it any more."""

SAID_AGAIN_SECONDS = 60.0
"""How often it is logged of a pool why it has no connection, while that stays the same."""

FILES_OF_ADDRESSES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
"""Parameters of an address of PostgreSQL that name files."""

log = structlog.get_logger(__name__)


def session_settings(role: str, settings: Settings) -> dict[str, str]:
    """What every session is started with.

    `force_custom_plan`: a generic plan may not use a partial index or know how large a tenant is.
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
        # What is read is mostly in memory, and disks have no arms any more. With the default of 4, which is of such
        # disks, all vectors of a graph are sorted where its vector index answers in a fifth of the time.
        "random_page_cost": "1.1",
        "statement_timeout": str(round(settings.statement_timeout_seconds * 1000)),
        "lock_timeout": str(round(settings.lock_timeout_seconds * 1000)),
        "idle_in_transaction_session_timeout": str(round(settings.statement_timeout_seconds * 2000)),
    }


@contextmanager
def told_refusals(url: str, role: str | None, settings: Settings) -> Iterator[None]:
    """While connecting as this role (None: as the login itself): say which setting is wrong. Raises Unavailable.

    A wrong setting may be mended on the server's side, so whoever needs the database tries again.
    """
    name = settings.setting_of(url)
    try:
        yield
    except asyncpg.InvalidAuthorizationSpecificationError as error:
        raise Unavailable(f"The database refuses our login: check {name}.") from error
    except asyncpg.InvalidCatalogNameError as error:
        raise Unavailable(f"The server has no database of that name: check {name}.") from error
    except asyncpg.InsufficientPrivilegeError as error:
        of_owner = role == OWNER_ROLE and url == settings.database_url
        advice = f"set {settings.told_name('owner_database_url')} to one that may" if of_owner else f"check {name}"
        raise Unavailable(
            f"The login of {name} may not connect to the database{f' as {role}' if role else ''}: {advice}."
        ) from error
    except asyncpg.InvalidParameterValueError as error:
        if role and role in str(error):  # Whatever the language that the server says it in.
            never = f"The database was never migrated: its server has no role `{role}`. Run `recollect migrate`."
            raise Unavailable(never, code=ErrorCode.SCHEMA_OUTDATED) from error
        raise _refused_option(name) from error
    except (asyncpg.UndefinedObjectError, asyncpg.CantChangeRuntimeParamError) as error:
        raise _refused_option(name) from error
    except asyncpg.ProtocolViolationError as error:
        if "startup parameter" not in str(error):
            raise
        may_be_pooled = url in (settings.database_url, settings.replica_database_url)
        advice = "set RECOLLECT_DATABASE_POOLED, or connect directly" if may_be_pooled else "it has to lead past that"
        raise Unavailable(
            f"What answers at {name} takes no settings of a session, as PgBouncer does not: {advice}."
        ) from error
    except socket.gaierror as error:
        raise Unavailable(f"The host of {name} is not found.") from error
    except ssl.SSLCertVerificationError as error:  # A ValueError, too.
        raise Unavailable(f"The certificate of the server at {name} cannot be verified.") from error
    except ssl.SSLError as error:
        raise Unavailable(f"TLS with the server at {name} fails: check its sslmode and its files.") from error
    except ConnectionError as error:
        if "rejected SSL" not in str(error):  # asyncpg's own words.
            raise
        raise Unavailable(f"The server at {name} speaks no TLS: check its sslmode.") from error
    except OSError as error:
        if (parameter := _unreadable_file(url)) is None:  # Such as the socket of a server that is away.
            raise
        raise Unavailable(f"{name}: the file that its {parameter} names cannot be read.") from error
    except ValueError as error:  # Without its cause: that shows parts of the address, which may be of a password.
        if str(error).startswith("root certificate file"):  # asyncpg's own words, of a file that nobody named.
            raise Unavailable(
                f"{name}: its sslmode needs an sslrootcert, the file of the server's authority."
            ) from None
        raise Unavailable(f"{name}: {NO_DATABASE_ADDRESS}.") from None


def _refused_option(name: str) -> Unavailable:
    return Unavailable(f"The server refuses a setting of the session that {name} asks for: check its options.")


def _unreadable_file(url: str) -> str | None:
    """Which parameter of an address names a file that we cannot read."""
    named = parse_qsl(urlsplit(url).query)
    return next((name for name, file in named if name in FILES_OF_ADDRESSES and not os.access(file, os.R_OK)), None)


def connecting(role: str, settings: Settings, local: str = "") -> Connect:
    """`asyncpg.connect` for a pool of this role; it raises what `told_refusals` does.

    `local`: settings that are sent with each transaction, the role among them, since others share the connection. They
    are tried once, so that a login that may not become its role is told as where the session has it from the start.
    """

    async def connect(url: str, **options: Any) -> asyncpg.Connection:
        with told_refusals(url, role, settings):
            connection: asyncpg.Connection = await asyncpg.connect(url, **options)
            if local:
                try:
                    await connection.execute(f"BEGIN; {local}ROLLBACK")
                except BaseException:
                    connection.terminate()
                    raise
            return connection

    return connect


def counted(connecting: Connect, pool: str, settings: Settings) -> Connect:
    """The same for a pool of this name, with what servers did not answer in time counted, and what they said logged.

    To whoever waits for the pool it is a wait in vain, as where all connections are in use.
    """
    patience = min(UNANSWERED_SECONDS, settings.database_acquire_seconds / 2)
    failures = _Failures(pool, settings)

    async def connect(*arguments: Any, **options: Any) -> asyncpg.Connection:
        began = time.monotonic()
        try:
            return await connecting(*arguments, **options)
        except (TimeoutError, asyncio.CancelledError):
            if time.monotonic() - began >= patience:  # Else whoever asked has left.
                record_unanswered(pool, settings.measured_cell)
                failures.say("the server does not answer")
            raise
        except (RecollectError, *DRIVER_ERRORS) as error:
            failures.say(str(error), str(error.__cause__ or ""))
            raise

    return connect


class _Failures:
    """Why a pool has no connection, logged once a minute: callers are told in general words, and by each call."""

    def __init__(self, pool: str, settings: Settings) -> None:
        self._named = {"pool": pool} | ({"cell": settings.measured_cell} if settings.measured_cell else {})
        self._said, self._at = "", -math.inf

    def say(self, reason: str, answer: str = "") -> None:
        """Log it, with what the server answered, unless that was said within the last minute."""
        now = time.monotonic()
        if reason == self._said and now - self._at < SAID_AGAIN_SECONDS:
            return
        self._said, self._at = reason, now
        answered = {"answer": answer} if answer else {}
        log.warning("no connection to PostgreSQL", **self._named, reason=reason, **answered)


async def register_types(connection: asyncpg.Connection) -> None:
    """Teach a connection vectors, and JSON by msgspec; raises Unavailable where the database was never migrated."""
    try:
        await register_vector(connection)
    except ValueError as error:
        never = "The database was never migrated: it has no type `vector`. Run `recollect migrate`."
        raise Unavailable(never, code=ErrorCode.SCHEMA_OUTDATED) from error
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        format="binary",
        encoder=lambda value: b"\x01" + msgspec.json.encode(value),
        decoder=lambda data: msgspec.json.decode(data[1:]),
    )


async def keep_session(connection: asyncpg.Connection) -> None:
    """Nothing outlives a transaction here, so a released connection needs no reset (and no round trip for it)."""
