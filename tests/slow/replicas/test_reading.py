"""Reads of a graph from a streaming replica: never older than an acknowledged write, and none fails because of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from random import Random

import psutil
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants import service as tenants
from recollect.caller import Caller
from recollect.errors import NotFound
from recollect.fairness import slots
from recollect.fairness.fair_queue import FairQueue
from recollect.fairness.slots import acquire_slot
from recollect.graph.graphs import moments
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.replicas import read_at_replica, read_graph, replicated
from recollect.graph.graphs.view import GraphView
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import NewEdge
from recollect.memory import reading
from recollect.postgres.connections import OWNER_ROLE
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.postgres.transactions import Transaction
from recollect.settings import Settings
from recollect_gateway.calls import Call, read_by_replica
from recollect_operator.cells import OperatorCells
from tests.support.cells import OTHER, cell_url, make_cell, opened
from tests.support.gateway import eventually
from tests.support.measured import Measured
from tests.support.memories import Agent
from tests.support.replicas import NewTenantOfPair, Pair, Reader, call_of, outcomes
from tests.support.statements import sent_statements
from tests.support.timeouts import MAX_WAIT_SECONDS

LONG = Query.compile("SELECT pg_sleep(3600)::text")
NAMES = Query.compile("SELECT array_agg(name) FROM nodes WHERE graph_id = :graph_id")
IS_REPLAYED = Query.compile("SELECT pg_is_in_recovery()")
DATABASE = Query.compile("SELECT current_database()::text")
WAIT_SECONDS = 2.0
"""How long a call waits for a replica that answers, where something else takes longer."""

OWN_PID = Query.compile("SELECT pg_backend_pid()")


@pytest.fixture(scope="module")
async def reader(pair: Pair) -> AsyncIterator[Reader]:
    async with pair.opened() as reader:
        yield reader


@pytest.fixture
async def resident(new_tenant_of_pair: NewTenantOfPair) -> Caller:
    """The operator of a tenant that the test has to itself."""
    return await new_tenant_of_pair()


@pytest.fixture
async def agent(pair: Pair, reader: Reader, resident: Caller) -> AsyncIterator[Agent]:
    """An agent with a graph that the replica has completely. The replica replays again after the test."""
    agent = reader.agent(resident)
    await agent.create("Ada")
    await pair.catch_up()
    yield agent
    await pair.resume()
    reader.replica._paused_until = 0.0


async def where(call: Call, graph: str | None = None) -> str:
    """Which server answers a read of a graph."""

    async def read(call: Call) -> str:
        async with call.reading(graph) as view:
            return "replica" if await view.tx.fetchval(IS_REPLAYED) else "primary"

    return await read_by_replica(call, read)


async def test_the_replica_is_read_unless_it_lacks_a_write_to_the_graph(
    pair: Pair, reader: Reader, resident: Caller, agent: Agent, measured: Measured
) -> None:
    call = reader.call(resident)
    assert await where(call) == "replica"
    await pair.pause()
    assert await where(call) == "replica", "it lacks nothing"
    await agent.create("Grace")
    assert await where(call) == "primary"
    await pair.resume()
    await pair.catch_up()
    assert await where(call) == "replica"
    assert outcomes(measured) == {"replica": 3, "behind": 1}


async def test_a_write_acknowledged_by_one_process_is_seen_by_another_at_any_replica_lag(
    pair: Pair, reader: Reader, resident: Caller, agent: Agent, measured: Measured
) -> None:
    """How far the replica is at each read is random."""
    choice, rounds = Random(15), 240

    async def names(call: Call) -> list[str]:
        async with call.reading(None) as view:
            return list(await view.fetchval(NAMES))

    async with pair.opened() as other:
        for turn in range(rounds):
            await pair.disturb(choice)
            writing, reading = choice.sample((reader, other), 2)
            written = await writing.agent(resident).create(f"{turn}")
            if choice.random() < 0.1:
                await pair.resume()
                await pair.catch_up()
            assert written[0] in await read_by_replica(reading.call(resident), names)
    told = outcomes(measured)
    assert told["replica"] > rounds / 20
    assert told["behind"] > rounds / 20


async def test_the_primary_decides_about_new_and_deleted_graphs(
    pair: Pair, reader: Reader, resident: Caller, agent: Agent
) -> None:
    await pair.pause()
    new = Agent(agent.db, agent.caller, "new")
    await new.create("Grace")
    assert await where(reader.call(resident), "new") == "primary"
    async with agent.db.transaction(resident) as tx:
        await graphs.delete_graph(tx, "default", "test")
    async with reader.call(resident).reading(None) as view:
        assert not view.is_there


async def test_a_read_goes_to_the_primary_unless_the_call_allows_the_replica(
    reader: Reader, resident: Caller, agent: Agent
) -> None:
    async with reader.call(resident).reading(None) as view:
        assert not await view.tx.fetchval(IS_REPLAYED)


async def test_a_write_to_a_graph_with_a_symlink_to_another_counts_for_both(
    pair: Pair, reader: Reader, resident: Caller, agent: Agent
) -> None:
    tied = Agent(agent.db, resident, "tied")
    await tied.create("Grace")
    await pair.catch_up()
    await pair.pause()
    await tied.create("Hopper")
    assert await where(reader.call(resident)) == "replica", "nothing leads from one to the other"
    await pair.resume()
    await tie(agent, "tied")
    await pair.catch_up()
    assert await where(reader.call(resident)) == "replica"
    await pair.pause()
    await tied.create("Turing")
    assert await where(reader.call(resident)) == "primary"


async def tie(agent: Agent, graph: str) -> None:
    """Make a relation from Ada to Grace, who is in another graph."""
    async with agent.writing() as (tx, revision):
        other = await graphs.view(tx, graph)
        source = await reading.node_called(GraphView(tx, revision.graph), "Ada")
        target = await reading.node_called(other, "Grace")
        await relations.put_edges(tx, revision, [NewEdge(source, target, "knows", to_graph=other.graph.id)])


async def test_a_lagging_replica_is_not_read_even_if_it_has_the_whole_graph(
    pair: Pair, resident: Caller, agent: Agent, new_tenant_of_pair: NewTenantOfPair, measured: Measured
) -> None:
    await pair.pause()
    async with pair.opened() as fresh:
        assert await where(fresh.call(resident)) == "replica"
        await new_tenant_of_pair()
        assert await where(fresh.call(resident)) == "replica", "what it lacks was written this moment"
    async with pair.opened(has_read=False) as fresh:
        assert await where(fresh.call(resident)) == "primary", "since when it lacks that, nobody here knows"
    assert outcomes(measured) == {"replica": 2, "lagging": 1}


async def test_a_server_that_does_not_follow_the_primary_is_not_used(
    pair: Pair, resident: Caller, agent: Agent, measured: Measured
) -> None:
    """Such as one that was promoted."""
    async with pair.opened(replica_database_url=pair.settings.database_url) as fresh:
        for _ in range(2):
            async with fresh.call(resident).reading(None) as view:
                assert view.tx.replica is fresh.replica
            await where(fresh.call(resident))
    assert outcomes(measured) == {"promoted": 1, "paused": 1}


async def test_a_replica_that_refuses_the_login_counts_as_away(
    pair: Pair, resident: Caller, agent: Agent, measured: Measured
) -> None:
    """Such as after a change of the password there and not here."""
    async with pair.opened(replica_database_url=pair.standby.url("nobody")) as fresh:
        assert [await where(fresh.call(resident)) for _ in range(2)] == ["primary"] * 2
    assert outcomes(measured) == {"away": 1, "paused": 1}


async def test_a_past_compacted_meanwhile_is_read_from_the_primary(
    pair: Pair, reader: Reader, resident: Caller, agent: Agent, measured: Measured
) -> None:
    """The primary's transaction began before the compaction; the replica's begins after it, at the same revision."""
    await agent.create("Grace")
    async with agent.db.transaction(resident, read_only=True) as tx, AsyncExitStack() as stack:
        view = await graphs.view(tx, None, "1")
        async with agent.db.transaction(resident) as compacting:
            horizon = await moments.raise_horizon(compacting, view.graph, datetime.now(UTC))
        assert horizon.revision == 2
        await pair.catch_up()
        assert await replicated(view, stack) is None
        assert outcomes(measured) == {"behind": 1}
    assert await where(reader.call(resident)) == "replica"


async def test_a_call_that_gives_way_does_not_count_against_the_replica(
    pair: Pair, resident: Caller, agent: Agent, measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenant that floods waits between its steps, which is no reason to stop reading from the replica."""
    async with pair.opened(replica_wait_seconds=WAIT_SECONDS) as fresh:
        await eventually(lambda: is_read_by_replica(fresh, resident))
        noted = outcomes(measured)["replica"]
        monkeypatch.setattr(slots, "MAX_PREEMPTED_SECONDS", 2 * WAIT_SECONDS)
        monkeypatch.setattr(slots, "SLOT_SECONDS", MAX_WAIT_SECONDS)
        async with (
            flooding() as queue,
            fresh.db.transaction(resident, read_only=True) as tx,
            AsyncExitStack() as stack,
        ):
            view = await graphs.view(tx, None)

            def noted_beside_another(position: int) -> int:
                stack.enter_context(queue.expecting("other"))
                return note(position)

            note = fresh.replica.marks.note
            monkeypatch.setattr(fresh.replica.marks, "note", noted_beside_another)
            assert await replicated(view, stack) is not None
        assert outcomes(measured) == {"replica": noted + 1}
        assert not fresh.replica.is_paused


@asynccontextmanager
async def flooding() -> AsyncIterator[FairQueue]:
    """Be at work as one call of a tenant whose other calls queue."""
    queue = FairQueue(4)
    async with acquire_slot(queue, "other", wait_seconds=MAX_WAIT_SECONDS):
        """The other tenant called lately, so a flood gets one slot beside it."""
    async with acquire_slot(queue, "flood", wait_seconds=MAX_WAIT_SECONDS):
        waiting = asyncio.create_task(queue.take("flood"))
        await asyncio.sleep(0)
        yield queue
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def test_each_cell_has_its_own_replica(pair: Pair, resident: Caller, agent: Agent) -> None:
    urls = await make_cell(pair.primary, "recollect_b")
    replica_url = cell_url(pair.standby, "recollect_app", "recollect_b")
    cells = {OTHER: urls.model_copy(update={"replica_database_url": replica_url})}
    celled = pair.settings.model_copy(update={"cells": cells})
    async with (
        OperatorCells.connect(celled, OWNER_ROLE, lambda its: its.migration_url) as operators,
        operators.claimed("elsewhere", OTHER) as tenant_id,
        operators.at(OTHER).session() as operator,
    ):
        tenant = await tenants.create_tenant(operator, "elsewhere", "Elsewhere", tenant_id=tenant_id)
    elsewhere = operator_caller(tenant)

    async def database(call: Call) -> tuple[str, bool]:
        async with call.reading(None) as view:
            return await view.tx.fetchval(DATABASE), await view.tx.fetchval(IS_REPLAYED)

    async with opened(celled) as databases:
        await Agent(databases.all[1], elsewhere).create("Grace")
        await pair.catch_up()

        async def are_read_there() -> bool:
            found = [
                await read_by_replica(call_of(databases, caller, celled), database) for caller in (resident, elsewhere)
            ]
            return found == [("recollect", True), ("recollect_b", True)]

        await eventually(are_read_there)
        await pair.pause()
        await Agent(databases.all[1], elsewhere).create("Hopper")
        assert await read_by_replica(call_of(databases, elsewhere, celled), database) == ("recollect_b", False)
        assert (await read_by_replica(call_of(databases, resident, celled), database))[0] == "recollect"


async def test_a_read_whose_replica_connection_is_lost_is_repeated_on_the_primary(
    pair: Pair, reader: Reader, resident: Caller, agent: Agent, measured: Measured
) -> None:
    places: list[bool] = []

    async def read(call: Call) -> bool:
        async with call.reading(None) as view:
            places.append(await view.tx.fetchval(IS_REPLAYED))
            if places[-1]:
                await pair.standby.execute(f"SELECT pg_terminate_backend({await view.tx.fetchval(OWN_PID)}, 60000)")
            return bool(await view.tx.fetchval(IS_REPLAYED))

    assert await read_by_replica(reader.call(resident), read) is False
    assert places == [True, False]
    assert await where(reader.call(resident)) == "replica", "one connection was lost, and no more"
    assert outcomes(measured) == {"replica": 2, "lost": 1}


async def test_steps_of_longer_work_are_repeated_on_the_primary_too(
    pair: Pair, reader: Reader, resident: Caller, agent: Agent, measured: Measured
) -> None:
    """Such as those of an export, which its reader or its job requests one by one."""
    places: list[bool] = []

    async def read(tx: Transaction) -> bool:
        places.append(bool(await tx.fetchval(IS_REPLAYED)))
        if places[-1]:
            await pair.standby.execute(f"SELECT pg_terminate_backend({await tx.fetchval(OWN_PID)}, 60000)")
        return bool(await tx.fetchval(IS_REPLAYED))

    async with agent.db.transaction(resident) as tx:
        graph = await graphs.get_graph(tx, "default")
        assert await read_at_replica(tx, graph.id, read) is False
    assert await read_graph(agent.db, resident, graph.id, read) is False
    assert places == [True, False] * 2
    assert outcomes(measured) == {"replica": 2, "lost": 2}
    async with agent.db.transaction(resident) as tx:
        await graphs.delete_graph(tx, "default", "test")
    assert await read_graph(agent.db, resident, graph.id, read) is False, "what is gone is what the primary says"


async def test_a_read_that_conflicts_with_replay_is_repeated_on_the_primary(
    pair: Pair, reader: Reader, resident: Caller, agent: Agent, measured: Measured
) -> None:
    """The rows that it may read are vacuumed on the primary, and the replica does not wait for readers."""
    await pair.standby.execute("ALTER SYSTEM SET max_standby_streaming_delay = 0", "SELECT pg_reload_conf()")
    await pair.primary.execute("CREATE TABLE IF NOT EXISTS read AS SELECT 1 AS one", "SELECT 1")
    await pair.catch_up()

    async def is_reading() -> bool:
        return await pair.standby.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "1"

    async def vacuum() -> None:
        await eventually(is_reading)
        await pair.primary.execute("DELETE FROM read", "VACUUM read", "SELECT 1")

    async def read(call: Call) -> bool:
        async with call.reading(None) as view:
            if is_replayed := bool(await view.tx.fetchval(IS_REPLAYED)):
                await view.tx.fetchval(LONG)
            return is_replayed

    vacuuming = asyncio.create_task(vacuum())
    assert await read_by_replica(reader.call(resident), read) is False
    await vacuuming
    assert outcomes(measured) == {"replica": 1, "conflict": 1}


async def test_a_replica_that_does_not_answer_is_waited_for_no_longer_than_configured(
    pair: Pair, resident: Caller, agent: Agent, measured: Measured
) -> None:
    """Its processes are stopped: it accepts connections and does not answer, on open connections either."""
    assert pair.standby.pid is not None
    server = psutil.Process(pair.standby.pid)
    async with pair.opened(replica_wait_seconds=0.2) as fresh:
        await eventually(lambda: is_read_by_replica(fresh, resident))
        processes = [server, *server.children(recursive=True)]
        for process in processes:
            process.suspend()
        try:
            assert await where(fresh.call(resident)) == "primary"
            assert await where(fresh.call(resident)) == "primary"
        finally:
            for process in reversed(processes):
                process.resume()
    told = outcomes(measured)
    assert told["away"] >= 1
    assert told["paused"] >= 1


async def is_read_by_replica(reader: Reader, caller: Caller) -> bool:
    reader.replica._paused_until = 0.0
    return await where(reader.call(caller)) == "replica"


async def test_an_error_for_the_caller_is_not_repeated_on_the_primary(
    reader: Reader, resident: Caller, agent: Agent
) -> None:
    done: list[bool] = []

    async def read(call: Call) -> None:
        async with call.reading(None) as view:
            done.append(await view.tx.fetchval(IS_REPLAYED))
            raise NotFound("no such thing")

    with pytest.raises(NotFound, match="no such thing"):
        await read_by_replica(reader.call(resident), read)
    assert done == [True]


async def test_a_read_without_a_replica_sends_no_additional_statement(
    db: Database, settings: Settings, caller: Caller, reader: Reader, resident: Caller, agent: Agent
) -> None:
    await Agent(db, caller).create("Ada")
    without = Reader(db, reader.replica, settings).call(caller)
    with sent_statements() as sent:
        async with without.reading(None):
            pass
    as_ever = list(sent)
    assert [statement.split()[0] for statement in as_ever] == ["BEGIN", "/*", "COMMIT"]
    with sent_statements() as sent:
        async with replace(Reader(db, reader.replica, settings).call(caller), by_replica=True).reading(None):
            pass
    assert sent == as_ever
    with sent_statements() as sent:
        async with replace(reader.call(resident), by_replica=True).reading(None):
            pass
    assert [as_ever[1] == statement or statement.split()[0] for statement in sent] == [
        *("BEGIN", True, "/*"),  # the primary: the graph, and its position
        *("BEGIN", "/*"),  # the replica: its position
        *("COMMIT", "COMMIT"),
    ]
