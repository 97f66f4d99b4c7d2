"""What a former analysis of words made is analysed anew in the background, and both are found meanwhile."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.graph.passage_words import store, word_rebuild
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import Wakeups
from recollect.words.analysis import WORDS_VERSION
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import embedding, words
from tests.conftest import NewTenant
from tests.support.invariants import assert_laws
from tests.support.memories import Agent, at_work, embedder
from tests.support.windows import assert_windows

TEXTS = [
    "東京都庁で会議があります",
    "Will moved to Bath",
    "release v1.26.4-rc2",
    "The dogs were running",
    "It was cold",
]
OLD = """
    UPDATE passages SET words_version = 1, tsv = to_tsvector('english', text), near = to_tsvector('english', text),
        far = to_tsvector('english', text)
    WHERE tenant_id = $1"""
VERSIONS = "SELECT words_version, count(*) AS passages FROM passages WHERE tenant_id = $1 GROUP BY 1"


@pytest.fixture
async def agent(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        yield agent


@pytest.fixture
async def context(settings: Settings, db: Database) -> AsyncIterator[WorkerContext]:
    async with connect_redis(settings) as redis:
        wakeups = Wakeups(redis)
        yield WorkerContext(settings, db, embedder(), wakeups, asyncio.Event())
        await wakeups.aclose()


async def make_old(agent: Agent, owner: asyncpg.Connection) -> None:
    await owner.execute(OLD, agent.caller.tenant_id)


async def versions(agent: Agent, owner: asyncpg.Connection) -> dict[int, int]:
    """How many passages each analysis made."""
    rows = await owner.fetch(VERSIONS, agent.caller.tenant_id)
    return {row["words_version"]: row["passages"] for row in rows}


async def test_old_passages_are_analysed_anew_with_the_words_around_them(
    agent: Agent, context: WorkerContext, owner: asyncpg.Connection
) -> None:
    await agent.create("Ida")
    await agent.remember(*(NewMemory(text, thread="talk", about=("Ida",)) for text in TEXTS), *TEXTS)
    await agent.embed()
    await make_old(agent, owner)
    await words.rebuild(context)
    assert await versions(agent, owner) == {WORDS_VERSION: 11}
    assert (await agent.recalled("会議"))[0] == "東京都庁で会議があります"
    assert (await agent.recalled("1.26.4"))[0] == "release v1.26.4-rc2"
    while await embedding.embed_passages(context, agent.caller.tenant_id, {}):
        pass
    await assert_windows(agent, owner)
    await assert_laws(agent)


async def test_old_and_new_are_found_while_pages_are_rebuilt(
    agent: Agent, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_rebuild, "REBUILT_AT_ONCE", 2)
    await agent.remember(*(f"The dogs of house {n} were running" for n in range(6)))
    await make_old(agent, owner)
    rebuilt = [0]
    while rebuilt[-1] < 6:
        assert len(await agent.recalled("running dog")) == 6
        async with agent.db.transaction(agent.caller) as tx:
            rebuilt.append(rebuilt[-1] + await word_rebuild.rebuild_page(tx))
    assert rebuilt == [0, 2, 4, 6]
    assert len(await agent.recalled("running dog")) == 6


async def test_what_was_removed_keeps_the_names_by_which_it_was_found(
    agent: Agent, context: WorkerContext, owner: asyncpg.Connection
) -> None:
    await agent.remember(NewMemory("likes tea", about=("Quincy",)), NewMemory("likes rum", about=("Paul",)))
    await owner.execute(
        "UPDATE passages SET removed_revision = 99, words_version = 1, tsv = to_tsvector('english', 'oldname ' || text)"
        " WHERE tenant_id = $1 AND text = 'likes tea'",
        agent.caller.tenant_id,
    )
    await words.rebuild(context)
    vector = await owner.fetchval(
        "SELECT tsv::text FROM passages WHERE tenant_id = $1 AND text = 'likes tea'", agent.caller.tenant_id
    )
    assert "'oldnam'" in vector
    assert "'quinci'" in vector


async def test_vectors_and_waiting_do_not_change(
    agent: Agent, context: WorkerContext, owner: asyncpg.Connection
) -> None:
    """Nothing is embedded again, and nobody is told that memories wait."""
    await agent.remember(*TEXTS)
    await agent.embed()
    await make_old(agent, owner)
    await words.rebuild(context)
    assert (await agent.recall("dogs")).waiting == 0
    vectors = "SELECT passage_id, model, embedding::text FROM passage_vectors WHERE tenant_id = $1 ORDER BY passage_id"
    before = await owner.fetch(vectors, agent.caller.tenant_id)
    async with agent.db.transaction(agent.caller) as tx:
        claimed = await store.list_other_words(tx, limit=10)
    assert claimed == []
    while await embedding.embed_passages(context, agent.caller.tenant_id, {}):
        pass
    assert await owner.fetch(vectors, agent.caller.tenant_id) == before


async def test_two_workers_rebuild_at_once(agent: Agent, context: WorkerContext, owner: asyncpg.Connection) -> None:
    await agent.remember(*(f"note {n}" for n in range(30)))
    await make_old(agent, owner)
    await asyncio.gather(words.rebuild(context), words.rebuild(context), embedding.sweep(context))
    assert await versions(agent, owner) == {WORDS_VERSION: 30}
