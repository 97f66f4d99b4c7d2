"""A page reads the rows that it returns and not the whole graph, whatever statistics PostgreSQL has.

The tests assert how many rows are looked at, and never how long that takes.
"""

from dataclasses import replace

import pytest

from recollect.graph.entities import service as entities
from recollect.graph.graphs import service as graphs
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import VersionFilter
from recollect.memory.model import NewMemory
from tests.support.column_statistics import BATCH, Work, entities_of

SIZE = 2 * BATCH
PAGE = 20


@pytest.mark.parametrize("work", ["none", "own"], indirect=True)
async def test_a_page_is_read_in_the_order_of_an_index(work: Work) -> None:
    agent, looked_at = work.agent, work.watch.rows
    for part in ("early", "late"):
        await agent.create(*entities_of(part, BATCH))
    work.watch.clear()
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        view = await graphs.view(tx, None)
        listed, more = await lineages.list_nodes(view, VersionFilter(limit=PAGE))
        assert (len(listed), more) == (PAGE, True)
        assert len(await entities.list_entities(view, kind=None, offset=0, limit=PAGE)) == PAGE
    for statement in ("lineages.list_heads", "entities.list_entity_ids"):
        assert looked_at[statement] < SIZE / 2, statement


@pytest.mark.parametrize("work", ["none", "own"], indirect=True)
async def test_nodes_of_an_author_are_read_by_an_index(work: Work) -> None:
    """Of one who wrote little and of one who wrote almost everything, the first page and one behind it."""
    agent, looked_at = work.agent, work.watch.rows
    few = replace(agent, caller=replace(agent.caller, subject="key:few"))
    for part in ("early", "late"):
        await agent.create(*entities_of(part, BATCH))
    await few.create(*entities_of("few", PAGE + 5))
    await agent.create(*entities_of("last", PAGE))
    for author, size in (("key:few", PAGE + 5), (agent.caller.subject, SIZE + PAGE), ("key:nobody", 0)):
        filters = VersionFilter(limit=PAGE, author=author)
        work.watch.clear()
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            view = await graphs.view(tx, None)
            listed, more = await lineages.list_nodes(view, filters)
            assert (len(listed), more) == (min(PAGE, size), size > PAGE), author
            if more:
                last = listed[-1]
                rest, _ = await lineages.list_nodes(view, replace(filters, after=(last.node_id, last.version)))
                assert len(rest) == min(PAGE, size - PAGE)
                assert {node.node_id for node in rest}.isdisjoint(node.node_id for node in listed)
        assert looked_at["lineages.list_heads_of_author"] < SIZE / 4, author


@pytest.mark.parametrize("work", ["none", "own"], indirect=True)
async def test_of_observations_a_vocabulary_reads_those_with_a_kind_or_tags(work: Work) -> None:
    agent, looked_at = work.agent, work.watch.rows
    await agent.remember(*(NewMemory(f"ate {n}", about=("Ada",), kind="meal", tags=("food",)) for n in range(5)))
    work.watch.clear()
    counted = []
    for more in (0, SIZE):
        if more:
            await agent.remember(*(NewMemory(f"saw {n}", about=("Ada",)) for n in range(more)))
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            found = await lineages.describe_schema(await graphs.view(tx, None))
        assert ("food", 0, 5) in [(use.tag, use.count, use.observations) for use in found.tags]
        assert ("meal", 5) in [(use.kind, use.observations) for use in found.kinds]
        statements = ("lineages.count_tags", "lineages.count_tag_prefixes", "lineages.describe_kinds")
        counted.append([looked_at[statement] for statement in statements])
    assert counted[0] == counted[1]
