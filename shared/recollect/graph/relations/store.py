"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from recollect.graph.graphs.model import Graph, Moment, Revision
from recollect.graph.relations.model import Direction, Edge, NewEdge, Relation, RelationFilter, Symlink, Walk
from recollect.ids import new_id
from recollect.platform.computing import each
from recollect.platform.db import Transaction
from recollect.platform.sql import Queries

queries = Queries(__package__)


@dataclass(frozen=True, slots=True)
class RemovedRelation:
    """A removed edge and its ends."""

    id: UUID
    from_node: UUID
    to_node: UUID


async def remove_relations(
    tx: Transaction, revision: Revision, edges: Sequence[tuple[UUID, UUID, str]]
) -> list[RemovedRelation]:
    """Take (source, target, type) edges away; those that were there."""
    rows = await tx.fetch(
        queries.remove_relations,
        tx.tenant_id,
        revision.number,
        [source for source, _, _ in edges],
        [target for _, target, _ in edges],
        [type_ for _, _, type_ in edges],
    )
    return [RemovedRelation(**row) for row in rows]


async def remove_touching(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> list[RemovedRelation]:
    """Take every edge of the graph away that touches one of these nodes."""
    rows = await tx.fetch(queries.remove_touching, tx.tenant_id, revision.graph.id, revision.number, node_ids)
    return [RemovedRelation(**row) for row in rows]


async def find_orphaned_placeholders(tx: Transaction, graph: Graph, node_ids: Sequence[UUID]) -> list[UUID]:
    """Those of these nodes of a graph that are placeholders without any edge of it."""
    return [row["id"] for row in await tx.fetch(queries.find_orphaned_placeholders, tx.tenant_id, graph.id, node_ids)]


async def relations_touching(
    tx: Transaction, graph: Graph, node_ids: Sequence[UUID], *, limit: int, at: Moment | None
) -> list[Relation]:
    """Edges of a graph (`at`: as they were) with an end among these nodes, oldest first."""
    query, past = queries.relations_touching, tuple[Any, ...]()
    if at is not None:
        query, past = queries.relations_touching_at, (at.revision, at.at)
    return await each(await tx.fetch(query, *_reach(tx, graph), node_ids, limit, *past), lambda row: Relation(**row))


async def relations_between(
    tx: Transaction, graph: Graph, node_ids: Sequence[UUID], *, limit: int, at: Moment | None
) -> list[Relation]:
    """Edges (`at`: as they were) with both ends among these nodes, oldest first."""
    query, past = queries.relations_between, tuple[Any, ...]()
    if at is not None:
        query, past = queries.relations_between_at, (graph.id, at.revision, at.at)
    return await each(await tx.fetch(query, tx.tenant_id, node_ids, limit, *past), lambda row: Relation(**row))


async def list_relations(
    tx: Transaction, graph: Graph, *, offset: int, limit: int | None, at: Moment | None
) -> list[Relation]:
    """Every edge of a graph (`at`: as it was) whose ends have names, oldest first."""
    query, past = queries.list_relations, tuple[Any, ...]()
    if at is not None:
        query, past = queries.list_relations_at, (at.revision, at.at)
    return await each(await tx.fetch(query, *_reach(tx, graph), offset, limit, *past), lambda row: Relation(**row))


async def insert_edges(tx: Transaction, revision: Revision, edges: Sequence[NewEdge]) -> dict[UUID, NewEdge]:
    """Make edges between nodes by id; those that were not there, by their ids."""
    made = {new_id(): edge for edge in edges}
    rows = [
        {
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
        for edge_id, edge in made.items()
    ]
    inserted = await tx.fetch(
        queries.insert_edges,
        tx.tenant_id,
        revision.graph.id,
        revision.number,
        revision.at,
        tx.caller.subject,
        rows,
    )
    return {row["id"]: made[row["id"]] for row in inserted}


async def find_edges(tx: Transaction, keys: Sequence[tuple[UUID, UUID, str]]) -> list[Edge]:
    """Live edges by (source, target, type)."""
    rows = await tx.fetch(
        queries.find_edges, tx.tenant_id, [k[0] for k in keys], [k[1] for k in keys], [k[2] for k in keys]
    )
    return [Edge(**row) for row in rows]


async def edges_by_id(tx: Transaction, graph: Graph, edge_ids: Sequence[UUID], *, at: Moment | None) -> list[Edge]:
    """Edges of a graph (`at`: as they were) by id, in the order asked for."""
    query, past = queries.edges_by_id, tuple[Any, ...]()
    if at is not None:
        query, past = queries.edges_by_id_at, (at.revision,)
    return [Edge(**row) for row in await tx.fetch(query, tx.tenant_id, graph.id, edge_ids, *past)]


async def rewrite_edges(
    tx: Transaction, revision: Revision, edges: Sequence[tuple[UUID, dict[str, Any], int | None]]
) -> list[UUID]:
    """Give live edges, by id, this metadata and ordinal, each edge once; those that had others."""
    rows = [
        {"id": edge_id, "former": new_id(), "metadata": metadata, "ordinal": ordinal}
        for edge_id, metadata, ordinal in edges
    ]
    rewritten = await tx.fetch(
        queries.rewrite_edges, tx.tenant_id, revision.graph.id, revision.number, revision.at, rows
    )
    return [row["id"] for row in rewritten]


async def remove_edges(tx: Transaction, revision: Revision, edge_ids: Sequence[UUID]) -> list[RemovedRelation]:
    """Take edges of the graph away, by id; those that were there."""
    rows = await tx.fetch(queries.remove_edges, tx.tenant_id, revision.graph.id, revision.number, edge_ids)
    return [RemovedRelation(**row) for row in rows]


async def edges_between(tx: Transaction, graph: Graph, from_node: UUID, to_node: UUID, type_: str | None) -> list[Edge]:
    """Live edges of a graph from one node to another."""
    rows = await tx.fetch(queries.edges_between, tx.tenant_id, graph.id, from_node, to_node, type_)
    return [Edge(**row) for row in rows]


async def edges_of(
    tx: Transaction,
    graph: Graph,
    node_ids: Sequence[UUID],
    walk: Walk,
    *,
    within: Sequence[UUID] | None,
    offset: int,
    limit: int,
) -> list[Edge]:
    """Edges at these nodes that a walk may follow, within these graphs (None: any)."""
    outgoing, incoming = walk.direction != Direction.INCOMING, walk.direction != Direction.OUTGOING
    query, past = queries.edges_of, tuple[Any, ...]()
    if walk.at is not None:
        query, past = queries.edges_of_at, (graph.id, walk.at.revision, walk.at.at)
    asked = tx.tenant_id, node_ids, outgoing, incoming, walk.types, within, limit, offset
    return await each(await tx.fetch(query, *asked, *past), lambda row: Edge(**row))


async def search_relations(
    tx: Transaction, graph: Graph, only: RelationFilter, *, offset: int, limit: int, at: Moment | None
) -> list[Relation]:
    """Edges of a graph (`at`: as it was) by the names of their ends and their type, oldest first."""
    query, past = queries.search_relations, tuple[Any, ...]()
    if at is not None:
        query, past = queries.search_relations_at, (at.revision, at.at)
    wanted = only.source, only.target, only.type
    return await each(
        await tx.fetch(query, *_reach(tx, graph), *wanted, offset, limit, *past), lambda row: Relation(**row)
    )


async def count_types(tx: Transaction, graph: Graph, *, limit: int, at: Moment | None) -> list[tuple[str, int]]:
    """How many edges of each type a graph has (`at`: as it was), most first."""
    query, past = queries.count_types, tuple[Any, ...]()
    if at is not None:
        query, past = queries.count_types_at, (at.revision, at.at)
    return [(row["type"], row["count"]) for row in await tx.fetch(query, tx.tenant_id, graph.id, limit, *past)]


async def count_named_types(
    tx: Transaction, graph: Graph, *, limit: int | None, at: Moment | None
) -> list[tuple[str, int]]:
    """How many edges between names of each type a graph has (`at`: as it was), most first."""
    query, past = queries.count_named_types, tuple[Any, ...]()
    if at is not None:
        query, past = queries.count_named_types_at, (at.revision, at.at)
    return [(row["type"], row["count"]) for row in await tx.fetch(query, *_reach(tx, graph), limit, *past)]


async def list_symlinks(tx: Transaction, graph: Graph, *, inbound: bool, offset: int, limit: int) -> list[Symlink]:
    """The edges of a graph that lead into others which the caller may use, or from there into it, oldest first."""
    rows = await tx.fetch(queries.list_symlinks, tx.tenant_id, graph.id, inbound, tx.caller.graphs, offset, limit)
    return [Symlink(**row) for row in rows]


def _reach(tx: Transaction, graph: Graph) -> tuple[Any, ...]:
    """A graph whose edges are told by the names of their ends, and the graphs into which they may lead (None: any)."""
    return tx.tenant_id, graph.id, tx.caller.graphs
