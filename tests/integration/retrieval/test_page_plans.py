"""A page reads what it answers, not the whole graph, whatever PostgreSQL knows of that.

What is asserted is how many rows are looked at, never how long that takes.
"""

import pytest

from recollect.graph.entities import service as entities
from recollect.graph.graphs import service as graphs
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import VersionFilter
from tests.support.statistics import BATCH, Work, entities_of

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
