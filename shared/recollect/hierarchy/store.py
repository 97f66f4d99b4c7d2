"""One function per query of `queries.sql`."""

from uuid import UUID

from recollect.graphs.model import Graph
from recollect.hierarchy.model import MAX_LEVELS
from recollect.platform.db import Transaction
from recollect.platform.sql import Queries

queries = Queries("recollect.hierarchy")


async def list_ancestors(tx: Transaction, node_id: UUID) -> list[UUID]:
    """The live nodes above a node, nearest first."""
    return [row["id"] for row in await tx.fetch(queries.list_ancestors, tx.tenant_id, node_id, MAX_LEVELS)]


async def list_children(tx: Transaction, node_id: UUID, *, offset: int, limit: int) -> list[UUID]:
    """The live nodes right below a node, oldest first."""
    return [row["id"] for row in await tx.fetch(queries.list_children, tx.tenant_id, node_id, offset, limit)]


async def list_descendants(tx: Transaction, node_id: UUID, *, offset: int, limit: int) -> list[UUID]:
    """The live nodes below a node, depth first."""
    rows = await tx.fetch(queries.list_descendants, tx.tenant_id, node_id, MAX_LEVELS, offset, limit)
    return [row["id"] for row in rows]


async def list_roots(tx: Transaction, graph: Graph, *, offset: int, limit: int) -> list[UUID]:
    """Live entities that have no live parent, oldest first."""
    return [row["id"] for row in await tx.fetch(queries.list_roots, tx.tenant_id, graph.id, offset, limit)]
