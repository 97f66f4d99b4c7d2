"""One function per query of `queries.sql`, or per pair: of now, and of a past moment."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from recollect.graph.graphs.model import Graph, Moment
from recollect.graph.hierarchy.model import MAX_LEVELS, PageRequest
from recollect.platform.db import Transaction
from recollect.platform.sql import Queries

queries = Queries(__package__)


async def list_ancestor_ids(tx: Transaction, node_ids: Sequence[UUID]) -> dict[UUID, UUID | None]:
    """What these live nodes, and all above them, stand under: expired ones and any number of levels included."""
    return {row["id"]: row["parent_id"] for row in await tx.fetch(queries.list_ancestor_ids, tx.tenant_id, node_ids)}


async def list_ancestors(tx: Transaction, graph: Graph, node_id: UUID, at: Moment | None, *, levels: int) -> list[UUID]:
    """The live nodes above a node (`at`: as it was), nearest first, up to the first that is not there."""
    query = queries.list_ancestors if at is None else queries.list_ancestors_at
    return [row["id"] for row in await tx.fetch(query, tx.tenant_id, node_id, levels, *_past(graph, at))]


async def list_children(
    tx: Transaction, graph: Graph, node_id: UUID, at: Moment | None, page: PageRequest
) -> list[UUID]:
    """The live nodes right below a node (`at`: as it was), oldest first."""
    query = queries.list_children if at is None else queries.list_children_at
    rows = await tx.fetch(query, tx.tenant_id, node_id, page.offset, page.limit, *_past(graph, at))
    return [row["id"] for row in rows]


async def list_descendants(
    tx: Transaction, graph: Graph, node_id: UUID, at: Moment | None, page: PageRequest
) -> list[UUID]:
    """The live nodes below a node (`at`: as it was), depth first."""
    query = queries.list_descendants if at is None else queries.list_descendants_at
    rows = await tx.fetch(query, tx.tenant_id, node_id, MAX_LEVELS, page.offset, page.limit, *_past(graph, at))
    return [row["id"] for row in rows]


async def list_roots(tx: Transaction, graph: Graph, at: Moment | None, page: PageRequest) -> list[UUID]:
    """Live entities (`at`: as they were) that have no live parent, oldest first."""
    query, past = queries.list_roots, tuple[Any, ...]()
    if at is not None:
        query, past = queries.list_roots_at, (at.revision, at.at)
    rows = await tx.fetch(query, tx.tenant_id, graph.id, page.offset, page.limit, *past)
    return [row["id"] for row in rows]


def _past(graph: Graph, at: Moment | None) -> tuple[Any, ...]:
    return () if at is None else (graph.id, at.revision, at.at)
