"""A relation that is put again is updated: it keeps its id, and its old properties stay in history."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from recollect.caller import Caller
from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange, Reason, UndoPlan
from recollect.graph.graphs import service as graphs
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import occurrences
from recollect.graph.relations import service as relations
from recollect.graph.relations import subgraphs
from recollect.graph.relations.model import Edge, EdgeUpsert, NewEdge, NewRelation, RelationFilter, Walk
from recollect.memory import relating
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.retention.compaction import service as retention
from recollect.transfer import exports
from tests.support.invariants import assert_laws
from tests.support.memories import Agent, at_work

KNOWS = ("Ada", "Babbage", "knows")


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        yield agent
        await assert_laws(agent)


def other(agent: Agent) -> Agent:
    """Another actor on the same graph."""
    return replace(agent, caller=replace(agent.caller, subject="other"))


async def put(agent: Agent, *metadata: dict[str, Any] | None, ordinal: int | None = None) -> list[EdgeUpsert]:
    """Put the one relation in one call, once for each given metadata."""
    async with agent.writing() as (tx, revision):
        ends = await nodes.ensure_named(tx, revision, ["Ada", "Babbage"])
        edge = NewEdge(ends["Ada"].id, ends["Babbage"].id, "knows", ordinal=ordinal)
        return await relations.upsert_edges(tx, revision, [replace(edge, metadata=one) for one in metadata])


async def edges(agent: Agent, as_of: int | None = None) -> list[Edge]:
    """The relation now or at a past revision; an empty list if it does not exist."""
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        found, _ = await relating.search_triplets(
            await graphs.view(tx, None, None if as_of is None else str(as_of)), RelationFilter(), offset=0, limit=9
        )
    return [one.edge for one in found]


async def metadata(agent: Agent, as_of: int | None = None) -> list[dict[str, Any]]:
    return [edge.metadata for edge in await edges(agent, as_of)]


async def number(agent: Agent) -> int:
    return (await agent.head()).revision


async def undo(agent: Agent, since: int, actor: str | None = None) -> UndoPlan:
    async with agent.db.transaction(agent.caller) as tx:
        return await undoing.undo_changes(tx, None, "undo", ChangeRange(since, actor=actor), dry_run=False)


async def exported(agent: Agent, as_of: int | None = None) -> list[Any]:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        past = None if as_of is None else str(as_of)
        export = await exports.open_export(tx, "default", "json", as_of=past)
    chunks = [chunk async for chunk in exports.export_chunks(agent.db, agent.caller, export, page_items=1)]
    return [relation.get("metadata", {}) for relation in json.loads(b"".join(chunks))["relations"]]


@pytest.mark.proves("memgraph: put-edge-updates")
async def test_different_properties_make_a_new_version_under_the_same_id(agent: Agent) -> None:
    (made,) = await put(agent, {"since": 1833})
    first = await number(agent)
    (changed,) = await put(other(agent), {"since": 1834}, ordinal=7)
    assert (made.created, made.updated, changed.created, changed.updated) == (True, False, False, True)
    assert changed.edge.id == made.edge.id
    assert (changed.edge.created_at, changed.edge.created_by) == (made.edge.created_at, made.edge.created_by)
    assert changed.edge.updated_at > made.edge.updated_at
    assert await edges(agent) == [changed.edge]
    assert await edges(agent, first) == [made.edge]


async def test_properties_that_are_not_given_stay(agent: Agent) -> None:
    await put(agent, {"since": 1833}, ordinal=7)
    (changed,) = await put(agent, None, ordinal=8)
    assert (changed.edge.metadata, changed.edge.ordinal) == ({"since": 1833}, 8)
    (emptied,) = await put(agent, {})
    assert (emptied.updated, emptied.edge.metadata, emptied.edge.ordinal) == (True, {}, 8)


@pytest.mark.parametrize("again", [None, {"since": 1833}, {"since": 1833.0}])
async def test_the_same_properties_write_nothing(agent: Agent, again: dict[str, Any] | None) -> None:
    (made,) = await put(agent, {"since": 1833})
    before = await number(agent)
    (known,) = await put(agent, again)
    assert (known.created, known.updated, known.edge.id) == (False, False, made.edge.id)
    assert (await number(agent), await metadata(agent)) == (before, [{"since": 1833}])


async def test_true_and_one_are_different_values(agent: Agent) -> None:
    await put(agent, {"close": 1})
    (changed,) = await put(agent, {"close": True})
    assert changed.updated
    assert [found["close"] is True for found in await metadata(agent)] == [True]


async def test_two_puts_in_one_call_apply_in_order_and_make_one_version(agent: Agent) -> None:
    first, second, third = await put(agent, {"n": 1}, {"n": 2}, {"n": 2})
    assert [(one.created, one.updated) for one in (first, second, third)] == [
        (True, False),
        (False, True),
        (False, False),
    ]
    assert await metadata(agent) == [{"n": 2}]
    await put(agent, {"n": 3}, {"n": 4})
    assert (await metadata(agent, 1), await metadata(agent, 2)) == ([{"n": 2}], [{"n": 4}])


async def test_a_relation_is_updated_by_the_names_of_its_ends(agent: Agent) -> None:
    async with agent.writing() as (tx, revision):
        wanted = [NewRelation(*KNOWS), NewRelation(*KNOWS, metadata={"since": 1833})]
        put = await relations.upsert_relations(tx, revision, wanted)
    assert [(one.created, one.updated) for one in put] == [(True, False), (False, True)]
    assert await agent.relate(KNOWS) == []
    assert await metadata(agent) == [{"since": 1833}]


@pytest.mark.proves("memgraph: edge-id")
async def test_the_id_from_before_an_update_still_deletes(agent: Agent) -> None:
    (made,) = await put(agent, {"since": 1833})
    await put(agent, {"since": 1834})
    async with agent.writing() as (tx, revision):
        assert await relations.delete_edges(tx, revision, [made.edge.id]) == 1
    assert await edges(agent) == []
    assert await metadata(agent, 2) == [{"since": 1834}]


async def test_an_export_of_the_past_has_the_old_properties(agent: Agent) -> None:
    for since in (1833, 1834, 1835):
        await put(agent, {"since": since})
    await agent.unrelate(KNOWS)
    assert [await exported(agent, n) for n in (1, 2, 3, 4)] == [[{"since": n}] for n in (1833, 1834, 1835)] + [[]]
    assert await exported(agent) == []


async def test_compaction_deletes_old_versions_only(db: Database, caller: Caller) -> None:
    async with at_work(db, caller) as agent:
        for since in (1833, 1834):
            (last,) = await put(agent, {"since": since})
        before = (await agent.head()).at
        async with db.transaction(caller) as tx:
            graph = await graphs.get_graph(tx, "default")
            step = await retention.compact(tx, graph.id, before=before, limit=100)
            kept = await tx.fetch(Query.compile("SELECT id FROM relations WHERE tenant_id = :tenant_id"))
        assert (step.freed.relations, [row["id"] for row in kept]) == (1, [last.edge.id])
        assert await metadata(agent) == [{"since": 1834}]
        await assert_laws(agent, whole=False)


class TestUndo:
    async def test_undo_restores_the_properties_under_the_same_id(self, agent: Agent) -> None:
        (made,) = await put(agent, {"since": 1833}, ordinal=None)
        since = await number(agent)
        await put(other(agent), {"since": 1834}, ordinal=3)
        done = await undo(agent, since, "other")
        assert ([edge.id for edge in done.rewritten_relations], done.removed_relations, done.restored_relations) == (
            [made.edge.id],
            [],
            [],
        )
        (back,) = await edges(agent)
        assert (back.id, back.metadata, back.ordinal) == (made.edge.id, {"since": 1833}, None)
        assert (back.created_at, back.created_by) == (made.edge.created_at, made.edge.created_by)

    async def test_a_relation_that_was_made_and_changed_is_removed(self, agent: Agent) -> None:
        await put(other(agent), {"since": 1833})
        await put(other(agent), {"since": 1834})
        await undo(agent, 0, "other")
        assert await edges(agent) == []

    async def test_a_later_change_of_others_stays_and_is_reported(self, agent: Agent) -> None:
        (made,) = await put(other(agent), {"since": 1833})
        await put(agent, {"since": 1834})
        done = await undo(agent, 0, "other")
        assert [(one.id, one.reason) for one in done.skipped] == [(made.edge.id, Reason.CHANGED_LATER)]
        assert await metadata(agent) == [{"since": 1834}]

    async def test_a_change_of_others_in_between_is_restored(self, agent: Agent) -> None:
        await put(other(agent), {"n": 1})
        await put(agent, {"n": 2})
        await put(other(agent), {"n": 3})
        await undo(agent, 0, "other")
        assert await metadata(agent) == [{"n": 2}]

    async def test_a_deleted_relation_is_restored_as_others_left_it(self, agent: Agent) -> None:
        await put(agent, {"n": 1})
        await put(other(agent), {"n": 2})
        await other(agent).unrelate(KNOWS)
        await undo(agent, 0, "other")
        assert await metadata(agent) == [{"n": 1}]

    async def test_a_relation_that_others_deleted_since_stays_deleted(self, agent: Agent) -> None:
        await put(agent, {"n": 1})
        await put(other(agent), {"n": 2})
        await agent.unrelate(KNOWS)
        await undo(agent, 0, "other")
        assert await edges(agent) == []

    async def test_a_node_stays_if_a_restored_relation_of_others_needs_it(self, agent: Agent) -> None:
        await other(agent).create("Ada", "Babbage")
        await put(agent, {"n": 1})
        await put(other(agent), {"n": 2})
        await undo(agent, 0, "other")
        assert await metadata(agent) == [{"n": 1}]


@pytest.mark.proves("memgraph: put-edge-updates")
async def test_concurrent_writers_leave_one_relation_with_all_versions(agent: Agent) -> None:
    await asyncio.gather(*(put(agent, {"n": n}) for n in range(12)))
    (left,) = await edges(agent)
    told = [(await metadata(agent, n))[0]["n"] for n in range(1, 13)]
    assert sorted(told) == list(range(12))
    assert left.metadata == {"n": told[-1]}
    assert (await agent.head()).relations == 1


async def test_edges_of_a_node_are_read_as_they_were(agent: Agent) -> None:
    (made,) = await put(agent, {"since": 1833}, ordinal=1)
    await put(agent, {"since": 1834}, ordinal=2)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        view = await graphs.view(tx, "default", "1")
        found = await relations.edges_of(view, [made.edge.from_node], Walk(), within=None, limit=9)
        told = await subgraphs.edges_within_reply(view, found)
    assert found == [replace(made.edge, metadata={})], "a walk reads no metadata"
    assert told == [made.edge]


def test_occurrences_split_into_rounds_without_repeated_keys() -> None:
    assert occurrences(str.lower, ["a", "b", "A", "c", "a"]) == [["a", "b", "c"], ["A"], ["a"]]
    assert occurrences(str, list[str]()) == []
