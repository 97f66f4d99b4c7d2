"""One function per query of `queries.sql`, or per pair: of now, and of a past moment."""

from datetime import datetime, timedelta
from uuid import UUID

from recollect.graph.graphs.model import Graph
from recollect.graph.graphs.view import GraphView
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction
from recollect.retention.expiry.model import ExpiringMemory

queries = Queries(__package__)


async def tenants_with_expired(session: Session) -> list[UUID]:
    """Tenants that have something expired."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_expired)]


async def graphs_with_expired(tx: Transaction, *, limit: int) -> list[UUID]:
    """Graphs that have something expired."""
    return [row["id"] for row in await tx.fetch(queries.graphs_with_expired, limit=limit)]


async def find_expiring(
    view: GraphView, *, within: timedelta, after: tuple[datetime, UUID] | None, limit: int
) -> list[ExpiringMemory]:
    """Active memories that expire within a time, soonest first, after the position of one."""
    after_time, after_id = after or (None, None)
    return await view.fetch_objects(
        queries.find_expiring, ExpiringMemory, within=within, after_time=after_time, after_id=after_id, limit=limit
    )


async def tenants_with_purgeable(session: Session, *, retention: timedelta) -> list[UUID]:
    """Tenants that have something archived that expired longer ago than the retention."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_purgeable, retention=retention)]


async def graphs_with_purgeable(tx: Transaction, *, retention: timedelta, limit: int) -> list[UUID]:
    """Graphs with archived nodes that expired longer ago than the retention and have no relation with a live node."""
    return [row["graph_id"] for row in await tx.fetch(queries.graphs_with_purgeable, retention=retention, limit=limit)]


async def find_purgeable(tx: Transaction, graph: Graph, *, before: datetime, limit: int) -> list[UUID]:
    """Archived nodes that expired before a time and have no relation with a live node."""
    return [row["id"] for row in await tx.fetch(queries.find_purgeable, graph_id=graph.id, before=before, limit=limit)]
