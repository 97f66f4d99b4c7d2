"""Plans of lists: the newest memories are read by an index, as many as a page needs, and none is read for nothing."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.listing import with_holdings
from recollect.retrieval.recall.model import Recalled, RecallFilter
from recollect.retrieval.recall.pages import ListPosition, MemoryPage
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres
from tests.conftest import NewTenant
from tests.support.memories import Agent, at_work
from tests.support.plans import Watch, watched

SIZE = 2_000
LIMIT = 10
FILL = """
    INSERT INTO passages (tenant_id, graph_id, id, node_id, memory_id, source, place, sequence, said_at, text, tsv,
        kind, created_by, added_revision)
    SELECT tenant_id, graph_id, gen_random_uuid(), node_id, gen_random_uuid(), 'observation', 0, node_id,
        timestamptz '2026-01-01Z' + i * interval '1 hour', 'fact ' || i, to_tsvector('english', 'fact ' || i),
        CASE WHEN i % 200 = 0 THEN 'rare' ELSE 'note' END, CASE WHEN i < 20 THEN 'key:rare' ELSE 'key:often' END,
        added_revision
    FROM passages, generate_series(1, $2) AS i
    WHERE tenant_id = $1 AND text = 'likes tea'"""
"""Passages of memories that nothing else knows of: lists read passages and their nodes alone."""


OF_OTHERS = (0, 16_000)
"""Passages of another tenant. With 18,000 in all, some indexes have one level more than others, and cost more."""


@pytest.fixture(scope="module", params=OF_OTHERS, ids=["alone", "beside another"])
async def crowd(
    db: Database, superuser: asyncpg.Connection, new_tenant: NewTenant, request: pytest.FixtureRequest
) -> AsyncIterator[Agent]:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await filled(agent, superuser, SIZE)
        if request.param:
            async with at_work(db, operator_caller(await new_tenant())) as other:
                await filled(other, superuser, request.param)
        yield agent


async def filled(agent: Agent, superuser: asyncpg.Connection, count: int) -> None:
    """Give the agent's graph an entity with so many observations."""
    await agent.create("Ada")
    await agent.observe("Ada", "likes tea")
    await superuser.execute(FILL, agent.caller.tenant_id, count)


@pytest.fixture(scope="module")
async def superuser(postgres: LocalPostgres) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(postgres.url(), server_settings={"search_path": "recollect, public"})
    yield connection
    await connection.close()


@pytest.fixture(params=[True, False], ids=["with statistics", "without"])
async def watching(
    crowd: Agent,
    superuser: asyncpg.Connection,
    postgres: LocalPostgres,
    settings: Settings,
    request: pytest.FixtureRequest,
) -> AsyncIterator[tuple[Agent, Watch]]:
    """The agent, with what its statements read, where PostgreSQL knows the table and where it does not."""
    await superuser.execute("ANALYZE passages")
    if not request.param:
        await superuser.execute("DELETE FROM pg_statistic WHERE starelid = 'passages'::regclass")
    async with watched(postgres.url(), settings) as (db, watch):
        yield replace(crowd, db=db), watch


async def listed(agent: Agent, page: MemoryPage | None = None, **only: object) -> Recalled:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        view = await graphs.view(tx, None)
        filters = RecallFilter(**only)  # type: ignore[arg-type]
        return await recall.recall(view, [], filters, limit=LIMIT, token_budget=9_999, page=page or MemoryPage())


async def test_a_page_reads_little_more_than_it_holds(watching: tuple[Agent, Watch]) -> None:
    agent, watch = watching
    watch.clear()
    first = await listed(agent, min_importance=None)
    assert len(first.hits) == LIMIT
    assert watch.rows["recall.list_memories"] < SIZE / 4
    last = first.positions[first.hits[-1].key]
    watch.clear()
    far = ListPosition(last.importance, last.at.replace(year=2026, month=1, day=20), last.passage_id)
    assert len((await listed(agent, MemoryPage(after=far))).hits) == LIMIT
    assert watch.rows["recall.list_memories"] < SIZE / 4


async def test_what_an_author_said_is_read_by_an_index(watching: tuple[Agent, Watch]) -> None:
    """Of one who wrote the oldest few, and of one who wrote almost everything."""
    agent, watch = watching
    for author in ("key:rare", "key:often"):
        watch.clear()
        found = await listed(agent, author=author)
        assert len(found.hits) == LIMIT
        assert watch.rows["recall.list_memories"] < SIZE / 4, author
    watch.clear()
    assert (await listed(agent, author="key:nobody")).hits == []
    assert watch.rows["recall.list_memories"] < SIZE / 4


async def test_a_thread_is_read_by_an_index(watching: tuple[Agent, Watch]) -> None:
    agent, watch = watching
    watch.clear()
    assert (await listed(agent, thread="nobody spoke here")).hits == []
    assert watch.rows["recall.list_memories"] < SIZE / 4


async def test_what_was_said_in_a_time_is_read_by_an_index(watching: tuple[Agent, Watch]) -> None:
    """Of the newest, and of a time before all."""
    agent, watch = watching
    watch.clear()
    assert len((await listed(agent, since=datetime(2026, 3, 1, tzinfo=UTC))).hits) == LIMIT
    assert watch.rows["recall.list_memories"] < SIZE / 4
    watch.clear()
    assert (await listed(agent, until=datetime(2025, 12, 31, tzinfo=UTC), min_importance=None)).hits == []
    assert watch.rows["recall.list_memories"] < SIZE / 4


async def test_a_filter_that_leaves_little_reads_each_passage_once(watching: tuple[Agent, Watch]) -> None:
    agent, watch = watching
    watch.clear()
    assert len((await listed(agent, kinds=("RARE",))).hits) == LIMIT
    assert watch.rows["recall.list_memories"] < 4 * SIZE


async def test_what_a_graph_holds_is_counted_from_the_newest(watching: tuple[Agent, Watch]) -> None:
    agent, watch = watching
    watch.clear()
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        recalled = await with_holdings(await graphs.view(tx, None), Recalled([], more=False, waiting=0))
    assert recalled.holdings is not None
    assert (recalled.holdings.memories, recalled.holdings.more, recalled.holdings.subjects) == (1_000, True, ("Ada",))
    assert watch.rows["recall.find_holdings"] < 5 * SIZE
