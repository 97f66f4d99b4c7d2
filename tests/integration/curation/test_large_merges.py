"""A merge moves relations, observations and children in pages, and refuses more than it may move before it writes."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from recollect.caller import Caller
from recollect.curation.merging import service as merging
from recollect.errors import ErrorCode, TooLarge
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.hierarchy import service as hierarchy
from recollect.graph.hierarchy.model import PageRequest
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import NewEdge, Walk
from recollect.postgres.database import Database
from tests.support.invariants import assert_laws
from tests.support.memories import Agent, at_work
from tests.support.read_bytes import bytes_read

COUNT, LARGE = 30, "large " * 500
"""As many relations, observations and children, each with 3 kB of metadata."""

PAGE = 15_000
BOUND = 2 * PAGE


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        yield agent
        await assert_laws(agent)


async def store(agent: Agent) -> None:
    """The entity Ada, and another with relations, observations and children."""
    async with agent.writing() as (tx, revision):
        _, other = await nodes.create_nodes(tx, revision, [NodeFields("Ada", "person"), NodeFields("A.L.", "person")])
        children = [NodeFields(f"c{n}", parent_id=other, metadata={"text": LARGE}) for n in range(COUNT)]
        ids = await nodes.create_nodes(tx, revision, children)
        said = [NewObservation("A.L.", f"said {n}", metadata={"text": LARGE}) for n in range(COUNT)]
        await observations.add_observations(tx, revision, said)
        edges = [NewEdge(other, node_id, "knows", metadata={"text": LARGE, "n": n}) for n, node_id in enumerate(ids)]
        await relations.add_edges(tx, revision, edges)


async def test_what_a_merge_moves_is_read_in_pages(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "PAGE_BYTES", PAGE)
    await store(agent)
    await agent.observe("Ada", "said 3", "is a countess")
    with bytes_read() as most:
        merged = await agent.merge(["Ada", "A.L."])
    assert max(most.values()) <= BOUND, {name: size for name, size in most.items() if size > BOUND}
    assert (merged.moved_observations, merged.added_observations, merged.redirected_relations) == (30, 29, 30)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        view = await graphs.view(tx, "default")
        children = (await hierarchy.get_children(view, "Ada", PageRequest(limit=100))).entities
        stored = await observations.list_observations(tx, [merged.entity.id])
        edges = await relations.edges_of(view, [merged.entity.id], Walk(), within=None, limit=100)
        pages = [page async for page in relations.with_metadata(view, edges)]
    assert {child.name for child in children} == {f"c{n}" for n in range(COUNT)}
    assert {o.content for o in stored} == {"is a countess", *(f"said {n}" for n in range(COUNT))}
    assert {o.content for o in stored if o.metadata} == {f"said {n}" for n in range(COUNT)}
    assert sorted(edge.metadata["n"] for page in pages for edge in page) == list(range(COUNT))


async def test_more_than_a_merge_may_move_is_refused_before_anything_is_written(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    await store(agent)
    before = (await agent.head()).revision
    refusals: dict[str, Any] = {kind: {**merging.MAX_MOVED, kind: COUNT - 1} for kind in merging.MAX_MOVED}
    for kind, most in refusals.items():
        with subtests.test(kind), monkeypatch.context() as patch:
            patch.setattr(merging, "MAX_MOVED", most)
            with pytest.raises(TooLarge, match=f"at most 29 {kind}") as refused:
                await agent.merge(["Ada", "A.L."])
            assert (refused.value.path, refused.value.code) == ("entityNames", ErrorCode.REQUEST_TOO_LARGE)
    with subtests.test("bytes"), monkeypatch.context() as patch:
        patch.setattr(merging, "MAX_MOVED_BYTES", COUNT * len(LARGE))
        with pytest.raises(TooLarge, match=f"of {COUNT * len(LARGE)} bytes together"):
            await agent.merge(["Ada", "A.L."])
    assert (await agent.head()).revision == before
    assert {"Ada", "A.L."} <= {entity.name for entity in (await agent.read()).entities}


async def test_many_large_entities_are_not_read_to_be_merged(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "MAX_READ_BYTES", COUNT * len(LARGE))
    async with agent.writing() as (tx, revision):
        large = [NodeFields(f"e{n}", metadata={"text": LARGE}) for n in range(COUNT)]
        ids = await nodes.create_nodes(tx, revision, large)
    with bytes_read() as most:
        with pytest.raises(TooLarge, match="Name fewer"):
            await agent.merge([f"e{n}" for n in range(COUNT)])
        with pytest.raises(TooLarge, match="Name fewer"):
            async with agent.writing() as (tx, revision):
                await merging.merge_nodes(tx, revision, ids[0], ids[1:])
    assert max(most.values()) <= BOUND


async def test_a_name_that_only_a_large_placeholder_has_is_refused_too(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    await agent.create(NewEntity("a", None), NewEntity("b", None))
    await agent.relate(("a", "new", "knows"), ("b", "new", "knows"), ("new", "a", "knows"))
    monkeypatch.setattr(merging, "MAX_MOVED", {**merging.MAX_MOVED, "relations": 2})
    with pytest.raises(TooLarge, match="at most 2 relations"):
        await agent.merge(["a", "b"], "new")
