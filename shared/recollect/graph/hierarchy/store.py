"""One function per query of `queries.sql`, or per pair of present and past: a view runs the one for its moment."""

from collections.abc import Sequence
from uuid import UUID

from recollect.graph.graphs.view import GraphView
from recollect.graph.hierarchy.model import MAX_LEVELS, PageRequest
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction

queries = Queries(__package__)


async def list_ancestor_ids(tx: Transaction, node_ids: Sequence[UUID]) -> dict[UUID, UUID | None]:
    """The parents of these live nodes and of all their ancestors, by id: of any number of levels, expired ones, too."""
    return {row["id"]: row["parent_id"] for row in await tx.fetch(queries.list_ancestor_ids, node_ids=node_ids)}


async def list_ancestors(view: GraphView, node_id: UUID, *, levels: int) -> list[UUID]:
    """The live ancestors of a node, nearest first, up to the first that is not live."""
    return [row["id"] for row in await view.fetch(queries.list_ancestors, node_id=node_id, levels=levels)]


async def list_children(view: GraphView, node_id: UUID, page: PageRequest) -> list[UUID]:
    """The live children of a node, oldest first."""
    return await view.fetch_column(queries.list_children, "id", node_id=node_id, offset=page.offset, limit=page.limit)


async def list_descendants(view: GraphView, node_id: UUID, page: PageRequest) -> list[UUID]:
    """The live descendants of a node, depth first."""
    return await view.fetch_column(
        queries.list_descendants, "id", node_id=node_id, max_levels=MAX_LEVELS, offset=page.offset, limit=page.limit
    )


async def list_roots(view: GraphView, page: PageRequest) -> list[UUID]:
    """Live entities that have no live parent, oldest first."""
    return [row["id"] for row in await view.fetch(queries.list_roots, offset=page.offset, limit=page.limit)]
