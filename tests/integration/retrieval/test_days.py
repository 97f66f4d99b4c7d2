"""Days as a source of candidates: what was said on them, and what tells of them, where no word matches."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import GraphPatch
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.dated_candidates import MAX_DATED
from recollect.retrieval.recall.matching import depends_on_day
from recollect.retrieval.recall.model import RecallFilter
from tests.conftest import NewTenant
from tests.support.memories import Agent, at_work, embedded_questions

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
"""A Friday."""

CHATHAM = timedelta(hours=13, minutes=45)


@pytest.fixture
async def agent(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        yield agent


def said(text: str, at: str, **attributes: Any) -> NewMemory:
    return NewMemory(text, at=datetime.fromisoformat(at).astimezone(UTC), **attributes)


async def asked(
    agent: Agent,
    text: str,
    *,
    now: datetime = NOW,
    zone: str | None = None,
    as_of: str | None = None,
    limit: int | None = None,
    **only: Any,
) -> list[str]:
    """What a question finds that is asked at that moment in that zone, without a limit unless one is given."""
    questions = [
        replace(question, asked_at=now if depends_on_day(text) else None, time_zone=zone)
        for question in await embedded_questions(text)
    ]
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        recalled = await recall.recall(
            await graphs.view(tx, agent.graph, as_of),
            questions,
            RecallFilter(**only),
            limit=limit or 10,
            only_near_best=limit is None,
            whole_days=limit is None,
            token_budget=10_000,
        )
    return [hit.text for hit in recalled.hits]


NOTES = [
    ("The courier brought the wrong monitors.", "2026-11-26T09:00Z"),
    ("Lunch with Farah about the grant.", "2026-11-26T12:00Z"),
    ("The plumber replaced the valve.", "2026-11-25T12:00Z"),
    ("Grandma called about the photos.", "2026-11-24T12:00Z"),
    ("The heating failed.", "2026-03-14T12:00Z"),
]


@pytest.fixture
async def diary(agent: Agent) -> Agent:
    await agent.remember(*(said(text, at) for text, at in NOTES))
    await agent.embed()
    return agent


MONITORS, LUNCH, PLUMBER, GRANDMA, HEATING = (text for text, _ in NOTES)


async def test_all_of_the_named_days_is_listed_newest_first(diary: Agent, subtests: pytest.Subtests) -> None:
    for text, found in [
        ("What happened yesterday?", [LUNCH, MONITORS]),
        ("What happened last Tuesday?", [GRANDMA]),
        ("What happened on 2026-11-25?", [PLUMBER]),
        ("two days ago", [PLUMBER]),
        ("What happened in March?", [HEATING]),
        ("What is new since Tuesday?", [LUNCH, MONITORS, PLUMBER, GRANDMA]),
        ("Was ist gestern passiert?", [LUNCH, MONITORS]),
        ("昨天发生了什么？", [LUNCH, MONITORS]),
    ]:
        with subtests.test(text):
            assert await asked(diary, text) == found


async def test_what_matches_within_the_days_comes_first_and_others_of_these_days_follow(diary: Agent) -> None:
    found = await asked(diary, "Whom did we have lunch with yesterday?", limit=10)
    assert found[0] == LUNCH
    assert MONITORS in found


async def test_what_matches_well_on_another_day_is_not_lost(diary: Agent) -> None:
    assert PLUMBER in await asked(diary, "Which valve did the plumber replace yesterday?", limit=10)


async def test_a_day_on_which_nothing_was_said_lists_nothing(diary: Agent) -> None:
    assert await asked(diary, "What happened 10 days ago?") == []


async def test_texts_that_tell_of_a_day_belong_to_it(agent: Agent) -> None:
    await agent.remember(
        said("Yesterday we signed the lease.", "2026-11-23T12:00Z"),
        said("The fair is on 22 November 2026.", "2026-06-01T12:00Z"),
        said("Le contrat a été signé il y a deux jours.", "2026-11-24T12:00Z"),
        said("Last month we moved.", "2026-04-20T12:00Z"),
        said("We like tea.", "2026-11-20T13:00Z"),
    )
    assert await asked(agent, "What happened on 22 November 2026?") == [
        "Le contrat a été signé il y a deux jours.",
        "Yesterday we signed the lease.",
        "The fair is on 22 November 2026.",
    ]
    assert await asked(agent, "What happened in March?") == ["Last month we moved."]
    assert await asked(agent, "2026-03-05") == [], "a month says nothing of one of its days"


async def test_a_whole_day_is_listed_and_no_more_than_is_bounded(agent: Agent) -> None:
    day = datetime(2026, 11, 26, 6, tzinfo=UTC)
    notes = [NewMemory(f"Ticket {number} was closed.", at=day + timedelta(minutes=number)) for number in range(130)]
    await agent.remember(*notes)
    found = await asked(agent, "What happened yesterday?")
    assert found == [note.text for note in reversed(notes)][:MAX_DATED]
    assert len(await asked(agent, "What happened yesterday?", limit=3)) == 3, "a limit that is given holds"


async def test_filters_hold(agent: Agent) -> None:
    await agent.remember(
        said("The valve leaks.", "2026-11-26T09:00Z", tags=("house",)),
        said("The build is red.", "2026-11-26T10:00Z", tags=("work",)),
        said("The roof leaks.", "2026-11-20T10:00Z", tags=("house",)),
        said("Tomorrow was Friday.", "2026-11-25T10:00Z", about=("Ada",)),
    )
    assert await asked(agent, "What happened yesterday?", tags=("house",)) == ["The valve leaks."]
    assert await asked(agent, "What happened yesterday?", about=("Ada",)) == ["Tomorrow was Friday."]
    assert await asked(agent, "yesterday", until=datetime(2026, 11, 26, 9, 30, tzinfo=UTC), tags=("house", "work")) == [
        "The valve leaks."
    ]


async def test_what_is_outdated_archived_or_expired_is_not_listed(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.remember(*(said(f"Note {number}.", "2026-11-26T09:00Z", about=(f"N{number}",)) for number in range(4)))
    await agent.let_go("N0", "archived")
    await agent.let_go("N1", "outdated")
    expire = "UPDATE nodes SET expires_at = now() - interval '1 s' WHERE tenant_id = $1 AND name = 'N2'"
    await owner.execute(expire, agent.caller.tenant_id)
    assert await asked(agent, "What happened yesterday?") == ["Note 3."]


async def test_a_day_is_that_of_the_clock_of_who_said_it(agent: Agent) -> None:
    minutes = int(CHATHAM / timedelta(minutes=1))
    await agent.remember(
        NewMemory("Said at 01:30 in the Chathams.", at=datetime(2026, 11, 29, 11, 45, tzinfo=UTC), said_offset=minutes),
        NewMemory("Said at 11:45 somewhere.", at=datetime(2026, 11, 29, 11, 45, tzinfo=UTC)),
    )
    later = datetime(2026, 12, 1, tzinfo=UTC)
    assert await asked(agent, "on 2026-11-30", now=later) == ["Said at 01:30 in the Chathams."]
    assert await asked(agent, "on 2026-11-29", now=later) == ["Said at 11:45 somewhere."]
    assert sorted(await asked(agent, "on 2026-11-30", now=later, zone="Pacific/Auckland")) == [
        "Said at 01:30 in the Chathams.",
        "Said at 11:45 somewhere.",
    ]


async def test_yesterday_is_that_of_who_asks_then_of_the_graph_then_of_the_tenant(
    agent: Agent, owner: asyncpg.Connection
) -> None:
    await agent.remember(said("One.", "2026-11-25T18:00Z"), said("Two.", "2026-11-26T18:00Z"))
    late = datetime(2026, 11, 26, 23, tzinfo=UTC)  # The 27th in Tokyo, where the first was said on the 26th.
    tokyo, honolulu = "Asia/Tokyo", "Pacific/Honolulu"
    assert await asked(agent, "yesterday", now=late) == ["One."]
    await owner.execute("UPDATE tenants SET time_zone = $2 WHERE id = $1", agent.caller.tenant_id, tokyo)
    assert await asked(agent, "yesterday", now=late) == ["One."]
    assert await asked(agent, "today", now=late) == ["Two."]
    assert await asked(agent, "today", now=late, zone=honolulu) == ["Two."]
    assert await asked(agent, "yesterday", now=late, zone=honolulu) == ["One."]
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.configure_graph(tx, "default", GraphPatch(time_zone="Etc/GMT+12"), "update_graph_config")
    assert await asked(agent, "yesterday", now=late + timedelta(hours=14)) == ["Two."]


async def test_a_text_counts_from_the_day_of_its_clock(agent: Agent, owner: asyncpg.Connection) -> None:
    await owner.execute("UPDATE graphs SET time_zone = 'Asia/Tokyo' WHERE tenant_id = $1", agent.caller.tenant_id)
    await agent.remember(said("Yesterday we moved.", "2026-11-25T18:00Z"))  # On the 26th in Tokyo.
    assert await asked(agent, "on 2026-11-25") == ["Yesterday we moved."]
    await agent.embed()
    stored = await owner.fetchval(
        "SELECT dates::text FROM passage_evidence WHERE tenant_id = $1", agent.caller.tenant_id
    )
    assert stored == "{[2026-11-25,2026-11-26)}"


async def test_the_past_is_asked_for_its_own_days(agent: Agent) -> None:
    await agent.remember(said("The valve leaks.", "2026-11-26T09:00Z"))
    revision = str((await agent.head()).revision)
    await agent.remember(said("The build is red.", "2026-11-26T10:00Z"))
    assert await asked(agent, "on 2026-11-26") == ["The build is red.", "The valve leaks."]
    assert await asked(agent, "on 2026-11-26", as_of=revision) == ["The valve leaks."]


async def test_the_offset_of_a_memory_is_kept_by_its_later_versions(agent: Agent, owner: asyncpg.Connection) -> None:
    at = datetime(2026, 11, 29, 11, 45, tzinfo=UTC)
    for about in ((), ("Ada",)):
        await agent.remember(NewMemory("Moved.", at=at, said_offset=825, about=about))
        await agent.remember(NewMemory("Moved.", tags=("house",), about=about))
    tenant = agent.caller.tenant_id
    for table in ("passages", "observations", "nodes", "node_versions"):
        named = "name IS NULL" if "node" in table else "text IS NOT NULL" if table == "passages" else "true"
        offsets: Sequence[asyncpg.Record] = await owner.fetch(
            f"SELECT said_offset FROM {table} WHERE tenant_id = $1 AND said_at IS NOT NULL AND {named}",
            tenant,
        )
        assert {row["said_offset"] for row in offsets} == {825}, table
