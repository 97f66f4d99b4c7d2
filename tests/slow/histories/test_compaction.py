"""Compaction deletes everything beyond the retention from every table, and everything that can still be read stays
the same.
"""

import itertools
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.accounts.identity.model import operator_caller
from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange
from recollect.errors import ErrorCode, InvalidInput
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, NewGraph
from recollect.memory import reading
from recollect.postgres.database import Database
from recollect.retention.compaction import service as compaction
from recollect.retention.compaction.model import Compaction, FreedRows
from tests.conftest import NewTenant
from tests.slow.histories.test_time_travel import READINGS
from tests.support.examples import examples
from tests.support.histories import HISTORIES, written
from tests.support.invariants import assert_laws
from tests.support.memories import Agent, at_work, names, triples

_graphs = itertools.count(1)

BEYOND = {
    table: f"SELECT count(*) FROM {table} WHERE graph_id = $1 AND removed_revision <= $2"
    for table in ("observations", "relations", "aliases", "passages", "nodes")
} | {
    "node_versions": """SELECT count(*) FROM node_versions v WHERE graph_id = $1 AND superseded_revision <= $2
        AND EXISTS (SELECT FROM node_versions l WHERE l.node_id = v.node_id AND l.version > v.version
            AND l.added_revision <= $2)""",
    "passage_vectors": """SELECT count(*) FROM passage_vectors v JOIN passages p ON p.id = v.passage_id
        WHERE p.graph_id = $1 AND p.removed_revision <= $2""",
    "passage_evidence": """SELECT count(*) FROM passage_evidence e JOIN passages p ON p.id = e.passage_id
        WHERE p.graph_id = $1 AND p.removed_revision <= $2""",
}


@pytest.fixture(scope="module")
async def replaying(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    """An agent whose graphs are shared out among the examples."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        yield agent


async def graph_of(agent: Agent) -> Graph:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return await graphs.get_graph(tx, agent.graph or "default")


async def compacted(agent: Agent, before: datetime, limit: int = 1_000) -> tuple[Compaction, FreedRows]:
    """Compact until nothing is left to do. Returns the last step, and what all steps freed."""
    graph, freed = await graph_of(agent), FreedRows()
    while True:
        async with agent.db.transaction(agent.caller) as tx:
            step = await compaction.compact(tx, graph.id, before=before, limit=limit)
        freed += step.freed
        if not step.more:
            return step, freed


async def seen(agent: Agent, as_of: str | None = None) -> dict[str, Any]:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return {name: await read(await graphs.view(tx, agent.graph, as_of)) for name, read in READINGS.items()}


@pytest.mark.proves("crate: compaction")
@examples(10)
@given(history=HISTORIES, policy=st.sampled_from(["lww", "manual"]), place=st.integers(0, 20), limit=st.integers(1, 9))
async def test_everything_within_the_retention_reads_as_before(
    replaying: Agent, owner_url: str, history: list[Any], policy: str, place: int, limit: int
) -> None:
    agent = replace(replaying, graph=f"compacted-{next(_graphs)}")
    async with agent.db.transaction(agent.caller) as tx:
        graph = await graphs.create_graph(tx, NewGraph(agent.graph or "", conflict_policy=policy))
    times = [graph.created_at]
    for step in history:
        await written(agent, step)
        head = await agent.head()
        if head.revision == len(times):
            times.append(head.at)
    horizon = place % len(times)
    moments = range(horizon, len(times))
    before = {str(revision): await seen(agent, str(revision)) for revision in moments}
    now, found = await seen(agent), await agent.recall("likes tea")

    expected = await _preview(agent, times[horizon])
    step, freed = await compacted(agent, times[horizon], limit)
    assert freed == expected.freed
    assert step.horizon == expected.horizon

    for revision, then in before.items():
        past = await seen(agent, revision)
        for name in READINGS:
            assert past[name] == then[name], (name, revision)
    assert await seen(agent) == now
    assert await agent.recall("likes tea") == found
    owner = await asyncpg.connect(owner_url, server_settings={"search_path": "recollect, public"})
    try:
        for table, query in BEYOND.items():
            assert await owner.fetchval(query, graph.id, horizon) == 0, table
        await assert_laws(agent, whole=False)
    finally:
        await owner.close()
    for past_one in range(1, horizon):
        with pytest.raises(InvalidInput, match=f"back to revision {horizon}"):
            await seen(agent, str(past_one))


async def _preview(agent: Agent, before: datetime) -> Compaction:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return await compaction.preview(tx, await graphs.get_graph(tx, agent.graph or "default"), before=before)


async def test_the_past_beyond_the_horizon_is_refused_by_revision_and_by_time(agent: Agent) -> None:
    await agent.create("Ada")
    first = (await agent.head()).at
    await agent.delete("Ada")
    await agent.create("Grace")
    head = await agent.head()
    step, freed = await compacted(agent, head.at)
    assert (freed.nodes, freed.versions, freed.passages) == (1, 2, 1)
    assert step.horizon is not None
    assert (step.horizon.revision, step.horizon.at) == (3, head.at)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        for as_of in ("0", "2", first.isoformat()):
            with pytest.raises(InvalidInput, match="back to revision 3") as refused:
                await reading.read_graph(await graphs.view(tx, None, as_of), max_items=9)
            assert (refused.value.code, refused.value.path) == (ErrorCode.COMPACTED, "as_of")
        for as_of in ("3", head.at.isoformat()):
            assert names(await reading.read_graph(await graphs.view(tx, None, as_of), max_items=9)) == ["Grace"]


async def test_nothing_within_the_retention_is_deleted(agent: Agent) -> None:
    await agent.create("Ada", "Grace")
    await agent.delete("Ada")
    step, freed = await compacted(agent, datetime.now(UTC) - timedelta(days=30))
    assert (step.horizon, freed) == (None, FreedRows())
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        assert names(await reading.read_graph(await graphs.view(tx, None, "1"), max_items=9)) == ["Ada", "Grace"]


async def test_the_horizon_never_moves_back(agent: Agent) -> None:
    await agent.create("Ada")
    first = (await agent.head()).at
    await agent.observe("Ada", "likes tea")
    step, _ = await compacted(agent, (await agent.head()).at)
    assert step.horizon is not None
    again, freed = await compacted(agent, first)
    assert (again.horizon, freed.rows) == (step.horizon, 0)


async def test_a_merge_within_the_retention_can_still_be_undone(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("likes tea",)), NewEntity("Countess", "person", ("writes",)))
    await agent.relate(("Countess", "Ada", "is"), ("Countess", "Babbage", "knows"))
    await agent.unobserve(("Ada", "likes tea"))
    head, before = await agent.head(), await agent.read()
    await agent.merge(["Ada", "Countess"])
    _, freed = await compacted(agent, head.at)
    assert asdict(freed)["observations"] == 1
    async with agent.db.transaction(agent.caller) as tx:
        undone = await undoing.undo_changes(tx, None, "undo", ChangeRange(head.revision), dry_run=False)
    assert undone.skipped == []
    after = await agent.read()
    assert names(after) == names(before)
    assert [triple for triple in triples(after) if triple[2] == "knows"] == [("Countess", "Babbage", "knows")]
