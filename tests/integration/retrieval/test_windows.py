"""Windows of passages are correct after any writes, deletions and embedding, in any order and by several workers."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.accounts.identity.model import operator_caller
from recollect.graph.graphs import service as graphs
from recollect.graph.passages import service as passages
from recollect.graph.passages import store
from recollect.graph.passages.model import ClaimedPassage
from recollect.memory import revising
from recollect.memory.model import MemoryPatch, MemoryRef, NewMemory
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from tests.conftest import NewTenant
from tests.support.examples import examples
from tests.support.histories import STEPS, remember, written
from tests.support.memories import Agent, at_work, count_words, embedded_passages, embedder
from tests.support.windows import assert_windows

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
EXAMPLES = 20

_graphs = itertools.count(1)


@dataclass
class Worker:
    """The workers of one tenant, which may be killed or slow between a claim and its end."""

    agent: Agent
    claims: list[list[ClaimedPassage]] = field(default_factory=list)

    async def claim(self, limit: int) -> None:
        """Claim up to `limit` passages."""
        async with self.agent.db.transaction(self.agent.caller) as tx:
            model = embedder().model
            claimed = await passages.claim_pending(tx, model=model, limit=limit, lease_seconds=60)
        if claimed:
            self.claims.append(claimed)

    async def settle(self, place: int) -> None:
        """Settle one of the claims, whose lease may be over."""
        if not self.claims:
            return
        claimed = self.claims.pop(place % len(self.claims))
        made = await embedded_passages(claimed)
        async with self.agent.db.transaction(self.agent.caller) as tx:
            await passages.settle(tx, claimed, model=embedder().model, **made)

    async def drop(self, place: int) -> None:
        """Be killed while holding a claim."""
        if self.claims:
            self.claims.pop(place % len(self.claims))


async def end_leases(owner: asyncpg.Connection, agent: Agent) -> None:
    """End every lease of the tenant."""
    await owner.execute(
        "UPDATE passages SET claimed_until = claimed_until - interval '1 hour' WHERE tenant_id = $1",
        agent.caller.tenant_id,
    )


LONG = " ".join(f"word{n}" for n in range(79))
HALF = " ".join(f"half{n}" for n in range(50))
ALL = ("Ada", "Grace", "Babbage")
SAID = st.sampled_from(
    ["likes tea", "Ada: likes tea", "Grace: " + LONG, LONG, f"{LONG[:300]} at last", "Ada: so", HALF, "so", LONG * 3]
)
TURNS = st.builds(
    NewMemory,
    text=SAID,
    about=st.sampled_from([(), (), ("Ada",), ALL]),
    thread=st.sampled_from(["monday", "monday", "monday", None]),
    at=st.one_of(st.none(), st.integers(0, 5).map(lambda hours: MONDAY + timedelta(hours=hours))),
)
SPOKEN = st.tuples(st.just(remember), st.tuples(st.lists(TURNS, min_size=1, max_size=4)))
WORK = st.one_of(
    st.tuples(st.just("claim"), st.integers(1, 4)),
    st.tuples(st.just("settle"), st.integers(0, 3)),
    st.tuples(st.just("settle"), st.integers(0, 3)),
    st.tuples(st.just("drop"), st.integers(0, 3)),
    st.tuples(st.just("end_leases"), st.just(0)),
)
WORKED = st.lists(st.one_of(SPOKEN, SPOKEN, STEPS, WORK, WORK), min_size=3, max_size=20)


@pytest.fixture(scope="module")
async def replaying(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    """An agent whose graphs are shared out among the examples."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        yield agent


def say(*texts: str, hours: int = 0, about: tuple[str, ...] = ()) -> Any:
    """A step that remembers texts in one thread, an hour apart. If it is about several entities, each text is stored
    for each."""
    return remember, (
        [NewMemory(t, about, "monday", MONDAY + timedelta(hours=hours + n)) for n, t in enumerate(texts)],
    )


CATCH_UP = [("claim", 9), ("settle", 0)]


@examples(EXAMPLES)
@given(history=WORKED)
@example(history=[say("so"), say(HALF, hours=1, about=ALL), *CATCH_UP, say("at last", hours=9)])  # It counts once.
@example(
    history=[say("so"), say(LONG, "so", hours=1, about=ALL), *CATCH_UP, say("end", hours=9)]
)  # Its own copies do not count, either.
@example(
    history=[say("so", "Ada: " + LONG), *CATCH_UP, say("at last", hours=9)]
)  # A label is not a word of the window.
async def test_windows_are_correct_once_the_worker_has_caught_up(
    replaying: Agent, owner: asyncpg.Connection, history: list[Any]
) -> None:
    agent = replace(replaying, graph=f"worked-{next(_graphs)}")
    worker = Worker(agent)
    async with at_work(agent.db, agent.caller):  # No passages are left to the next example, however this one ends.
        for step, arguments in history:
            if step == "end_leases":
                await end_leases(owner, agent)
            elif isinstance(step, str):
                await getattr(worker, step)(arguments)
            else:
                await written(agent, (step, arguments))
        await end_leases(owner, agent)
        await agent.embed()
        await assert_windows(agent, owner)


@pytest.fixture(scope="module")
async def talks(replaying: Agent, owner_url: str) -> list[UUID]:
    """The ids of what was said in turn in two long talks, all settled."""
    agent = replace(replaying, graph="talks")
    turns = [
        NewMemory(f"turn {n} of talk {m}", thread=f"talk {m}", at=MONDAY + timedelta(n // 3))
        for n in range(60)
        for m in "ab"
    ]
    told = await agent.remember(*turns)
    owner = await asyncpg.connect(owner_url, server_settings={"search_path": "recollect, public"})
    await owner.execute("UPDATE passages SET settled = true WHERE tenant_id = $1", agent.caller.tenant_id)
    await owner.close()
    return [one.id for one in told]


@examples(EXAMPLES // 2)
@given(runs=st.lists(st.tuples(st.integers(0, 119), st.integers(1, 40)), min_size=1, max_size=5))
@example(runs=[(0, 120)])
@example(runs=[(place, 1) for place in range(0, 120, 3)])
async def test_neighbours_are_rebuilt_the_same_for_any_number_of_removed_passages(
    replaying: Agent, talks: list[UUID], monkeypatch: pytest.MonkeyPatch, runs: list[tuple[int, int]]
) -> None:
    """The neighbours of a run of removed passages are looked up once if many were removed, and for each if few were."""
    agent = replace(replaying, graph="talks")
    doomed = sorted({place % 120 for start, length in runs for place in range(start, start + length)})
    found = []
    for each in (1_000, 3, 0):
        monkeypatch.setattr(store, "MAX_NEIGHBOUR_LOOKUPS", each)
        async with agent.db.transaction(agent.caller, commit=False) as tx:
            async with graphs.write_graph(tx, agent.graph, "test") as revision:
                await revising.forget(tx, revision, [MemoryRef(id=talks[place]) for place in doomed], delete=True)
            rows = await tx.fetch(
                Query.compile("SELECT id FROM passages WHERE NOT settled AND removed_revision IS NULL ORDER BY id")
            )
            found.append([row["id"] for row in rows])
    assert found[0] == found[1] == found[2]
    assert found[0] or len(doomed) == 120


async def start_to_settle(agent: Agent, worker: Worker) -> asyncio.Task[None]:
    """A worker that starts to settle its claim, and gets as far as it can."""
    task = asyncio.create_task(worker.settle(0))
    await asyncio.sleep(0.3)
    return task


async def test_a_passage_deleted_while_its_neighbours_are_settled_is_in_no_window(
    agent: Agent, owner: asyncpg.Connection
) -> None:
    """The worker looks at a passage that an open transaction deletes."""
    told = await agent.remember(
        *(NewMemory(text, thread="m") for text in ("it rained", "the platypus left", "tea was cold"))
    )
    worker = Worker(agent)
    await worker.claim(9)
    async with agent.writing() as (tx, revision):
        await revising.forget(tx, revision, [MemoryRef(id=told[1].id)], delete=True)
        task = await start_to_settle(agent, worker)
    await task
    await end_leases(owner, agent)
    await agent.embed()
    await assert_windows(agent, owner)


async def test_a_passage_with_a_new_time_leaves_the_windows_of_its_old_neighbours(
    agent: Agent, owner: asyncpg.Connection
) -> None:
    texts = ["it rained", "the platypus left", "tea was cold", *(f"{LONG} {n}" for n in range(9))]
    turns = [NewMemory(text, ("Ada",), "m", MONDAY + timedelta(n)) for n, text in enumerate(texts)]
    await agent.remember(*turns)
    await agent.embed()
    await agent.remember(replace(turns[1], at=MONDAY + timedelta(20)))
    await agent.embed()
    await assert_windows(agent, owner)


async def test_concurrent_workers_and_writers_lose_nothing_and_do_not_deadlock(
    agent: Agent, owner: asyncpg.Connection
) -> None:
    """No call fails: a deadlock would refuse a writer."""
    await agent.create("Ada", "Grace", "Babbage")
    worker, rounds = Worker(agent), 6

    async def speak(speaker: str) -> None:
        for n in range(rounds):
            turns = [NewMemory(f"{speaker}: turn {n} of {m}", thread="m", at=MONDAY + timedelta(m)) for m in range(6)]
            told = await agent.remember(*turns, NewMemory(f"said {n}", about=(speaker,)))
            async with agent.writing() as (tx, revision):
                await revising.forget(tx, revision, [MemoryRef(id=one.id) for one in told[n % 2 :: 2]], delete=True)
            kept = told[1 - n % 2]
            async with agent.writing() as (tx, revision):
                await revising.revise(tx, revision, MemoryRef(id=kept.id), MemoryPatch(text=f"{speaker}: no, {n}"))

    async def work(limit: int) -> None:
        while not done.is_set():
            await worker.claim(limit)
            await worker.settle(0)
            async with agent.db.transaction(agent.caller) as tx:
                await count_words(tx)

    done = asyncio.Event()
    workers = [asyncio.create_task(work(limit)) for limit in (64, 16)]
    try:
        async with asyncio.timeout(60):
            await asyncio.gather(*(speak(speaker) for speaker in ("Ada", "Grace", "Babbage")))
    finally:
        done.set()
        failed = await asyncio.gather(*workers, return_exceptions=True)
    assert failed == [None, None]
    await end_leases(owner, agent)
    await agent.embed()
    await assert_windows(agent, owner)
