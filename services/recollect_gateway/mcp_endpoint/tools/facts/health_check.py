"""The tools `test_connection` and `health_check`."""

from msgspec import Struct
from msgspec.structs import replace

from recollect.embedding import Embedder
from recollect.embedding.cache import NOBODY
from recollect.errors import Unavailable
from recollect.graph.passages import service as passages
from recollect.postgres.driver_errors import DRIVER_ERRORS
from recollect.retrieval.recall import service as recall
from recollect_gateway.calls import Call, Services
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply
from recollect_gateway.mcp_endpoint.tools.facts.errors import facts_tool


class CheckHealth(Arguments, frozen=True, rename=None):
    """Arguments of `test_connection` and `health_check`: none but the graph, which every tool takes."""


class Connection(Struct, frozen=True):
    """Result of `test_connection`."""

    success: bool
    message: str


class EmbeddingCache(Struct, frozen=True):
    """The cache of the vectors of the tenant's questions, in this process."""

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
    """Both caches. `hit_rate`: the share of the tenant's look-ups that hit, since this process started."""

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
    """Check that the database answers."""
    await call.services.databases.home.ping()
    return Reply(Connection(True, "The database answers."))


TEST_CONNECTION = facts_tool(
    description="Check whether the database answers.",
    result=Connection,
    handler=test_connection,
    read_only=True,
)


async def health_check(call: Call, arguments: CheckHealth) -> Reply:
    """Check which services answer; a service that is unreachable is no error."""
    database, vectors, refused = await _check_database(call)
    return Reply(
        Health(
            True,
            database,
            await _check_embeddings(call.services.encoder.embedder),
            vectors,
            refused,
            await _caches(call),
        )
    )


async def without_database(services: Services) -> Reply:
    """The answer of `health_check` while the database is unreachable; it leaves out the counts of caches.

    Those are for known callers only. The embedder is asked through its cache, so that keys which cannot be checked now
    do not cause work there.
    """
    cached = services.encoder.cached
    embedder = cached.of(NOBODY) if cached else services.encoder.embedder
    return Reply(Health(True, False, await _check_embeddings(embedder), False, None, _cache_bounds(services)))


HEALTH_CHECK = facts_tool(
    description="Check whether database, embeddings and vector index answer, and report the state of the caches.",
    result=Health,
    handler=health_check,
    read_only=True,
    substitute=without_database,
)


def _cache_bounds(services: Services) -> Caches:
    embedder, cache = services.encoder.cached, services.recall_cache
    embeddings, searches = EmbeddingCache(False, 0, 0, 0.0), SearchCache(False, 0, 0, 0, 0.0)
    if embedder is not None:
        embeddings = EmbeddingCache(True, 0, embedder.recent.max_entries, 0.0)
    if cache is not None:
        searches = SearchCache(True, 0, cache.shared.max_entries, cache.shared.ttl_seconds, 0.0)
    return Caches(embeddings, searches)


async def _check_database(call: Call) -> tuple[bool, bool, int | None]:
    """Check whether the database answers and can compare vectors, and count the passages that are set aside."""
    try:
        async with call.transaction() as tx:
            return True, await recall.vectors_ready(tx), await passages.count_refused(tx)
    except (Unavailable, *DRIVER_ERRORS):
        return False, False, None


async def _caches(call: Call) -> Caches:
    tenant_id = call.caller.tenant_id
    embedder, cache, bounds = call.services.encoder.cached, call.services.recall_cache, _cache_bounds(call.services)
    embeddings, searches = bounds.embeddings, bounds.search
    if embedder is not None:
        hit_rate = round(embedder.tallies.of(tenant_id).hit_rate, 3)
        embeddings = replace(embeddings, size=embedder.recent.size(tenant_id), hit_rate=hit_rate)
    if cache is not None:
        size = await cache.shared.size(tenant_id)
        searches = replace(searches, size=size, hit_rate=round(cache.tallies.of(tenant_id).hit_rate, 3))
    return Caches(embeddings, searches)


async def _check_embeddings(embedder: Embedder) -> bool:
    try:
        await embedder.embed(["health"])
    except Unavailable:
        return False
    return True
