"""What is looked for by days reads these days alone, whatever statistics PostgreSQL has when it plans."""

from datetime import UTC, datetime, timedelta

from recollect.graph.graphs import service as graphs
from recollect.memory.model import NewMemory
from recollect.postgres.sql import QueryPlan
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.model import RecallFilter
from tests.support.column_statistics import BATCH, Work
from tests.support.memories import embedded_questions

BATCHES, OF_A_DAY = 2, 5
FIRST = datetime(2024, 1, 1, 12, tzinfo=UTC)


def note(number: int) -> NewMemory:
    """Five notes a day, of which one tells of a day."""
    at = FIRST + timedelta(days=number // OF_A_DAY)
    told = f"Yesterday {number} came" if number % OF_A_DAY == 0 else f"{number} came"
    return NewMemory(f"{told} to tea.", at=at)


async def test_days_are_looked_up(work: Work) -> None:
    for batch in range(BATCHES):
        await work.agent.remember(*(note(number) for number in range(batch * BATCH, (batch + 1) * BATCH)))
    questions = await embedded_questions("What happened on 2024-06-01?")
    work.watch.clear()
    async with work.agent.db.transaction(work.agent.caller, read_only=True, plan=QueryPlan.ONCE) as tx:
        view = await graphs.view(tx, None)
        found = await recall.recall(view, questions, RecallFilter(), limit=10, token_budget=1_000)
    assert len(found.hits) == OF_A_DAY + 1
    looked_at = work.watch.rows
    assert 0 < looked_at["recall.said_within"] < 10 * OF_A_DAY, looked_at
    assert 0 < looked_at["recall.naming_days"] < 10 * OF_A_DAY, looked_at
