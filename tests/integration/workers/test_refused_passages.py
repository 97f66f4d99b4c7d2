"""Texts that the embedder refuses: set aside with a reason, listed, and retried on request."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import asyncpg
import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller, Scope
from recollect.embedding import EmbeddingFailed, OpenAIEmbedder
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.graph.passages import service as passages
from recollect.graph.passages.model import MAX_FAILURES, FailedPassage, PendingPassage
from recollect.memory import writing
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import Wakeups
from recollect_workers.bisect_failures import EmbedOutcome
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import embedding
from recollect_workers.jobs.embedding import EmbeddingBatch, StoredBatch
from tests.conftest import NewTenant
from tests.support.embedding_server import DIMENSIONS, EmbeddingAnswer, EmbeddingServer, embeddings, serving_embeddings
from tests.support.gateway import NewApiKey, RunningGateway, eventually, rpc_headers
from tests.support.memories import at_work, embedded_passages, embedder
from tests.support.workers import embed_batch, remember, waiting

PEOPLE = [f"person {number}" for number in range(30)]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    """An embedder that refuses texts with the word."""
    with serving_embeddings() as server:
        server.poison = "poison"
        yield server


@pytest.fixture
async def context(settings: Settings, db: Database, server: EmbeddingServer) -> AsyncIterator[WorkerContext]:
    changed = {"embedding_url": server.url, "embedding_dimensions": DIMENSIONS}
    remote = settings.model_copy(update=changed)
    async with connect_redis(remote) as redis:
        wakeups, embedder = Wakeups(redis), OpenAIEmbedder(remote)
        yield WorkerContext(remote, db, embedder, wakeups, asyncio.Event())
        await embedder.close()
        await wakeups.aclose()


async def unembedded_passages(owner: asyncpg.Connection, caller: Caller) -> list[asyncpg.Record]:
    """The tenant's passages without a vector."""
    return await owner.fetch(
        "SELECT * FROM passages WHERE tenant_id = $1 AND embedding_model IS NULL ORDER BY id", caller.tenant_id
    )


async def retry_at_once(owner: asyncpg.Connection, caller: Caller) -> None:
    await owner.execute("UPDATE passages SET claimed_until = NULL WHERE tenant_id = $1", caller.tenant_id)


async def test_other_passages_of_the_batch_are_embedded(
    context: WorkerContext, caller: Caller, owner: asyncpg.Connection, server: EmbeddingServer
) -> None:
    await remember(context.database, caller, *PEOPLE[:20], "poison", *PEOPLE[20:])
    assert not await embedding.embed_passages(context, caller.tenant_id, {})
    refused = await unembedded_passages(owner, caller)
    assert [(row["text"], row["refused"]) for row in refused] == [
        ("likes coffee", "The embedder answered HTTP 400."),
        ("likes tea", "The embedder answered HTTP 400."),
    ]
    assert all(row["settled"] and row["near"] and row["claimed_until"] is None for row in refused)
    assert not context.backoff.waiting
    asked = len(server.requests)
    assert not await embedding.embed_passages(context, caller.tenant_id, {})
    assert len(server.requests) == asked
    texts = {f"{name}: likes {liking}" for name in PEOPLE for liking in ("coffee", "tea")}
    assert {text: server.vouched[text] for text in texts} == dict.fromkeys(texts, 1)


@pytest.mark.parametrize("answer", [EmbeddingAnswer(b"garbage"), EmbeddingAnswer(b"", 500), embeddings((0, [1.0]))])
async def test_a_doubtful_failure_is_retried_before_passages_are_set_aside(
    context: WorkerContext, caller: Caller, owner: asyncpg.Connection, server: EmbeddingServer, answer: EmbeddingAnswer
) -> None:
    server.poisoned = answer
    await remember(context.database, caller, "poison", "Alice")
    for number in range(1, MAX_FAILURES + 1):
        await embedding.embed_passages(context, caller.tenant_id, {})
        left = await unembedded_passages(owner, caller)
        assert [row["failures"] for row in left] == [number, number]
        if number < MAX_FAILURES:
            assert all(row["refused"] is None and row["claimed_until"] is not None for row in left)
            await retry_at_once(owner, caller)
    assert all(row["refused"] and row["settled"] for row in left)


async def test_an_embedder_that_refuses_everything_sets_no_passage_aside(
    context: WorkerContext, caller: Caller, owner: asyncpg.Connection, server: EmbeddingServer
) -> None:
    server.poison = ""
    await remember(context.database, caller, "Alice")
    await embedding.sweep(context)
    assert context.backoff.waiting
    assert all(
        row["refused"] is None and row["claimed_until"] is None for row in await unembedded_passages(owner, caller)
    )


async def test_a_refused_passage_of_one_tenant_does_not_delay_others(
    context: WorkerContext, new_tenant: NewTenant, owner: asyncpg.Connection
) -> None:
    callers = [operator_caller(await new_tenant()) for _ in range(3)]
    for name, caller in zip(("Alice", "poison", "Bob"), callers, strict=True):
        await remember(context.database, caller, name)
    await embedding.sweep(context)
    assert [await waiting(owner, caller) for caller in callers] == [0, 2, 0]


async def test_refused_passages_are_retried_on_request(
    context: WorkerContext, caller: Caller, owner: asyncpg.Connection, server: EmbeddingServer
) -> None:
    await remember(context.database, caller, "poison")
    await embedding.sweep(context)
    server.poison = None
    await embedding.sweep(context)
    assert await waiting(owner, caller) == 2
    async with context.database.transaction(caller) as tx:
        assert await passages.retry_refused(tx, (await graphs.get_graph(tx, "default")).id) == 2
    await embedding.sweep(context)
    assert await waiting(owner, caller) == 0


async def test_unsettling_a_refused_passage_does_not_embed_it_again(
    context: WorkerContext, caller: Caller, owner: asyncpg.Connection, server: EmbeddingServer
) -> None:
    await remember(context.database, caller, "poison")
    await embedding.sweep(context)
    asked = len(server.requests)
    await owner.execute("UPDATE passages SET settled = false WHERE tenant_id = $1", caller.tenant_id)
    await embedding.sweep(context)
    assert len(server.requests) == asked
    assert all(row["settled"] and row["refused"] for row in await unembedded_passages(owner, caller))


async def test_a_lost_claim_records_no_failures(context: WorkerContext, caller: Caller) -> None:
    await remember(context.database, caller, "poison")
    async with context.database.transaction(caller) as tx:
        claimed = await passages.claim_pending(tx, model="m", limit=10, lease_seconds=0.001)
    await asyncio.sleep(0.01)
    async with context.database.transaction(caller) as tx:
        await passages.claim_pending(tx, model="m", limit=10, lease_seconds=60)
    failed = [FailedPassage(passage.id, "No.", certain=True) for passage in claimed]
    async with context.database.transaction(caller) as tx:
        assert await passages.record_failures(tx, failed, claimed) == set()
        await passages.release_claimed_passages(tx, claimed)
    async with context.database.transaction(caller) as tx:
        assert await passages.claim_pending(tx, model="m", limit=10, lease_seconds=60) == []


class TestListing:
    @pytest.fixture
    async def refused(self, context: WorkerContext, caller: Caller) -> None:
        await remember(context.database, caller, "poison", "Alice", "poison too")
        await embedding.sweep(context)

    async def page(self, http: httpx2.AsyncClient, query: str = "") -> dict[str, Any]:
        response = await http.get(f"/v1/graphs/default/passages/refused{query}")
        assert response.status_code == 200, response.text
        body: dict[str, Any] = response.json()
        return body

    async def test_refused_passages_are_listed_with_reasons_and_without_texts(
        self, refused: None, gateway: RunningGateway, key: str, caller: Caller, owner: asyncpg.Connection
    ) -> None:
        async with gateway.http(key) as http:
            whole = await self.page(http)
            first = await self.page(http, "?limit=3")
            rest = await self.page(http, f"?limit=3&cursor={first['next_cursor']}")
        assert first["items"] + rest["items"] == whole["items"]
        assert rest["next_cursor"] is None
        stored = await unembedded_passages(owner, caller)
        assert [(item["id"], item["memory_id"]) for item in whole["items"]] == [
            (str(row["id"]), str(row["memory_id"])) for row in stored
        ]
        assert {item["reason"] for item in whole["items"]} == {"The embedder answered HTTP 400."}
        assert "likes" not in str(whole)

    async def test_only_callers_who_may_read_the_graph_see_its_refused_passages(
        self, refused: None, gateway: RunningGateway, caller: Caller, issue: NewApiKey, new_tenant: NewTenant
    ) -> None:
        writer = (await issue(caller, scopes=frozenset({Scope.MEMORY_WRITE}))).secret
        stranger = (await issue(operator_caller(await new_tenant()))).secret
        async with gateway.http(writer) as http:
            assert (await http.get("/v1/graphs/default/passages/refused")).status_code == 403
        async with gateway.http(stranger) as http:
            answer = await http.get("/v1/graphs/default/passages/refused")
            assert answer.json() == {"items": [], "next_cursor": None}


class TestCounts:
    """`refused` of `get_stats` and `health_check`."""

    async def told(self, gateway: RunningGateway, secret: str, **arguments: str) -> tuple[int, int]:
        async with gateway.http(secret, **rpc_headers()) as http:
            stats = await gateway.call(http, "get_stats", arguments, path="/mcp/x/facts")
            health = await gateway.call(http, "health_check", {}, path="/mcp/x/facts")
        return stats["structuredContent"]["stats"]["refused"], health["structuredContent"]["refused"]

    async def test_refused_passages_are_counted_by_graph_and_for_all_reachable_graphs(
        self, context: WorkerContext, gateway: RunningGateway, caller: Caller, issue: NewApiKey, new_tenant: NewTenant
    ) -> None:
        key = (await issue(caller)).secret
        await remember(context.database, caller, "Alice")
        await embedding.sweep(context)
        assert await self.told(gateway, key) == (0, 0)
        await remember(context.database, caller, "poison")
        async with context.database.transaction(caller) as tx:
            mine = await graphs.create_graph(tx, NewGraph("mine"))
            async with graphs.write_graph(tx, "mine", "test") as revision:
                await entities.create_entities(tx, revision, [NewEntity("poison too", "person", ("poison",))])
        await embedding.sweep(context)
        reached = await self.told(gateway, key, graph="mine")
        assert (await self.told(gateway, key), reached) == ((2, 2 + reached[0]), (reached[0], 2 + reached[0]))
        assert reached[0] > 0
        confined = await issue(caller, graph_ids=(mine.id,), default_graph_id=mine.id)
        assert await self.told(gateway, confined.secret) == (reached[0], reached[0])
        stranger = await issue(operator_caller(await new_tenant()))
        assert await self.told(gateway, stranger.secret) == (0, 0)
        async with context.database.transaction(caller) as tx, graphs.write_graph(tx, None, "test") as revision:
            await writing.delete_entities(tx, revision, ["poison"])
        assert await self.told(gateway, key) == (0, reached[0])


async def test_a_batch_that_takes_too_long_to_bisect_is_smaller_next_time(
    context: WorkerContext, caller: Caller, owner: asyncpg.Connection
) -> None:
    hasty = replace(context, settings=context.settings.model_copy(update={"embedding_lease_seconds": 0.001}))
    await remember(context.database, caller, "poison", *PEOPLE[:3])
    await embed_batch(hasty, caller.tenant_id)
    assert hasty.backoff.batch(caller.tenant_id, 256) == 4
    for _ in range(40):
        await embed_batch(hasty, caller.tenant_id)
    assert await waiting(owner, caller) == 2
    assert all(row["refused"] for row in await unembedded_passages(owner, caller))


async def test_two_workers_do_not_deadlock(context: WorkerContext, caller: Caller, owner: asyncpg.Connection) -> None:
    """Each settles a passage beside one that the other releases because its embedder failed halfway."""
    async with at_work(context.database, caller) as agent:
        for name in ("held", "first", "second"):
            said = (NewMemory(f"{name} says thing {number}", thread="talk") for number in range(2))
            await replace(agent, graph=name).remember(*said)
        async with context.database.transaction(caller) as tx:
            claimed = await passages.claim_pending(tx, model=embedder().model, limit=10, lease_seconds=60)
        held, first, second = claimed[:2], claimed[2:4], claimed[4:]

        async def batch(number: int, gone_well: PendingPassage) -> EmbeddingBatch:
            made = await embedded_passages([gone_well])
            taken = [each[number] for each in (held, first, second)]
            return EmbeddingBatch(
                embedder(),
                taken,
                EmbedOutcome(made["ids"], [made["vectors"]], made["evidence"], aborted_by=EmbeddingFailed("is away")),
            )

        async def both_wait() -> bool:
            return bool(await owner.fetchval("SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted") == 2)

        batches = [await batch(0, first[0]), await batch(1, second[1])]
        async with owner.transaction():
            query = "SELECT 1 FROM passages WHERE id = ANY ($1) FOR UPDATE"
            await owner.execute(query, [passage.id for passage in held])
            storing = asyncio.gather(*(embedding._store(context, caller.tenant_id, batch) for batch in batches))
            await eventually(both_wait)
        assert await storing == [StoredBatch(settled=1, embedded=1)] * 2


async def test_a_batch_raises_the_index_epoch_of_a_graph_once(
    context: WorkerContext, caller: Caller, owner: asyncpg.Connection
) -> None:
    """An epoch that is ahead of the clock increases by one each time."""
    ahead = 10**18
    await remember(context.database, caller, "poison", "Alice")
    await owner.execute("UPDATE graph_indexes SET index_epoch = $2 WHERE tenant_id = $1", caller.tenant_id, ahead)
    await embed_batch(context, caller.tenant_id)
    query = "SELECT max(index_epoch) FROM graph_indexes WHERE tenant_id = $1"
    assert await owner.fetchval(query, caller.tenant_id) == ahead + 1
