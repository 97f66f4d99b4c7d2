"""Cached counts of edges: each belongs to one tenant's graph at one revision, and is always right."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from recollect.accounts.identity.model import operator_caller
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Draft
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields
from recollect.graph.relations import service as relations
from recollect.graph.relations.counted import EdgeCounts
from recollect.graph.relations.model import NewEdge
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.support.memories import Agent
from tests.support.statements import sent_statements

STEPS = 40


async def counted(agent: Agent, counts: EdgeCounts) -> tuple[int, int, bool]:
    """The count of relations, the number of listed ones, and whether the count was computed anew."""
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        view = await graphs.view(tx, agent.graph)
        head = await graphs.head_of(view)
        with sent_statements() as sent:
            told = await relations.count_named(view, head, counts)
        listed = await relations.list_relations(view)
        by_type = await relations.count_named_types(view)
    types = [relation.type for relation in listed]
    expected = sorted(((kind, types.count(kind)) for kind in set(types)), key=lambda each: (-each[1], each[0]))
    assert by_type == expected
    return told, len(listed), any("count_between_names" in statement for statement in sent)


async def test_counts_are_right_after_writes_expiries_and_edges_into_other_graphs(
    db: Database, new_tenant: NewTenant
) -> None:
    chance = random.Random(17)
    caller, counts = operator_caller(await new_tenant()), EdgeCounts()
    agent, there = Agent(db, caller, "here"), Agent(db, caller, "there")
    names = [f"node {number}" for number in range(8)]
    await agent.create(*names)
    for _ in range(STEPS):
        match chance.randrange(7):
            case 0:
                await there.create(*names)
            case 1:
                await chance.choice([agent, there]).delete(chance.choice(names))
            case 2:
                await expire(chance.choice([agent, there]), chance.choice(names))
            case 3:
                await tie(agent, agent, None, chance.choice(names))  # An edge of a fact is none between names.
            case 4:
                await tie(agent, there, chance.choice(names), chance.choice(names))
            case _:
                source, target = chance.choices(names, k=2)
                await agent.relate((source, target, chance.choice(("knows", "likes"))))
        told, listed, _ = await counted(agent, counts)
        assert told == listed
        assert (await counted(agent, counts)) == (listed, listed, False)
        async with db.transaction(caller, read_only=True) as tx:
            own = (await graphs.view(tx, "here")).graph.id
        told, listed, again = await counted(replace(agent, caller=replace(caller, graphs=frozenset([own]))), counts)
        assert (told, again) == (listed, False)


async def test_the_count_of_another_tenant_is_not_used(db: Database, new_tenant: NewTenant) -> None:
    one, two = [Agent(db, operator_caller(await new_tenant())) for _ in range(2)]
    counts = EdgeCounts()
    await one.relate(("a", "b", "knows"))
    await two.relate(("a", "b", "knows"), ("b", "a", "knows"))
    assert await counted(one, counts) == (1, 1, True)
    assert await counted(two, counts) == (2, 2, True)
    assert await counted(one, counts) == (1, 1, False)
    async with one.db.transaction(one.caller, read_only=True) as tx:
        view = await graphs.view(tx, None)
        head = await graphs.head_of(view)
    assert counts.find(one.caller.tenant_id, view.graph, head) == 1
    assert counts.find(two.caller.tenant_id, view.graph, head) is None
    assert counts.find(one.caller.tenant_id, view.graph, replace(head, at=view.graph.created_at)) is None


async def expire(agent: Agent, name: str) -> None:
    """Make the node of that name expire a moment ago."""
    async with agent.writing() as (tx, revision):
        found = (await naming.find_named(GraphView(tx, revision.graph), [name])).get(name)
        if found is not None:
            fields = NodeFields(name=name, expires_at=datetime.now(UTC) - timedelta(seconds=1))
            await lineages.put_node(tx, revision, Draft(fields, found.id))


async def tie(agent: Agent, other: Agent, source: str | None, target: str) -> None:
    """Put an edge from a named node or a new fact to a named node of a graph, if both exist."""
    async with agent.writing() as (tx, revision):
        graph = (await graphs.view(tx, other.graph)).graph
        ends = await naming.find_named(GraphView(tx, revision.graph), [source] if source else [])
        named = (await naming.find_named(GraphView(tx, graph), [target])) if graph.is_there else {}
        if target not in named or (source is not None and source not in ends):
            return
        start = ends[source].id if source else (await nodes.create_nodes(tx, revision, [NodeFields(content="said")]))[0]
        await relations.put_edges(tx, revision, [NewEdge(start, named[target].id, "about", to_graph=graph.id)])
