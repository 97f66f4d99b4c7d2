"""The search cache: its answers are those of a search of the same snapshot, whatever is written meanwhile."""

import asyncio
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.accounts.identity.model import operator_caller
from recollect.graph.graphs.model import Graph
from recollect.graph.passage_words import service as passage_words
from recollect.graph.passages import reembedding
from recollect.graph.passages import service as passages
from recollect.graph.passages import store as passages_store
from recollect.memory import revising
from recollect.memory.model import MemoryPatch, MemoryRef, NewMemory
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.transactions import Transaction
from recollect.retrieval.recall import store
from recollect.retrieval.recall.cache import decode, encode, key_material
from recollect.retrieval.recall.model import Basis, GraphState, Question, RecallFilter
from recollect.retrieval.recall.ranking import RankedPassage
from recollect.retrieval.vector_indexes import store as vector_indexes
from recollect.settings import Settings
from recollect.valkey import shared_cache
from recollect.valkey.shared_cache import MAX_BYTES
from recollect_local.valkey import LocalValkey
from tests.conftest import NewTenant
from tests.support.examples import examples
from tests.support.histories import HISTORIES, written
from tests.support.memories import Agent, at_work, embedder
from tests.support.recalls import RecallStack, stack

FORESTS = ("the heron nests in the alder", "the owl sleeps in the oak", "a fox lives below the alder")

EPOCH = "SELECT index_epoch FROM graph_indexes WHERE tenant_id = $1"


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalValkey]:
    """A Valkey for this file alone: it is flushed, filled and stopped."""
    server = LocalValkey(tmp_path_factory.mktemp("valkey"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def own(settings: Settings, valkey: LocalValkey) -> Settings:
    return settings.model_copy(update={"redis_url": valkey.url})


@pytest.fixture
async def stacks(own: Settings) -> AsyncIterator[list[RecallStack]]:
    """The part of two gateways that recalls."""
    async with AsyncExitStack() as both:
        yield [await both.enter_async_context(stack(own)) for _ in range(2)]


class TestEqualityWithSearch:
    @pytest.mark.proves("graph-contract: cached-searches-are-fresh")
    @given(history=HISTORIES, embed=st.lists(st.booleans(), min_size=13, max_size=13))
    @examples(6)
    async def test_cached_and_searched_answers_are_equal_after_each_write(
        self, stacks: list[RecallStack], db: Database, new_tenant: NewTenant, history: Any, embed: list[bool]
    ) -> None:
        async with at_work(db, operator_caller(await new_tenant())) as agent:
            for step, vectors in zip(history, embed, strict=False):
                await written(agent, step)
                if vectors:
                    await agent.embed()
                for each in (*stacks, *stacks):
                    for questions in (("who likes tea",), ("Ada writes programs", "who likes tea"), ("Babbage",)):
                        answer = await each.recall(agent.caller, *questions)
                        assert answer.cached == answer.searched
                assert answer.hits == 1, "nothing was written since this gateway last asked"

    async def test_cached_and_searched_answers_are_equal_during_writes(
        self, stacks: list[RecallStack], agent: Agent
    ) -> None:
        dice = random.Random(7)
        await agent.remember(*FORESTS)
        writing = asyncio.create_task(_write(agent, dice))
        answers = []
        while not writing.done():
            answers += await asyncio.gather(*(each.recall(agent.caller, "who is in the alder") for each in stacks))
        await writing
        assert [answer for answer in answers if answer.cached != answer.searched] == []
        found = {tuple(answer.texts) for answer in answers}
        assert len(found) > 3, "the answers changed meanwhile"
        assert 0 < sum(answer.hits for answer in answers) < len(answers)

    @pytest.mark.parametrize("blind_to", ["revision", "epoch"])
    async def test_a_cache_state_without_revision_or_epoch_serves_stale_answers(
        self, stacks: list[RecallStack], agent: Agent, monkeypatch: pytest.MonkeyPatch, blind_to: str
    ) -> None:
        """This shows that the two tests above can fail."""
        find_basis = store.find_basis
        unchanging: dict[str, Any] = (
            {"revision": 1, "at": datetime(2000, 1, 1, tzinfo=UTC), "passages": 0}
            if blind_to == "revision"
            else {"index_epoch": 0, "model": embedder().model}
        )

        async def blinded(tx: Transaction, graph: Graph, questions: Sequence[Question]) -> Basis:
            basis = await find_basis(tx, graph, questions)
            return replace(basis, state=replace(basis.state, **unchanging))

        monkeypatch.setattr(store, "find_basis", blinded)
        await agent.remember(*FORESTS)
        await stacks[0].cached(agent.caller, "who is in the alder")
        if blind_to == "revision":
            await agent.remember("a wren sings in the alder")
        else:
            await agent.embed()
        answer = await stacks[0].recall(agent.caller, "who is in the alder")
        assert answer.hits == 1
        assert answer.cached.hits != answer.searched.hits

    async def test_one_gateway_uses_the_searches_of_another(self, stacks: list[RecallStack], agent: Agent) -> None:
        first, second = stacks
        await agent.remember(*FORESTS)
        await first.recall(agent.caller, "alder")
        await second.recall(agent.caller, "owl")  # It has not seen the graph's state before.
        answer = await second.recall(agent.caller, "alder")
        assert (answer.hits, answer.cached) == (1, answer.searched)
        await first.recall(agent.caller, "fox")
        assert (await second.recall(agent.caller, "fox", "alder", "nothing of the kind")).hits == 2

    async def test_entries_from_before_a_write_are_not_used(self, stacks: list[RecallStack], agent: Agent) -> None:
        """Even by a gateway that learned the new state from another question."""
        await agent.remember(*FORESTS)
        await stacks[0].cached(agent.caller, "alder")
        await agent.remember("a wren sings in the alder")
        for each in stacks:
            await each.recall(agent.caller, "owl")
            answer = await each.recall(agent.caller, "alder")
            assert answer.cached == answer.searched
            assert "a wren sings in the alder" in answer.texts

    async def test_each_filter_and_option_has_its_own_entry(self, stacks: list[RecallStack], agent: Agent) -> None:
        at = datetime(2026, 1, 1, tzinfo=UTC)
        await agent.remember(
            NewMemory("likes green tea", about=("Ada",), kind="person", tags=("drinks",), importance=5, at=at),
            NewMemory("likes black tea", about=("Grace",), kind="cat", at=at + timedelta(days=9)),
            "tea is a plant",
        )
        [archived] = await agent.remember("tea is a drug")
        async with agent.writing() as (tx, revision):
            await revising.revise(tx, revision, MemoryRef(archived.id), MemoryPatch(status="archived"))
        asks: list[dict[str, Any]] = [
            {},
            {"kinds": ("person",)},
            {"tags": ("drinks",)},
            {"about": ("Grace",)},
            {"min_importance": 4.0},
            {"since": at + timedelta(days=1)},
            {"until": at + timedelta(days=1)},
            {"include_outdated": True},
            {"status": "active"},
            {"status": "archived"},
            {"named": True},
            {"named": False},
        ]
        await stacks[0].recall(agent.caller, "coffee")
        for hits in (0, 1):
            for only in asks:
                answer = await stacks[0].recall(agent.caller, "tea", **only)
                assert answer.cached == answer.searched, only
                assert answer.hits == hits, only

    async def test_answers_that_depend_on_the_clock_are_not_cached(
        self, stacks: list[RecallStack], agent: Agent
    ) -> None:
        await agent.remember(*FORESTS)
        for _ in range(3):
            answer = await stacks[0].recall(agent.caller, "alder", fresh_only=True)
            assert answer.lookup is None
        assert await stacks[0].redis.keys(f"recollect:recall:*{agent.caller.tenant_id}*") == []

    async def test_an_answer_is_valid_until_the_next_expiry(
        self, stacks: list[RecallStack], agent: Agent, owner: asyncpg.Connection
    ) -> None:
        """The expiry of a found or of another memory: once its last observation has expired, an entity is found by its
        name."""
        alders = [f"an alder, an alder, the alder of number {number}" for number in range(60)]
        unlike = "drinks black tea on Mondays with the neighbours of an aunt from Yorkshire, who talks of nothing else"
        await agent.remember(*alders, NewMemory(unlike, about=("alder",), ttl_days=1))
        await agent.embed()
        began = time.monotonic()
        for question in ("oak", "who drinks coffee"):
            await stacks[0].cached(agent.caller, question)
        soon = timedelta(seconds=2 + 5 * (time.monotonic() - began))  # Even a busy machine has asked twice by then.
        for table in ("observations", "passages"):
            expire = f"UPDATE {table} SET expires_at = now() + $2 WHERE tenant_id = $1 AND expires_at > now()"
            assert await owner.execute(expire, agent.caller.tenant_id, soon) == "UPDATE 1"
        before = await stacks[0].cached(agent.caller, "alder")
        assert {"alder", unlike}.isdisjoint(before)
        assert unlike in await stacks[0].cached(agent.caller, "who drinks black tea")
        await asyncio.sleep(soon.total_seconds())
        for question in ("alder", "who drinks black tea"):
            answer = await stacks[0].recall(agent.caller, question)
            assert (answer.hits, answer.cached) == (0, answer.searched)
            assert unlike not in answer.texts
        assert "alder" in await stacks[0].cached(agent.caller, "alder")


async def _write(agent: Agent, dice: random.Random) -> None:
    for number in range(40):
        match dice.randrange(4):
            case 0:
                await agent.embed()
            case 1:
                await agent.delete(f"Bird {number - 1}", f"Bird {number - 2}")
            case _:
                await agent.remember(NewMemory(f"sits in the alder, {number}", about=(f"Bird {number}",)))
        await asyncio.sleep(dice.choice([0, 0.005, 0.02]))


async def lock_indexes(tx: Transaction, operator: Operator, graph_id: UUID) -> None:
    claimed = await passages.claim_pending(tx, model=embedder().model, limit=10, lease_seconds=0)
    assert await passages_store.lock_indexes(tx, [passage.id for passage in claimed], embedder().model)


async def raise_index_epoch(tx: Transaction, operator: Operator, graph_id: UUID) -> None:
    await passages.raise_index_epoch(tx, graph_id)


async def recount_graph(tx: Transaction, operator: Operator, graph_id: UUID) -> None:
    await passage_words.recount_graph(tx, graph_id)


async def set_serving_model(tx: Transaction, operator: Operator, graph_id: UUID) -> None:
    await reembedding.set_serving_model(tx, graph_id, model="another")


async def note_index(tx: Transaction, operator: Operator, graph_id: UUID) -> None:
    await vector_indexes.note_index(operator, tx.caller.tenant_id, graph_id, None, None)


@pytest.mark.parametrize("raised_by", [lock_indexes, raise_index_epoch, recount_graph, set_serving_model, note_index])
async def test_an_epoch_lost_in_a_crash_is_not_assigned_again(
    agent: Agent,
    settings: Settings,
    owner: asyncpg.Connection,
    raised_by: Callable[[Transaction, Operator, UUID], Awaitable[None]],
) -> None:
    """Commits of workers do not wait for the disk, so a crash may restore an older state of the row."""
    await agent.remember(*FORESTS)
    before = await owner.fetchrow("SELECT * FROM graph_indexes WHERE tenant_id = $1", agent.caller.tenant_id)
    assert before is not None
    given = [before["index_epoch"]]
    async with Operator.connect(settings.migration_url, settings) as operator:
        for _ in range(3):
            async with agent.db.transaction(agent.caller) as tx:
                await raised_by(tx, operator, before["graph_id"])
            given.append(await owner.fetchval(EPOCH, agent.caller.tenant_id))
            await owner.execute(
                "UPDATE graph_indexes SET index_epoch = $2 WHERE tenant_id = $1", agent.caller.tenant_id, given[0]
            )
    assert given == sorted(set(given))


async def test_epochs_increase_even_if_the_clock_does_not(agent: Agent, owner: asyncpg.Connection) -> None:
    await agent.remember(*FORESTS)
    ahead = int((datetime.now(UTC) + timedelta(days=1)).timestamp() * 1_000_000)
    graph_id = await owner.fetchval(
        "UPDATE graph_indexes SET index_epoch = $2 WHERE tenant_id = $1 RETURNING graph_id",
        agent.caller.tenant_id,
        ahead,
    )
    async with agent.db.transaction(agent.caller) as tx:
        await passages.raise_index_epoch(tx, graph_id)
    assert await owner.fetchval(EPOCH, agent.caller.tenant_id) == ahead + 1


class TestRedis:
    """If it is away, slow, full or corrupted, recall is only slower."""

    @pytest.mark.parametrize(
        "garbage",
        [b"", b"\x01", b"\x00" * 40, b"\x01" + b"\x00" * 40, b"\x80\x04K*.", b"\x01" * (MAX_BYTES + 10), None],
        ids=["empty", "a version", "zeros", "sealed with zeros", "a pickle", "too long", "a list"],
    )
    async def test_an_invalid_value_is_ignored_and_replaced(
        self, stacks: list[RecallStack], agent: Agent, garbage: bytes | None
    ) -> None:
        one = stacks[0]
        await agent.remember(*FORESTS)
        expected = await one.cached(agent.caller, "alder")
        [key] = await one.keys(agent.caller)
        await one.redis.delete(key)
        if garbage is None:
            untyped: Any = one.redis
            await untyped.rpush(key, "x")
        else:
            await one.redis.set(key, garbage)
        answer = await one.recall(agent.caller, "alder")
        assert (answer.hits, answer.texts) == (0, expected)
        assert await one.cached(agent.caller, "alder") == expected, "a good value takes its place"

    @pytest.mark.proves("security: untrusted-valkey")
    async def test_a_value_with_a_flipped_bit_is_ignored(self, stacks: list[RecallStack], agent: Agent) -> None:
        one = stacks[0]
        await agent.remember(*FORESTS)
        await one.cached(agent.caller, "alder")
        [key] = await one.keys(agent.caller)
        value: bytes = await one.redis.get(key)
        for place in range(0, len(value), 7):
            await one.redis.set(key, value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :])
            assert (await one.recall(agent.caller, "alder")).hits == 0

    async def test_keys_and_values_contain_no_text(self, stacks: list[RecallStack], agent: Agent) -> None:
        one = stacks[0]
        await agent.remember(NewMemory("nests in the alder", about=("Heron",)))
        await one.cached(agent.caller, "Heron alder")
        held = [*await one.redis.keys("*"), *[await one.redis.get(key) for key in await one.keys(agent.caller)]]
        assert len(held) > 2
        for word in (b"alder", b"Heron", b"nests", b"default"):
            assert not any(word in value for value in held)

    @pytest.mark.proves("graph-contract: caches")
    async def test_entries_expire_and_their_number_is_limited(self, own: Settings, agent: Agent) -> None:
        await agent.remember(*FORESTS)
        async with stack(own, max_entries=3, ttl_seconds=30) as one:
            for number in range(6):
                await one.recall(agent.caller, f"alder {number}")
                assert len(await one.keys(agent.caller)) == min(number + 1, 3)
            assert await one.cache.shared.size(agent.caller.tenant_id) == 3
            assert [(await one.recall(agent.caller, f"alder {number}")).hits for number in (5, 4, 3)] == [1, 1, 1]
            everything = await one.redis.keys(f"recollect:recall:*{agent.caller.tenant_id}*")
            assert len(everything) == 4
            assert all([0 < await one.redis.ttl(key) <= 30 for key in everything])
            one.cache.shared.put(agent.caller.tenant_id, b"long", b"x" * MAX_BYTES)
            await one.cache.shared.settle()
            assert await one.cache.shared.get(agent.caller.tenant_id, [b"long"]) == [None]

    async def test_recall_works_while_redis_is_empty_full_or_stopped(
        self, stacks: list[RecallStack], agent: Agent, valkey: LocalValkey, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shared_cache, "REST_SECONDS", 0.0)
        one = stacks[0]
        await agent.remember(*FORESTS)
        expected = await one.cached(agent.caller, "alder")
        await one.redis.flushall()
        answer = await one.recall(agent.caller, "alder")
        assert (answer.hits, answer.texts) == (0, expected)
        await one.redis.flushall()
        await one.redis.config_set("maxmemory", 1)
        try:
            for _ in range(3):
                answer = await one.recall(agent.caller, "alder")
                assert (answer.hits, answer.texts) == (0, expected)
        finally:
            await one.redis.config_set("maxmemory", 0)
        assert await one.cached(agent.caller, "alder") == expected
        await asyncio.to_thread(valkey.stop)
        try:
            for _ in range(3):
                answer = await one.recall(agent.caller, "alder")
                assert (answer.hits, answer.texts) == (0, expected)
            assert await one.cache.shared.size(agent.caller.tenant_id) == 0
        finally:
            await asyncio.to_thread(valkey.start)
        assert await one.cached(agent.caller, "alder") == expected

    async def test_a_hanging_redis_is_asked_only_now_and_then(
        self, stacks: list[RecallStack], agent: Agent, valkey: LocalValkey, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shared_cache, "REST_SECONDS", 3600.0)
        one = stacks[0]
        await agent.remember(*FORESTS)
        expected = await one.cached(agent.caller, "alder")
        assert valkey.pid is not None
        os.kill(valkey.pid, signal.SIGSTOP)
        try:
            answers = await asyncio.gather(*(one.recall(agent.caller, "alder") for _ in range(20)))
            assert [(answer.hits, answer.texts) for answer in answers] == [(0, expected)] * 20
        finally:
            os.kill(valkey.pid, signal.SIGCONT)
        assert (await one.recall(agent.caller, "alder")).hits == 0, "it rests"
        one.cache.shared._rests_until = 0
        assert await one.cached(agent.caller, "owl") == await one.cached(agent.caller, "owl")
        assert await one.cached(agent.caller, "alder") == expected


RANKED = st.builds(
    RankedPassage,
    st.uuids(),
    st.floats(allow_nan=False),
    st.floats(allow_nan=False),
    st.fixed_dictionaries({"own": st.floats(allow_nan=False), "far": st.floats(allow_nan=False)}),
)


@given(st.lists(RANKED, max_size=100))
def test_a_ranking_survives_encoding(ranking: list[RankedPassage]) -> None:
    assert decode(encode(ranking)) == ranking
    assert len(encode(ranking)) < MAX_BYTES


@given(st.binary(max_size=200))
def test_invalid_bytes_decode_to_none(value: bytes) -> None:
    ranking = decode(value)
    assert ranking is None or decode(encode(ranking)) is not None


def test_a_relative_date_makes_a_different_key_each_day() -> None:
    state = GraphState(UUID(int=1), 1, datetime(2026, 5, 1, tzinfo=UTC), 1, 0, None, None, None)
    question = Question("What did Ada do yesterday?", None, "model")
    keys = {
        key_material(state, asked, RecallFilter())
        for asked in (
            question,
            replace(question, asked_on=date(2026, 5, 1)),
            replace(question, asked_on=date(2026, 5, 2)),
        )
    }
    assert len(keys) == 3
