"""Connections: the roles they act as, the settings they are started with, and the types they know."""

import asyncio
import ssl
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import msgspec
from pgvector.asyncpg import register_vector

from recollect.errors import ErrorCode, Unavailable
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
    except ssl.SSLCertVerificationError as error:  # A ValueError, too.
        raise Unavailable(f"The certificate of the server at {name} cannot be verified.") from error
    except ValueError:  # Without its cause: that shows parts of the address, which may be of a password.
        raise Unavailable(f"{name}: {NO_DATABASE_ADDRESS}.") from None


def connecting(role: str, settings: Settings) -> Connect:
    """`asyncpg.connect` for a pool of this role; it raises what `told_refusals` does."""

    async def connect(url: str, **options: Any) -> asyncpg.Connection:
        with told_refusals(url, role, settings):
            return await asyncpg.connect(url, **options)

    return connect


def counted(connecting: Connect, pool: str, settings: Settings) -> Connect:
    """The same for a pool of this name, with what servers did not answer in time counted.

    To whoever waits for the pool it is a wait in vain, as where all connections are in use.
    """
    patience = min(UNANSWERED_SECONDS, settings.database_acquire_seconds / 2)

    async def connect(*arguments: Any, **options: Any) -> asyncpg.Connection:
        began = time.monotonic()
        try:
            return await connecting(*arguments, **options)
        except (TimeoutError, asyncio.CancelledError):
            if time.monotonic() - began >= patience:  # Else whoever asked has left.
                record_unanswered(pool, settings.measured_cell)
            raise

    return connect


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
