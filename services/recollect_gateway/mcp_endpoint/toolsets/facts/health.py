"""Handlers that tell how the service is."""

from recollect.errors import Unavailable
from recollect.graphs.model import graph_name
from recollect.platform.db import DRIVER_ERRORS
from recollect.search import service as search
from recollect_gateway.mcp_endpoint.tool import Call, Reply
from recollect_gateway.mcp_endpoint.toolsets.facts.arguments import CheckHealth
from recollect_gateway.mcp_endpoint.toolsets.facts.results import (
    Caches,
    Connection,
    EmbeddingCache,
    Health,
    SearchCache,
)

NO_CACHES = Caches(EmbeddingCache(False, 0, 0), SearchCache(False, 0, 0, 0))
"""Neither is built yet: every search reads the database, every text is embedded."""


async def test_connection(call: Call, arguments: CheckHealth) -> Reply:
    """Say that the database answers."""
    _checked(arguments)
    await call.services.db.ping()
    return Reply(Connection(True, "The database answers."))


async def health_check(call: Call, arguments: CheckHealth) -> Reply:
    """Say what answers and what does not; that something is away is no error."""
    _checked(arguments)
    database, vectors = await _database(call)
    return Reply(Health(True, database, await _embeddings(call), vectors, NO_CACHES))


def _checked(arguments: CheckHealth) -> None:
    if arguments.graph is not None:
        graph_name(arguments.graph)


async def _database(call: Call) -> tuple[bool, bool]:
    """Whether the database answers, and whether it can compare vectors."""
    try:
        async with call.transaction() as tx:
            return True, await search.vectors_ready(tx)
    except (Unavailable, *DRIVER_ERRORS):
        return False, False


async def _embeddings(call: Call) -> bool:
    try:
        await call.services.embedder.embed(["health"])
    except Unavailable:
        return False
    return True
