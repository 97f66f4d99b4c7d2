"""Pages of the observations of a large entity are read in the order of an index, whatever PostgreSQL knows."""

import pytest

from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.postgres.sql import QueryPlan
from tests.support.column_statistics import Work

COUNT = 2_000


@pytest.mark.parametrize("work", ["none", "own"], indirect=True)
async def test_a_page_reads_each_observation_a_few_times(work: Work) -> None:
    await work.agent.create(NewEntity("large", "thing", tuple(f"part {n} {'x' * 90}" for n in range(COUNT))))
    revision = (await work.agent.head()).revision
    for as_of in (None, str(revision)):
        work.watch.clear()
        async with work.agent.db.transaction(
            work.agent.caller, read_only=True, reply_bytes=10_000, plan=QueryPlan.ONCE
        ) as tx:
            [large] = await entities.open_entities(await graphs.view(tx, None, as_of), ["large"])
        assert (len(large.observations) + large.omitted, 0 < len(large.observations) < 100) == (COUNT, True)
        assert max(work.watch.rows.values()) <= 10 * COUNT
