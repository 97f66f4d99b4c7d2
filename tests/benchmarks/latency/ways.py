"""The ways of answering that take turns: each answers one question, or does the minimum of work for any question."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from uuid import UUID

import asyncpg

from recollect.caller import Caller
from recollect.embedding import Embedder, create_embedder, embed_questions
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.model import RecallFilter
from recollect.retrieval.recall.questions import QuestionEncoder
from recollect.settings import Settings
from tests.benchmarks.recording import Statement, bare_connection, replay
from tests.benchmarks.wire import LEGACY, McpConnection

LIMIT = 10
_BUDGET = 1_500
_ECHO = {"text": "x" * 64, "length": 64}
_ROW = "SELECT * FROM nodes WHERE tenant_id = $1 AND id = $2"


@dataclass(frozen=True, slots=True)
class Taken:
    """One turn: seconds, and the number of memories in the answer."""

    seconds: float
    found: int


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways, each with its own connections; `node_id`: an existing node."""

    caller: Caller
    db: Database
    embedder: Embedder
    bare: asyncpg.Connection
    gateway: McpConnection
    echo_server: McpConnection
    node_id: UUID

    async def floor(self, _: str) -> Taken:
        """Read one row by its primary key, in a transaction of the same shape."""
        begin = (
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
            f"SELECT set_config('recollect.tenant_id', '{self.caller.tenant_id}', true)"
        )
        statements = [
            Statement("execute", begin, ()),
            Statement("fetch", _ROW, (self.caller.tenant_id, self.node_id)),
            Statement("execute", "COMMIT", ()),
        ]
        return Taken(await replay(self.bare, statements), LIMIT)

    async def service(self, text: str) -> Taken:
        """Run the use case in this process, including the embedding of the question."""
        start = time.perf_counter()
        found = await self.answer(text)
        return Taken(time.perf_counter() - start, len(found))

    async def first_stage(self, text: str) -> Taken:
        """Run the use case without the comparison of tokens."""
        start = time.perf_counter()
        found = await self.answer(text, tokens=False)
        return Taken(time.perf_counter() - start, len(found))

    async def compares_tokens(self) -> bool:
        """Whether there is a second stage, which compares tokens."""
        return len((await embed_questions(self.embedder, ["boat"])).tokens[0]) > 0

    async def exact(self, text: str) -> Taken:
        """Run the use case without the vector index."""
        start = time.perf_counter()
        found = await self.answer(text, exact=True)
        return Taken(time.perf_counter() - start, len(found))

    async def mcp(self, text: str) -> Taken:
        """Call the tool through the gateway."""
        exchange = await self.gateway.call("recall", {"query": text, "limit": LIMIT})
        return Taken(exchange.seconds, len(exchange.result()["structuredContent"]["memories"]))

    async def echo(self, _: str) -> Taken:
        """Call the bare echo of the SDK, over the same HTTP server."""
        exchange = await self.echo_server.call("echo", _ECHO)
        return Taken(exchange.seconds, LIMIT)

    async def answer(self, text: str, *, exact: bool = False, tokens: bool = True) -> Sequence[UUID]:
        """The memories, best first. `exact`: without the vector index, if the graph has one."""
        (question,) = await QuestionEncoder(self.embedder).questions(self.caller, [text])
        question = question if tokens else replace(question, tokens=None)
        async with self.db.transaction(self.caller, read_only=True) as tx:
            recalled = await recall.recall(
                await graphs.view(tx, None), [question], RecallFilter(), limit=LIMIT, token_budget=_BUDGET, exact=exact
            )
        return [hit.memory_id for hit in recalled.hits]


@asynccontextmanager
async def open_ways(settings: Settings, caller: Caller, key: str, echo_port: int) -> AsyncIterator[Ways]:
    """Connect all ways; the graph must have a node."""
    async with AsyncExitStack() as stack:
        db = await stack.enter_async_context(Database.connect(settings.database_url, settings=settings))
        embedder = create_embedder(settings)
        stack.push_async_callback(embedder.close)
        bare = await stack.enter_async_context(bare_connection(settings))
        gateway = await stack.enter_async_context(McpConnection(settings.port, "/mcp/x/agent", LEGACY, key))
        echo_server = await stack.enter_async_context(McpConnection(echo_port, "/mcp", LEGACY))
        async with db.transaction(caller, read_only=True) as tx:
            node_id = await tx.fetchval(Query.compile("SELECT id FROM nodes WHERE tenant_id = :tenant_id LIMIT 1"))
        yield Ways(caller, db, embedder, bare, gateway, echo_server, node_id)
