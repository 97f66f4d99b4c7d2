"""Change of model: new vectors are made beside the old ones, which serve until the switch; and the change back."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import asyncpg
import numpy as np
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller, Scope
from recollect.embedding import UNMEASURED, EmbeddingFailed, FailureCause, Vectors
from recollect.graph.graphs import service as graphs
from recollect.jobs.kinds import REEMBED_PASSAGES
from recollect.jobs.model import MAX_ATTEMPTS, Job
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.retention.compaction import service as retention
from recollect.retention.compaction.model import Compaction, FreedRows
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.model import Question, RecallFilter
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import Wakeups
from recollect_workers import job_loop
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import embedding, reembedding
from recollect_workers.jobs.compaction import schedule
from recollect_workers.jobs.embedding import StoredBatch
from recollect_workers.kinds import known_kinds
from recollect_workers.time_slices import TimeSlices
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.jobs import Desk
from tests.support.quotas import limit
from tests.support.timeouts import MAX_WAIT_SECONDS
from tests.support.workers import remember

PEOPLE = [f"person {number}" for number in range(7)]


class Toy:
    """An embedder with its own model and dimensions, whose vectors distinguish texts. It does not accept texts with
    `refused`.
    """

    similarity_thresholds = UNMEASURED

    def __init__(self, model: str, dimensions: int) -> None:
        self.model, self.dimensions = model, dimensions
        self.refused: str | None = None
        self.away = False
        self.retry_after: float | None = None
        self.asked = 0
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked += 1
        if self.away:
            raise EmbeddingFailed("is away", cause=FailureCause.UNREACHABLE, retry_after=self.retry_after)
        if self.refused is not None and any(self.refused in text for text in texts):
            raise EmbeddingFailed("answered HTTP 400", cause=FailureCause.TEXT)
        self.texts += texts
        rows = [np.random.default_rng(abs(hash(text)) % 2**32).normal(size=self.dimensions) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32).reshape(len(texts), self.dimensions)

    async def close(self) -> None:
        """There is nothing to close."""


@dataclass(frozen=True)
class ModelChange:
    """A tenant whose memories `old` embedded, and workers before, during and after the change to `new`."""

    desk: Desk
    owner: asyncpg.Connection
    old: Toy
    new: Toy
    before: WorkerContext
    during: WorkerContext
    after: WorkerContext

    async def models(self) -> dict[str | None, int]:
        """The number of live passages that are searched by each model's vectors."""
        rows = await self.owner.fetch(
            "SELECT embedding_model, count(*) FROM passages WHERE tenant_id = $1 AND removed_revision IS NULL "
            "GROUP BY 1",
            self.desk.caller.tenant_id,
        )
        return {row["embedding_model"]: row["count"] for row in rows}

    async def kept(self) -> dict[str, int]:
        """The number of own vectors of each model. There is evidence for each."""
        vectors, evidence = [
            {row["model"]: row["count"] for row in await self.owner.fetch(query, self.desk.caller.tenant_id)}
            for query in (
                f"SELECT model, count(*) FROM {table} WHERE tenant_id = $1 GROUP BY 1"
                for table in ("passage_vectors", "passage_evidence")
            )
        ]
        assert vectors == evidence
        return vectors

    async def start(self, model: str | None = None, *, drop_old: bool = False) -> Job:
        return await self.desk.start(REEMBED_PASSAGES, model=model, drop_old=drop_old)

    async def run(self, context: WorkerContext, model: str | None = None, *, drop_old: bool = False) -> Job:
        """Start the job and finish it."""
        job = await self.start(model, drop_old=drop_old)
        await job_loop.sweep(context)
        return await self.desk.look(job)

    async def cosines(self) -> set[float | None]:
        """The cosines of hits whose text is the question, asked as a gateway with both embedders does."""
        text = "person 3: likes tea"
        asked, older = [
            Question(text, (await one.embed([text]))[0], one.model, similarity_thresholds=one.similarity_thresholds)
            for one in (self.new, self.old)
        ]
        async with self.desk.db.transaction(self.desk.caller, read_only=True) as tx:
            found = await recall.recall(
                await graphs.view(tx, None),
                [replace(asked, older=older)],
                RecallFilter(),
                limit=100,
                token_budget=10_000,
            )
        return {round(hit.meaning, 2) for hit in found.hits if hit.name == "person 3" and hit.text == "likes tea"}


@pytest.fixture
async def change(
    settings: Settings, db: Database, caller: Caller, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ModelChange]:
    monkeypatch.setattr(reembedding, "SWITCHED_AT_ONCE", 5)
    await owner.execute("DELETE FROM jobs")
    old, new = Toy("toy/old", 4), Toy("toy/new", 6)
    small = settings.model_copy(update={"embedding_batch": 3})
    async with connect_redis(settings) as redis:
        wakeups = Wakeups(redis)
        before = WorkerContext(small, db, old, wakeups, asyncio.Event(), known_kinds(small))
        after = replace(before, embedder=new)
        desk = Desk(db, caller)
        await remember(db, caller, *PEOPLE)
        await embedding.embed_passages(before, caller.tenant_id, {})
        yield ModelChange(desk, owner, old, new, before, replace(after, previous=old), after)
        await wakeups.aclose()
    await owner.execute("DELETE FROM passages WHERE tenant_id = $1", caller.tenant_id)


class TestChange:
    @pytest.mark.proves("rules: old-vectors-until-complete")
    async def test_old_vectors_serve_until_the_new_are_complete(
        self, change: ModelChange, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(job_loop, "SLICE_SECONDS", 0)
        alone = await change.cosines()
        assert alone == {1.0}, "as of the very text"
        job = await change.start()
        seen = []
        while not (await change.desk.look(job)).is_finished:
            context = replace(change.during, kinds={REEMBED_PASSAGES: change.during.kinds[REEMBED_PASSAGES]})
            claimed = await job_loop._attempt_claim(context, change.desk.caller.tenant_id)
            assert claimed is not None
            await job_loop.run_slice(context, change.desk.caller.tenant_id, claimed)
            shown = await change.desk.look(job)
            seen.append((shown.cursor.get("phase", "embed"), await change.models()))
            if shown.cursor.get("phase") is None:
                assert await change.cosines() == alone
        assert [models for phase, models in seen if phase == "embed"] == [{"toy/old": 14}] * 4
        assert await change.models() == {"toy/new": 14}
        assert await change.kept() == {"toy/old": 14, "toy/new": 14}
        shown = await change.desk.look(job)
        assert (shown.status, shown.done, shown.total) == ("succeeded", 28, 28)
        assert shown.result == {"model": "toy/new", "passages": 14, "embedded": 14}
        assert await change.cosines() == {1.0}
        assert "person 3: likes tea" in change.new.texts

    async def test_switched_vectors_equal_those_that_the_worker_makes(self, change: ModelChange) -> None:
        await change.run(change.during)
        query = """
            SELECT p.text, v.model, v.embedding::text, p.near, p.settled FROM passages p
            LEFT JOIN searched_vectors v ON v.tenant_id = p.tenant_id AND v.passage_id = p.id
            WHERE p.tenant_id = $1 ORDER BY p.id"""
        switched = await change.owner.fetch(query, change.desk.caller.tenant_id)
        await change.owner.execute(
            "UPDATE passages SET settled = false WHERE tenant_id = $1", change.desk.caller.tenant_id
        )
        asked = len(change.new.texts)
        await embedding.embed_passages(change.after, change.desk.caller.tenant_id, {})
        assert await change.owner.fetch(query, change.desk.caller.tenant_id) == switched
        assert len(change.new.texts) == asked

    async def test_changing_back_embeds_nothing(self, change: ModelChange) -> None:
        await change.run(change.during)
        asked = len(change.old.texts)
        back = await change.run(change.during, "toy/old")
        assert back.result == {"model": "toy/old", "passages": 14, "embedded": 0}
        assert await change.models() == {"toy/old": 14}
        assert len(change.old.texts) == asked

    async def test_reembedded_passages_are_counted_in_usage_and_metrics(
        self, change: ModelChange, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        recorded: list[int] = []
        monkeypatch.setattr(reembedding, "record_embedded", recorded.append)
        query = "SELECT sum(passages) FROM usage_hourly WHERE tenant_id = $1"
        before = await change.owner.fetchval(query, change.desk.caller.tenant_id)
        await change.run(change.during)
        await change.run(change.during, "toy/old")
        assert await change.owner.fetchval(query, change.desk.caller.tenant_id) == before + 14
        assert sum(recorded) == 14

    async def test_the_model_can_be_changed_without_the_previous_embedder(self, change: ModelChange) -> None:
        assert (await change.run(change.after)).status == "succeeded"
        assert await change.models() == {"toy/new": 14}

    async def test_old_vectors_are_dropped_on_request(self, change: ModelChange) -> None:
        done = await change.run(change.during, drop_old=True)
        assert done.status == "succeeded"
        assert await change.kept() == {"toy/new": 14}

    async def test_evidence_of_an_older_generation_is_rebuilt(self, change: ModelChange) -> None:
        """By the serving model, and without a new vector."""
        stale = "UPDATE passage_evidence SET generation = 0 WHERE tenant_id = $1"
        await change.owner.execute(stale, change.desk.caller.tenant_id)
        done = await change.run(change.before)
        assert (done.status, done.result) == ("succeeded", {"model": "toy/old", "passages": 14, "embedded": 0})
        made = "SELECT count(*) FROM passage_evidence WHERE tenant_id = $1 AND generation > 0"
        assert await change.owner.fetchval(made, change.desk.caller.tenant_id) == 14

    async def test_an_unavailable_model_is_refused(self, change: ModelChange) -> None:
        refused = await change.run(change.during, "toy/other")
        assert (refused.status, refused.error_code) == ("failed", "invalid_input")
        assert await change.models() == {"toy/old": 14}

    async def test_the_job_waits_for_an_embedder_that_is_away(self, change: ModelChange) -> None:
        change.new.away = True
        job = await change.run(change.during)
        assert (job.status, job.error_code) == ("running", "embedder_unavailable")
        change.new.away = False
        await asyncio.wait_for(change.during.backoff.due.wait(), MAX_WAIT_SECONDS)
        await change.owner.execute("UPDATE jobs SET next_attempt_at = now() WHERE id = $1", job.id)
        await job_loop.sweep(change.during)
        assert (await change.desk.look(job)).status == "succeeded"

    @pytest.mark.usefixtures("noon")
    async def test_passages_beyond_the_quota_are_embedded_on_the_next_day(
        self, change: ModelChange, operator: Operator
    ) -> None:
        """The 14 passages were embedded today, when they were written."""
        caller = change.desk.caller
        await limit(operator, caller.tenant, embeddings_per_day=18)
        job = await change.run(change.during)
        assert (job.status, job.error_code, job.attempts) == ("running", "quota_exceeded", 0)
        assert await change.kept() == {"toy/old": 14, "toy/new": 4}
        assert await change.models() == {"toy/old": 14}
        yesterday = "UPDATE usage_hourly SET hour = hour - interval '1 day' WHERE tenant_id = $1"
        await change.owner.execute(yesterday, caller.tenant_id)
        await change.owner.execute("UPDATE jobs SET next_attempt_at = now() WHERE id = $1", job.id)
        await job_loop.sweep(change.during)
        assert (await change.desk.look(job)).status == "succeeded"
        assert await change.models() == {"toy/new": 14}

    async def test_an_embedder_that_asks_for_a_pause_gets_it_without_failed_attempts(self, change: ModelChange) -> None:
        change.new.away, change.new.retry_after = True, 300
        job = await change.run(change.during)
        wait = "SELECT extract(epoch FROM next_attempt_at - now())::float, attempts, error_code FROM jobs WHERE id = $1"
        for _ in range(MAX_ATTEMPTS):
            await change.owner.execute("UPDATE jobs SET next_attempt_at = now() WHERE id = $1", job.id)
            await job_loop.sweep(change.during)
            row = await change.owner.fetchrow(wait, job.id)
            assert row is not None
            assert 250 < row[0] <= 300
            assert (row["attempts"], row["error_code"]) == (1, "embedder_unavailable")
        assert change.new.asked == 1

    async def test_an_embedder_that_is_away_does_not_block_the_other(self, change: ModelChange) -> None:
        change.new.away = True
        await change.run(change.during)
        assert change.during.backoff.waiting
        await remember(change.desk.db, change.desk.caller, "late")
        await embedding.sweep(change.during)
        assert await change.models() == {"toy/old": 16}


class TestRetention:
    """Vectors of the previous model allow to change back, for as long as the past is kept."""

    async def test_old_vectors_are_deleted_after_the_retention(self, change: ModelChange) -> None:
        await change.run(change.during)
        assert await compacted(change) == Compaction(None, FreedRows())
        assert await change.kept() == {"toy/old": 14, "toy/new": 14}
        await let_pass(change)
        async with change.desk.db.transaction(change.desk.caller, read_only=True) as tx:
            graph = await graphs.get_graph(tx, "default")
            assert (await retention.preview(tx, graph, before=retained_since())).freed == FreedRows(vectors=14)
        assert (await compacted(change)).freed == FreedRows(vectors=14)
        assert (await change.kept(), await change.models()) == ({"toy/new": 14}, {"toy/new": 14})
        assert await compacted(change) == Compaction(None, FreedRows()), "once"
        embedded = (await change.run(change.during, "toy/old")).result
        assert (embedded or {})["embedded"] == 14, "there still is a way back, which costs embedding"

    async def test_the_worker_schedules_the_deletion_of_old_vectors(self, change: ModelChange) -> None:
        await change.run(change.during)
        await let_pass(change)
        await schedule(change.during)
        await job_loop.sweep(change.during)
        assert await change.kept() == {"toy/new": 14}
        await let_pass(change)
        before = len(await change.desk.list())
        await schedule(change.during)
        assert len(await change.desk.list()) == before

    async def test_vectors_are_deleted_in_steps(self, change: ModelChange) -> None:
        await change.run(change.during)
        await let_pass(change)
        steps = [await compacted(change, limit=5) for _ in range(3)]
        assert [(step.freed.vectors, step.more) for step in steps] == [(5, True), (5, True), (4, False)]

    async def test_changing_back_restarts_the_retention(self, change: ModelChange) -> None:
        await change.run(change.during)
        await let_pass(change)
        await change.run(change.during, "toy/old")
        assert (await compacted(change)).freed == FreedRows()
        await let_pass(change)
        assert (await compacted(change)).freed == FreedRows(vectors=14)
        assert await change.kept() == {"toy/old": 14}

    async def test_nothing_is_deleted_during_a_change(self, change: ModelChange) -> None:
        await change.run(change.during)
        await let_pass(change)
        job = await change.start("toy/old")
        assert (await compacted(change)).freed == FreedRows()
        await change.desk.cancel(job)
        assert (await compacted(change)).freed == FreedRows(vectors=14)

    async def test_vectors_of_a_cancelled_change_are_deleted(
        self, change: ModelChange, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(job_loop, "SLICE_SECONDS", 0.0)
        job = await change.start()
        turns = TimeSlices(1)
        await job_loop._start_round(change.during, turns)
        await turns.wait_until_ended()
        await change.desk.cancel(job)
        assert 0 < (await change.kept())["toy/new"] < 14
        await let_pass(change)
        await compacted(change)
        assert (await change.kept(), await change.models()) == ({"toy/old": 14}, {"toy/old": 14})

    async def test_vectors_that_are_searched_stay_whatever_their_model(self, change: ModelChange) -> None:
        """New passages get vectors of the configured model if nobody has changed the model of their graph."""
        await change.run(change.during)
        other = replace(change.during, embedder=Toy("toy/third", 3), previous=None)
        await remember(change.desk.db, change.desk.caller, "person 99")
        await embedding.embed_passages(other, change.desk.caller.tenant_id, {})
        await let_pass(change)
        assert (await compacted(change)).freed == FreedRows(vectors=14)
        assert await change.kept() == {"toy/new": 14, "toy/third": 2}


async def let_pass(change: ModelChange) -> None:
    """Let the change of model be 31 days ago, and compaction of the graph be due."""
    tenant_id = change.desk.caller.tenant_id
    await change.owner.execute(
        "UPDATE graph_indexes SET others_since = others_since - interval '31 days' WHERE tenant_id = $1", tenant_id
    )
    await change.owner.execute("UPDATE graphs SET compaction_check_at = now() WHERE tenant_id = $1", tenant_id)


def retained_since() -> datetime:
    """The beginning of a retention that ends now."""
    return datetime.now(UTC) - timedelta(days=30)


async def compacted(change: ModelChange, *, limit: int = 100) -> Compaction:
    """One step of a compaction."""
    async with change.desk.writing() as tx:
        graph = await graphs.get_graph(tx, "default")
        return await retention.compact(tx, graph.id, before=retained_since(), limit=limit)


class TestConcurrentChanges:
    async def test_new_memories_are_embedded_by_the_serving_model(self, change: ModelChange) -> None:
        caller = change.desk.caller
        await remember(change.desk.db, caller, "late")
        await embedding.embed_passages(change.during, caller.tenant_id, {})
        assert await change.models() == {"toy/old": 16}
        await change.run(change.during)
        await remember(change.desk.db, caller, "later")
        await embedding.embed_passages(change.during, caller.tenant_id, {})
        assert await change.models() == {"toy/new": 18}

    async def test_passages_that_wait_at_the_switch_are_embedded_by_the_new_model(self, change: ModelChange) -> None:
        caller = change.desk.caller
        await remember(change.desk.db, caller, "late")
        await change.run(change.during)
        await embedding.embed_passages(change.during, caller.tenant_id, {})
        assert await change.models() == {"toy/new": 16}

    async def test_a_batch_of_the_old_model_stores_nothing_after_the_switch(self, change: ModelChange) -> None:
        tenant_id = change.desk.caller.tenant_id
        await remember(change.desk.db, change.desk.caller, "late")
        batch = await embedding._embed_next(change.during, tenant_id)
        assert batch is not None
        assert batch.embedder is change.old
        await change.run(change.during)
        assert await embedding._store(change.during, tenant_id, batch) == StoredBatch(settled=0, embedded=0)
        assert await change.models() == {"toy/new": 16}
        await embedding.embed_passages(change.during, tenant_id, {})
        assert await change.models() == {"toy/new": 16}

    async def test_a_text_refused_by_the_new_model_is_set_aside_and_retried(self, change: ModelChange) -> None:
        change.new.refused = "person 3"
        caller = change.desk.caller
        assert (await change.run(change.during)).status == "succeeded"
        await embedding.embed_passages(change.during, caller.tenant_id, {})
        query = "SELECT count(*) FROM passages WHERE tenant_id = $1 AND refused IS NOT NULL AND settled"
        assert await change.owner.fetchval(query, caller.tenant_id) == 2
        assert await change.models() == {"toy/new": 12, "toy/old": 2}
        change.new.refused = None
        assert (await change.run(change.during)).result == {"model": "toy/new", "passages": 14, "embedded": 2}
        await embedding.embed_passages(change.during, caller.tenant_id, {})
        assert await change.models() == {"toy/new": 14}
        assert await change.owner.fetchval(query, caller.tenant_id) == 0

    async def test_another_tenants_graph_keeps_its_model(self, change: ModelChange, new_tenant: NewTenant) -> None:
        other = operator_caller(await new_tenant())
        await remember(change.desk.db, other, "Alice")
        await embedding.embed_passages(change.before, other.tenant_id, {})
        await change.run(change.during)
        rows = await change.owner.fetch("SELECT embedding_model FROM passages WHERE tenant_id = $1", other.tenant_id)
        assert {row["embedding_model"] for row in rows} == {"toy/old"}
        await change.owner.execute("DELETE FROM passages WHERE tenant_id = $1", other.tenant_id)


async def test_a_change_of_model_is_requested_over_http(
    gateway: RunningGateway, caller: Caller, issue: NewApiKey, db: Database
) -> None:
    await remember(db, caller, "Alice")
    reader = (await issue(caller, scopes=frozenset({Scope.MEMORY_READ}))).secret
    async with gateway.http((await issue(caller)).secret) as http:
        started = (await http.post("/v1/graphs/default/reembed", json={"drop_old": True})).json()
        assert (started["kind"], started["status"], started["graph"]) == ("reembed_passages", "queued", "default")
        again = await http.post("/v1/graphs/default/reembed", json={"drop_old": True})
        assert (again.status_code, again.json()["id"]) == (202, started["id"])
        assert (await http.post("/v1/graphs/nowhere/reembed", json={})).status_code == 404
        assert (await http.post("/v1/graphs/default/reembed", json={"models": "x"})).status_code == 400
    async with gateway.http(reader) as http:
        assert (await http.post("/v1/graphs/default/reembed", json={})).status_code == 403
