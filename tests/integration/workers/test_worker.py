"""The worker on a real PostgreSQL and a real Valkey."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import numpy as np
import pytest
import structlog
from pgvector import HalfVector

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.embedding import (
    Embedder,
    EmbeddingFailed,
    FailureCause,
    OpenAIEmbedder,
    Vectors,
    create_embedder,
)
from recollect.fairness.presence import Presence
from recollect.graph.passage_words import service as passage_words
from recollect.graph.passages.model import ClaimedPassage
from recollect.jobs.model import EMBED_PASSAGES
from recollect.postgres.connections import APP_ROLE
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.settings import Settings
from recollect.telemetry.tracing import continued_span
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import QUEUE_NAME, Wakeups, arq_redis
from recollect_local.postgres import LocalPostgres
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import embedding
from recollect_workers.main import run
from recollect_workers.pace import Pace
from recollect_workers.wakeup_listener import arq_worker, run_until_stopping
from tests.conftest import NewTenant
from tests.support import wakeup_worker
from tests.support.embedding_server import serving_embeddings
from tests.support.gateway import eventually
from tests.support.memories import Agent
from tests.support.otlp import collecting
from tests.support.quick_embedder import QUICK_EMBEDDER
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.support.workers import embedded_within, remember, waiting, working

WOKEN_ONLY = {"sweep_seconds": 86_400, "redis_timeout_seconds": MAX_WAIT_SECONDS}
"""No sweep does the work of a wake-up, and no wake-up is dropped because the machine is busy."""

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class WatchedEmbedder:
    """The real embedder; it records the texts that it got, and fails on those with `refused`."""

    def __init__(self, embedder: Embedder, *, refused: str | None = None) -> None:
        self._embedder = embedder
        self._refused = refused
        self.model, self.dimensions, self.similarity_thresholds = (
            embedder.model,
            embedder.dimensions,
            embedder.similarity_thresholds,
        )
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        if self._refused is not None and any(self._refused in text for text in texts):
            raise ValueError("out of order")
        return await self._embedder.embed(texts)

    async def close(self) -> None:
        await self._embedder.close()


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    return create_embedder(Settings(embedder=QUICK_EMBEDDER))


@pytest.fixture
async def context(settings: Settings, db: Database, embedder: Embedder) -> AsyncIterator[WorkerContext]:
    async with connect_redis(settings) as redis:
        wakeups = Wakeups(redis)
        yield WorkerContext(settings, db, WatchedEmbedder(embedder), wakeups, asyncio.Event())
        await wakeups.aclose()


@pytest.fixture
async def waking_db(settings: Settings) -> AsyncIterator[Database]:
    """The database as the gateway opens it: commits wake the worker."""
    async with connect_redis(settings.model_copy(update=WOKEN_ONLY)) as redis:
        wakeups = Wakeups(redis)
        async with Database.connect(settings.database_url, settings=settings, on_commit=wakeups.notify) as db:
            yield db
        await wakeups.aclose()


@asynccontextmanager
async def worker(settings: Settings) -> AsyncIterator[None]:
    """A worker in this process, after its first sweep."""
    stopping, swept = asyncio.Event(), asyncio.Event()
    sweep = embedding.sweep

    async def swept_once(context: WorkerContext) -> None:
        await sweep(context)
        swept.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding, "sweep", swept_once)
        task = asyncio.create_task(run(settings, stopping))
        try:
            await asyncio.wait_for(swept.wait(), MAX_WAIT_SECONDS)
            yield
        finally:
            stopping.set()
            await task


@pytest.mark.usefixtures("no_backlog")
async def test_a_commit_wakes_the_worker(
    settings: Settings, waking_db: Database, caller: Caller, owner: asyncpg.Connection
) -> None:
    async with worker(settings.model_copy(update=WOKEN_ONLY)):
        for name in ("Alice", "Bob"):
            await remember(waking_db, caller, name)
            assert await embedded_within(owner, caller)


async def test_the_worker_stops_during_any_request_to_redis(context: WorkerContext) -> None:
    """Before Python 3.12, a cancellation that comes together with an answer is lost: about one of twenty."""
    stops = 100
    async with connect_redis(context.settings) as redis, asyncio.timeout(MAX_WAIT_SECONDS):
        for number in range(stops):
            stopping = asyncio.Event()
            worker = arq_worker(replace(context, stopping=stopping), arq_redis(redis))
            worker.poll_delay_s = 0
            asyncio.get_running_loop().call_later(0.02 * number / stops, stopping.set)
            await run_until_stopping(replace(context, stopping=stopping), worker)


@pytest.mark.usefixtures("no_backlog")
async def test_no_wakeup_is_lost_at_any_rate_of_commits(
    settings: Settings, waking_db: Database, caller: Caller, owner: asyncpg.Connection
) -> None:
    async with worker(settings.model_copy(update=WOKEN_ONLY)):
        for number in range(60):
            await remember(waking_db, caller, f"person {number}")
            await asyncio.sleep(number % 7 * 0.013)
        assert await embedded_within(owner, caller)


async def test_a_sweep_finds_work_without_a_wakeup(
    settings: Settings, db: Database, caller: Caller, owner: asyncpg.Connection
) -> None:
    async with worker(settings.model_copy(update={"sweep_seconds": 1})):
        await remember(db, caller, "Alice")
        assert await embedded_within(owner, caller)


async def test_the_stored_vector_includes_neighbours_and_names_its_model(
    context: WorkerContext, embedder: Embedder, caller: Caller, owner: asyncpg.Connection
) -> None:
    await remember(context.database, caller, "Alice")
    assert not await embedding.embed_passages(context, caller.tenant_id, {})
    rows = await owner.fetch(
        "SELECT p.text, v.embedding::text, p.embedding_model FROM passages p "
        "JOIN searched_vectors v ON v.tenant_id = p.tenant_id AND v.passage_id = p.id AND v.model = p.embedding_model "
        "WHERE p.tenant_id = $1 ORDER BY p.id",
        caller.tenant_id,
    )
    coffee, tea = await embedder.embed(["Alice: likes coffee", "Alice: likes tea"])
    expected = np.array([coffee + tea / 2, tea + coffee / 2])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert [row["text"] for row in rows] == ["likes coffee", "likes tea"]
    assert {row["embedding_model"] for row in rows} == {embedder.model}
    stored = np.array([HalfVector.from_text(row["embedding"]).to_list() for row in rows])
    assert stored == pytest.approx(expected, abs=1e-3)


async def test_a_run_is_limited_and_reports_remaining_work(
    context: WorkerContext, caller: Caller, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "MAX_BATCHES", 3)
    context = replace(context, settings=context.settings.model_copy(update={"embedding_batch": 4}))
    await remember(context.database, caller, *[f"person {number}" for number in range(10)])
    assert await embedding.embed_passages(context, caller.tenant_id, {})
    assert await waiting(owner, caller) == 8
    assert not await embedding.embed_passages(context, caller.tenant_id, {})
    assert await waiting(owner, caller) == 0


async def test_a_run_that_leaves_work_triggers_another(
    context: WorkerContext, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "MAX_BATCHES", 1)
    context = replace(context, settings=context.settings.model_copy(update={"embedding_batch": 1}))
    await remember(context.database, caller, "Alice")
    await embedding.woken(context, caller.tenant_id, {})
    await context.wakeups.aclose()
    async with connect_redis(context.settings) as redis:
        jobs = await redis.zrange(QUEUE_NAME, 0, -1)
        assert any(f"{EMBED_PASSAGES}:{caller.tenant_id}".encode() in job for job in jobs)


async def test_a_sweep_gives_every_tenant_turns_until_nothing_is_left(
    context: WorkerContext, new_tenant: NewTenant, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "MAX_BATCHES", 1)
    context = replace(context, settings=context.settings.model_copy(update={"embedding_batch": 2}))
    await embedding.sweep(context)
    callers = [operator_caller(await new_tenant()) for _ in range(3)]
    for number, caller in enumerate(callers):
        await remember(context.database, caller, *[f"{number} {nth}" for nth in range(3)])
    watched = WatchedEmbedder(context.embedder)
    await embedding.sweep(replace(context, embedder=watched))
    assert [await waiting(owner, caller) for caller in callers] == [0, 0, 0]
    assert {text[0] for text in watched.texts[:6]} == {"0", "1", "2"}


async def test_a_failure_for_one_tenant_does_not_delay_others(
    context: WorkerContext, new_tenant: NewTenant, owner: asyncpg.Connection
) -> None:
    callers = [operator_caller(await new_tenant()) for _ in range(3)]
    for name, caller in zip(("Alice", "poison", "Bob"), callers, strict=True):
        await remember(context.database, caller, name)
    await embedding.sweep(replace(context, embedder=WatchedEmbedder(context.embedder, refused="poison")))
    assert [await waiting(owner, caller) for caller in callers] == [0, 2, 0]


async def test_concurrent_workers_share_the_work(
    context: WorkerContext, caller: Caller, owner: asyncpg.Connection, embedder: Embedder
) -> None:
    settings = context.settings.model_copy(update={"embedding_batch": 5})
    await remember(context.database, caller, *[f"person {number}" for number in range(50)])
    watched = WatchedEmbedder(embedder)
    context = replace(context, settings=settings, embedder=watched)
    await asyncio.gather(*[embedding.embed_passages(context, caller.tenant_id, {}) for _ in range(4)])
    assert await waiting(owner, caller) == 0
    assert len(watched.texts) == len(set(watched.texts)) == 100


@pytest.fixture
async def administrator(postgres: LocalPostgres) -> AsyncIterator[asyncpg.Connection]:
    """A superuser's connection: only superusers see what sessions of other roles do."""
    connection = await asyncpg.connect(postgres.url())
    yield connection
    await connection.close()


async def open_transactions(administrator: asyncpg.Connection) -> int:
    """The number of sessions of gateways and workers that are idle in a transaction."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE usename = $1 AND state LIKE 'idle in transaction%'"
    return int(await administrator.fetchval(query, APP_ROLE))


async def test_no_transaction_is_open_during_embedding(
    context: WorkerContext, caller: Caller, owner: asyncpg.Connection, administrator: asyncpg.Connection
) -> None:
    async with context.database.transaction(caller):
        assert await open_transactions(administrator) > 0
    await remember(context.database, caller, "Alice")
    with serving_embeddings() as server:
        server.answering.clear()
        patient = {"embedding_dimensions": 8, "embedding_timeout_seconds": MAX_WAIT_SECONDS}
        remote = OpenAIEmbedder(Settings(embedding_url=server.url).model_copy(update=patient))
        running = asyncio.create_task(embedding.embed_passages(replace(context, embedder=remote), caller.tenant_id, {}))
        assert await asyncio.to_thread(server.requested.wait, MAX_WAIT_SECONDS)
        assert await open_transactions(administrator) == 0
        assert not running.done()
        server.answering.set()
        await running
        await remote.close()
    assert await waiting(owner, caller) == 0


async def test_one_batch_is_embedded_while_another_is_stored_and_no_third(
    context: WorkerContext, caller: Caller, owner: asyncpg.Connection, embedder: Embedder
) -> None:
    watched = WatchedEmbedder(embedder)
    settings = context.settings.model_copy(update={"embedding_batch": 4})
    context = replace(context, settings=settings, embedder=watched)
    await remember(context.database, caller, *[f"person {number}" for number in range(10)])
    async with owner.transaction():
        await owner.execute("SELECT 1 FROM graph_indexes WHERE tenant_id = $1 FOR UPDATE", caller.tenant_id)
        running = asyncio.create_task(embedding.embed_passages(context, caller.tenant_id, {}))
        await eventually(lambda: asyncio.sleep(0, len(watched.texts) >= 8))
        await asyncio.sleep(0.5)
        assert (len(watched.texts), await waiting(owner, caller)) == (8, 20)
    assert not await running
    assert (len(watched.texts), await waiting(owner, caller)) == (20, 0)


async def test_passages_locked_while_a_batch_is_stored_are_claimed_next(
    context: WorkerContext, caller: Caller, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Storing locks neighbours, which a concurrent claim skips. They need not wait for a sweep."""
    context = replace(context, settings=context.settings.model_copy(update={"embedding_batch": 4}))
    await remember(context.database, caller, "Ada", "Grace", "Mary")
    claim, store, locked = embedding._claim, embedding._store, asyncio.Event()
    claims: list[list[ClaimedPassage]] = []

    async def claim_beside_the_lock(*arguments: Any, **options: Any) -> list[ClaimedPassage]:
        if claims:
            await locked.wait()
        claims.append(claimed := await claim(*arguments, **options))
        return claimed

    async def store_after_the_next_claim(*arguments: Any) -> embedding.StoredBatch:
        before = len(claims)
        async with owner.transaction():
            await owner.execute("SELECT 1 FROM passages WHERE tenant_id = $1 FOR UPDATE", caller.tenant_id)
            locked.set()
            await eventually(lambda: asyncio.sleep(0, len(claims) > before))
        return await store(*arguments)

    monkeypatch.setattr(embedding, "_claim", claim_beside_the_lock)
    monkeypatch.setattr(embedding, "_store", store_after_the_next_claim)
    await embedding.embed_passages(context, caller.tenant_id, {})
    assert await waiting(owner, caller) == 0


async def test_beside_other_tenants_calls_the_worker_rests_after_each_short_batch(
    context: WorkerContext, caller: Caller, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[int] = []

    class _OthersCall(Pace):
        async def is_slow(self, tenant_id: UUID) -> bool:
            return tenant_id == caller.tenant_id

        async def _rest(self, tenant_id: UUID, seconds: float) -> None:
            left.append(await waiting(owner, caller))

    monkeypatch.setattr(embedding, "SHORT_BATCH", 1)
    context = replace(context, pace=_OthersCall(Presence(context.wakeups._arq), 0.5, context.stopping))
    await remember(context.database, caller, "Ada", "Grace", "Mary")
    count = await waiting(owner, caller)
    await embedding.embed_passages(context, caller.tenant_id, {})
    assert left[:count] == list(range(count - 1, -1, -1))
    left.clear()
    await remember(context.database, caller, "Katherine")
    await embedding.embed_passages(context, caller.tenant_id, {}, small_only=True)
    assert (left, await waiting(owner, caller)) == ([], 0), "what few have just written does not wait"


async def test_an_embedder_that_is_away_only_delays_the_work(
    context: WorkerContext, caller: Caller, owner: asyncpg.Connection
) -> None:
    await remember(context.database, caller, "Alice")
    away = OpenAIEmbedder(Settings(embedding_url="http://127.0.0.1:1/v1"))
    await embedding.woken(replace(context, embedder=away), caller.tenant_id, {})
    await away.close()
    assert context.backoff.waiting
    await embedding.woken(context, caller.tenant_id, {})
    await embedding.sweep(context)
    assert await waiting(owner, caller) == 2
    await asyncio.wait_for(context.backoff.due.wait(), MAX_WAIT_SECONDS)
    await embedding.sweep(context)
    assert await waiting(owner, caller) == 0


async def test_vectors_made_before_the_embedder_failed_are_stored_and_used(
    context: WorkerContext, caller: Caller, owner: asyncpg.Connection
) -> None:
    class Fading(WatchedEmbedder):
        async def embed(self, texts: Sequence[str]) -> Vectors:
            if any("poison" in text for text in texts):
                cause = FailureCause.UNSURE if len(texts) == 4 else FailureCause.UNREACHABLE
                raise EmbeddingFailed("is away", cause=cause)
            return await super().embed(texts)

    await remember(context.database, caller, "Alice", "poison")
    with structlog.testing.capture_logs() as told, pytest.raises(EmbeddingFailed):
        await embedding.embed_passages(replace(context, embedder=Fading(context.embedder)), caller.tenant_id, {})
    assert await waiting(owner, caller) == 2
    assert [line["passages"] for line in told if line["event"] == "passages embedded"] == [2]
    assert context.links_due.is_set()


async def test_settled_or_set_aside_passages_are_not_logged_as_embedded(
    context: WorkerContext, caller: Caller, owner: asyncpg.Connection
) -> None:
    await remember(context.database, caller, "Alice")
    await embedding.embed_passages(context, caller.tenant_id, {})
    await owner.execute("UPDATE passages SET settled = false WHERE tenant_id = $1", caller.tenant_id)
    with structlog.testing.capture_logs() as told:
        await embedding.embed_passages(context, caller.tenant_id, {})
        await remember(context.database, caller, "Bob")
        await embedding.embed_passages(context, caller.tenant_id, {})
    assert [line["passages"] for line in told if line["event"] == "passages embedded"] == [2]


class TestCounting:
    """After each run, the words of changed graphs are counted."""

    async def remembered(self, context: WorkerContext, caller: Caller) -> dict[UUID, int]:
        """The ids of two graphs with ten embedded memories each."""
        for name in ("first", "second"):
            await Agent(context.database, caller, name).create(*(f"person {number}" for number in range(10)))
        await embedding.embed_passages(context, caller.tenant_id, {})
        return await self.counted(context, caller)

    async def counted(self, context: WorkerContext, caller: Caller) -> dict[UUID, int]:
        """For each graph, by id, the number of memories when its words were last counted."""
        async with context.database.transaction(caller, read_only=True) as tx:
            rows = await tx.fetch(
                Query.compile(
                    "SELECT graph_id, memories_counted FROM graph_indexes i JOIN graphs g ON g.id = i.graph_id "
                    "WHERE g.name <> 'default' ORDER BY graph_id"
                )
            )
        return {row["graph_id"]: row["memories_counted"] for row in rows}

    async def test_a_graph_that_cannot_be_counted_does_not_delay_others(
        self, context: WorkerContext, caller: Caller, owner: asyncpg.Connection
    ) -> None:
        held, *others = await self.remembered(context, caller)
        hasty = context.settings.model_copy(update={"lock_timeout_seconds": 0.1})
        async with Database.connect(hasty.database_url, settings=hasty) as db, owner.transaction():
            await owner.execute("SELECT 1 FROM graph_indexes WHERE graph_id = $1 FOR UPDATE", held)
            await embedding.woken(replace(context, database=db), caller.tenant_id, {})
        counted = await self.counted(context, caller)
        assert (counted[held], [counted[graph] for graph in others]) == (0, [10])
        await embedding.count_terms(context, caller.tenant_id)
        assert set((await self.counted(context, caller)).values()) == {10}

    async def test_a_stopping_worker_starts_no_count(self, context: WorkerContext, caller: Caller) -> None:
        await self.remembered(context, caller)
        context.stopping.set()
        await embedding.count_terms(context, caller.tenant_id)
        assert set((await self.counted(context, caller)).values()) == {0}

    async def test_only_a_sample_of_many_passages_is_counted(
        self, context: WorkerContext, caller: Caller, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(passage_words, "COUNTED_AT_MOST", 10)
        long = " ".join(f"word{number}" for number in range(80 * 10))
        await Agent(context.database, caller).remember(*(f"{long} {number}" for number in range(7)))
        assert await waiting(owner, caller) == 77
        await embedding.count_terms(context, caller.tenant_id)
        row = await owner.fetchrow(
            "SELECT memories_counted, passages_counted FROM graph_indexes WHERE tenant_id = $1", caller.tenant_id
        )
        assert row is not None
        assert (row["memories_counted"], row["passages_counted"] % 8) == (7, 0)


async def test_a_wakeup_embeds_passages_of_its_own_tenant_only(
    context: WorkerContext, new_tenant: NewTenant, owner: asyncpg.Connection
) -> None:
    mine, other = [operator_caller(await new_tenant()) for _ in range(2)]
    for caller in (mine, other):
        await remember(context.database, caller, "Alice")
    await embedding.woken(context, mine.tenant_id, {})
    assert (await waiting(owner, mine), await waiting(owner, other)) == (0, 2)


async def test_a_wakeup_of_a_deleted_tenant_is_not_an_error(context: WorkerContext) -> None:
    with structlog.testing.capture_logs() as logs:
        await embedding.woken(context, uuid4(), {})
    assert [(entry["log_level"], entry["event"]) for entry in logs] == [("info", "tenant was erased or moved")]


@pytest.mark.proves("security: untrusted-valkey")
async def test_invalid_wakeups_are_skipped(
    settings: Settings, waking_db: Database, caller: Caller, owner: asyncpg.Connection
) -> None:
    async with connect_redis(settings) as redis, worker(settings.model_copy(update=WOKEN_ONLY)):
        for job_id, payload in [("pickled", b"\x80\x04N."), ("empty", b""), ("unknown", b"\x81\xa1f\xa1x")]:
            await redis.set(f"arq:job:{job_id}", payload)
            await redis.zadd(QUEUE_NAME, {job_id: 1})
        Wakeups(redis).notify(UUID(int=7), frozenset({"another_job", EMBED_PASSAGES}))
        await asyncio.sleep(0.5)
        await remember(waking_db, caller, "Alice")
        assert await embedded_within(owner, caller)

        async def are_dropped() -> bool:
            return not any(await redis.zmscore(QUEUE_NAME, ["pickled", "empty", "unknown"]))

        await eventually(are_dropped)


async def test_the_workers_span_continues_the_trace_of_the_commit(
    settings: Settings, waking_db: Database, caller: Caller, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    with collecting() as collector:
        traced = settings.model_copy(
            update={"otlp_endpoint": collector.endpoint, "redis_timeout_seconds": MAX_WAIT_SECONDS}
        )
        with working(traced, tmp_path, wakeup_worker.WORKER) as process:
            process.wait_for("listening for wake-ups")
            process.wait_for(wakeup_worker.has_swept("passages"))
            with continued_span("request", {"traceparent": TRACEPARENT}):
                await remember(waking_db, caller, "Alice in Wonderland")
            assert await embedded_within(owner, caller)
            assert process.stop() == 0
    spans = [span for span in collector.spans if span.trace_id.hex() == TRACEPARENT.split("-")[1]]
    [job] = [span for span in spans if span.name == f"process {EMBED_PASSAGES}"]
    attributes = {item.key: item.value for item in job.attributes}
    assert attributes["recollect.tenant.id"].string_value == str(caller.tenant_id)
    assert attributes["recollect.passages"].int_value == 2
    inside = [span for span in spans if span.parent_span_id == job.span_id]
    statements = " ".join(item.value.string_value for span in inside for item in span.attributes)
    assert "BEGIN" in statements
    assert "FOR UPDATE SKIP LOCKED" in statements
    assert "UPDATE passages" in statements
    assert {span.name for span in collector.spans} & {"ZRANGEBYSCORE"} == set()
    assert b"Wonderland" not in collector.raw
    assert b"coffee" not in collector.raw
