"""One function per query of `queries.sql`."""

from uuid import UUID

from recollect.graph.graphs.model import Revision
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction

queries = Queries(__package__)


async def insert_autolink(tx: Transaction, revision: Revision, node_id: UUID, threshold: float) -> None:
    """Queue a fact to be related to similar entities."""
    await tx.execute(queries.insert_autolink, graph_id=revision.graph.id, node_id=node_id, threshold=threshold)


async def tenants_with_autolinks(session: Session) -> list[UUID]:
    """Tenants that have embedded facts in the queue."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_autolinks)]


async def graphs_with_autolinks(tx: Transaction, *, limit: int) -> list[UUID]:
    """Graphs that have embedded facts in the queue."""
    return [row["graph_id"] for row in await tx.fetch(queries.graphs_with_autolinks, limit=limit)]


async def take_autolinks(tx: Transaction, graph_id: UUID, *, limit: int) -> dict[UUID, float]:
    """Take embedded facts out of the queue; return the least cosine of each, by the fact's id."""
    rows = await tx.fetch(queries.take_autolinks, graph_id=graph_id, limit=limit)
    return {row["node_id"]: row["threshold"] for row in rows}
