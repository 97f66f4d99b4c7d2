"""Sibling heads are searchable: the passages of a lineage are those of its heads, after any change."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID

import asyncpg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.caller import Caller
from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange
from recollect.errors import NotFound
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Draft, PutOutcome
from recollect.graph.nodes import indexing
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields
from recollect.memory import revising
from recollect.memory.model import MemoryPatch, MemoryRef
from recollect.postgres.database import Database
from recollect.retention.compaction import service as retention
from recollect.retention.erasure import service as erasure
from tests.support.examples import examples
from tests.support.memories import Agent

PASSAGES = """
    SELECT coalesce(p.version_id, n.version_id) AS version_id, p.version_id IS NULL AS newest, p.text FROM passages p
    JOIN nodes n ON n.tenant_id = p.tenant_id AND n.id = p.node_id
    WHERE p.tenant_id = $1 AND p.node_id = $2 AND p.removed_revision IS NULL"""
HEADS = """
    SELECT v.id AS version_id, v.id = n.version_id AS newest, v.content AS text FROM node_versions v
    JOIN nodes n ON n.tenant_id = v.tenant_id AND n.id = v.node_id
    WHERE v.tenant_id = $1 AND v.node_id = $2 AND v.superseded_revision IS NULL AND NOT v.deleted"""

serial = count()


@pytest.fixture
def agent(db: Database, caller: Caller) -> Agent:
    return Agent(db, caller, "notes")


async def put(
    agent: Agent, content: str, node_id: UUID | None = None, *, based_on: int | None = None, actor: str | None = None
) -> PutOutcome:
    """Write a version. If it is based on a version that the node does not have, it is based on none."""
    async with agent.writing() as (tx, revision):
        heads = await nodes.read_heads(tx, revision.graph, [node_id] if node_id else [])
        if based_on is not None and not any(based_on <= head.version for head in heads.values()):
            based_on = None
        fields = NodeFields(kind="note", content=content)
        return await lineages.put_node(tx, revision, Draft(fields, node_id, based_on, actor, content_only=True))


async def reindex(agent: Agent) -> None:
    async with agent.writing() as (tx, revision):
        await indexing.reindex_page(tx, revision, after=UUID(int=0), limit=100)


async def undo(agent: Agent, back: int) -> None:
    since = max((await agent.head()).revision - back, 0)
    async with agent.db.transaction(agent.caller) as tx:
        await undoing.undo_changes(tx, agent.graph, "undo", ChangeRange(since), dry_run=False)


async def compact(agent: Agent) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        graph = await graphs.get_graph(tx, "notes")
        await retention.compact(tx, graph.id, before=datetime.now(UTC) - timedelta(microseconds=1))


async def assert_passages_of_heads(owner: asyncpg.Connection, agent: Agent, node_id: UUID) -> None:
    """Assert that each head of the node has its passage, and that no other version has one."""
    told, heads = [
        sorted(tuple(row.values()) for row in await owner.fetch(query, agent.caller.tenant_id, node_id))
        for query in (PASSAGES, HEADS)
    ]
    assert told == heads


async def take_step(agent: Agent, node_id: UUID, step: str, number: int | None) -> None:
    """Do one of STEPS."""
    match step:
        case "put":
            await put(agent, f"said {next(serial)}", node_id, based_on=number)
        case "again":
            async with agent.db.transaction(agent.caller, read_only=True) as tx:
                newest = await lineages.get_node(await graphs.view(tx, "notes"), node_id)
            await put(agent, newest.content or "", node_id, based_on=1)
        case "outdated":
            async with agent.writing() as (tx, revision):
                await revising.revise(tx, revision, MemoryRef(id=node_id), MemoryPatch(status="outdated"))
        case "reindex":
            await reindex(agent)
        case _:
            await undo(agent, number or 1)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.none() | st.integers(1, 5)),
        st.tuples(st.sampled_from(["again", "outdated", "reindex"]), st.none()),
        st.tuples(st.just("undo"), st.integers(1, 3)),
    ),
    max_size=8,
)


@pytest.mark.proves("memgraph: every-head-is-found")
@given(STEPS, st.booleans())
@example([("put", 1), ("put", 1), ("put", 2), ("reindex", None), ("undo", 2), ("put", None)], True)
@example([("put", 1), ("put", 1), ("again", None)], False)
@examples(12)
async def test_passages_are_those_of_the_heads_after_any_steps(
    agent: Agent, owner: asyncpg.Connection, steps: list[tuple[str, int | None]], compacted: bool
) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.delete_graph(tx, "notes", "test")
        await graphs.create_graph(tx, NewGraph("notes", conflict_policy="manual"))
    node_id = (await put(agent, f"said {next(serial)}")).node_id
    await put(agent, f"said {next(serial)}", node_id)
    for step, number in steps:
        with suppress(NotFound):  # An undo may have removed the node.
            await take_step(agent, node_id, step, number)
        await assert_passages_of_heads(owner, agent, node_id)
    if compacted:
        await compact(agent)
        await assert_passages_of_heads(owner, agent, node_id)


async def test_an_erased_sibling_head_is_not_found(agent: Agent, owner: asyncpg.Connection) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, NewGraph("notes", conflict_policy="manual"))
    node_id = (await put(agent, "the anvil is heavy")).node_id
    await put(agent, "the anvil is rusty", node_id, actor="mallory")
    await put(agent, "the anvil is sold", node_id, based_on=1)
    assert await agent.recalled("rusty anvil") == ["the anvil is rusty", "the anvil is sold"]
    async with agent.db.transaction(agent.caller) as tx:
        await erasure.erase_person(tx, "notes", None, created_by="mallory")
    assert await agent.recalled("rusty anvil") == ["the anvil is sold"]
    await assert_passages_of_heads(owner, agent, node_id)


async def test_a_deleted_node_is_found_by_none_of_its_heads(agent: Agent, owner: asyncpg.Connection) -> None:
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, NewGraph("notes", conflict_policy="manual"))
    node_id = (await put(agent, "the anvil is heavy")).node_id
    for content in ("the anvil is rusty", "the anvil is sold"):
        await put(agent, content, node_id, based_on=1)
    async with agent.writing() as (tx, revision):
        await revising.forget(tx, revision, [MemoryRef(id=node_id)], delete=True)
    assert await agent.recalled("anvil") == []
    await assert_passages_of_heads(owner, agent, node_id)
