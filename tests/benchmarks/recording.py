"""The second floor: the SQL of a call, sent directly by asyncpg.

The statements are the real ones: the handler of the call, as in the gateway, runs here once on a connection that
records every statement with its arguments, and that rolls back where the call commits. Nothing is stored then, so the
same statements with the same arguments (ids, names, revision) can be sent again on a bare connection, without handler,
pool or dataclasses. That second time is measured, from BEGIN and
`set_config` to a real COMMIT. Both connections have the gateway's role, settings and codecs, and asyncpg keeps their
statements prepared.

The look-up of the credential is a separate statement, before the tenant is known. It is counted and measured
separately, and *not* part of the floor, which is the transaction of the call.
"""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import asyncpg

from recollect.accounts.identity.service import authenticate
from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.embedding import Embedder
from recollect.postgres.connections import APP_ROLE, register_types, session_settings
from recollect.postgres.database import Database
from recollect.retrieval.recall.questions import QuestionEncoder
from recollect.settings import Settings
from recollect_gateway.calls import Call, Services
from recollect_gateway.mcp_endpoint.tools import TOOLS
from recollect_http.requests.parsing import parse


@dataclass(frozen=True, slots=True)
class Statement:
    """One round trip: a method of asyncpg's connection, and its arguments."""

    method: str
    query: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """The statements of one call: the look-up of its credential, and those from BEGIN to COMMIT."""

    sign_in: Sequence[Statement]
    transaction: Sequence[Statement]


class RecordingConnection:
    """Forwards statements and records them; turns COMMIT into ROLLBACK."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self.statements: list[Statement] = []

    async def fetch(self, query: str, *arguments: Any) -> Any:
        return await self._pass_on("fetch", query, arguments)

    async def fetchrow(self, query: str, *arguments: Any) -> Any:
        return await self._pass_on("fetchrow", query, arguments)

    async def fetchval(self, query: str, *arguments: Any) -> Any:
        return await self._pass_on("fetchval", query, arguments)

    async def execute(self, query: str, *arguments: Any) -> Any:
        return await self._pass_on("execute", query, arguments)

    async def _pass_on(self, method: str, query: str, arguments: tuple[Any, ...]) -> Any:
        self.statements.append(Statement(method, query, arguments))
        if query.endswith("COMMIT"):
            await self._connection.execute(f"{query.removesuffix('COMMIT')}ROLLBACK")
            return "COMMIT"  # PostgreSQL's answer to one that holds
        return await getattr(self._connection, method)(query, *arguments)


class PoolOfOne:
    """The part of a pool that `Database` uses, with one connection."""

    def __init__(self, connection: RecordingConnection) -> None:
        self._connection = connection

    @asynccontextmanager
    async def acquire(self, *, timeout: float) -> AsyncIterator[RecordingConnection]:
        yield self._connection


class Recorder:
    """Runs calls without effect, and returns their statements."""

    def __init__(self, connection: asyncpg.Connection, embedder: Embedder, settings: Settings, key: str) -> None:
        self._connection = RecordingConnection(connection)
        self._db = Database(cast(asyncpg.Pool, PoolOfOne(self._connection)), settings)
        self._services = Services(Databases(self._db), QuestionEncoder(embedder), settings)
        self._key, self._pepper = key, settings.key_secret.get_secret_value().encode()

    async def record(self, tool_name: str, arguments: dict[str, Any]) -> Recording:
        """The statements that this call would send now."""
        caller = await authenticate(Databases(self._db), self._key, pepper=self._pepper)
        sign_in = self._taken()
        await self._run(caller, tool_name, arguments)
        return Recording(sign_in, self._taken())

    async def _run(self, caller: Caller, tool_name: str, arguments: dict[str, Any]) -> None:
        tool = TOOLS[tool_name]
        await tool.handler(Call(caller, self._services, tool.name, tool.read_only), parse(tool.arguments, arguments))

    def _taken(self) -> list[Statement]:
        statements, self._connection.statements = self._connection.statements, []
        return statements


async def replay(connection: asyncpg.Connection, statements: Sequence[Statement]) -> float:
    """Send the statements one after the other; returns the seconds."""
    bound = [(getattr(connection, s.method), s.query, s.arguments) for s in statements]
    start = time.perf_counter()
    for method, query, arguments in bound:
        await method(query, *arguments)
    return time.perf_counter() - start


@asynccontextmanager
async def bare_connection(settings: Settings) -> AsyncIterator[asyncpg.Connection]:
    """A connection like those in the gateway's pool, without a pool."""
    connection = await asyncpg.connect(
        settings.database_url, server_settings=session_settings(APP_ROLE, settings), statement_cache_size=1000
    )
    try:
        await register_types(connection)
        yield connection
    finally:
        await connection.close()
