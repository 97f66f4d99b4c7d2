"""One function per query of `queries.sql`, or per pair: of now, and of a past moment."""

from datetime import datetime, timedelta
from uuid import UUID

from recollect.graph.graphs.model import Graph
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction

queries = Queries(__package__)


async def tenants_with_expired(session: Session) -> list[UUID]:
    """Tenants that have something expired."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_expired)]


async def graphs_with_expired(tx: Transaction, *, limit: int) -> list[UUID]:
    """Graphs that have something expired."""
    return [row["id"] for row in await tx.fetch(queries.graphs_with_expired, limit=limit)]


async def tenants_with_purgeable(session: Session, *, retention: timedelta) -> list[UUID]:
    """Tenants that have something archived that expired longer ago than the retention."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_purgeable, retention=retention)]


async def graphs_with_purgeable(tx: Transaction, *, retention: timedelta, limit: int) -> list[UUID]:
    """Graphs with archived nodes that expired longer ago than the retention and have no relation with a live node."""
    return [row["graph_id"] for row in await tx.fetch(queries.graphs_with_purgeable, retention=retention, limit=limit)]


async def find_purgeable(tx: Transaction, graph: Graph, *, before: datetime, limit: int) -> list[UUID]:
    """Archived nodes that expired before a time and have no relation with a live node."""
    return [row["id"] for row in await tx.fetch(queries.find_purgeable, graph_id=graph.id, before=before, limit=limit)]
