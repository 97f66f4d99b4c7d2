"""Undoing: random histories leave nothing behind, what others did later stays, merges come apart again."""

import itertools
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.caller import Caller
from recollect.entities.model import NewEntity
from recollect.errors import ErrorCode, InvalidInput, TooLarge
from recollect.graphs import service as graphs
from recollect.graphs.model import GraphPatch, NewGraph
from recollect.hierarchy import service as hierarchy
from recollect.identity.model import operator_caller
from recollect.lineages import service as lineages
from recollect.lineages.model import VersionFilter
from recollect.memory import service as memory
from recollect.memory.model import Amendment, Item, Target
from recollect.nodes import service as nodes
from recollect.nodes.model import Rewrite
from recollect.observations import service as observations
from recollect.observations.model import NewObservation
from recollect.platform.db import Database
from recollect.relations import service as relations
from recollect.relations.model import NewEdge
from recollect.retention import service as retention
from recollect.transfer import exports
from recollect.undo import service as undoing
from recollect.undo.model import Reason, Span, Undoing
from tests.conftest import NewTenant
from tests.histories import CURATED, HISTORIES, STEPS, written
from tests.laws import assert_laws
from tests.memories import Agent, at_work, names, triples

ANY = st.one_of(STEPS, CURATED)

_graphs = itertools.count(1)


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        yield agent
        await assert_laws(agent)


@pytest.fixture(scope="module")
async def writing(db: Database, new_tenant: NewTenant) -> AsyncIterator[Agent]:
    """An agent whose graphs the examples share out among themselves."""
    async with at_work(db, operator_caller(await new_tenant())) as agent:
        yield agent


def other(agent: Agent, subject: str = "other") -> Agent:
    """Another actor on the same graph."""
    return replace(agent, caller=replace(agent.caller, subject=subject))


async def undo(agent: Agent, since: int, *, dry_run: bool = False, **span: Any) -> Undoing:
    async with agent.db.transaction(agent.caller) as tx:
        return await undoing.undo_changes(tx, agent.graph, "undo", Span(since, **span), dry_run=dry_run)


async def revision_of(agent: Agent) -> int:
    return (await agent.head()).revision


async def state(agent: Agent, as_of: int | None = None) -> Any:
    """All that a graph shows (at a revision), whatever the order of statements."""
    moment = None if as_of is None else str(as_of)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        shown = await memory.read_graph(tx, agent.graph, max_items=10_000, as_of=moment)
        graph = await graphs.get_graph(tx, agent.graph or "default")
        at = await graphs.moment(tx, graph, moment)
        live, _ = await lineages.list_nodes(tx, graph, VersionFilter(limit=1_000), at=at)
        edges = await tx.fetch(
            "SELECT from_node, to_node, type, metadata FROM relations WHERE tenant_id = $1 AND graph_id = $2 "
            "AND added_revision <= $3 AND (removed_revision IS NULL OR removed_revision > $3) ORDER BY 1, 2, 3",
            tx.tenant_id,
            graph.id,
            as_of if as_of is not None else 2**40,
        )
    entities = [
        (e.id, e.name, e.kind, sorted(e.observations), e.tags, e.importance, e.created_at, e.parent)
        for e in shown.entities
    ]
    fields = ("name", "kind", "content", "summary", "tags", "importance", "metadata", "parent_id", "status", "thread")
    told = [(node.node_id, *(getattr(node, field) for field in fields)) for node in live]
    return entities, told, [tuple(edge) for edge in edges], sorted(triples(shown))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=HISTORIES, after=st.lists(ANY, min_size=1, max_size=10), manual=st.booleans())
async def test_what_one_wrote_alone_leaves_nothing_behind(
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
    done = await undo(agent, since, actor="other")
    assert done == dry
    assert done.skipped == []
    assert await state(agent) == was
    await assert_laws(agent)
    undone = await revision_of(agent)
    again = await undo(agent, since, actor="other")
    assert (await revision_of(agent), await state(agent)) == (undone, was), again


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=HISTORIES, after=st.lists(st.tuples(st.booleans(), ANY), min_size=2, max_size=12))
async def test_what_others_wrote_meanwhile_stays(
    writing: Agent, owner: asyncpg.Connection, before: Any, after: Any
) -> None:
    agent = await history_of(writing, before)
    since = await revision_of(agent)
    for theirs, step in after:
        await written(other(agent, "theirs" if theirs else "undone"), step)
    kept = await live_of(agent, owner, "theirs", since)
    await undo(agent, since, actor="undone")
    assert kept <= await live_of(agent, owner, "theirs", since)
    await assert_laws(agent)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=HISTORIES, after=st.lists(ANY, min_size=1, max_size=10))
async def test_undoing_is_undone(writing: Agent, before: Any, after: Any) -> None:
    agent = await history_of(writing, before)
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


async def test_a_merge_comes_apart_again(agent: Agent) -> None:
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


async def test_undoing_is_undone_where_a_name_was_known_from_relations_only(agent: Agent) -> None:
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


async def test_a_placeholder_leaves_with_the_relations_of_its_own_graph(agent: Agent) -> None:
    """One that leads to it from another graph dangles then, and taking that away writes nothing there."""
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


async def test_a_graph_s_writes_delete_no_node_of_another(agent: Agent) -> None:
    there = replace(agent, graph="there")
    await there.relate(("X", "P", "to"))
    await there.create(NewEntity("Ada", "person", ("writes",)))
    async with there.db.transaction(there.caller, read_only=True) as tx:
        found = await nodes.find_named(tx, await graphs.get_graph(tx, "there"), ["X", "P", "Ada"])
    before = await state(there)
    async with agent.writing() as (tx, revision):
        await relations.delete_nodes(tx, revision, [node.id for node in found.values()])
        await relations.drop_lonely(tx, revision, [node.id for node in found.values()])
        assert revision.is_empty
    assert await state(there) == before


async def test_undoing_is_undone_where_children_had_lost_their_parent(agent: Agent) -> None:
    await agent.create("Ada", "Child")
    await stand(agent, "Child", "Ada")
    since = await revision_of(agent)
    await other(agent).delete("Ada")
    wrote = await revision_of(agent)
    was = await state(agent, wrote)
    await undo(agent, since)
    assert {entity.name: entity.parent for entity in (await agent.read()).entities} == {"Ada": None, "Child": "Ada"}
    done = await undo(agent, wrote)
    assert (done.skipped, await state(agent)) == ([], was)


async def test_what_is_said_again_until_an_hour_passes_lasts_again(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes",)))
    since = await revision_of(agent)
    await other(agent).unobserve(("Ada", "writes"))
    async with other(agent).writing() as (tx, revision):
        soon = NewObservation("Ada", "writes", expires_at=revision.at + timedelta(hours=1))
        await observations.add_observations(tx, revision, [soon])
    await undo(agent, since)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        ids = [entity.id for entity in (await memory.open_nodes(tx, None, ["Ada"])).entities]
        (said,) = await observations.list_observations(tx, ids)
    assert (said.content, said.expires_at) == ("writes", None)


async def test_one_merge_of_several(agent: Agent) -> None:
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


async def test_what_others_changed_later_is_told_and_left(agent: Agent) -> None:
    await agent.create("Ada", "Babbage")
    since = await revision_of(agent)
    wrong = other(agent, "wrong")
    await wrong.create("Mine", "Shared", "Linked", "Above")
    await wrong.observe("Ada", "from wrong")
    async with wrong.writing() as (tx, revision):
        await memory.revise(tx, revision, Target(name="Babbage"), Amendment(importance=9.0))
    await agent.observe("Shared", "from agent")
    await agent.relate(("Ada", "Linked", "knows"))
    async with agent.writing() as (tx, revision):
        await memory.revise(tx, revision, Target(name="Babbage"), Amendment(tags=("engine",)))
        await hierarchy.set_parent(tx, revision, "Ada", "Above")
    done = await undo(agent, since, actor="wrong")
    assert {skipped.reason for skipped in done.skipped} == {Reason.CHANGED_LATER}
    ids = {entity.name: entity.id for entity in (await agent.read()).entities}
    assert sorted(ids) == ["Above", "Ada", "Babbage", "Linked", "Shared"]
    assert {skipped.id for skipped in done.skipped} == {ids[n] for n in ("Above", "Babbage", "Linked", "Shared")}
    babbage, ada = (await agent.open("Babbage", "Ada")).entities
    assert (babbage.importance, babbage.tags, ada.observations) == (9.0, ("engine",), ())


async def test_a_name_that_another_has_now_is_left_to_it(agent: Agent) -> None:
    await agent.create(NewEntity("Ada", "person", ("writes",)))
    since = await revision_of(agent)
    await other(agent).delete("Ada")
    await agent.create(NewEntity("Ada", "cat", ("purrs",)))
    done = await undo(agent, since, actor="other")
    assert [skipped.reason for skipped in done.skipped] == [Reason.NAME_TAKEN, Reason.GONE]
    assert (await agent.open("Ada")).entities[0].kind == "cat"


async def test_names_change_hands_back(agent: Agent) -> None:
    await agent.create("Ada", "Grace")
    since = await revision_of(agent)
    was = await state(agent, since)
    for old, new in (("Ada", "x"), ("Grace", "Ada"), ("x", "Grace")):
        await rename(other(agent), old, new)
    await undo(agent, since)
    assert await state(agent) == was


async def rename(agent: Agent, old: str, new: str) -> None:
    async with agent.writing() as (tx, revision):
        node = (await nodes.require_entities(tx, revision.graph, [old]))[old]
        head = (await nodes.read_heads(tx, revision.graph, [node.id]))[node.id]
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, name=new))])


async def test_a_cycle_that_others_would_close_is_left_open(agent: Agent) -> None:
    await agent.create("Ada", "Babbage")
    await stand(agent, "Ada", "Babbage")
    since = await revision_of(agent)
    await stand(other(agent), "Ada", None)
    await stand(agent, "Babbage", "Ada")
    done = await undo(agent, since, actor="other")
    assert [skipped.reason for skipped in done.skipped] == [Reason.CYCLE]
    parents = {entity.name: entity.parent for entity in (await agent.read()).entities}
    assert parents == {"Ada": None, "Babbage": "Ada"}


async def stand(agent: Agent, name: str, parent: str | None) -> None:
    async with agent.writing() as (tx, revision):
        await hierarchy.set_parent(tx, revision, name, parent)


async def test_a_kind_that_is_no_longer_allowed_does_not_come_back(agent: Agent) -> None:
    agent = replace(agent, graph="kinds")
    await agent.create(NewEntity("Ada", "person", ("writes",)))
    since = await revision_of(agent)
    await other(agent).delete("Ada")
    await other(agent).create(NewEntity("Ada", "cat"))
    async with agent.db.transaction(agent.caller) as tx:
        # The revision of the configuration comes after what is undone.
        await graphs.configure_graph(tx, "kinds", GraphPatch(kind_whitelist=("cat",)), "test")
    done = await undo(agent, since, actor="other", until=since + 2)
    assert {skipped.reason for skipped in done.skipped} == {Reason.KIND_NOT_ALLOWED, Reason.GONE}
    assert names(await agent.read()) == []


async def test_what_compaction_removed_is_told(agent: Agent, owner: asyncpg.Connection) -> None:
    agent = replace(agent, graph="compacted")
    await agent.create(NewEntity("Ada", "person", ("writes",)), "Babbage")
    since = await revision_of(agent)
    async with agent.writing() as (tx, revision):
        await memory.revise(tx, revision, Target(name="Ada"), Amendment(importance=1.0))
    await agent.unobserve(("Ada", "writes"))
    ids = [entity.id for entity in (await agent.open("Ada")).entities]
    await owner.execute("DELETE FROM node_versions WHERE node_id = $1 AND version = 1", ids[0])
    [lost] = await owner.fetch("DELETE FROM observations WHERE node_id = $1 RETURNING id", ids[0])
    done = await undo(agent, since)
    assert {(skipped.id, skipped.reason) for skipped in done.skipped} == {
        (ids[0], Reason.COMPACTED),
        (lost["id"], Reason.COMPACTED),
    }


async def test_what_lies_before_what_compaction_left_is_refused(agent: Agent) -> None:
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


async def test_facts_and_memories_come_back(agent: Agent) -> None:
    (fact,) = await agent.remember("the engine was never built")
    since = await revision_of(agent)
    async with other(agent).writing() as (tx, revision):
        await memory.forget(tx, revision, [Target(id=fact.id)], delete=True)
    await other(agent).remember(Item("likes tea", about=("Ada",)))
    assert await agent.recalled("engine") == []
    done = await undo(agent, since)
    assert ([r.id for r in done.restored], len(done.deleted)) == ([fact.id], 1)
    assert await agent.recalled("engine") == ["the engine was never built"]
    assert names(await agent.read()) == []


async def test_too_much_at_once_is_refused(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    await agent.create(*(f"entity {n}" for n in range(6)))
    monkeypatch.setattr(undoing, "MAX_UNDONE", 5)
    with pytest.raises(TooLarge, match="since_revision"):
        await undo(agent, 0)
    assert len(names(await agent.read())) == 6


async def test_what_was_said_of_what_went_counts(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    await agent.create(NewEntity("Ada", "person", tuple(f"statement {n}" for n in range(6))))
    since = await revision_of(agent)
    await agent.delete("Ada")
    monkeypatch.setattr(undoing, "MAX_UNDONE", 5)
    with pytest.raises(TooLarge, match="more than 5 observations"):
        await undo(agent, since, dry_run=True)
    monkeypatch.setattr(undoing, "MAX_UNDONE", 6)
    assert len((await undo(agent, since)).said) == 6


async def test_a_graph_that_is_not_there_is_not_made(agent: Agent) -> None:
    nowhere = replace(agent, graph="nowhere")
    assert await undo(nowhere, 0) == Undoing()
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        assert [graph.name for graph in await graphs.list_graphs(tx)] == ["default"]


async def test_between_deletion_and_undoing_it_was_not_there(agent: Agent) -> None:
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
