"""What was just stored is found by its meaning before any worker has seen it. No worker is at work here."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import asyncpg
import httpx2
import pytest

from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller
from recollect.embedding import create_embedder
from recollect.graph.passages.evidence import EVIDENCE_GENERATION
from recollect.graph.passages.model import MAX_PREPARED_CHARACTERS, texts_to_prepare
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from tests.integration.gateway.test_management import done
from tests.support.embedding_server import DIMENSIONS, EmbeddingAnswer, serving_embeddings
from tests.support.gateway import RunningGateway, rpc_headers, serving
from tests.support.memories import Agent, at_work
from tests.support.quotas import limit

ALL = "/mcp/x/all"
GARAGE = "Our vehicle stands in the garage on Elm Street"
AUTOMOBILE = "Where do I find an automobile for parking?"
"""A question that shares no word with its answer, apart from stop words."""

BY_TOOL: dict[str, dict[str, Any]] = {
    "remember": {"items": [{"text": GARAGE}, {"text": "Bees make honey"}]},
    "create_entities": {"entities": [{"name": "Lisbon office", "entityType": "place", "observations": [GARAGE]}]},
    "upsert_entities": {"entities": [{"name": "Lisbon office", "entityType": "place", "observations": [GARAGE]}]},
    "create_node": {"node_type": "Fact", "text": GARAGE},
    "put_node": {"kind": "note", "content": GARAGE},
    "put_subgraph": {"nodes": [{"kind": "note", "content": GARAGE}]},
}
"""Calls that store the answer."""


@pytest.fixture(scope="module")
def by_default(settings: Settings) -> Iterator[RunningGateway]:
    """A gateway with the default embedder."""
    with serving(settings.model_copy(update={"embedder": Settings.model_fields["embedder"].default})) as gateway:
        yield gateway


@pytest.fixture
async def http(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(key, **rpc_headers()) as http:
        yield http


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        yield agent


async def call(gateway: RunningGateway, http: httpx2.AsyncClient, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a tool that must succeed."""
    result = await gateway.call(http, tool, arguments, path=ALL)
    assert not result["isError"], result
    answered: dict[str, Any] = result["structuredContent"]
    return answered


async def found(gateway: RunningGateway, http: httpx2.AsyncClient, query: str, **more: Any) -> list[str]:
    recalled = await call(gateway, http, "recall", query=query, **more)
    return [memory["text"] for memory in recalled["memories"]]


async def own_vectors(owner: asyncpg.Connection, caller: Caller) -> list[asyncpg.Record]:
    """What is stored of each passage of the tenant for its meaning, by its text."""
    return await owner.fetch(
        """SELECT p.text, p.embedding_model, v.model, v.embedding::text, e.generation, e.tokens, e.dates::text
        FROM passages p JOIN passage_vectors v ON v.passage_id = p.id JOIN passage_evidence e ON e.passage_id = p.id
        WHERE p.tenant_id = $1 ORDER BY p.text, p.id""",
        caller.tenant_id,
    )


@pytest.mark.proves("agent: recall")
async def test_each_tool_stores_what_a_paraphrase_finds_at_once(
    gateway: RunningGateway, http: httpx2.AsyncClient, subtests: pytest.Subtests
) -> None:
    for place, (tool, arguments) in enumerate(BY_TOOL.items()):
        with subtests.test(tool):
            graph = f"graph-{place}"
            await call(gateway, http, tool, graph=graph, **arguments)
            assert (await found(gateway, http, AUTOMOBILE, graph=graph))[:1] == [GARAGE]
            assert (await call(gateway, http, "recall", graph=graph, query="Elm Street"))["waiting"] == 0


async def test_what_is_added_to_an_entity_is_found_at_once(gateway: RunningGateway, http: httpx2.AsyncClient) -> None:
    await call(
        gateway, http, "create_entities", entities=[{"name": "Office", "entityType": "place", "observations": []}]
    )
    await call(gateway, http, "add_observations", observations=[{"entityName": "Office", "contents": [GARAGE]}])
    assert (await found(gateway, http, AUTOMOBILE))[:1] == [GARAGE]


async def test_the_quick_start_finds_its_memory_by_a_question_in_other_words(
    by_default: RunningGateway, key: str
) -> None:
    told = {"text": "Ada prefers tea to coffee.", "about": ["Ada"]}
    async with by_default.http(key) as http:
        await done(http, "POST", "/v1/graphs/default/memories", items=[told])
        recalled = await done(http, "POST", "/v1/graphs/default/recall", query="Which drink does she like?")
    assert [memory["text"] for memory in recalled["memories"]] == [told["text"]]
    assert recalled["waiting"] == 0


async def test_exact_words_that_were_just_said_win(gateway: RunningGateway, http: httpx2.AsyncClient) -> None:
    await call(gateway, http, "remember", items=[{"text": "An automobile is parked on Oak Street"}])
    await call(gateway, http, "remember", items=[{"text": GARAGE}])
    assert (await found(gateway, http, "vehicle in the garage"))[0] == GARAGE


async def test_the_vectors_and_the_evidence_are_those_that_the_worker_makes(
    by_default: RunningGateway, key: str, caller: Caller, agent: Agent, owner: asyncpg.Connection
) -> None:
    """With names, several passages of a text, days, and with token bits, which the default embedder has."""
    by = create_embedder(Settings())
    long = "The orchestra rehearsed yesterday. " * 30
    told = [
        {"text": "likes tea, since 3 May 2026", "about": ["Ada", "Bo"], "at": "2026-05-04T01:30:00+03:00"},
        {"text": "Ada moved last week", "about": ["Ada"]},
        {"text": long},
    ]
    async with by_default.http(key, **rpc_headers()) as http:
        await call(by_default, http, "remember", items=told)
    at_once = await own_vectors(owner, caller)
    assert {row["generation"] for row in at_once} == {EVIDENCE_GENERATION}
    assert {row["embedding_model"] for row in at_once} == {row["model"] for row in at_once} == {by.model}
    assert len(at_once) == 3 + len(texts_to_prepare([(None, long)])) > 4
    assert all(row["tokens"] for row in at_once)
    assert any(row["dates"] != "{}" for row in at_once)
    assert await agent.embed(by) == 0, "nothing is left to be embedded"
    for table in ("passage_evidence", "passage_vectors"):
        await owner.execute(f"DELETE FROM {table} WHERE tenant_id = $1", caller.tenant_id)
    await owner.execute("UPDATE passages SET settled = false WHERE tenant_id = $1", caller.tenant_id)
    assert await agent.embed(by) == len(at_once)
    assert await own_vectors(owner, caller) == at_once


async def test_the_worker_settles_without_embedding_again(
    gateway: RunningGateway, http: httpx2.AsyncClient, agent: Agent, owner: asyncpg.Connection, caller: Caller
) -> None:
    items = [{"text": text, "thread": "chat"} for text in ("The car broke down", "It stands in the garage now")]
    await call(gateway, http, "remember", items=items)
    searched = "SELECT embedding::text FROM searched_vectors WHERE tenant_id = $1 ORDER BY passage_id"
    alone = await owner.fetch(searched, caller.tenant_id)
    assert await agent.embed() == 0
    assert await owner.fetchval("SELECT bool_and(settled) FROM passages WHERE tenant_id = $1", caller.tenant_id)
    settled = await owner.fetch(searched, caller.tenant_id)
    assert len(settled) == len(alone) == 2
    assert all(before != after for before, after in zip(alone, settled, strict=True)), "neighbours share in them now"


async def test_passages_that_are_embedded_at_once_are_counted_once(
    settings: Settings, key: str, agent: Agent, owner: asyncpg.Connection, caller: Caller
) -> None:
    with serving(settings) as gateway:  # Its end stores the counts.
        async with gateway.http(key, **rpc_headers()) as http:
            await call(gateway, http, "remember", items=[{"text": GARAGE}, {"text": "Bees make honey"}])
    await agent.embed()
    counted = "SELECT sum(passages) FROM usage_hourly WHERE tenant_id = $1 AND name = 'embed_passages'"
    assert await owner.fetchval(counted, caller.tenant_id) == 2


async def test_a_plan_that_limits_embeddings_leaves_them_to_the_worker(
    gateway: RunningGateway, http: httpx2.AsyncClient, operator: Operator, tenant: Tenant, agent: Agent
) -> None:
    await limit(operator, tenant.slug, embeddings_per_day=1)
    await call(gateway, http, "remember", items=[{"text": GARAGE}])
    assert (await call(gateway, http, "recall", query="Elm Street"))["waiting"] == 1
    assert await agent.embed() == 1


async def test_a_graph_that_another_model_serves_gets_no_vectors_of_this_one(
    gateway: RunningGateway, http: httpx2.AsyncClient, agent: Agent, owner: asyncpg.Connection, caller: Caller
) -> None:
    await agent.remember("Bees make honey")
    await owner.execute("UPDATE graph_indexes SET model = 'another' WHERE tenant_id = $1", caller.tenant_id)
    await call(gateway, http, "remember", items=[{"text": GARAGE}])
    assert await own_vectors(owner, caller) == []
    assert await owner.fetchval("SELECT model FROM graph_indexes WHERE tenant_id = $1", caller.tenant_id) == "another"


async def test_a_text_beyond_the_bound_waits_for_the_worker(
    gateway: RunningGateway, http: httpx2.AsyncClient, agent: Agent
) -> None:
    long = "The orchestra rehearsed on Monday. " * (MAX_PREPARED_CHARACTERS // 35 + 1)
    assert texts_to_prepare([(None, long)]) == []
    await call(gateway, http, "remember", items=[{"text": long}])
    waiting = (await call(gateway, http, "recall", query="orchestra"))["waiting"]
    assert waiting > 1
    assert await agent.embed() == waiting


@pytest.fixture
def remote(settings: Settings) -> Iterator[tuple[RunningGateway, Any]]:
    """A gateway whose embedder is another server."""
    with serving_embeddings() as server:
        changed = {"embedder": "openai", "embedding_url": server.url, "embedding_dimensions": DIMENSIONS}
        with serving(settings.model_copy(update=changed)) as gateway:
            yield gateway, server


async def test_memories_are_stored_without_vectors_while_the_embedder_fails(
    remote: tuple[RunningGateway, Any], key: str
) -> None:
    gateway, server = remote
    server.mischief = lambda: EmbeddingAnswer(b"", 401)
    async with gateway.http(key, **rpc_headers()) as http:
        await call(gateway, http, "remember", items=[{"text": GARAGE}])
        entity = {"name": "Office", "entityType": "place", "observations": ["Opened in 2019"]}
        await call(gateway, http, "create_entities", entities=[entity])
        assert (await call(gateway, http, "recall", query="Elm Street"))["waiting"] == 2


async def test_a_write_does_not_wait_for_a_slow_embedder(remote: tuple[RunningGateway, Any], key: str) -> None:
    gateway, server = remote
    async with gateway.http(key, **rpc_headers()) as http:
        server.answering.clear()  # It answers once it is set again.
        entity = {"name": "Office", "entityType": "place", "observations": ["Opened in 2019"]}
        await call(gateway, http, "create_entities", entities=[entity])
        server.answering.set()
        assert (await call(gateway, http, "recall", query="opened"))["waiting"] == 1


async def test_days_are_those_of_the_moment_of_saying(
    gateway: RunningGateway, http: httpx2.AsyncClient, owner: asyncpg.Connection, caller: Caller
) -> None:
    said = datetime(2026, 3, 10, 23, 30, tzinfo=UTC)
    await call(gateway, http, "remember", items=[{"text": "We met yesterday", "at": said.isoformat()}])
    [row] = await own_vectors(owner, caller)
    assert row["dates"] == "{[2026-03-09,2026-03-10)}"
