"""The days that texts of before name are found in the background, with their words, by the clock of who said them."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.graph.passage_words import word_rebuild
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.support.memories import Agent, at_work

AT = datetime(2026, 6, 2, 3, 0, tzinfo=UTC)
"""In Lima it is still the day before."""

MEMORIES = (
    NewMemory("Yesterday the boiler broke", at=AT, said_offset=-300),
    NewMemory("Wir treffen uns am 24. Dezember 2026", at=AT),
    NewMemory("The audit begins on 2026-07-14", at=AT, about=("Ida",)),
    NewMemory("Nothing has a date here", at=AT),
)
STORED = """
    SELECT text, named_days, tsv::text FROM passages
    WHERE tenant_id = $1 AND removed_revision IS NULL ORDER BY text"""
OLD = """
    UPDATE passages SET words_version = 1, named_days = NULL, tsv = to_tsvector('english', text)
    WHERE tenant_id = $1 AND removed_revision IS NULL"""


@pytest.fixture
async def agent(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        await agent.remember(*MEMORIES)
        yield agent


async def test_days_are_found_as_when_they_are_written(
    agent: Agent, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_rebuild, "REBUILT_AT_ONCE", 3)
    written = await owner.fetch(STORED, agent.caller.tenant_id)
    assert [bool(row["named_days"]) for row in written] == [False, True, True, True]
    await owner.execute(OLD, agent.caller.tenant_id)
    sizes: list[int] = []
    while not sizes or sizes[-1]:
        async with agent.db.transaction(agent.caller) as tx:
            sizes.append(await word_rebuild.rebuild_page(tx))
    assert sizes == [3, 1, 0]
    assert await owner.fetch(STORED, agent.caller.tenant_id) == written


async def test_questions_for_a_day_find_what_was_said_before(agent: Agent, owner: asyncpg.Connection) -> None:
    await owner.execute(OLD, agent.caller.tenant_id)
    assert await agent.recalled("What happens on 14 July 2026?") == []
    async with agent.db.transaction(agent.caller) as tx:
        await word_rebuild.rebuild_page(tx)
    assert await agent.recalled("What happens on 14 July 2026?") == ["The audit begins on 2026-07-14"]


async def test_what_was_removed_keeps_its_days(agent: Agent, owner: asyncpg.Connection) -> None:
    await owner.execute(
        "UPDATE passages SET removed_revision = 99, words_version = 1, named_days = '{7}' WHERE tenant_id = $1"
        " AND text LIKE 'The audit%'",
        agent.caller.tenant_id,
    )
    async with agent.db.transaction(agent.caller) as tx:
        assert await word_rebuild.rebuild_page(tx) == 1
    kept = "SELECT named_days FROM passages WHERE tenant_id = $1 AND text LIKE 'The audit%'"
    assert await owner.fetchval(kept, agent.caller.tenant_id) == [7]
