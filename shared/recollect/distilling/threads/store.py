"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from recollect.distilling.threads.model import ThreadTurn
from recollect.graph.graphs.model import Graph
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction

queries = Queries(__package__)


async def list_turns(tx: Transaction, graph: Graph, sequence: UUID, *, after: UUID, limit: int) -> list[ThreadTurn]:
    """The turns of a thread after the id `after`, in the order of their ids."""
    return await tx.fetch_objects(
        queries.list_turns, ThreadTurn, graph_id=graph.id, sequence=sequence, after=after, limit=limit
    )


async def list_turns_before(
    tx: Transaction, graph: Graph, sequence: UUID, *, until: UUID, limit: int
) -> list[ThreadTurn]:
    """The last turns of a thread up to the id `until`, the last first."""
    return await tx.fetch_objects(
        queries.list_turns_before, ThreadTurn, graph_id=graph.id, sequence=sequence, until=until, limit=limit
    )


async def count_turns(tx: Transaction, graph: Graph, sequence: UUID, *, after: UUID) -> int:
    """The number of turns of a thread after the id `after`."""
    return await tx.fetchval(queries.count_turns, graph_id=graph.id, sequence=sequence, after=after)


async def find_facts(
    tx: Transaction, graph: Graph, texts: Sequence[str], now: datetime, *, limit: int
) -> dict[str, list[UUID]]:
    """The live facts with these texts, in any thread, by the text."""
    rows = await tx.fetch(queries.find_facts, graph_id=graph.id, texts=texts, revision_time=now, limit=limit)
    found: dict[str, list[UUID]] = {}
    for row in rows:
        found.setdefault(row["text"], []).append(row["id"])
    return found


async def find_progress(tx: Transaction, graph: Graph, sequence: UUID) -> UUID | None:
    """The turn up to which a thread was read; None: it was not."""
    return await tx.fetchval(queries.find_progress, graph_id=graph.id, sequence=sequence)


async def insert_progress(tx: Transaction, graph: Graph, sequence: UUID, until_turn: UUID) -> None:
    """Note that a thread is to be read after this turn, unless it is known how far it was."""
    await tx.execute(queries.insert_progress, graph_id=graph.id, sequence=sequence, until_turn=until_turn)


async def note_progress(tx: Transaction, graph: Graph, sequence: UUID, until_turn: UUID) -> None:
    """Note the turn up to which a thread was read."""
    await tx.execute(queries.note_progress, graph_id=graph.id, sequence=sequence, until_turn=until_turn)


async def forget_oldest(tx: Transaction, graph: Graph, *, most: int) -> None:
    """Forget how far the threads were read that were read before the last `most`."""
    await tx.execute(queries.forget_oldest, graph_id=graph.id, most=most)
