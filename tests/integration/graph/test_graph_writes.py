"""One call writes one revision: batches, concurrent writers, and calls that write nothing."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby, pairwise

import asyncpg
import pytest

from recollect.caller import Caller
from recollect.errors import Conflict, ErrorCode, Forbidden, InvalidInput, NotFound, TooLarge, Unavailable
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph, Revision
from recollect.graph.nodes import naming
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation
from recollect.graph.passages.store import MAX_INSERTED
from recollect.graph.relations import service as relations
from recollect.graph.relations import subgraphs
from recollect.graph.relations.model import NewRelation
from recollect.memory import reading, remembering, writing
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction
from recollect.settings import Settings
from tests.support.memories import Agent, embedded_questions, names
from tests.support.plans import explained
from tests.support.statements import sent_statements

BATCH = 1_000
LARGE = 3 * MAX_INSERTED
WRITERS = 20


@pytest.mark.proves("enhanced-server: one-write-per-batch")
async def test_a_batch_of_a_thousand_entities_is_one_revision(agent: Agent, owner: asyncpg.Connection) -> None:
    batch = [NewEntity(f"entity {n}", "thing", (f"is number {n}", "is one of many")) for n in range(BATCH)]
    assert await agent.create(*batch) == [entity.name for entity in batch]
    graph, head = await agent.read(), await agent.head()
    assert [(e.name, e.observations) for e in graph.entities] == [(e.name, e.observations) for e in batch]
    assert (head.revision, head.entities, head.observations) == (1, BATCH, 2 * BATCH)
    change = await owner.fetchrow("SELECT ids, counts FROM changes WHERE tenant_id = $1", agent.caller.tenant_id)
    assert change is not None
    assert len(set(change["ids"])) == 3 * BATCH


SMALLEST_WRITE = [
    "BEGIN",
    "graphs.lock_graph",
    "aliases.find_entities",
    "observations.insert_observations",
    "passages.insert_passages",
    "graphs.record_revision",
    "COMMIT",
]
"""Each is a round trip, and PostgreSQL plans each."""


async def test_the_smallest_write_makes_few_round_trips(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes notes",)))
    with sent_statements() as sent:
        assert await agent.observe("Ada", "reads Euler") == ["reads Euler"]
    told = [re.sub(r"^/\* (\S+) \*/.*|^(BEGIN)\b.*|.*(COMMIT)$", r"\1\2\3", text, flags=re.DOTALL) for text in sent]
    assert told == SMALLEST_WRITE


Write = Callable[[Transaction, Revision, list[str]], Awaitable[object]]


async def create(tx: Transaction, revision: Revision, batch: list[str]) -> None:
    await entities.create_entities(tx, revision, [NewEntity(name, "thing", ("is one of many",)) for name in batch])


async def relate(tx: Transaction, revision: Revision, batch: list[str]) -> None:
    await relations.create_relations(tx, revision, [NewRelation(name, f"friend of {name}", "knows") for name in batch])


async def observe(tx: Transaction, revision: Revision, batch: list[str]) -> None:
    await observations.add_observations(tx, revision, [NewObservation(name, f"is called {name}") for name in batch])


async def remember(tx: Transaction, revision: Revision, batch: list[str]) -> None:
    items = [NewMemory(f"{name} was seen", about=(name, f"twin of {name}")) for name in batch]
    items += [NewMemory(f"nobody saw {name}") for name in batch]
    await remembering.remember(tx, revision, items, await embedded_questions(*(item.text for item in items)))


async def unobserve(tx: Transaction, revision: Revision, batch: list[str]) -> None:
    await observations.remove_observations(tx, revision, [(name, "is one of many") for name in batch])


async def unrelate(tx: Transaction, revision: Revision, batch: list[str]) -> None:
    await relations.delete_relations(tx, revision, [(name, f"friend of {name}", "knows") for name in batch[::2]])


async def delete(tx: Transaction, revision: Revision, batch: list[str]) -> None:
    await writing.delete_entities(tx, revision, batch)


async def statements_of(agent: Agent, write: Write, batch: list[str]) -> list[str]:
    """The statements that one call sends between BEGIN and COMMIT, as the driver counts them."""
    sent: list[str] = []
    async with agent.db.transaction(agent.caller) as tx:
        with tx._connection.query_logger(lambda record: sent.append(record.query)):
            async with graphs.write_graph(tx, agent.graph, "test") as revision:
                await write(tx, revision, batch)
    return sent


@pytest.mark.proves("enhanced-server: one-write-per-batch")
async def test_a_larger_batch_sends_no_more_statements(agent: Agent, settings: Settings) -> None:
    """Every kind of write, in an order in which each finds something to do."""
    one_connection = settings.model_copy(update={"database_pool_size": 1})
    sizes = {"first": 2, "small": 2, "large": LARGE}  # The first graph teaches the connection its types.
    async with Database.connect(settings.database_url, settings=one_connection) as db:
        for write in (create, relate, observe, remember, unobserve, unrelate, delete):
            sent = {
                graph: await statements_of(Agent(db, agent.caller, graph), write, [f"entity {n}" for n in range(size)])
                for graph, size in sizes.items()
            }
            # More rows than fit in one statement are stored by several statements, of at most eight kinds.
            large = [statement for statement, _ in groupby(sent["large"])]
            assert large == sent["small"], write.__name__
            assert 3 <= len(large) <= 22, write.__name__
            assert len(sent["large"]) - len(large) <= 8 * LARGE // MAX_INSERTED, write.__name__


@pytest.mark.proves("crate: concurrent-writers")
async def test_concurrent_writers_of_one_graph_lose_nothing(agent: Agent, owner: asyncpg.Connection) -> None:
    """The first writer creates the graph. All write entities, edges and observations, their own and shared ones."""
    agent = replace(agent, graph="shared")

    async def work(n: int) -> int:
        made = await agent.create(f"of {n}", "of all")
        await agent.relate((f"of {n}", "hub", "spoke"), ("of all", "hub", "spoke"))
        await agent.observe("of all", f"seen by {n}", "seen by somebody")
        await agent.remember(NewMemory("everybody remembers", about=("of all",)), f"only {n} remembers")
        return len(made)

    made = await asyncio.gather(*(work(n) for n in range(WRITERS)))
    assert sorted(made) == [1] * (WRITERS - 1) + [2]
    head, shared = await agent.head(), (await agent.open("of all")).entities[0]
    assert (head.entities, head.placeholders, head.relations) == (WRITERS + 1, 1, WRITERS + 1)
    assert (head.observations, head.facts) == (WRITERS + 2, WRITERS)
    assert sorted(shared.observations) == sorted(
        ["everybody remembers", "seen by somebody", *(f"seen by {n}" for n in range(WRITERS))]
    )
    changes = await owner.fetch(
        "SELECT revision, at FROM changes WHERE tenant_id = $1 ORDER BY revision", agent.caller.tenant_id
    )
    assert [change["revision"] for change in changes] == list(range(1, head.revision + 1))
    assert all(before["at"] < after["at"] for before, after in pairwise(changes))


async def test_concurrent_writers_of_one_name_create_it_once(agent: Agent) -> None:
    made = await asyncio.gather(*(agent.create("contested") for _ in range(WRITERS)))
    assert sorted(made) == [[]] * (WRITERS - 1) + [["contested"]]
    assert (await agent.head()).revision == 1


@pytest.mark.proves("crate: readers-do-not-wait")
async def test_readers_do_not_wait_for_a_writer_and_writers_wait_a_limited_time(
    settings: Settings, caller: Caller
) -> None:
    hasty = settings.model_copy(update={"lock_timeout_seconds": 0.1})
    async with Database.connect(settings.database_url, settings=hasty) as db:
        agent = Agent(db, caller)
        await agent.create("Ada")
        async with agent.writing() as (tx, revision):
            await entities.create_entities(tx, revision, [NewEntity("Babbage")])
            assert names(await agent.read()) == await agent.found("a") == ["Ada"]
            with pytest.raises(Unavailable, match="Another write is changing this graph") as refused:
                await agent.create("Grace")
            await replace(agent, graph="another").create("Grace")
        assert refused.value.code is ErrorCode.BUSY
        assert names(await agent.read()) == ["Ada", "Babbage"]


async def test_graphs_of_one_tenant_are_isolated(agent: Agent) -> None:
    one, two = replace(agent, graph="one"), replace(agent, graph="two")
    for graph in (one, two):
        await graph.create(NewEntity("Ada", "person", (f"lives in {graph.graph}",)))
        await graph.relate(("Ada", "Babbage", "knows"))
        assert [known.known for known in await graph.remember("it rained")] == [False]
    await agent.embed()
    assert await two.recalled("Where does Ada live?") == ["lives in two"]
    assert await two.found("lives in one") == []
    await one.delete("Ada")
    assert await two.recalled("Ada lives") == ["lives in two"]
    assert len((await two.open("Ada")).relations) == 1
    assert (await two.head()).revision == 3


async def test_an_observation_is_looked_up_by_its_hash(agent: Agent, owner: asyncpg.Connection) -> None:
    """It is not looked up by the trigrams of its text, or among all observations of its entity."""
    said = [f"statement {n} about something or other" for n in range(5 * BATCH)]
    await agent.create(NewEntity("busy", None, tuple(said)))
    await owner.execute("ANALYZE observations")
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        graph = await graphs.get_graph(tx, "default")
        node = (await naming.require_entities(tx, graph, ["busy"]))["busy"].id
        explain = explained(Queries("recollect.graph.observations").find_observations)
        rows = await tx.fetch(explain, node_ids=[node], contents=said[:1], revision_time=datetime.now(UTC))
    plan = "\n".join(row[0] for row in rows)
    assert "(hashtextextended(" in plan.partition("Index Cond:")[2], plan


async def test_time_of_revisions_never_decreases(agent: Agent, owner: asyncpg.Connection) -> None:
    """This holds even if the clock was set back, or if another machine's clock is behind."""
    await agent.create("first")
    tomorrow = await owner.fetchval(
        "UPDATE graph_heads SET at = at + interval '1 day' WHERE tenant_id = $1 RETURNING at", agent.caller.tenant_id
    )
    await agent.create("second")
    assert (await agent.head()).at > tomorrow


async def test_a_call_that_writes_nothing_makes_no_revision(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes programs",)))
    await agent.relate(("Ada", "Babbage", "knows"))
    await agent.remember("the engine was never built")
    head = await agent.head()
    await agent.create("Ada")
    await agent.observe("Ada", "writes programs")
    await agent.relate(("Ada", "Babbage", "knows"))
    await agent.remember("the engine was never built", NewMemory("writes programs", about=("Ada",)))
    await agent.unobserve(("Ada", "never said"), ("nobody", "never said"))
    await agent.unrelate(("Ada", "Babbage", "hates"), ("nobody", "nothing", "is"))
    await agent.delete("nobody")
    for write in (agent.create, agent.relate, agent.remember, agent.unrelate, agent.delete):
        await write()
    assert await agent.head() == head


@pytest.mark.proves("memory-server: atomic")
async def test_a_call_that_fails_halfway_writes_nothing(agent: Agent) -> None:
    async def halfway() -> None:
        async with agent.writing() as (tx, revision):
            await entities.create_entities(tx, revision, [NewEntity("Ada")])
            await observations.add_observations(tx, revision, [NewObservation("Babbage", "designed an engine")])

    with pytest.raises(NotFound, match="Babbage"):
        await halfway()
    assert (names(await agent.read()), (await agent.head()).revision) == ([], 0)


async def test_the_first_occurrence_of_a_duplicate_in_a_batch_counts(agent: Agent) -> None:
    batch = [NewEntity("B", "first", ("b", "a", "b")), NewEntity("A"), NewEntity("B", "second")]
    assert await agent.create(*batch) == ["B", "A"]
    opened = (await agent.open("B")).entities[0]
    assert (opened.kind, opened.observations) == ("first", ("b", "a"))
    twice = [("B", "B", "is"), ("A", "A", "is"), ("B", "B", "is")]
    assert await agent.relate(*twice) == twice[:2]


@pytest.mark.proves("memgraph: kind-whitelist")
async def test_a_whitelist_applies_to_new_nodes_only(agent: Agent) -> None:
    agent = replace(agent, graph="people")
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, NewGraph("people", kind_whitelist=("person",)))
    await agent.create(NewEntity("Ada", "person"))
    await agent.remember(NewMemory("writes programs", about=("Ada",)))
    assert (await agent.open("Ada")).entities[0].observations == ("writes programs",)
    await agent.relate(("Ada", "the engine", "programs"))
    for refused in (
        NewMemory("was never built", about=("the engine",)),
        NewMemory("purrs", kind="cat"),
        NewMemory("has no kind"),
    ):
        with pytest.raises(InvalidInput, match="is not allowed in graph 'people'; allowed: person"):
            await agent.remember(refused)
    assert (await agent.head()).revision == 3


async def test_the_first_write_creates_a_graph_which_reads_as_empty_before(agent: Agent) -> None:
    agent = replace(agent, graph="notes")
    assert names(await agent.read()) == await agent.found("x") == await agent.recalled("x") == []
    with pytest.raises(NotFound):
        await agent.head()
    await agent.create("Ada")
    assert (await agent.head()).revision == 1
    with pytest.raises(Conflict, match="'notes'"):
        async with agent.db.transaction(agent.caller) as tx:
            await graphs.create_graph(tx, NewGraph("notes"))


@pytest.mark.parametrize("name", ["a b", "ä", "a/b", "x" * 129, "a\n", "'; DROP TABLE nodes; --"])
async def test_an_invalid_graph_name_is_refused(agent: Agent, name: str) -> None:
    with pytest.raises(InvalidInput, match="A graph's name has 1 to 128"):
        await replace(agent, graph=name).create("Ada")


async def test_an_allow_list_limits_a_caller_to_its_graphs(agent: Agent) -> None:
    await replace(agent, graph="open").create("Ada")
    await replace(agent, graph="closed").create("Babbage")
    async with agent.db.transaction(agent.caller) as tx:
        allowed = frozenset([(await graphs.get_graph(tx, "open")).id])
    narrow = Agent(agent.db, replace(agent.caller, graphs=allowed, default_graph="open"))
    assert names(await narrow.read()) == ["Ada"]
    for graph in ("closed", "not there", "default"):
        reach = replace(narrow, graph=graph.replace(" ", "-"))
        for call in (reach.read, reach.create, lambda reach=reach: reach.found("Ada"), reach.head):
            with pytest.raises(Forbidden, match="has no access to that graph"):
                await call()
    async with agent.db.transaction(narrow.caller) as tx:
        assert [graph.name for graph in await graphs.list_graphs(tx)] == ["open"]
        with pytest.raises(Forbidden):
            await graphs.create_graph(tx, NewGraph("another"))


@pytest.mark.proves("crate: read-graph-bound")
async def test_a_graph_too_large_for_one_reply_is_read_in_pages(agent: Agent) -> None:
    await agent.create(*(f"entity {n}" for n in range(7)))
    await agent.relate(*((f"entity {n}", f"entity {n + 1}", "before") for n in range(6)))

    async def page(limit: int | None, offset: int = 0) -> tuple[list[str], int, int | None]:
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            read = await reading.read_graph(
                await graphs.view(tx, None), kind=None, offset=offset, limit=limit, max_items=12
            )
            return list(names(read)), len(read.relations), read.next_offset

    with pytest.raises(TooLarge, match="limit=100, offset=0"):
        await page(None)
    assert await page(3) == (["entity 0", "entity 1", "entity 2"], 3, 3)
    assert await page(3, offset=3) == (["entity 3", "entity 4", "entity 5"], 4, 6)
    assert await page(3, offset=6) == (["entity 6"], 1, None)


async def test_of_too_many_relations_the_oldest_come_and_a_mark(agent: Agent) -> None:
    await agent.create("hub")
    for start in range(0, subgraphs.MAX_RELATIONS, 2_000):
        await agent.relate(*(("hub", "knows", f"friend {n}") for n in range(start, start + 2_000)))
    found = await agent.open("hub")
    assert (len(found.relations), found.cut) == (subgraphs.MAX_RELATIONS, None)
    await agent.relate(("hub", "knows", "one more"))
    cut = await agent.open("hub")
    assert (cut.relations, cut.cut) == (found.relations, "relations")
