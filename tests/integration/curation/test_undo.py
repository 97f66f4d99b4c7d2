"""Undo: random histories leave nothing behind, later changes by others stay, and merges are taken apart."""

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.curation.undo import service as undoing
from recollect.curation.undo import store
from recollect.curation.undo.model import ChangeRange, Reason, UndoPlan
from recollect.errors import ErrorCode, InvalidInput, TooLarge
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import moments
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import GraphPatch, NewGraph
from recollect.graph.graphs.view import GraphView
from recollect.graph.hierarchy import service as hierarchy
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import VersionFilter
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import FIELD_NAMES, NodeFields, Rewrite
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import NewEdge
from recollect.memory import reading, revising
from recollect.memory.model import MemoryPatch, MemoryRef, NewMemory
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.retention.compaction import service as retention
from recollect.transfer import exports
from tests.conftest import NewTenant
from tests.support.examples import examples
from tests.support.histories import CURATED, HISTORIES, STEPS, written
from tests.support.invariants import assert_laws
from tests.support.memories import Agent, at_work, names, triples

ANY = st.one_of(STEPS, CURATED)

_graphs = itertools.count(1)


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        yield agent
        await assert_laws(agent)


@pytest.fixture(scope="module")
async def writing(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    """An agent whose graphs are shared out among the examples."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        yield agent


def other(agent: Agent, subject: str = "other") -> Agent:
    """Another actor on the same graph."""
    return replace(agent, caller=replace(agent.caller, subject=subject))


async def undo(agent: Agent, since: int, *, dry_run: bool = False, **span: Any) -> UndoPlan:
    async with agent.db.transaction(agent.caller) as tx:
        return await undoing.undo_changes(tx, agent.graph, "undo", ChangeRange(since, **span), dry_run=dry_run)


async def undo_of(agent: Agent, since: int, actor: str) -> UndoPlan:
    """Undo a random history of this actor. If it changed nothing, the actor is refused."""
    with suppress(InvalidInput):
        return await undo(agent, since, actor=actor)
    async with agent.db.transaction(agent.caller) as tx:
        graph = await graphs.get_graph(tx, agent.graph or "default")
        assert not await store.has_changed(tx, graph, actor)
    return UndoPlan()


async def revision_of(agent: Agent) -> int:
    return (await agent.head()).revision


async def state(agent: Agent, as_of: int | None = None) -> Any:
    """Everything that a graph returns (at a revision), without the order of observations."""
    moment = None if as_of is None else str(as_of)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        shown = await reading.read_graph(await graphs.view(tx, agent.graph, moment), max_items=10_000)
        graph = await graphs.get_graph(tx, agent.graph or "default")
        at = await moments.find_moment(tx, graph, moment)
        live, _ = await lineages.list_nodes(GraphView(tx, graph, at), VersionFilter(limit=1_000))
        revision = as_of if as_of is not None else 2**40
        edges = await tx.fetch(
            Query.compile(
                "SELECT from_node, to_node, type, metadata, ordinal, created_at, created_by FROM relations "
                "WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND added_revision <= :revision "
                "AND (removed_revision IS NULL OR removed_revision > :revision) ORDER BY 1, 2, 3"
            ),
            graph_id=graph.id,
            revision=revision,
        )
        said = await tx.fetch(
            Query.compile(
                "SELECT node_id, content, thread, kind, tags, importance, source, metadata::text, status, reason, id, "
                "created_by, coalesce(said_at, created_at), expires_at FROM observations "
                "WHERE tenant_id = :tenant_id AND graph_id = :graph_id AND added_revision <= :revision "
                "AND (removed_revision IS NULL OR removed_revision > :revision) "
                "AND (expires_at IS NULL OR expires_at > statement_timestamp()) ORDER BY 1, 2, 3, 9, 5, 6, 10"
            ),
            graph_id=graph.id,
            revision=revision,
        )
        aliases = await tx.fetch(
            Query.compile(
                "SELECT a.node_id, a.name FROM aliases a "
                "JOIN nodes n ON n.tenant_id = a.tenant_id AND n.id = a.node_id "
                "WHERE a.tenant_id = :tenant_id AND a.graph_id = :graph_id AND a.added_revision <= :revision "
                "AND (a.removed_revision IS NULL OR a.removed_revision > :revision) "
                "AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp()) ORDER BY 1, 2"
            ),
            graph_id=graph.id,
            revision=revision,
        )
    entities = [
        (e.id, e.name, e.kind, sorted(e.observations), e.tags, e.importance, e.created_at, e.parent)
        for e in shown.entities
    ]
    told = [(node.node_id, len(node.conflicts), *(getattr(node, field) for field in FIELD_NAMES)) for node in live]
    rows = [[tuple(row) for row in found] for found in (edges, said, aliases)]
    return entities, told, *rows, sorted(triples(shown))


@pytest.mark.proves("rules: undo-is-complete")
@examples(15)
@given(before=HISTORIES, after=st.lists(ANY, min_size=1, max_size=10), manual=st.booleans())
async def test_undoing_all_changes_of_an_actor_restores_the_graph(
    writing: Agent, before: Any, after: Any, manual: bool
) -> None:
    agent = await history_of(writing, before, manual=manual)
    since = await revision_of(agent)
    was = await state(agent, since)
    for step in after:
        await written(other(agent), step)
    wrote = await revision_of(agent)
    dry = await undo(agent, since, dry_run=True)
    assert await revision_of(agent) == wrote
    done = await undo_of(agent, since, "other")
    assert done == dry
    assert done.skipped == []
    assert await state(agent) == was
    await assert_laws(agent)
    undone = await revision_of(agent)
    again = await undo_of(agent, since, "other")
    assert (await revision_of(agent), await state(agent)) == (undone, was), again


@examples(15)
@given(before=HISTORIES, after=st.lists(st.tuples(st.booleans(), ANY), min_size=2, max_size=12))
async def test_undo_keeps_what_others_wrote_meanwhile(
    writing: Agent, owner: asyncpg.Connection, before: Any, after: Any
) -> None:
    """Versions are compared by their own ids. Under `manual`, a head beside which another was written returns as a
    new version.
    """
    agent = await history_of(writing, before)
    since = await revision_of(agent)
    for theirs, step in after:
        await written(other(agent, "theirs" if theirs else "undone"), step)
    kept = await live_of(agent, owner, "theirs", since)
    await undo_of(agent, since, "undone")
    assert kept <= await live_of(agent, owner, "theirs", since)
    await assert_laws(agent)


@examples(10)
@given(before=HISTORIES, after=st.lists(ANY, min_size=1, max_size=10), manual=st.booleans())
async def test_an_undo_can_be_undone(writing: Agent, before: Any, after: Any, manual: bool) -> None:
    agent = await history_of(writing, before, manual=manual)
    since = await revision_of(agent)
    for step in after:
        await written(agent, step)
    wrote = await revision_of(agent)
    was = await state(agent, wrote)
    await undo(agent, since)
    if await revision_of(agent) > wrote:
        done = await undo(agent, wrote)
        assert done.skipped == []
    assert await state(agent) == was
    await assert_laws(agent)


async def history_of(writing: Agent, steps: Any, *, manual: bool = False) -> Agent:
    name = f"history-{next(_graphs)}"
    async with writing.db.transaction(writing.caller) as tx:
        await graphs.create_graph(tx, NewGraph(name, conflict_policy="manual" if manual else "lww"))
    agent = replace(writing, graph=name)
    for step in steps:
        await written(agent, step)
    return agent


async def live_of(agent: Agent, owner: asyncpg.Connection, actor: str, since: int) -> set[Any]:
    """Rows that an actor added after a revision and that are live."""
    rows = await owner.fetch(
        """SELECT x.id FROM (
            SELECT id, added_revision, graph_id FROM observations WHERE removed_revision IS NULL
            UNION ALL SELECT id, added_revision, graph_id FROM relations WHERE removed_revision IS NULL
            UNION ALL SELECT v.id, v.added_revision, v.graph_id FROM node_versions v
                WHERE v.superseded_revision IS NULL AND NOT v.deleted AND NOT v.placeholder
        ) x JOIN graphs g ON g.id = x.graph_id JOIN changes c ON c.graph_id = g.id AND c.revision = x.added_revision
        WHERE g.tenant_id = $1 AND g.name = $2 AND c.actor = $3 AND c.revision > $4""",
        agent.caller.tenant_id,
        agent.graph,
        actor,
        since,
    )
    return {row["id"] for row in rows}


@pytest.mark.proves("enhanced-server: undo-of-a-merge")
async def test_undo_takes_a_merge_apart(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes",)), NewEntity("Countess", "person", ("rides", "writes")))
    await agent.create("child", "Babbage")
    await agent.relate(("Countess", "Babbage", "knows"), ("Ada", "Countess", "is"), ("Babbage", "Zed", "knows"))
    async with agent.writing() as (tx, revision):
        await hierarchy.set_parent(tx, revision, "child", "Countess")
    since = await revision_of(agent)
    was = await state(agent, since)
    await other(agent).merge(["Ada", "Countess"], "Ada Lovelace")
    await undo(agent, since)
    assert await state(agent) == was
    assert sorted(await agent.recalled("Countess rides")) == ["rides", "writes"]
    assert await agent.recalled("Lovelace") == []


async def test_undoing_a_merge_restores_ids_of_repeated_observations(agent: Agent) -> None:
    """Ada would have expired, so the merge removes her observation and attaches Babbage's instead."""
    await agent.create(NewEntity("Ada", "person", ("writes",)), NewEntity("Babbage", "person", ("writes",)))
    since = await revision_of(agent)
    was = await state(agent, since)
    async with agent.writing() as (tx, revision):
        ada = (await naming.find_named(GraphView(tx, revision.graph), ["Ada"]))["Ada"]
        await revising.change(tx, revision, ada.id, revising.NodePatch(ttl_days=1))
    await agent.merge(["Ada", "Babbage"])
    await undo(agent, since)
    assert await state(agent) == was


async def test_an_undo_can_be_undone_if_an_entity_only_gained_a_former_name(agent: Agent) -> None:
    """Nothing else of that entity changes, so the log does not contain its id."""
    await agent.create("Ada", "Countess")
    since = await revision_of(agent)
    await agent.merge(["Ada", "Countess"])
    wrote = await revision_of(agent)
    was = await state(agent, wrote)
    await undo(agent, since)
    assert await state(agent) == await state(agent, since)
    done = await undo(agent, wrote)
    assert done.skipped == []
    assert await state(agent) == was
    assert await agent.recalled("Countess") == await agent.recalled("Ada")


async def test_a_restored_relation_keeps_its_creation_time(agent: Agent) -> None:
    await agent.relate(("Ada", "Babbage", "knows"))
    (before,) = (await agent.read()).relations
    since = await revision_of(agent)
    await agent.unrelate(("Ada", "Babbage", "knows"))
    await undo(agent, since)
    (after,) = (await agent.read()).relations
    assert after.created_at == before.created_at


async def test_undo_restores_creation_time_and_author_of_a_recreated_relation(agent: Agent) -> None:
    await agent.create("Ada", "Babbage")
    ada = ("Ada", "Babbage", "knows")
    await other(agent, "first").relate(ada)
    since = await revision_of(agent)
    was = await edges_of(agent)
    await other(agent).unrelate(ada)
    await other(agent).relate(ada)
    assert await edges_of(agent) != was
    done = await undo(agent, since, actor="other")
    assert (len(done.restored_relations), len(done.removed_relations), done.skipped) == (1, 1, [])
    assert await edges_of(agent) == was
    assert await undo(agent, since) == UndoPlan()


async def edges_of(agent: Agent) -> list[tuple[Any, ...]]:
    """Who created the relations of a graph, and when."""
    query = (
        "SELECT type, created_at, created_by FROM relations WHERE tenant_id = :tenant_id AND removed_revision IS NULL"
    )
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return [tuple(row) for row in await tx.fetch(Query.compile(f"{query} ORDER BY id"))]


async def test_undo_restores_the_author_of_a_repeated_observation(agent: Agent) -> None:
    await agent.create("Ada")
    told = NewObservation("Ada", "writes", said_at=datetime(2026, 1, 1, tzinfo=UTC))
    await observe(other(agent, "first"), told)
    since = await revision_of(agent)
    await other(agent).unobserve(("Ada", "writes"))
    await observe(other(agent), told)
    await undo(agent, since, actor="other")
    assert await writers_of(agent) == ["first"]
    assert await undo(agent, since) == UndoPlan()


async def observe(agent: Agent, said: NewObservation) -> None:
    async with agent.writing() as (tx, revision):
        await observations.add_observations(tx, revision, [said])


async def writers_of(agent: Agent) -> list[str]:
    query = "SELECT created_by FROM observations WHERE tenant_id = :tenant_id AND removed_revision IS NULL ORDER BY id"
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return [row["created_by"] for row in await tx.fetch(Query.compile(query))]


async def test_an_undo_can_be_undone_if_the_name_was_a_placeholder_before(agent: Agent) -> None:
    await agent.create("Babbage")
    await agent.relate(("Babbage", "Ada", "knows"))
    since = await revision_of(agent)
    await other(agent).unrelate(("Babbage", "Ada", "knows"))
    await other(agent).create(NewEntity("Ada", "person", ("writes",)))
    wrote = await revision_of(agent)
    was = await state(agent, wrote)
    await undo(agent, since)
    assert triples(await agent.read()) == [("Babbage", "Ada", "knows")]
    done = await undo(agent, wrote)
    assert (done.skipped, await state(agent)) == ([], was)


async def test_a_placeholder_is_removed_with_the_relations_of_its_own_graph(agent: Agent) -> None:
    """A relation to it from another graph is left dangling. Removing that one writes nothing to this graph."""
    there = replace(agent, graph="there")
    await there.create("X")
    await there.relate(("X", "P", "to"))
    since = await revision_of(there)
    await there.create("P")
    promoted = await revision_of(there)
    await agent.create("N")
    ((near,), (far,)) = [(await one.open(name)).entities for one, name in ((agent, "N"), (there, "P"))]
    async with agent.writing() as (tx, revision):
        home = (await graphs.get_graph(tx, "there")).id
        (link,) = await relations.put_edges(tx, revision, [NewEdge(near.id, far.id, "to", to_graph=home)])
    await there.unrelate(("X", "P", "to"))
    await undo(there, since, until=promoted)
    assert names(await there.read()) == ["X"]
    await assert_laws(there)
    head = await there.head()
    assert head.placeholders == 0
    async with agent.writing() as (tx, revision):
        assert await relations.delete_edges(tx, revision, [link.id]) == 1
        assert revision.ids == [link.id]
    assert await there.head() == head
    await assert_laws(there)


async def test_writes_of_a_graph_delete_no_node_of_another(agent: Agent) -> None:
    there = replace(agent, graph="there")
    await there.relate(("X", "P", "to"))
    await there.create(NewEntity("Ada", "person", ("writes",)))
    async with there.db.transaction(there.caller, read_only=True) as tx:
        found = await naming.find_named(GraphView(tx, await graphs.get_graph(tx, "there")), ["X", "P", "Ada"])
    before = await state(there)
    async with agent.writing() as (tx, revision):
        await relations.delete_nodes(tx, revision, [node.id for node in found.values()])
        await relations.drop_orphaned_placeholders(tx, revision, [node.id for node in found.values()])
        assert revision.is_empty
    assert await state(there) == before


async def test_an_undo_can_be_undone_if_children_had_lost_their_parent(agent: Agent) -> None:
    await agent.create("Ada", "Child")
    await set_parent(agent, "Child", "Ada")
    since = await revision_of(agent)
    await other(agent).delete("Ada")
    wrote = await revision_of(agent)
    was = await state(agent, wrote)
    await undo(agent, since)
    assert {entity.name: entity.parent for entity in (await agent.read()).entities} == {"Ada": None, "Child": "Ada"}
    done = await undo(agent, wrote)
    assert (done.skipped, await state(agent)) == ([], was)


async def test_undo_restores_an_observation_that_was_replaced_by_an_expiring_one(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes",)))
    since = await revision_of(agent)
    await other(agent).unobserve(("Ada", "writes"))
    async with other(agent).writing() as (tx, revision):
        soon = NewObservation("Ada", "writes", expires_at=revision.at + timedelta(hours=1))
        await observations.add_observations(tx, revision, [soon])
    await undo(agent, since)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        ids = [entity.id for entity in (await reading.open_nodes(await graphs.view(tx, None), ["Ada"])).entities]
        (said,) = await observations.list_observations(tx, ids)
    assert (said.content, said.expires_at) == ("writes", None)


async def test_one_of_several_merges_can_be_undone(agent: Agent) -> None:
    await agent.create("Ada", "Countess", "Babbage", "Charles")
    await agent.merge(["Ada", "Countess"])
    first = await revision_of(agent)
    await agent.merge(["Babbage", "Charles"])
    await agent.observe("Ada", "rides")
    await undo(agent, first, until=first + 1)
    assert sorted(names(await agent.read())) == ["Ada", "Babbage", "Charles"]
    await undo(agent, first - 1, until=first)
    assert sorted(names(await agent.read())) == ["Ada", "Babbage", "Charles", "Countess"]
    assert (await agent.open("Ada")).entities[0].observations == ("rides",)


async def test_later_changes_by_others_are_kept_and_reported(agent: Agent) -> None:
    await agent.create("Ada", "Babbage")
    since = await revision_of(agent)
    wrong = other(agent, "wrong")
    await wrong.create("Mine", "Shared", "Linked", "Above")
    await wrong.observe("Ada", "from wrong")
    async with wrong.writing() as (tx, revision):
        await revising.revise(tx, revision, MemoryRef(name="Babbage"), MemoryPatch(importance=9.0))
    await agent.observe("Shared", "from agent")
    await agent.relate(("Ada", "Linked", "knows"))
    async with agent.writing() as (tx, revision):
        await revising.revise(tx, revision, MemoryRef(name="Babbage"), MemoryPatch(tags=("engine",)))
        await hierarchy.set_parent(tx, revision, "Ada", "Above")
    done = await undo(agent, since, actor="wrong")
    assert {skipped.reason for skipped in done.skipped} == {Reason.CHANGED_LATER}
    ids = {entity.name: entity.id for entity in (await agent.read()).entities}
    assert sorted(ids) == ["Above", "Ada", "Babbage", "Linked", "Shared"]
    assert {skipped.id for skipped in done.skipped} == {ids[n] for n in ("Above", "Babbage", "Linked", "Shared")}
    babbage, ada = (await agent.open("Babbage", "Ada")).entities
    assert (babbage.importance, babbage.tags, ada.observations) == (9.0, ("engine",), ())


async def test_an_entity_whose_name_was_taken_is_not_restored(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes",)))
    since = await revision_of(agent)
    await other(agent).delete("Ada")
    await agent.create(NewEntity("Ada", "cat", ("purrs",)))
    done = await undo(agent, since, actor="other")
    assert [skipped.reason for skipped in done.skipped] == [Reason.NAME_TAKEN, Reason.GONE]
    assert (await agent.open("Ada")).entities[0].kind == "cat"


async def test_undo_restores_names_that_were_swapped(agent: Agent) -> None:
    await agent.create("Ada", "Grace")
    since = await revision_of(agent)
    was = await state(agent, since)
    for old, new in (("Ada", "x"), ("Grace", "Ada"), ("x", "Grace")):
        await rename(other(agent), old, new)
    await undo(agent, since)
    assert await state(agent) == was


async def rename(agent: Agent, old: str, new: str) -> None:
    async with agent.writing() as (tx, revision):
        node = (await naming.require_entities(tx, revision.graph, [old]))[old]
        head = (await nodes.read_heads(tx, revision.graph, [node.id]))[node.id]
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, name=new))])


async def test_undo_creates_no_cycle_with_changes_of_others(agent: Agent) -> None:
    await agent.create("Ada", "Babbage")
    await set_parent(agent, "Ada", "Babbage")
    since = await revision_of(agent)
    await set_parent(other(agent), "Ada", None)
    await set_parent(agent, "Babbage", "Ada")
    done = await undo(agent, since, actor="other")
    assert [skipped.reason for skipped in done.skipped] == [Reason.CYCLE]
    parents = {entity.name: entity.parent for entity in (await agent.read()).entities}
    assert parents == {"Ada": None, "Babbage": "Ada"}


async def set_parent(agent: Agent, name: str, parent: str | None) -> None:
    async with agent.writing() as (tx, revision):
        await hierarchy.set_parent(tx, revision, name, parent)


async def test_an_entity_of_a_disallowed_kind_is_not_restored(agent: Agent) -> None:
    agent = replace(agent, graph="kinds")
    await agent.create(NewEntity("Ada", "person", ("writes",)))
    since = await revision_of(agent)
    await other(agent).delete("Ada")
    await other(agent).create(NewEntity("Ada", "cat"))
    async with agent.db.transaction(agent.caller) as tx:
        # The revision of the configuration comes after the undone ones.
        await graphs.configure_graph(tx, "kinds", GraphPatch(kind_whitelist=("cat",)), "test")
    done = await undo(agent, since, actor="other", until=since + 2)
    assert {skipped.reason for skipped in done.skipped} == {Reason.KIND_NOT_ALLOWED, Reason.GONE}
    assert names(await agent.read()) == []


async def test_compacted_versions_are_reported(agent: Agent, owner: asyncpg.Connection) -> None:
    agent = replace(agent, graph="compacted")
    await agent.create(NewEntity("Ada", "person", ("writes",)), "Babbage")
    since = await revision_of(agent)
    async with agent.writing() as (tx, revision):
        await revising.revise(tx, revision, MemoryRef(name="Ada"), MemoryPatch(importance=1.0))
    await agent.unobserve(("Ada", "writes"))
    ids = [entity.id for entity in (await agent.open("Ada")).entities]
    await owner.execute("DELETE FROM node_versions WHERE node_id = $1 AND version = 1", ids[0])
    [lost] = await owner.fetch("DELETE FROM observations WHERE node_id = $1 RETURNING id", ids[0])
    done = await undo(agent, since)
    assert {(skipped.id, skipped.reason) for skipped in done.skipped} == {
        (ids[0], Reason.COMPACTED),
        (lost["id"], Reason.COMPACTED),
    }


async def test_undo_of_compacted_revisions_is_refused(agent: Agent) -> None:
    agent = replace(agent, graph="compacted")
    await agent.create("Ada", "Babbage")
    await agent.delete("Ada")
    head = await agent.head()
    await agent.create("Grace")
    async with agent.db.transaction(agent.caller) as tx:
        await retention.compact(tx, (await graphs.get_graph(tx, "compacted")).id, before=head.at)
    before = await agent.head()
    for since in (0, head.revision - 1):
        for dry_run in (True, False):
            with pytest.raises(InvalidInput, match=f"back to revision {head.revision}") as refused:
                await undo(agent, since, dry_run=dry_run)
            assert (refused.value.code, refused.value.path) == (ErrorCode.COMPACTED, "since_revision")
    assert await agent.head() == before
    await undo(agent, head.revision)
    assert names(await agent.read()) == ["Babbage"]


async def test_facts_and_observations_are_restored(agent: Agent) -> None:
    (fact,) = await agent.remember("the engine was never built")
    since = await revision_of(agent)
    async with other(agent).writing() as (tx, revision):
        await revising.forget(tx, revision, [MemoryRef(id=fact.id)], delete=True)
    await other(agent).remember(NewMemory("likes tea", about=("Ada",)))
    assert await agent.recalled("engine") == []
    done = await undo(agent, since)
    assert ([r.id for r in done.restored], len(done.deleted)) == ([fact.id], 1)
    assert await agent.recalled("engine") == ["the engine was never built"]
    assert names(await agent.read()) == []


@pytest.mark.parametrize(("before", "after"), [(1, True), (True, 1), (0, False)])
async def test_undo_distinguishes_true_from_one(agent: Agent, before: Any, after: Any) -> None:
    async with agent.writing() as (tx, revision):
        (node_id,) = await nodes.create_nodes(tx, revision, [NodeFields("Ada", metadata={"k": before})])
    since = await revision_of(agent)
    async with agent.writing() as (tx, revision):
        await revising.change(tx, revision, node_id, revising.NodePatch(metadata={"k": after}))
    done = await undo(agent, since)
    assert [one.id for one in done.restored] == [node_id]
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        (head,) = (await nodes.read_heads(tx, await graphs.get_graph(tx, "default"), [node_id])).values()
    assert repr(head.metadata) == repr({"k": before})


async def test_too_many_changes_at_once_are_refused(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    await agent.create(*(f"entity {n}" for n in range(6)))
    monkeypatch.setattr(undoing, "MAX_UNDONE", 5)
    with pytest.raises(TooLarge, match="since_revision"):
        await undo(agent, 0)
    assert len(names(await agent.read())) == 6


async def test_observations_of_deleted_entities_count_towards_the_limit(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    await agent.create(NewEntity("Ada", "person", tuple(f"statement {n}" for n in range(6))))
    since = await revision_of(agent)
    await agent.delete("Ada")
    monkeypatch.setattr(undoing, "MAX_UNDONE", 5)
    with pytest.raises(TooLarge, match="more than 5 observations"):
        await undo(agent, since, dry_run=True)
    monkeypatch.setattr(undoing, "MAX_UNDONE", 6)
    assert len((await undo(agent, since)).restored_observations) == 6


async def test_undo_does_not_create_a_graph(agent: Agent) -> None:
    nowhere = replace(agent, graph="nowhere")
    assert await undo(nowhere, 0) == UndoPlan()
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        assert [graph.name for graph in await graphs.list_graphs(tx)] == ["default"]


async def test_a_restored_entity_does_not_exist_between_deletion_and_undo(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes",)), "Babbage")
    await other(agent).delete("Ada")
    deleted = await revision_of(agent)
    await undo(agent, deleted - 1)
    assert names(await agent.read()) == ["Ada", "Babbage"]
    assert [entity[1] for entity in (await state(agent, deleted))[0]] == ["Babbage"]
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        export = await exports.open_export(tx, "default", "jsonl", as_of=str(deleted))
        written = await exports.export_whole(tx, export, max_bytes=10_000, max_pages=10)
    assert [line["name"] for line in map(json.loads, (written or "").splitlines())] == ["Babbage"]


@pytest.mark.proves("rules: undo-reports-what-stays")
async def test_an_actor_without_changes_is_an_error(agent: Agent) -> None:
    await agent.create("Alice")
    for dry_run in (True, False):
        with pytest.raises(InvalidInput, match="'nobody' has changed nothing in this graph") as error:
            await undo(agent, 0, actor="nobody", dry_run=dry_run)
        assert error.value.path == "actor"
    since = await revision_of(agent)
    assert await undo(agent, since, actor=agent.caller.subject) == UndoPlan()
    with pytest.raises(InvalidInput, match="has changed nothing"):
        await undo(replace(agent, graph="not-there"), 0, actor="nobody")


@pytest.mark.proves("rules: undo-reports-what-stays")
async def test_a_future_revision_is_an_error(agent: Agent) -> None:
    await agent.create("Alice")
    newest = await revision_of(agent)
    for dry_run in (True, False):
        with pytest.raises(InvalidInput, match=f"The graph's newest revision is {newest}") as error:
            await undo(agent, newest + 1, dry_run=dry_run)
        assert error.value.path == "since_revision"
        assert await undo(agent, newest, dry_run=dry_run) == UndoPlan()
    with pytest.raises(InvalidInput, match="newest revision is 0"):
        await undo(replace(agent, graph="not-there"), 1)


@pytest.mark.proves("rules: undo-reports-what-stays")
async def test_the_configuration_of_a_graph_is_skipped_and_reported(agent: Agent) -> None:
    agent = replace(agent, graph="configured")
    await agent.create("Alice")
    since = await revision_of(agent)
    async with agent.db.transaction(agent.caller) as tx:
        graph = await graphs.configure_graph(
            tx, agent.graph or "default", GraphPatch(kind_whitelist=("thing",)), "configure"
        )
    await agent.create("Bob")
    dry = await undo(agent, since, dry_run=True)
    done = await undo(agent, since)
    assert done == dry
    assert [(one.id, one.reason) for one in done.skipped] == [(graph.id, Reason.CONFIGURATION)]
    assert len(done.deleted) == 1
