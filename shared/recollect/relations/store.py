"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.graphs.model import Graph, Revision
from recollect.ids import new_id
from recollect.platform.db import Transaction
from recollect.platform.sql import Queries
from recollect.relations.model import NewRelation, Relation

queries = Queries("recollect.relations")


@dataclass(frozen=True, slots=True)
class RemovedRelation:
    """A removed edge and its ends."""

    id: UUID
    from_node: UUID
    to_node: UUID


async def insert_relations(
    tx: Transaction, revision: Revision, edges: Sequence[tuple[UUID, UUID, NewRelation]]
) -> list[tuple[UUID, NewRelation]]:
    """Make edges between (source, target) nodes; those that were not there, in order, with their ids."""
    made = [(new_id(), source, target, new) for source, target, new in edges]
    rows = [
        {"id": edge_id, "from_node": source, "to_node": target, "type": new.type, "metadata": new.metadata}
        for edge_id, source, target, new in made
    ]
    inserted = await tx.fetch(
        queries.insert_relations,
        tx.tenant_id,
        revision.graph.id,
        revision.number,
        revision.at,
        tx.caller.subject,
        rows,
    )
    ids = {row["id"] for row in inserted}
    return [(edge_id, new) for edge_id, _, _, new in made if edge_id in ids]


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


async def find_lonely_placeholders(tx: Transaction, node_ids: Sequence[UUID]) -> list[UUID]:
    """Those of these nodes that are placeholders without any edge."""
    return [row["id"] for row in await tx.fetch(queries.find_lonely_placeholders, tx.tenant_id, node_ids)]


async def relations_touching(tx: Transaction, node_ids: Sequence[UUID], *, limit: int) -> list[Relation]:
    """Edges with an end among these nodes, oldest first."""
    return [Relation(**row) for row in await tx.fetch(queries.relations_touching, tx.tenant_id, node_ids, limit)]


async def relations_between(tx: Transaction, node_ids: Sequence[UUID], *, limit: int) -> list[Relation]:
    """Edges with both ends among these nodes, oldest first."""
    return [Relation(**row) for row in await tx.fetch(queries.relations_between, tx.tenant_id, node_ids, limit)]


async def list_relations(tx: Transaction, graph: Graph, *, offset: int, limit: int | None) -> list[Relation]:
    """Every edge of a graph whose ends have names, oldest first."""
    rows = await tx.fetch(queries.list_relations, tx.tenant_id, graph.id, offset, limit)
    return [Relation(**row) for row in rows]
