"""How the service is."""

from msgspec import Struct

from recollect.errors import Unavailable
from recollect.passages import service as passages
from recollect.platform.db import DRIVER_ERRORS
from recollect.recall import service as recall
from recollect_gateway.mcp_endpoint.tool import Arguments, Call, Reply


class CheckHealth(Arguments, frozen=True, rename=None):
    """Arguments of `test_connection` and `health_check`: none but the graph, which every tool takes."""


class Connection(Struct, frozen=True):
    """Result of `test_connection`."""

    success: bool
    message: str


class EmbeddingCache(Struct, frozen=True):
    """The cache of the vectors of questions, in this process."""

    enabled: bool
    size: int
    maxsize: int
    hit_rate: float


class SearchCache(Struct, frozen=True):
    """The cache of search results: `size` and `maxsize` are the tenant's, `ttl` is in seconds."""

    enabled: bool
    size: int
    maxsize: int
    ttl: int
    hit_rate: float


class Caches(Struct, frozen=True):
    """Both caches. `hit_rate`: how much of what this process looked up since its start was there, 0 to 1."""

    embeddings: EmbeddingCache
    search: SearchCache


class Health(Struct, frozen=True):
    """Result of `health_check`. `falkordb` is the contract's name for the database.

    `refused` counts the passages that the embedder does not take, of the graphs that the credential reaches.
    """

    success: bool
    falkordb: bool
    embeddings: bool
    vector_index: bool
    refused: int | None
    cache: Caches


async def test_connection(call: Call, arguments: CheckHealth) -> Reply:
    """Say that the database answers."""
    await call.services.db.ping()
    return Reply(Connection(True, "The database answers."))


async def health_check(call: Call, arguments: CheckHealth) -> Reply:
    """Say what answers and what does not; that something is away is no error."""
    database, vectors, refused = await _database(call)
    return Reply(Health(True, database, await _embeddings(call), vectors, refused, await _caches(call)))


async def _database(call: Call) -> tuple[bool, bool, int | None]:
    """Whether the database answers, whether it can compare vectors, and how many passages are set aside, if it does."""
    try:
        async with call.transaction() as tx:
            return True, await recall.vectors_ready(tx), await passages.count_refused(tx)
    except (Unavailable, *DRIVER_ERRORS):
        return False, False, None


async def _caches(call: Call) -> Caches:
    embedder, cache = call.services.cached_embedder, call.services.recall_cache
    embeddings, searches = EmbeddingCache(False, 0, 0, 0.0), SearchCache(False, 0, 0, 0, 0.0)
    if embedder is not None:
        kept = embedder.recent
        embeddings = EmbeddingCache(True, len(kept.rows), kept.max_entries, round(embedder.tally.hit_rate, 3))
    if cache is not None:
        shared = cache.shared
        size = await shared.size(call.caller.tenant_id)
        searches = SearchCache(True, size, shared.max_entries, shared.ttl_seconds, round(cache.tally.hit_rate, 3))
    return Caches(embeddings, searches)


async def _embeddings(call: Call) -> bool:
    try:
        await call.services.embedder.embed(["health"])
    except Unavailable:
        return False
    return True
