"""Recall returns exactly the memories that it should, after any writes, with any filter, embedded or not."""

import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.accounts.identity.model import operator_caller
from recollect.errors import InvalidInput, NotFound
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.memory import revising
from recollect.memory.model import MemoryRef, NewMemory
from recollect.postgres.database import Database
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.model import Question, Recalled, RecallFilter, plain
from recollect.retrieval.recall.pages import BEFORE_ALL, ListPosition, MemoryPage, Order
from tests.conftest import NewTenant
from tests.support.examples import examples
from tests.support.histories import HISTORIES, HOURS, NAMED, NAMES, written
from tests.support.memories import Agent, at_work, embedded_questions

EXAMPLES = 30

ALL_WORDS = ("likes", "writes", *NAMED, "so")
"""Questions of one word each. Every memory of a history contains one of the words, so that all are evidence."""

_graphs = itertools.count(1)

LIVE = """
    WITH living AS (
        SELECT * FROM nodes WHERE graph_id = $1 AND removed_revision IS NULL AND NOT placeholder
    ), said AS (
        SELECT o.id, o.node_id, o.content AS text, o.said_at, o.thread, o.expires_at, o.kind,
            nullif(o.tags, '{}') AS tags, o.importance, o.status = 'outdated' AS outdated
        FROM observations o
        WHERE o.graph_id = $1 AND o.removed_revision IS NULL
        UNION ALL
        SELECT id, id, content, said_at, thread, expires_at, NULL, NULL, NULL, false
        FROM living
        WHERE content IS NOT NULL
    ), memories AS (
        SELECT * FROM said
        UNION ALL
        SELECT id, id, name, NULL, NULL, expires_at, NULL, NULL, NULL, false FROM living
        WHERE name IS NOT NULL AND id NOT IN (
            SELECT node_id FROM said WHERE NOT outdated AND (expires_at IS NULL OR expires_at > clock_timestamp()))
    )
    SELECT m.id, m.node_id, m.text, m.said_at, m.thread, n.name, coalesce(m.kind, n.kind) AS kind,
        coalesce(m.tags, n.tags) AS tags, coalesce(m.importance, n.importance) AS importance, n.parent_id,
        CASE WHEN m.outdated AND n.status = 'active' THEN 'outdated' ELSE n.status END AS status,
        n.freshness_at <= clock_timestamp() AS stale, (SELECT min(p.said_at) FROM passages p
            WHERE p.memory_id = m.id AND p.removed_revision IS NULL AND p.source <> 'name') AS heard_at
    FROM memories m JOIN living n ON n.id = m.node_id
    WHERE (m.expires_at IS NULL OR m.expires_at > clock_timestamp())
        AND (n.expires_at IS NULL OR n.expires_at > clock_timestamp())"""
"""Every live memory of a graph ($1), from the stored memories and not from anything derived from them."""


@dataclass(frozen=True)
class LiveMemory:
    """A live memory, with the values that filters compare."""

    id: UUID
    node_id: UUID
    text: str
    said_at: datetime | None
    thread: str | None
    name: str | None
    kind: str | None
    tags: list[str]
    importance: float | None
    status: str
    parent_id: UUID | None
    stale: bool | None
    heard_at: datetime | None

    @property
    def key(self) -> tuple[str | None, str]:
        """Memories with the same key are returned once."""
        return self.name, plain(self.text)


async def live_memories(agent: Agent, owner: asyncpg.Connection) -> list[LiveMemory]:
    query = "SELECT id FROM graphs WHERE tenant_id = $1 AND name = $2"
    graph_id = await owner.fetchval(query, agent.caller.tenant_id, agent.graph or "default")
    return [LiveMemory(**row) for row in await owner.fetch(LIVE, graph_id)]


def eligible(memories: Sequence[LiveMemory], only: RecallFilter) -> list[LiveMemory]:
    """The memories that satisfy a filter, one condition after the other."""
    wanted, unwanted = {tag.lower() for tag in only.tags}, {tag.lower() for tag in only.not_tags}
    kinds, not_kinds = {kind.lower() for kind in only.kinds}, {kind.lower() for kind in only.not_kinds}
    below = subtree(memories, only.under) if only.under else set()
    conditions: list[Callable[[LiveMemory], bool]] = [
        lambda m: m.status != "archived" or only.status == "archived",
        lambda m: m.status != "outdated" or only.include_outdated or only.status == "outdated",
        lambda m: not only.status or m.status == only.status,
        lambda m: not kinds or (m.kind or "").lower() in kinds,
        lambda m: (m.kind or "").lower() not in not_kinds,
        lambda m: (
            len(wanted & {tag.lower() for tag in m.tags}) >= (len(wanted) if only.all_tags else min(1, len(wanted)))
        ),
        lambda m: not unwanted & {tag.lower() for tag in m.tags},
        lambda m: only.thread is None or m.thread == only.thread,
        lambda m: not only.about or m.name in only.about,
        lambda m: only.min_importance is None or (m.importance is not None and m.importance >= only.min_importance),
        lambda m: only.since is None or (m.heard_at is not None and m.heard_at >= only.since),
        lambda m: only.until is None or (m.heard_at is not None and m.heard_at <= only.until),
        lambda m: not (only.fresh_only and m.stale),
        lambda m: only.named is None or (m.name is not None) == only.named,
        lambda m: not only.under or m.node_id in below,
    ]
    return [memory for memory in memories if all(holds(memory) for holds in conditions)]


def subtree(memories: Sequence[LiveMemory], name: str) -> set[UUID]:
    """The nodes of memories of the entity with that name and of its descendants."""
    parents = {memory.node_id: memory.parent_id for memory in memories}
    found = {memory.node_id for memory in memories if memory.name == name}
    while more := {node for node, parent in parents.items() if parent in found} - found:
        found |= more
    return found


async def recalled(agent: Agent, only: RecallFilter, *, as_of: str | None = None, words: bool = True) -> Recalled:
    """Everything that recall returns for all words."""
    questions = [Question(word, None, "none") for word in ALL_WORDS] if words else await embedded_questions(*ALL_WORDS)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return await recall.recall(
            await graphs.view(tx, agent.graph, as_of), questions, only, limit=100, token_budget=100_000
        )


def returned_keys(found: Recalled) -> list[tuple[str | None, str]]:
    return sorted(((hit.name, plain(hit.text)) for hit in found.hits), key=repr)


def unique_keys(memories: Iterable[LiveMemory]) -> list[tuple[str | None, str]]:
    return sorted({memory.key for memory in memories}, key=repr)


FILTERS = st.builds(
    RecallFilter,
    kinds=st.sampled_from([(), (), ("person",), ("Person", "CAT")]),
    not_kinds=st.sampled_from([(), (), (), ("PERSON",)]),
    tags=st.sampled_from([(), (), ("NEW",), ("old", "new")]),
    not_tags=st.sampled_from([(), (), (), ("OLD",)]),
    all_tags=st.booleans(),
    thread=st.sampled_from([None, None, None, "monday"]),
    about=st.sampled_from([(), (), ("Ada",), ("Grace", "Ωmega")]),
    min_importance=st.sampled_from([None, None, 1.0, 7.5, 9.0]),
    fresh_only=st.booleans(),
    include_outdated=st.booleans(),
    status=st.sampled_from([None, None, None, "active", "outdated", "archived"]),
    named=st.sampled_from([None, None, None, True, False]),
)
BOUNDS = st.tuples(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9))


@pytest.fixture(scope="module")
async def replaying(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        yield agent


def bounded(only: RecallFilter, memories: Sequence[LiveMemory], bounds: tuple[int | None, int | None]) -> RecallFilter:
    """The filter with times of memories as its bounds, to the microsecond; they may be reversed."""
    times = sorted({memory.heard_at for memory in memories if memory.heard_at})
    since, until = (times[bound % len(times)] if times and bound is not None else None for bound in bounds)
    return replace(only, since=since, until=until)


@examples(EXAMPLES // 3)
@given(
    history=HISTORIES,
    filters=st.lists(st.tuples(FILTERS, BOUNDS, st.none() | NAMES), min_size=2, max_size=5),
    embedded=st.integers(0, 12),
    freshness=st.lists(HOURS, max_size=3),
)
async def test_recall_returns_all_live_memories_now_and_in_the_past_with_any_filter(
    replaying: Agent,
    owner: asyncpg.Connection,
    history: list[Any],
    filters: list[Any],
    embedded: int,
    freshness: list[int | None],
) -> None:
    """None that is deleted, expired, archived or a placeholder, and all others."""
    agent = replace(replaying, graph=f"recalled-{next(_graphs)}")
    seen: dict[int, list[LiveMemory]] = {}
    for place, step in enumerate(history):
        await written(agent, step)
        if place == embedded:
            await agent.embed()
        found = await recalled(agent, RecallFilter(), words=place % 2 == 0)
        memories = await live_memories(agent, owner)
        assert returned_keys(found) == unique_keys(eligible(memories, RecallFilter()))
        seen[(await agent.head()).revision] = memories
    for (revision, memories), (only, bounds, under) in zip(seen.items(), itertools.cycle(filters), strict=False):
        assert returned_keys(await recalled(agent, RecallFilter(), as_of=str(revision))) == unique_keys(
            eligible(memories, RecallFilter())
        ), revision
        await _assert_returns_all_that_pass(
            agent, memories, replace(bounded(only, memories, bounds), under=under), str(revision)
        )
    await _make_stale(agent, owner, freshness)
    memories = await live_memories(agent, owner)
    for only, bounds, under in filters:
        await _assert_returns_all_that_pass(agent, memories, replace(bounded(only, memories, bounds), under=under))


async def _assert_returns_all_that_pass(
    agent: Agent, memories: Sequence[LiveMemory], only: RecallFilter, as_of: str | None = None
) -> None:
    """Recall returns, best first, the `memories` that the filter selects in Python; they are those of now or of
    `as_of`."""
    try:
        found = await recalled(agent, only, as_of=as_of)
    except NotFound:
        assert only.under is not None
        return
    assert returned_keys(found) == unique_keys(eligible(memories, only)), as_of
    await _assert_lists_all_that_pass(agent, memories, only, as_of)
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)


async def _assert_lists_all_that_pass(
    agent: Agent, memories: Sequence[LiveMemory], only: RecallFilter, as_of: str | None = None
) -> None:
    """A list in pages has all of these memories, each once: the newest first, or the most important first."""
    order = Order.IMPORTANCE if only.fresh_only else Order.NEWEST  # Either, as often as the other.
    hits = [hit for page in await _listed(agent, only, order, as_of) for hit in page.hits]
    expected = {memory.id: memory for memory in eligible(memories, only)}
    assert sorted(hit.memory_id for hit in hits) == sorted(expected), as_of
    places = [_place_of(expected[hit.memory_id], order) for hit in hits]
    assert places == sorted(places, reverse=True), as_of


def _place_of(memory: LiveMemory, order: Order) -> tuple[float, datetime]:
    importance = -1.0 if memory.importance is None else memory.importance
    return importance if order is Order.IMPORTANCE else 0.0, memory.heard_at or BEFORE_ALL


async def _listed(agent: Agent, only: RecallFilter, order: Order, as_of: str | None) -> list[Recalled]:
    """All pages of a list."""
    pages: list[Recalled] = []
    page = MemoryPage(order)
    while not pages or pages[-1].next_cursor:
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            view = await graphs.view(tx, agent.graph, as_of)
            pages.append(await recall.recall(view, [], only, limit=5, token_budget=10_000, page=page))
        page = MemoryPage(order, ListPosition.of_cursor(pages[-1].next_cursor) if pages[-1].next_cursor else None)
    return pages


async def _make_stale(agent: Agent, owner: asyncpg.Connection, hours: Sequence[int | None]) -> None:
    """Let some nodes be stale since a while ago, or from a while ahead."""
    for place, hour in enumerate(hours):
        if hour is not None:
            await owner.execute(
                """UPDATE nodes SET freshness_at = now() + $3 WHERE id IN (
                    SELECT n.id FROM nodes n JOIN graphs g ON g.id = n.graph_id
                    WHERE g.tenant_id = $1 AND g.name = $2 AND n.removed_revision IS NULL
                    ORDER BY n.id OFFSET $4 LIMIT 1)""",
                agent.caller.tenant_id,
                agent.graph,
                timedelta(hours=hour),
                place,
            )


@pytest.mark.parametrize("only", [{"tags": ("vip",)}, {"kinds": ("person",)}, {"min_importance": 5.0}, {}])
async def test_an_entity_with_observations_is_not_returned_by_its_name_with_any_filter(
    agent: Agent, only: dict[str, Any]
) -> None:
    """Its observation has its own tags, kind and importance, so the filter excludes the observation.

    The observation expires some day; only then is a passage of the name kept beside it.
    """
    await agent.create(NewEntity("Ada Tea", "person", tags=("vip",), importance=9), NewEntity("Eve Tea", "person"))
    bare = (await agent.head()).revision
    await agent.remember(
        NewMemory("likes milk", about=("Ada Tea",), kind="note", tags=("food",), importance=1, ttl_days=3)
    )
    told = (await agent.head()).revision
    assert "Ada Tea" in await _names_found(agent, only, bare)
    assert await _names_found(agent, only, told) == await _names_found(agent, only)
    assert "Ada Tea" not in await _names_found(agent, only)


async def _names_found(agent: Agent, only: dict[str, Any], revision: int | None = None) -> set[str]:
    """The names of entities that are returned as memories."""
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        view = await graphs.view(tx, None, None if revision is None else str(revision))
        question = Question("Tea", None, "none")
        found = await recall.recall(view, [question], RecallFilter(**only), limit=9, token_budget=999)
    return {hit.text for hit in found.hits if hit.text == hit.name}


async def test_the_past_is_recalled_with_its_texts_and_states(agent: Agent) -> None:
    """Memories that were not outdated at that moment are returned and ranked as such."""
    await agent.create(NewEntity("Ada", "person", ("likes tea",)))
    told = await agent.remember("likes tea and cake", "tea is served at four")
    then = (await agent.head()).revision

    async with agent.writing() as (tx, revision):
        await revising.forget(tx, revision, [MemoryRef(id=told[0].id)])
    questions = [Question("tea", None, "none")]
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        now, before = [
            (
                await recall.recall(
                    await graphs.view(tx, None, as_of), questions, RecallFilter(), limit=9, token_budget=999
                )
            ).hits
            for as_of in (None, str(then))
        ]
    assert {hit.text for hit in now} == {"likes tea", "tea is served at four"}
    assert {hit.text for hit in before} == {"likes tea", "likes tea and cake", "tea is served at four"}
    assert not any(hit.outdated for hit in before)


NASTY = [
    "a & b | !c <-> d:*",
    "'; DROP TABLE passages; --",
    "\\' \\\\ '' \" \\",
    "\x00",
    "tea\x00cake",
    "𝕋𝔢𝔞 ☕ " * 100,
    "čaj " * 250,
    "чай " * 250,
    "茶" * 1_000,
    "चाय " * 250,
    "شاي " * 250,
    "שתה" * 333,
    "ชา" * 500,
    "차" * 1_000,
    "\u202e\u200b\ufeff" * 300,
    "(" * 1_000,
    " ".join(f"w{n}" for n in range(200)),
    "1e308 -0 NaN ∞ 0x1F",
]


@pytest.mark.parametrize("many", [1, 8])
@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
async def test_any_question_is_answered_or_refused_as_invalid(agent: Agent, text: str, many: int) -> None:
    """It is answered with or without the embedder, or refused if it contains a character that no text can contain."""
    await agent.remember("tea and cake", NewMemory("likes čaj", about=("Ada",)))
    for questions in (await embedded_questions(*[text] * many), [Question(text, None, "none")] * many):
        try:
            async with agent.db.transaction(agent.caller, read_only=True) as tx:
                await recall.recall(await graphs.view(tx, None), questions, RecallFilter(), limit=10, token_budget=500)
        except InvalidInput:
            assert "\x00" in text


async def test_time_bounds_are_exact_to_the_microsecond_and_reversed_bounds_match_nothing(agent: Agent) -> None:
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    tick = timedelta(microseconds=1)
    await agent.remember(NewMemory("likes tea", at=noon))
    assert await agent.recalled("tea", since=noon, until=noon) == ["likes tea"]
    assert await agent.recalled("tea", until=noon - tick) == []
    assert await agent.recalled("tea", since=noon + tick) == []
    assert await agent.recalled("tea", since=noon + tick, until=noon - tick) == []


async def test_word_counts_are_those_of_live_memories(agent: Agent, owner: asyncpg.Connection) -> None:
    """Lexemes of only one memory are not counted, and words of deleted memories are not, either."""
    told = await agent.remember(
        *(f"tea number {n}" for n in range(1000, 1030)), "tea and cake", "cake again", "porcelain"
    )
    await agent.embed()
    async with agent.writing() as (tx, revision):
        await revising.forget(tx, revision, [MemoryRef(id=one.id) for one in told[:15]], delete=True)
    await agent.embed()
    rows = await owner.fetch("SELECT lexeme, passages FROM terms WHERE tenant_id = $1", agent.caller.tenant_id)
    counted = {row["lexeme"]: row["passages"] for row in rows}
    assert {word: counted.get(word) for word in ("tea", "number", "cake", "porcelain", "1029")} == {
        "tea": 16,
        "number": 15,
        "cake": 2,
        "porcelain": 0,
        "1029": None,
    }
    query = "SELECT passages_counted FROM graph_indexes WHERE tenant_id = $1"
    assert await owner.fetchval(query, agent.caller.tenant_id) == 18
