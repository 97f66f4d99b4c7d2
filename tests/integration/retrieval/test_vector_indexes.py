"""Vector indexes: built for graphs that outgrow an exact scan, used by recall, dropped when they are not needed."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.graph.graphs import service as graphs
from recollect.memory import revising
from recollect.memory.model import MemoryRef, NewMemory
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Query, QueryPlan
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall import store
from recollect.retrieval.recall.model import Question, QuestionWords, RecallFilter, SearchScope
from recollect.retrieval.recall.questions import QuestionEncoder
from recollect.retrieval.recall.ranking import CANDIDATES
from recollect.retrieval.similarity import service as similarity
from recollect.retrieval.vector_indexes import service as upkeep
from recollect.retrieval.vector_indexes.model import (
    FEW_VECTORS,
    MAX_INDEXES,
    ORDINARY,
    THOROUGHNESS,
    SearchWidths,
    Thoroughness,
    VectorIndex,
    VectorKind,
    create_statement,
    indexed_kinds,
    within_partitions,
)
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import Wakeups
from recollect_local.postgres import LocalPostgres
from recollect_workers.context import WorkerContext
from recollect_workers.jobs.vector_indexes import maintain_indexes as tend_job
from tests.conftest import NewTenant
from tests.support.embedders import loaded_multilingual
from tests.support.memories import Agent, at_work, embedded_questions, embedder

MEMORIES = 120
RUNBOOK = Path(__file__).parents[3] / "docs" / "runbook" / "recall-misses.md"

PART = "SELECT DISTINCT tableoid::regclass::text FROM searched_vectors WHERE tenant_id = $1"
"""The table with a tenant's vectors."""

SEARCH_WIDTH = Query.compile("SELECT current_setting('hnsw.ef_search')::integer")
"""How widely the transaction searched the vector index last."""


@pytest.fixture
async def agent(db: Database, new_tenant: NewTenant) -> Agent:
    """An agent whose graph contains MEMORIES embedded facts."""
    agent = Agent(db, operator_caller(await new_tenant()))
    chance = np.random.default_rng(7)
    words = ["tea", "coffee", "engine", "garden", "violin", "harbour", "winter", "letter", "bridge", "market"]
    facts = (" ".join(chance.choice(words, 5)) + f" number {n}" for n in range(MEMORIES))
    await agent.remember(*(NewMemory(fact, thread=f"thread {n // 10}") for n, fact in enumerate(facts)))
    await agent.embed()
    return agent


@asynccontextmanager
async def operator(settings: Settings) -> AsyncIterator[Operator]:
    async with Operator.connect(settings.migration_url, settings) as operator:
        yield operator


_, THOROUGH, VERY_THOROUGH = THOROUGHNESS.values()


def thorough_from(memories: int) -> dict[int, Thoroughness]:
    """Options for building indexes, with a number of passages from which an index is thorough."""
    return {0: ORDINARY, memories: THOROUGH}


async def maintain(
    settings: Settings, memories: int = 100, thoroughness: Mapping[int, Thoroughness] = THOROUGHNESS
) -> list[str]:
    async with operator(settings) as connection:
        return await upkeep.maintain_indexes(
            connection, from_memories=memories, memory_mb=64, thoroughness=thoroughness
        )


async def graph_of(owner: asyncpg.Connection, caller: Caller) -> asyncpg.Record:
    row = await owner.fetchrow("SELECT * FROM graph_indexes WHERE tenant_id = $1", caller.tenant_id)
    assert row is not None
    return row


async def count_passages(owner: asyncpg.Connection, caller: Caller, passages: int) -> None:
    """Let a graph have so many passages, as its counts say."""
    await owner.execute(
        "UPDATE graph_indexes SET passages_counted = $2, index_epoch = index_epoch + 1 WHERE tenant_id = $1",
        caller.tenant_id,
        passages,
    )


def index_of(graph: asyncpg.Record, model: str | None = None) -> VectorIndex:
    """The index of a graph's vectors of a model, by default of the current embedder."""
    return VectorIndex(graph["tenant_id"], graph["graph_id"], model or embedder().model, embedder().dimensions)


async def statement_of(owner: asyncpg.Connection, index: VectorIndex) -> Query:
    """The statement that builds an index, in the tenant's part of the vectors."""
    part = await owner.fetchval(PART, index.tenant_id)
    return create_statement(index, int(part.removeprefix("searched_vectors_")))


async def recalled_texts(agent: Agent, text: str, *, exact: bool) -> list[str]:
    """What a recall finds, sent as a gateway sends it."""
    questions = await embedded_questions(text)
    async with agent.db.transaction(agent.caller, read_only=True, plan=QueryPlan.ONCE) as tx:
        found = await recall.recall(
            await graphs.view(tx, None),
            questions,
            RecallFilter(),
            limit=10,
            token_budget=10_000,
            exact=exact,
        )
        return [hit.text for hit in found.hits]


async def nearest(agent: Agent, *, exact: bool) -> set[UUID]:
    """What a question finds that shares no word with any passage."""
    [question] = await embedded_questions("oboes")
    async with agent.db.transaction(agent.caller, read_only=True, plan=QueryPlan.ONCE) as tx:
        view = await graphs.view(tx, None)
        state = await store.find_state(tx, view.graph)
        scope = SearchScope(view, RecallFilter(), None, None if exact else state)
        found = await store.find_candidates(scope, question.for_model(state.model), [], QuestionWords((), (), ()))
        searched_on = Query.compile("SELECT current_setting('hnsw.iterative_scan')")
        assert await tx.fetchval(searched_on) == "strict_order", "as other searches of the transaction need it"
        return {candidate.id for candidate in found}


PLACES = {
    "on the first floor.": "im ersten Stock.",
    "beside the stairs.": "neben der Treppe.",
    "in the small hall.": "im kleinen Saal.",
    "at the reception.": "am Empfang.",
    "with Mr Vogel.": "bei Herrn Vogel.",
    "in the cellar.": "im Keller.",
    "opposite the kitchen.": "gegenüber der Küche.",
    "behind the archive.": "hinter dem Archiv.",
}
THINGS = {
    "The coffee machine stands": "Die Kaffeemaschine steht",
    "The printer stands": "Der Drucker steht",
    "The bills are": "Die Rechnungen liegen",
    "The seminar begins": "Das Seminar beginnt",
    "The parcel waits": "Das Paket wartet",
    "The contract is": "Der Vertrag liegt",
    "The flowers stand": "Die Blumen stehen",
    "The lamp hangs": "Die Lampe hängt",
    "The visitors wait": "Die Besucher warten",
    "The carpet lies": "Der Teppich liegt",
    "The keys are": "Die Schlüssel liegen",
    "The meeting is": "Die Besprechung ist",
    "The computer stands": "Der Rechner steht",
}
OFFICE = {
    "English": [f"{what} {where}" for what in THINGS for where in PLACES],
    "German": [f"{what} {where}" for what in THINGS.values() for where in PLACES.values()],
}
"""More memories of each language than a search by meaning considers."""

SHIP = {"English": "The ferry was cancelled because of the storm.", "German": "Die Fähre fiel wegen des Sturms aus."}
SHIP_QUESTIONS = {"English": "What made ships stay ashore?", "German": "Wieso fuhr kein Schiff?"}
"""They share no word with any memory."""


@dataclass(frozen=True)
class Languages:
    """A graph with memories of an office, most of them in one language, and one of a ship in the other.

    Some were said in threads: they have a part of their neighbours' vectors, and so more or less of what only English
    texts have.
    """

    agent: Agent
    office: str
    ship: str

    async def found(self, question: str, *, exact: bool, **only: Any) -> list[str]:
        """What a search by meaning considers, the nearest first."""
        [asked] = await QuestionEncoder(loaded_multilingual()).questions(self.agent.caller, [question])
        async with self.agent.db.transaction(self.agent.caller, read_only=True, plan=QueryPlan.ONCE) as tx:
            view = await graphs.view(tx, None)
            state = await store.find_state(tx, view.graph)
            assert state.vector_model == asked.model
            scope = SearchScope(view, RecallFilter(**only), None, None if exact else state)
            found = await store.find_candidates(scope, asked, [], QuestionWords((), (), ()))
        assert all(candidate.meaning is not None for candidate in found)
        return [one.text for one in sorted(found, key=lambda one: (-(one.meaning or 0), one.text))]


@pytest.fixture(params=[("English", "German"), ("German", "English")], ids=["most English", "most German"])
async def languages(request: pytest.FixtureRequest, db: Database, new_tenant: NewTenant) -> AsyncIterator[Languages]:
    office, ship = request.param
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        said = [NewMemory(text, thread=f"thread {n % 13}" if n % 3 else None) for n, text in enumerate(OFFICE[office])]
        await agent.remember(*said, *OFFICE[ship][::3], SHIP[ship])
        await agent.embed(loaded_multilingual())
        yield Languages(agent, office, ship)


@pytest.fixture
async def no_index(settings: Settings) -> AsyncIterator[None]:
    """Drop all indexes after the test, since other tests look at plans."""
    yield
    await maintain(settings, memories=1_000_000)


def test_memory_for_building_an_index_follows_its_size_up_to_the_maximum() -> None:
    index = VectorIndex(UUID(int=1), UUID(int=2), "a model", 256)
    assert [index.memory_mb(passages, 512) for passages in (0, 10_000, 100_000, 1_000_000)] == [64, 64, 164, 512]
    assert index.memory_mb(1_000_000, 2_000) == 1_640
    assert index.memory_mb(1_000_000, 1) == 1
    assert index.with_thoroughness(THOROUGH).memory_mb(1_000_000, 3_000) == 2_140
    assert index.with_thoroughness(VERY_THOROUGH).memory_mb(1_000_000, 3_000) == 2_640


def kinds(english: int, others: int, graph: int = 2) -> list[VectorKind]:
    """The kinds of a graph's vectors, so many of each."""
    counts = {False: english, True: others}
    return [VectorKind(UUID(int=1), UUID(int=graph), "a model", 896, *count) for count in counts.items() if count[1]]


@pytest.mark.parametrize(
    ("english", "others", "indexed"),
    [
        (900, 0, [False]),
        (100, 30, [False]),
        (30, 100, [True]),
        (100, 100, [False, True]),
        (30, 20, [False]),
        (0, 0, []),
    ],
)
def test_a_kind_of_few_vectors_has_no_index_unless_it_has_the_most(
    english: int, others: int, indexed: list[bool]
) -> None:
    indexes = indexed_kinds(kinds(english, others), 100, frozenset())
    assert [index.other_language for index in indexes] == indexed
    assert len({index.name for index in indexes}) == len(indexes)


def test_a_kind_keeps_its_index_until_it_has_shrunk() -> None:
    _, others = indexed_kinds(kinds(100, 100), 100, frozenset())
    for existing in (others.name, others.with_thoroughness(THOROUGH).name):
        assert [index.name for index in indexed_kinds(kinds(100, 50), 100, {existing})][1:] == [others.name]
        assert len(indexed_kinds(kinds(100, 49), 100, {existing})) == 1


def test_the_largest_graphs_of_a_partition_have_all_of_their_indexes() -> None:
    both = [indexed_kinds(kinds(100, 100, graph), 100, frozenset()) for graph in range(MAX_INDEXES)]
    assert within_partitions([(7, of_graph) for of_graph in both]) == both[: MAX_INDEXES // 2]
    assert within_partitions(list(enumerate(both))) == both


@pytest.mark.usefixtures("no_index")
class TestIndexes:
    async def test_a_grown_graph_is_searched_by_its_index_and_a_shrunk_one_is_not(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection
    ) -> None:
        before = await graph_of(owner, agent.caller)
        name = index_of(before).name
        assert f"built {name}" in await maintain(settings)
        noted = await graph_of(owner, agent.caller)
        assert (noted["vector_model"], noted["vector_dimensions"]) == (embedder().model, embedder().dimensions)
        assert noted["index_epoch"] > before["index_epoch"]
        assert await self.plan_uses(agent, name)
        exact, by_index = [await recalled_texts(agent, "violin in the garden", exact=exact) for exact in (True, False)]
        assert exact
        assert by_index == exact
        assert await maintain(settings) == []
        assert f"dropped {name}" in await maintain(settings, memories=1_000)
        assert (await graph_of(owner, agent.caller))["vector_model"] is None
        assert await recalled_texts(agent, "violin in the garden", exact=False) == exact

    async def test_the_index_of_a_much_larger_graph_is_replaced_without_a_gap(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection
    ) -> None:
        await maintain(settings)
        index = index_of(await graph_of(owner, agent.caller))
        exact = await recalled_texts(agent, "violin in the garden", exact=True)
        thorough = index.with_thoroughness(THOROUGH)
        done = await maintain(settings, thoroughness=thorough_from(MEMORIES))
        assert done.index(f"built {thorough.name}") < done.index(f"dropped {index.name}")
        assert await self.plan_uses(agent, thorough.name)
        assert await recalled_texts(agent, "violin in the garden", exact=False) == exact
        # The graph keeps its index until it has shrunk to half of the size that requires it.
        assert await maintain(settings, thoroughness=thorough_from(2 * MEMORIES)) == []
        done = await maintain(settings, thoroughness=thorough_from(2 * MEMORIES + 2))
        assert done.index(f"built {index.name}") < done.index(f"dropped {thorough.name}")
        assert await self.plan_uses(agent, index.name)

    async def test_a_growing_graph_gets_a_more_thorough_index(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection
    ) -> None:
        index = index_of(await graph_of(owner, agent.caller))
        for built in (THOROUGH, VERY_THOROUGH):
            assert f"built {index.with_thoroughness(built).name}" in await maintain(settings, thoroughness={0: built})
        there = await owner.fetch("SELECT relname FROM pg_class WHERE relname LIKE $1", f"%{index.graph_id.hex}%")
        assert [row["relname"] for row in there] == [index.with_thoroughness(VERY_THOROUGH).name]

    async def test_number_of_passages_decides_how_thoroughly_an_index_is_built(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection
    ) -> None:
        index = index_of(await graph_of(owner, agent.caller))
        counted = "UPDATE graph_indexes SET passages_counted = $2, index_epoch = index_epoch + 1 WHERE tenant_id = $1"
        await owner.execute(counted, agent.caller.tenant_id, 3 * MEMORIES)
        done = await maintain(settings, thoroughness=thorough_from(3 * MEMORIES))
        assert f"built {index.with_thoroughness(THOROUGH).name}" in done

    async def test_later_rows_are_inserted_with_fewer_candidates(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection
    ) -> None:
        """The option is changed without waiting for readers and without making others wait. If that fails, the next run
        does it."""
        thoroughness = thorough_from(MEMORIES)
        thorough = index_of(await graph_of(owner, agent.caller)).with_thoroughness(THOROUGH)
        await maintain(settings, thoroughness=thoroughness)
        options = f"SELECT reloptions FROM pg_class WHERE relname = '{thorough.name}'"
        assert await owner.fetchval(options) == ["m=24", "ef_construction=128"]
        await owner.execute(f"ALTER INDEX {thorough.name} SET (ef_construction = 300)")
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            await tx.fetch(Query.compile("SELECT count(*) FROM searched_vectors WHERE tenant_id = :tenant_id"))
            await maintain(settings, thoroughness=thoroughness)
        assert await owner.fetchval(options) == ["m=24", "ef_construction=300"]
        await maintain(settings, thoroughness=thoroughness)
        assert await owner.fetchval(options) == ["m=24", "ef_construction=128"]

    async def test_an_index_is_used_until_its_replacement_is_built(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection
    ) -> None:
        await maintain(settings)
        index = index_of(await graph_of(owner, agent.caller))
        stopping = asyncio.Event()
        stopping.set()
        async with operator(settings) as connection:
            done = await upkeep.maintain_indexes(
                connection, from_memories=100, memory_mb=64, stopping=stopping, thoroughness=thorough_from(MEMORIES)
            )
        assert done == []
        assert await self.plan_uses(agent, index.name)

    async def test_the_runbook_finds_and_rebuilds_an_index_that_misses_results(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection
    ) -> None:
        await maintain(settings)
        name = index_of(await graph_of(owner, agent.caller)).name
        exact = await recalled_texts(agent, "violin in the garden", exact=True)
        [listed] = re.findall(r"```sql\n(.*?)```", RUNBOOK.read_text(), re.DOTALL)
        async with operator(settings) as connection:
            found = {row["index"]: row for row in await connection.fetch(Query.compile(listed))}
            assert (found[name]["tenant"], found[name]["memories"]) == (agent.caller.tenant, MEMORIES)
            assert found[name]["valid"]
            assert found[name]["bytes_of_each"] > 0
        await owner.execute(f"DROP INDEX CONCURRENTLY {name}")
        assert await recalled_texts(agent, "violin in the garden", exact=False) == exact
        assert await maintain(settings) == [f"built {name}"]
        assert await self.plan_uses(agent, name)

    @pytest.mark.parametrize(
        ("passages", "question", "width"),
        [
            (0, "violin", 400),
            (25_000, "violin", 800),
            (25_000, "What did the violin say in the harbour of winter?", 400),
            (100_000, "violin", 800),
            (100_000, "The violin of the winter", 800),
            (100_000, "violin garden letter", 500),
            (100_000, "violin garden letter harbour winter bridge", 300),
            (300_000, "violin garden letter", 800),
            (1_000_000, "violin garden letter", 600),
        ],
    )
    async def test_the_search_width_follows_the_size_of_the_graph_and_the_words_of_the_question(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection, passages: int, question: str, width: int
    ) -> None:
        await maintain(settings)
        await count_passages(owner, agent.caller, passages)
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            view = await graphs.view(tx, None)
            await recall.recall(view, await embedded_questions(question), RecallFilter(), limit=10, token_budget=10_000)
            assert await tx.fetchval(SEARCH_WIDTH) == width

    @pytest.mark.parametrize(
        ("passages", "width"), [(0, 200), (25_000, 400), (100_000, 500), (300_000, 800), (1_000_000, 600)]
    )
    async def test_the_search_width_for_similar_facts_follows_the_size_of_the_graph(
        self, agent: Agent, owner: asyncpg.Connection, passages: int, width: int
    ) -> None:
        await count_passages(owner, agent.caller, passages)
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            view = await graphs.view(tx, None)
            fact = await tx.fetchval(Query.compile("SELECT id FROM nodes WHERE name IS NULL LIMIT 1"))
            await similarity.find_similar(view, fact, min_score=0.0, limit=5)
            assert await tx.fetchval(SEARCH_WIDTH) == width

    @pytest.mark.parametrize("width", [40, 200])
    async def test_a_search_continues_if_most_of_the_nearest_are_filtered_out(
        self,
        agent: Agent,
        settings: Settings,
        owner: asyncpg.Connection,
        monkeypatch: pytest.MonkeyPatch,
        width: int,
    ) -> None:
        monkeypatch.setattr(store, "search_widths", lambda passages: SearchWidths(width, width, width))
        await maintain(settings)
        outdated = "UPDATE nodes SET status = 'outdated' WHERE tenant_id = $1 AND id <> ALL ($2::uuid[])"
        facts = await owner.fetch("SELECT id FROM nodes WHERE tenant_id = $1 ORDER BY id", agent.caller.tenant_id)
        await owner.execute(outdated, agent.caller.tenant_id, [row["id"] for row in facts[::6]])
        exact, by_index = [await nearest(agent, exact=exact) for exact in (True, False)]
        assert len(exact) == MEMORIES / 6
        assert by_index == exact
        await owner.execute(outdated, agent.caller.tenant_id, [])
        assert await nearest(agent, exact=False) == set()

    async def plan_uses(self, agent: Agent, name: str) -> bool:
        """Whether the planner can read the nearest passages from the index, as a role that does not own it."""
        vector = f"halfvec({embedder().dimensions})"
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            graph_id = await tx.fetchval(Query.compile("SELECT id FROM graphs"))
            await tx.execute(Query.compile("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off"))
            rows = await tx.fetch(
                Query.compile(
                    f"""EXPLAIN SELECT passage_id FROM searched_vectors
                    WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND live AND model = :model
                        AND NOT other_language
                    ORDER BY embedding::{vector} <=> :vector::{vector} LIMIT 5"""
                ),
                graph_id=graph_id,
                model=embedder().model,
                vector=np.ones(embedder().dimensions, np.float16),
            )
        return any(name in row[0] for row in rows)

    async def test_an_audited_answer_is_compared_with_the_exact_one(
        self, agent: Agent, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        audits: list[tuple[float, int]] = []
        monkeypatch.setattr(recall, "record_audit", lambda share, *, k: audits.append((share, k)))
        questions = await embedded_questions("violin in the garden")

        async def ask(audited: bool) -> None:
            async with agent.db.transaction(agent.caller, read_only=True, plan=QueryPlan.ONCE) as tx:
                await recall.recall(
                    await graphs.view(tx, None),
                    questions,
                    RecallFilter(),
                    limit=10,
                    token_budget=10_000,
                    audited=audited,
                )

        await ask(True)
        assert audits == [], "what no index served needs no audit"
        await maintain(settings)
        await ask(False)
        await ask(True)
        assert audits == [(1.0, 10)]

    async def test_new_passages_are_found_by_the_index_and_deleted_ones_are_not(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection
    ) -> None:
        name = index_of(await graph_of(owner, agent.caller)).name
        assert f"built {name}" in await maintain(settings)
        assert await self.plan_uses(agent, name)
        (kept,) = await agent.remember("a lighthouse keeper collects porcelain owls")
        await agent.embed()
        assert (await recalled_texts(agent, "owl figurines", exact=False))[0].startswith("a lighthouse keeper")
        async with agent.writing() as (tx, revision):
            await revising.forget(tx, revision, [MemoryRef(id=kept.id)], delete=True)
        assert not any("lighthouse" in text for text in await recalled_texts(agent, "owl figurines", exact=False))

    async def test_the_index_of_another_model_is_not_used(self, agent: Agent, settings: Settings) -> None:
        await maintain(settings)
        question = Question("violin number 7", np.ones(embedder().dimensions * 2, np.float32), "another model")
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            found = await recall.recall(
                await graphs.view(tx, None), [question], RecallFilter(), limit=10, token_budget=10_000
            )
        assert found.hits

    async def test_a_recall_with_a_filter_compares_every_matching_vector(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection
    ) -> None:
        await maintain(settings)
        # Searches by the index now compare vectors of different lengths.
        await owner.execute(
            "UPDATE graph_indexes SET vector_dimensions = 7, index_epoch = index_epoch + 1 WHERE tenant_id = $1",
            agent.caller.tenant_id,
        )
        assert await agent.recalled("violin in the garden", named=False) == await recalled_texts(
            agent, "violin in the garden", exact=True
        )
        with pytest.raises(asyncpg.DataError):
            await agent.recalled("violin in the garden")
        await maintain(settings, memories=1_000_000)

    async def test_an_index_is_built_beside_a_long_transaction(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection, db: Database
    ) -> None:
        name = index_of(await graph_of(owner, agent.caller)).name
        hasty = settings.model_copy(
            update={
                "maintenance_database_url": settings.migration_url,
                "vector_index_memories": 100,
                "lock_timeout_seconds": 0.2,
            }
        )
        async with connect_redis(hasty) as redis, asyncio.TaskGroup() as tasks:
            context = WorkerContext(hasty, db, embedder(), Wakeups(redis), asyncio.Event())
            async with db.transaction(agent.caller, read_only=True) as lasting:
                await lasting.fetchval(Query.compile("SELECT count(*) FROM graphs"))
                tending = tasks.create_task(tend_job(context))
                await asyncio.sleep(1)
                assert not tending.done()
        assert await owner.fetchval("SELECT indisvalid FROM pg_index WHERE indexrelid = $1::regclass", name)

    async def test_concurrent_workers_build_an_index_once(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection
    ) -> None:
        name = index_of(await graph_of(owner, agent.caller)).name
        done = [line for lines in await asyncio.gather(*(maintain(settings) for _ in range(4))) for line in lines]
        assert done.count(f"built {name}") == 1

    async def test_a_half_built_index_of_a_killed_worker_is_rebuilt(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection, postgres: LocalPostgres
    ) -> None:
        index = index_of(await graph_of(owner, agent.caller))
        await owner.execute((await statement_of(owner, index)).text)
        administrator = await asyncpg.connect(postgres.url())
        try:
            await administrator.execute(
                "UPDATE pg_index SET indisvalid = false WHERE indexrelid = $1::regclass", f"recollect.{index.name}"
            )
        finally:
            await administrator.close()
        assert set(await maintain(settings)) >= {f"dropped {index.name}", f"built {index.name}"}

    async def test_a_leftover_index_of_another_model_is_dropped(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection
    ) -> None:
        """Its worker was killed after it had stopped searches from using the index, and before it dropped the index."""
        graph = await graph_of(owner, agent.caller)
        old, index = index_of(graph, "another model"), index_of(graph)
        await owner.execute((await statement_of(owner, old)).text)
        assert set(await maintain(settings)) >= {f"dropped {old.name}", f"built {index.name}"}
        assert await self.plan_uses(agent, index.name)

    async def test_the_index_is_for_the_serving_model_only(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection
    ) -> None:
        graph = await graph_of(owner, agent.caller)
        await owner.execute(
            "UPDATE searched_vectors SET model = 'another model' WHERE passage_id IN "
            "(SELECT id FROM passages WHERE tenant_id = $1 ORDER BY id LIMIT $2)",
            agent.caller.tenant_id,
            MEMORIES - 1,
        )
        assert f"built {index_of(graph).name}" in await maintain(settings)
        await owner.execute(
            "UPDATE searched_vectors SET model = 'another model' WHERE tenant_id = $1", agent.caller.tenant_id
        )
        assert f"dropped {index_of(graph).name}" in await maintain(settings)

    async def test_a_worker_that_stops_starts_no_build(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection
    ) -> None:
        stopping = asyncio.Event()
        stopping.set()
        async with operator(settings) as connection:
            await upkeep.maintain_indexes(connection, from_memories=100, memory_mb=64, stopping=stopping)
        assert (await graph_of(owner, agent.caller))["vector_model"] is None
        assert f"built {index_of(await graph_of(owner, agent.caller)).name}" in await maintain(settings)

    async def test_an_index_is_built_by_one_process_if_shared_memory_is_too_small(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = index_of(await graph_of(owner, agent.caller)).name
        part = await owner.fetchval(PART, agent.caller.tenant_id)
        await owner.execute(f"ALTER TABLE {part} SET (parallel_workers = 1)")
        try:
            with pytest.raises(asyncpg.DiskFullError):  # No machine has a terabyte of it.
                await self.build_in(owner, agent, megabytes=2_000_000)
            monkeypatch.setattr(VectorIndex, "memory_mb", lambda *_: 2_000_000)
            assert f"built {name}" in await maintain(settings)
        finally:
            await owner.execute(f"ALTER TABLE {part} RESET (parallel_workers)")

    async def build_in(self, owner: asyncpg.Connection, agent: Agent, *, megabytes: int) -> None:
        index = index_of(await graph_of(owner, agent.caller))
        await owner.execute("SELECT set_config('maintenance_work_mem', $1, false)", f"{megabytes}MB")
        try:
            await owner.execute((await statement_of(owner, index)).text)
        finally:
            await owner.execute("RESET maintenance_work_mem")

    async def test_the_index_of_a_deleted_graph_is_dropped(
        self, agent: Agent, settings: Settings, owner: asyncpg.Connection
    ) -> None:
        name = index_of(await graph_of(owner, agent.caller)).name
        await maintain(settings)
        async with agent.db.transaction(agent.caller) as tx:
            assert await graphs.delete_graph(tx, "default", "test")
        assert f"dropped {name}" in await maintain(settings)


@pytest.mark.usefixtures("no_index")
class TestLanguages:
    """The embedder `multilingual` makes two kinds of vectors, which one index does not order as they are compared."""

    @pytest.mark.parametrize("few", [1, FEW_VECTORS], ids=["an index of each kind", "few are compared"])
    @pytest.mark.parametrize("only", [{}, {"not_tags": ("draft",)}], ids=["all", "filtered"])
    async def test_what_is_found_in_another_language_is_what_an_exact_search_finds(
        self,
        languages: Languages,
        settings: Settings,
        owner: asyncpg.Connection,
        subtests: pytest.Subtests,
        few: int,
        only: Mapping[str, Any],
    ) -> None:
        async with operator(settings) as connection:
            done = await upkeep.maintain_indexes(connection, from_memories=100, memory_mb=64, few=few)
        graph = await graph_of(owner, languages.agent.caller)
        assert len([line for line in done if graph["graph_id"].hex in line]) == (2 if few == 1 else 1)
        for question in SHIP_QUESTIONS.values():
            with subtests.test(question):
                exact, by_index = [await languages.found(question, exact=exact, **only) for exact in (True, False)]
                assert by_index == exact
                assert SHIP[languages.ship] in by_index
                assert len(by_index) == CANDIDATES < len(OFFICE[languages.office])

    @pytest.mark.parametrize("few", [1, FEW_VECTORS], ids=["an index of each kind", "few are compared"])
    async def test_similar_facts_are_found_in_each_language(
        self, languages: Languages, settings: Settings, few: int
    ) -> None:
        agent, fallen = languages.agent, [f"{text} (1)" for text in SHIP.values()]
        await agent.remember(*fallen, *(f"{text} (2)" for text in SHIP.values()))
        await agent.embed(loaded_multilingual())
        async with operator(settings) as connection:
            await upkeep.maintain_indexes(connection, from_memories=100, memory_mb=64, few=few)
        for text in fallen:
            async with agent.db.transaction(agent.caller, read_only=True) as tx:
                view = await graphs.view(tx, None)
                fact = await tx.fetchval(Query.compile("SELECT id FROM nodes WHERE content = :text"), text=text)
                found = await similarity.find_similar(view, fact, min_score=0.8, limit=5)
                similar = await tx.fetch(
                    Query.compile("SELECT content FROM nodes WHERE id = ANY (:ids)"), ids=[node for node, _ in found]
                )
            assert text.replace("(1)", "(2)") in {row["content"] for row in similar}
