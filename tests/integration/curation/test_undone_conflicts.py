"""Undo with conflicts: heads that somebody resolved become siblings again, and added ones are removed."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from recollect.caller import Caller
from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange, Reason, UndoPlan
from recollect.errors import TooLarge
from recollect.graph.graphs import moments
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import GraphPatch, NewGraph
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Draft, Version, VersionFilter
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, Rewrite
from recollect.graph.relations import service as relations
from recollect.memory import revising
from recollect.memory.model import MemoryPatch, MemoryRef
from recollect.postgres.database import Database
from recollect.retention.erasure import service as erasure
from recollect.settings import Settings
from tests.support.invariants import assert_laws
from tests.support.memories import Agent, at_work

ANVIL = ("the anvil is heavy", "the anvil is rusty", "the anvil is sold")


@pytest.fixture
async def agent(db: Database, caller: Caller) -> AsyncIterator[Agent]:
    async with at_work(db, caller) as agent:
        agent = await manual(agent, "notes")
        yield agent
        await assert_laws(agent)


async def manual(agent: Agent, graph: str) -> Agent:
    """An agent on a new graph of this name, in which conflicts are recorded."""
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, NewGraph(graph, conflict_policy="manual"))
    return replace(agent, graph=graph)


def other(agent: Agent, subject: str = "other") -> Agent:
    """Another actor on the same graph."""
    return replace(agent, caller=replace(agent.caller, subject=subject))


async def put(
    agent: Agent, content: str, node_id: UUID | None = None, based_on: int | None = None, **more: Any
) -> UUID:
    """Write a version of a note; return its lineage."""
    async with agent.writing() as (tx, revision):
        draft = Draft(NodeFields(kind="note", content=content, **more), node_id, based_on, content_only=not more)
        return (await lineages.put_node(tx, revision, draft)).node_id


async def conflicting(agent: Agent, contents: Sequence[str] = ANVIL) -> UUID:
    """A note with a conflict: each content is a head, each written by another actor."""
    node_id = await put(agent, "an anvil")
    first, *others = contents
    await put(other(agent, "writer 0"), first, node_id)
    for place, content in enumerate(others, start=1):
        await put(other(agent, f"writer {place}"), content, node_id, 1)
    return node_id


async def heads(agent: Agent, as_of: int | None = None) -> list[Version]:
    """Every head of every node, newest first."""
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        graph = await graphs.get_graph(tx, agent.graph or "")
        at = await moments.find_moment(tx, graph, None if as_of is None else str(as_of))
        return (await lineages.list_nodes(GraphView(tx, graph, at), VersionFilter()))[0]


async def contents(agent: Agent, as_of: int | None = None) -> list[str | None]:
    return [head.content for head in await heads(agent, as_of)]


async def revision_of(agent: Agent) -> int:
    return (await agent.head()).revision


async def undo(agent: Agent, since: int, *, dry_run: bool = False, **span: Any) -> UndoPlan:
    async with agent.db.transaction(agent.caller) as tx:
        return await undoing.undo_changes(tx, agent.graph, "undo", ChangeRange(since, **span), dry_run=dry_run)


async def put_without_base(agent: Agent, node_id: UUID) -> None:
    await put(agent, "the anvil is gone", node_id)


async def put_on_the_newest(agent: Agent, node_id: UUID) -> None:
    await put(agent, "the anvil is gone", node_id, 1 + len(ANVIL))


async def put_the_newest_content_again(agent: Agent, node_id: UUID) -> None:
    await put(agent, ANVIL[-1], node_id)


async def rename(agent: Agent, node_id: UUID) -> None:
    async with agent.writing() as (tx, revision):
        head = await lineages.require_head(tx, revision.graph, node_id)
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, name="Anvil"))])


async def mark_outdated(agent: Agent, node_id: UUID) -> None:
    async with agent.writing() as (tx, revision):
        await revising.revise(tx, revision, MemoryRef(id=node_id), MemoryPatch(status="outdated"))


async def delete(agent: Agent, node_id: UUID) -> None:
    async with agent.writing() as (tx, revision):
        await relations.delete_nodes(tx, revision, [node_id])


async def put_beside(agent: Agent, node_id: UUID) -> None:
    await put(agent, "the anvil is lost", node_id, 1)


async def resolve_and_conflict_again(agent: Agent, node_id: UUID) -> None:
    await put(agent, "the anvil is gone", node_id)
    await put(agent, ANVIL[0], node_id, 1)
    await put(agent, ANVIL[-1], node_id, 1)


CHANGES: list[Callable[[Agent, UUID], Awaitable[None]]] = [
    put_without_base,
    put_on_the_newest,
    put_the_newest_content_again,
    rename,
    mark_outdated,
    delete,
    put_beside,
    resolve_and_conflict_again,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("by_actor", [True, False], ids=["of an actor", "of revisions"])
async def test_undo_restores_the_heads_that_the_changes_resolved(agent: Agent, change: Any, by_actor: bool) -> None:
    node_id = await conflicting(agent)
    since = await revision_of(agent)
    before, head = await heads(agent), await agent.head()
    await change(other(agent), node_id)
    wrote = await revision_of(agent)
    left = await contents(agent)
    span: dict[str, Any] = {"actor": "other"} if by_actor else {"until": wrote}
    dry = await undo(agent, since, dry_run=True, **span)
    assert await contents(agent) == left
    done = await undo(agent, since, **span)
    assert (done, [one.id for one in done.restored], done.skipped) == (dry, [node_id], [])
    after = await heads(agent)
    assert [one.content for one in after] == list(reversed(ANVIL))
    assert [set(one.conflicts) for one in after] == [{o.id for o in after if o is not one} for one in after]
    assert [(one.began_at, one.kind, one.reason) for one in after] == [(b.began_at, b.kind, b.reason) for b in before]
    counted = await agent.head()
    assert (counted.facts, counted.entities) == (head.facts, head.entities)
    assert sorted(await agent.recalled("anvil")) == sorted(ANVIL)
    # The past has not changed: before the change, after it, and before the undo.
    assert [one.id for one in await heads(agent, since)] == [one.id for one in before]
    assert await contents(agent, wrote) == left
    assert await contents(agent, await revision_of(agent)) == list(reversed(ANVIL))


async def test_restored_siblings_can_be_resolved_again(agent: Agent) -> None:
    node_id = await conflicting(agent)
    since = await revision_of(agent)
    await put(other(agent), "the anvil is gone", node_id)
    await undo(agent, since)
    newest = (await heads(agent))[0]
    await put(agent, "the anvil is here", node_id, newest.version)
    assert await contents(agent) == ["the anvil is here"]
    assert await agent.recalled("rusty anvil") == ["the anvil is here"]


async def test_undoing_an_undo_resolves_the_conflict_again(agent: Agent) -> None:
    node_id = await conflicting(agent)
    since = await revision_of(agent)
    await put(other(agent), "the anvil is gone", node_id)
    wrote = await revision_of(agent)
    await undo(agent, since)
    undone = await revision_of(agent)
    assert await undo(agent, since) == UndoPlan()
    await undo(agent, wrote, until=undone)
    assert await contents(agent) == ["the anvil is gone"]
    await undo(agent, undone)
    assert await contents(agent) == list(reversed(ANVIL))


async def test_a_conflict_is_undone_even_if_its_newest_head_has_the_old_content(agent: Agent) -> None:
    node_id = await put(agent, "the anvil is heavy")
    since = await revision_of(agent)
    await put(other(agent), "the anvil is rusty", node_id)
    await put(other(agent), "the anvil is heavy", node_id, 1)
    assert len(await heads(agent)) == 2
    done = await undo(agent, since, actor="other")
    assert [one.id for one in done.restored] == [node_id]
    assert await contents(agent) == ["the anvil is heavy"]
    assert await agent.recalled("rusty anvil") == ["the anvil is heavy"]


async def test_a_restored_head_keeps_its_author(agent: Agent) -> None:
    agent = await manual(agent, "erased")
    node_id = await conflicting(agent)
    since = await revision_of(agent)
    await put(other(agent), "the anvil is gone", node_id)
    await undo(agent, since)
    async with agent.db.transaction(agent.caller) as tx:
        await erasure.erase_person(tx, "erased", None, created_by="writer 0")
    assert sorted(await agent.recalled("anvil")) == sorted(ANVIL[1:])
    await assert_laws(agent, whole=False)


async def test_no_head_of_a_disallowed_kind_is_restored(agent: Agent) -> None:
    agent = await manual(agent, "kinds")
    node_id = await put(agent, "an anvil", name="Anvil")
    await put(agent, "a rusty anvil", node_id, summary="rusty")
    async with agent.writing() as (tx, revision):
        draft = Draft(NodeFields(kind="thing", content="a heavy anvil"), node_id, 1, content_only=True)
        await lineages.put_node(tx, revision, draft)
    since = await revision_of(agent)
    async with other(agent).writing() as (tx, revision):
        draft = Draft(NodeFields(kind="thing", content="an anvil that is gone"), node_id, content_only=True)
        await lineages.put_node(tx, revision, draft)
    wrote = await revision_of(agent)
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.configure_graph(tx, "kinds", GraphPatch(kind_whitelist=("thing",)), "test")
    done = await undo(agent, since, until=wrote)
    assert [(one.id, one.reason) for one in done.skipped] == [(node_id, Reason.KIND_NOT_ALLOWED)]
    assert await contents(agent) == ["an anvil that is gone"]


async def test_many_conflicting_nodes_take_no_more_statements_than_a_few(agent: Agent, settings: Settings) -> None:
    one_connection = settings.model_copy(update={"database_pool_size": 1})
    sent: dict[str, list[str]] = {"first": [], "few": [], "many": []}
    async with Database.connect(settings.database_url, settings=one_connection) as db:
        agent = replace(agent, db=db)
        for size, queries in zip((2, 2, 20), sent.values(), strict=True):
            conflicting_nodes = [await conflicting(agent, ANVIL[: 2 + n % 2]) for n in range(size)]
            since = await revision_of(agent)
            for node_id in conflicting_nodes:
                await put(other(agent), "gone", node_id)
            before = await contents(agent, since)
            async with agent.db.transaction(agent.caller) as tx:
                with tx._connection.query_logger(lambda record, queries=queries: queries.append(record.query)):
                    await undoing.undo_changes(tx, agent.graph, "undo", ChangeRange(since), dry_run=False)
            assert await contents(agent) == before
    assert sent["many"] == sent["few"]


async def test_too_many_heads_are_refused(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    node_id = await conflicting(agent, [f"the anvil is number {n}" for n in range(8)])
    since = await revision_of(agent)
    await put(other(agent), "the anvil is gone", node_id)
    monkeypatch.setattr(undoing, "MAX_UNDONE", 6)
    with pytest.raises(TooLarge, match="more than 6 concurrent versions"):
        await undo(agent, since, dry_run=True)
    monkeypatch.setattr(undoing, "MAX_UNDONE", 7)
    await undo(agent, since)
    assert len(await heads(agent)) == 8
