"""One function per query of `queries.sql`."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from recollect.fairness.computing import batches
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.relations.model import (
    Direction,
    Edge,
    EdgePosition,
    NewEdge,
    Relation,
    RelationFilter,
    Symlink,
    Walk,
)
from recollect.ids import new_id
from recollect.postgres.json_rows import json_rows, within_bytes
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction

queries = Queries(__package__)

MAX_WRITTEN = 500
"""Edges of one statement, at most: other calls wait for a core meanwhile."""

MAX_LOOKED_UP = 2_000
"""Ids that one statement looks up, at most: they are encoded on the event loop in one go."""


@dataclass(frozen=True, slots=True)
class RemovedRelation:
    """A removed edge, its ends and its type."""

    id: UUID
    from_node: UUID
    to_node: UUID
    type: str


async def remove_relations(
    tx: Transaction, revision: Revision, edges: Sequence[tuple[UUID, UUID, str]]
) -> list[RemovedRelation]:
    """Remove edges by (source, target, type); return those that existed."""
    return await tx.fetch_as(
        queries.remove_relations,
        _removed,
        revision=revision.number,
        from_nodes=[source for source, _, _ in edges],
        to_nodes=[target for _, target, _ in edges],
        types=[type_ for _, _, type_ in edges],
    )


async def remove_touching(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> list[RemovedRelation]:
    """Remove every edge of the graph with an end among these nodes; return the edges."""
    return await tx.fetch_as(
        queries.remove_touching, _removed, graph_id=revision.graph.id, revision=revision.number, node_ids=node_ids
    )


async def find_orphaned_placeholders(tx: Transaction, graph: Graph, node_ids: Sequence[UUID]) -> list[UUID]:
    """The ids of those of these nodes that are placeholders without an edge in the graph."""
    found: list[UUID] = []
    for batch in batches(node_ids, MAX_LOOKED_UP):
        rows = await tx.fetch(queries.find_orphaned_placeholders, graph_id=graph.id, node_ids=batch)
        found += [row["id"] for row in rows]
    return found


async def relations_touching(view: GraphView, node_ids: Sequence[UUID], *, limit: int) -> list[Relation]:
    """Edges of a graph with an end among these nodes, oldest first."""
    return await view.fetch_as(queries.relations_touching, _relation, node_ids=node_ids, limit=limit)


async def relations_between(view: GraphView, node_ids: Sequence[UUID], *, limit: int) -> list[Relation]:
    """Edges with both ends among these nodes, oldest first."""
    return await view.fetch_as(queries.relations_between, _relation, node_ids=node_ids, limit=limit)


async def list_relations(view: GraphView, *, offset: int, limit: int | None) -> list[Relation]:
    """Every edge of a graph whose ends have names, oldest first."""
    return await view.fetch_as(queries.list_relations, _relation, offset=offset, limit=limit)


async def insert_edges(tx: Transaction, revision: Revision, edges: Sequence[NewEdge]) -> list[Edge]:
    """Create the edges that do not exist yet; return these."""
    inserted: list[Edge] = []
    for batch in tx.batches(edges, MAX_WRITTEN):
        for rows in within_bytes(await json_rows(batch, lambda edge: _row(new_id(), edge, revision))):
            inserted += await tx.fetch_as(
                queries.insert_edges, _edge, **revision.parameters, subject=tx.caller.subject, edges=rows
            )
    return inserted


async def find_edges(tx: Transaction, keys: Sequence[tuple[UUID, UUID, str]]) -> list[Edge]:
    """Live edges by (source, target, type)."""
    edges: list[Edge] = []
    for batch in batches(keys, MAX_LOOKED_UP):
        sources, targets, types = zip(*batch, strict=True)
        edges += await tx.fetch_as(queries.find_edges, _edge, from_nodes=sources, to_nodes=targets, types=types)
    return edges


async def edges_by_id(view: GraphView, edge_ids: Sequence[UUID]) -> list[Edge]:
    """Edges of a graph in the order of `edge_ids`."""
    return await view.fetch_as(queries.edges_by_id, _edge, edge_ids=edge_ids)


async def rewrite_edges(
    tx: Transaction, revision: Revision, edges: Sequence[tuple[UUID, dict[str, Any], int | None]]
) -> list[UUID]:
    """Give live edges, by id, this metadata and ordinal, each edge once; return the ids of those that changed."""
    rewritten: list[UUID] = []
    for batch in tx.batches(edges, MAX_WRITTEN):
        for rows in within_bytes(await json_rows(batch, _rewritten_row)):
            changed = await tx.fetch(queries.rewrite_edges, **revision.parameters, edges=rows)
            rewritten += [row["id"] for row in changed]
    return rewritten


async def remove_edges(tx: Transaction, revision: Revision, edge_ids: Sequence[UUID]) -> list[RemovedRelation]:
    """Remove edges of the graph by id; return those that existed."""
    return await tx.fetch_as(
        queries.remove_edges, _removed, graph_id=revision.graph.id, revision=revision.number, edge_ids=edge_ids
    )


async def edges_between(tx: Transaction, graph: Graph, from_node: UUID, to_node: UUID, type_: str | None) -> list[Edge]:
    """Live edges of a graph from one node to another."""
    return await tx.fetch_objects(
        queries.edges_between, Edge, graph_id=graph.id, from_node=from_node, to_node=to_node, type=type_
    )


async def edges_of(
    view: GraphView,
    node_ids: Sequence[UUID],
    walk: Walk,
    *,
    within: Sequence[UUID] | None,
    after: EdgePosition | None,
    offset: int,
    limit: int,
) -> list[Edge]:
    """Edges at these nodes, without metadata, that a walk may follow, within these graphs (None: any).

    `after`: only later ones.
    """
    after_ordinal, after_id = after or (None, None)
    return await view.fetch_as(
        queries.edges_of,
        _edge,
        node_ids=node_ids,
        outgoing=walk.direction != Direction.INCOMING,
        incoming=walk.direction != Direction.OUTGOING,
        types=walk.types,
        within=within,
        after_ordinal=after_ordinal,
        after_id=after_id,
        offset=offset,
        limit=limit,
    )


async def measure_edges_of(tx: Transaction, node_ids: Sequence[UUID], *, limit: int) -> tuple[int, int]:
    """How many edges these nodes have, of `limit` at most, and the bytes of their metadata."""
    row = await tx.fetchrow(queries.measure_edges_of, node_ids=node_ids, limit=limit)
    assert row is not None
    return row["count"], row["bytes"]


async def measure_edges(tx: Transaction, keys: Sequence[tuple[UUID, UUID, str]]) -> dict[tuple[UUID, UUID, str], int]:
    """The bytes of the metadata of each live edge with one of these keys, by key."""
    sizes: dict[tuple[UUID, UUID, str], int] = {}
    for batch in batches(keys, MAX_LOOKED_UP):
        sources, targets, types = zip(*batch, strict=True)
        rows = await tx.fetch(queries.measure_edges, from_nodes=sources, to_nodes=targets, types=types)
        sizes |= {batch[row["position"] - 1]: row["bytes"] for row in rows}
    return sizes


async def metadata_of_edges(
    view: GraphView, edge_ids: Sequence[UUID]
) -> AsyncGenerator[tuple[UUID, dict[str, Any], int]]:
    """Ids of edges with their metadata and its size in bytes, in the order of `edge_ids`, a few read at a time."""
    async for row in view.stream(queries.metadata_of_edges, edge_ids=edge_ids):
        yield row["id"], row["metadata"], row["bytes"]


async def search_relations(view: GraphView, filters: RelationFilter, *, offset: int, limit: int) -> list[Relation]:
    """Edges of a graph by the names of their ends and their type, oldest first."""
    return await view.fetch_as(
        queries.search_relations,
        _relation,
        source=filters.source,
        target=filters.target,
        type=filters.type,
        offset=offset,
        limit=limit,
    )


async def most_connected(view: GraphView, *, examined: int, limit: int) -> list[UUID]:
    """The nodes with most ends of the graph's newest edges, of which so many are examined."""
    return [row["node_id"] for row in await view.fetch(queries.most_connected, examined=examined, limit=limit)]


async def count_types(view: GraphView, *, limit: int) -> list[tuple[str, int]]:
    """How many edges of each type a graph has, most frequent first."""
    return [(row["type"], row["count"]) for row in await view.fetch(queries.count_types, limit=limit)]


async def count_named_types(view: GraphView, *, limit: int | None) -> list[tuple[str, int]]:
    """How many edges between names of each type a graph has, most frequent first."""
    return [(row["type"], row["count"]) for row in await view.fetch(queries.count_named_types, limit=limit)]


async def count_between_names(view: GraphView) -> int:
    """How many edges a graph has between two of its own nodes with names, expired nodes included."""
    return int(await view.fetchval(queries.count_between_names))


async def count_edge_corrections(view: GraphView) -> int:
    """How many edges between names there are beyond `count_between_names`; below zero where there are fewer."""
    return int(await view.fetchval(queries.count_edge_corrections))


async def list_symlinks(tx: Transaction, graph: Graph, *, inbound: bool, offset: int, limit: int) -> list[Symlink]:
    """The edges from a graph into others that the caller may use, or (`inbound`) from others into it, oldest first."""
    return await tx.fetch_objects(
        queries.list_symlinks,
        Symlink,
        graph_id=graph.id,
        inbound=inbound,
        reachable_graphs=tx.caller.graphs,
        offset=offset,
        limit=limit,
    )


def _relation(row: asyncpg.Record) -> Relation:
    return Relation(**row)


def _edge(row: asyncpg.Record) -> Edge:
    return Edge(**row)


def _removed(row: asyncpg.Record) -> RemovedRelation:
    return RemovedRelation(**row)


def _rewritten_row(edge: tuple[UUID, dict[str, Any], int | None]) -> dict[str, Any]:
    edge_id, metadata, ordinal = edge
    return {"id": edge_id, "former": new_id(), "metadata": metadata, "ordinal": ordinal}


def _row(edge_id: UUID, edge: NewEdge, revision: Revision) -> dict[str, Any]:
    return {
        "id": edge_id,
        "from_node": edge.from_node,
        "to_graph": edge.to_graph or revision.graph.id,
        "to_node": edge.to_node,
        "type": edge.type,
        "metadata": edge.metadata or {},
        "ordinal": edge.ordinal,
        "created_at": edge.created_at,
        "actor": edge.actor,
    }
