"""No cache of a process reveals to a tenant what another tenant asked."""

import ast
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.embedding import UNMEASURED, Vectors, create_embedder
from recollect.embedding.cache import CachedEmbedder
from recollect.retrieval.recall.questions import QuestionEncoder
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway, rpc_headers, serving

ROOT = Path(__file__).parents[2]
CACHES = {
    "recollect.embedding.cache": "vectors of questions, by tenant: here, and in tests/unit/embedding",
    "recollect.telemetry.metrics": "hits and misses, by tenant: here",
    "recollect.valkey.shared_cache": "rankings in Redis, by tenant: tests/tenancy/test_search_cache.py",
    "recollect.retrieval.recall.cache": "states of graphs, by tenant and name: tests/tenancy/test_search_cache.py",
    "recollect.retrieval.recall.english_words": "words of English: nothing of a tenant's",
    "recollect.retrieval.recall.updates": "words of change in each language: nothing of a tenant's",
    "recollect.retrieval.recall.overviews": "words of questions in each language: nothing of a tenant's",
    "recollect.words.english_detection": "words of English: nothing of a tenant's",
    "recollect.words.analysis": "lexemes of words, whoever wrote them, of which nothing is told: here",
    "recollect.words.compounds": "parts of words, whoever wrote them, of which nothing is told: here",
    "recollect.words.stemming": "stems of words, whoever wrote them, of which nothing is told: here",
    "recollect.graph.graphs.graph_cache": "graphs by tenant and name: tests/tenancy/test_known_graphs.py",
    "recollect.graph.relations.counted": "counts of edges, by tenant and graph: tests/tenancy/test_edge_counts.py",
    "recollect.telemetry.sampling": "spans of traces under way, of which nothing is told: tests/unit/telemetry",
    "recollect.fairness.fair_queue": "how long tenants were served, of which nothing is told: tests/unit/fairness",
    "recollect.valkey.rate_limits.process_counters": "counts by tenant, key or address: tests/tenancy/test_rates.py",
    "recollect.valkey.rate_limits.limiter": "refusals by tenant, key or address: tests/tenancy/test_rates.py",
    "recollect.cells.databases": "cells by tenant, and by the hash of a credential: tests/tenancy/test_cells.py",
    "recollect.accounts.token_issuers": "documents of issuers, by tenant: tests/tenancy/test_identity_providers.py",
    "recollect_gateway.callers.admission": "limits and tenant by the hash of a credential: tests/tenancy/test_rates.py",
    "recollect_http.failed_keys": "hashes of keys, of which nothing is told: tests/slow/loads/test_made_up_keys.py",
    "recollect_gateway.callers.remembered_callers": (
        "callers by the hash of a credential: tests/tenancy/test_remembered_callers.py"
    ),
    "recollect_http.client_addresses": "texts of addresses: nothing of a tenant's",
    "recollect_http.requests.validation": "parameters of routes: nothing of a tenant's",
    "recollect_http.requests.parsing": "lists that structs bound: nothing of a tenant's",
    "recollect_gateway.requests.lenient_parsing": "fields of structs: nothing of a tenant's",
    "recollect_gateway.streaming.shared_reads": "logs, by tenant and graphs: tests/tenancy/test_shared_reads.py",
    "recollect_gateway.management.openapi.document": "examples of the OpenAPI document: nothing of a tenant's",
    "recollect_gateway.management.openapi.documentation": "the page of the documentation: nothing of a tenant's",
    "recollect_gateway.mcp_endpoint.apps": "a page: nothing of a tenant's",
    "recollect_gateway.mcp_endpoint.unknown_arguments": "names of arguments of tools: nothing of a tenant's",
    "recollect_gateway.mcp_endpoint.schema": "schemas of tools: nothing of a tenant's",
    "recollect.retention.erasure.name_patterns": "tables of letters: nothing of a tenant's",
    "recollect_gateway.web.pages": "templates: nothing of a tenant's",
    "recollect_console.rendering": "templates: nothing of a tenant's",
    "recollect_operator.pages.rendering": "templates: nothing of a tenant's",
    "recollect_http.web.styles": "a style sheet: nothing of a tenant's",
}
"""Modules that keep state beyond a call, and how they keep tenants apart."""

_KEEPING = {"cachetools", "cache", "lru_cache", "LRUCache", "TTLCache", "LFUCache", "OrderedDict", "SharedCache"}


def keeps(path: Path) -> bool:
    """Whether a module has a cache of one of the usual kinds."""
    text = path.read_text()
    if not any(word in text for word in _KEEPING):  # Parsing takes a hundred times as long.
        return False
    found = list(ast.walk(ast.parse(text)))
    names = {alias.name for node in found if isinstance(node, ast.ImportFrom | ast.Import) for alias in node.names}
    classes = {node.name for node in found if isinstance(node, ast.ClassDef)}
    return bool((names | classes) & _KEEPING)


@pytest.mark.proves("security: caches")
def test_every_cache_is_listed() -> None:
    """A new cache needs a line here, and a test with two tenants."""
    roots = [ROOT / "shared", ROOT / "services"]
    modules = {
        ".".join(path.relative_to(root).with_suffix("").parts): path for root in roots for path in root.rglob("*.py")
    }
    composing = {"recollect_gateway.app"}  # Makes the parts of what is listed.
    found = {name for name, path in modules.items() if keeps(path)} - composing
    assert found == CACHES.keys()


async def cache_figures(gateway: RunningGateway, http: httpx2.AsyncClient) -> dict[str, dict[str, float]]:
    """The figures of the caches that a tenant sees."""
    result = await gateway.call(http, "health_check", {}, path="/mcp/x/facts")
    caches: dict[str, dict[str, float]] = result["structuredContent"]["cache"]
    return caches


@pytest.fixture
async def clients(
    settings: Settings, issue: NewApiKey, new_tenant: NewTenant
) -> AsyncIterator[tuple[RunningGateway, httpx2.AsyncClient, httpx2.AsyncClient]]:
    """A gateway with empty caches, and clients of two tenants."""
    one, two = [(await issue(operator_caller(await new_tenant()))).secret for _ in range(2)]
    with serving(settings) as gateway:
        async with gateway.http(one, **rpc_headers()) as first, gateway.http(two, **rpc_headers()) as second:
            yield gateway, first, second


async def test_a_tenant_sees_only_its_own_cache_figures(
    clients: tuple[RunningGateway, httpx2.AsyncClient, httpx2.AsyncClient],
) -> None:
    gateway, spied_on, spy = clients

    async def recall(http: httpx2.AsyncClient, question: str) -> None:
        assert not (await gateway.call(http, "recall", {"query": question}, path="/mcp"))["isError"]

    before = await cache_figures(gateway, spy)
    for question in ("the merger with Heron", "the merger with Heron", "who is leaving?"):
        await recall(spied_on, question)
    assert (await cache_figures(gateway, spied_on))["embeddings"]["size"] == 2
    assert await cache_figures(gateway, spy) == before
    asked = []
    for question in ("the merger with Heron", "the merger with Owl"):  # One of which the other tenant asked.
        await recall(spy, question)
        asked.append((await cache_figures(gateway, spy))["embeddings"])
    assert [each["size"] for each in asked] == [1, 2]
    assert [each["hit_rate"] for each in asked] == [0, 0]


class CountingEmbedder:
    """The real embedder, which records the texts that reach it: a cached text would be faster, and so reveal itself."""

    similarity_thresholds = UNMEASURED

    def __init__(self, settings: Settings) -> None:
        self._inner = create_embedder(settings)
        self.model, self.dimensions = self._inner.model, self._inner.dimensions
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return await self._inner.embed(texts)

    async def close(self) -> None:
        await self._inner.close()


@pytest.mark.proves("security: caches")
@pytest.mark.parametrize("as_previous", [False, True], ids=["serving model", "previous model"])
async def test_a_question_of_another_tenant_is_embedded_again(
    settings: Settings, new_tenant: NewTenant, as_previous: bool
) -> None:
    inner = CountingEmbedder(settings)
    cached = CachedEmbedder(inner, max_entries=10, max_bytes=1_000_000)
    plain = create_embedder(settings)
    encoder = QuestionEncoder(plain, None, plain, cached) if as_previous else QuestionEncoder(plain, cached)
    callers: list[Caller] = [operator_caller(await new_tenant()) for _ in range(2)]
    for caller in (*callers, *callers):
        await encoder.questions(caller, ["the merger with Heron"])
    assert inner.texts == ["the merger with Heron"] * 2  # Once for each: its own are remembered.
    await cached.close()
    await plain.close()
