"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from recollect.graph.entities.model import Entity, NewEntity
from recollect.graph.graphs.model import Graph, Moment, Revision
from recollect.ids import new_id
from recollect.platform.computing import each
from recollect.platform.db import Transaction
from recollect.platform.sql import Queries

queries = Queries(__package__)


@dataclass(frozen=True, slots=True)
class InsertedEntity:
    """An entity that a write made; `promoted` from a placeholder, or new."""

    id: UUID
    name: str
    promoted: bool


async def insert_entities(tx: Transaction, revision: Revision, entities: Sequence[NewEntity]) -> list[InsertedEntity]:
    """Make entities, each name once in the batch; those whose name was free, or a placeholder's."""
    rows = await tx.fetch(
        queries.insert_entities,
        tx.tenant_id,
        revision.graph.id,
        revision.number,
        revision.at,
        tx.caller.subject,
        [_row(entity) for entity in entities],
    )
    return [InsertedEntity(**row) for row in rows]


async def count_bytes(tx: Transaction, node_ids: Sequence[UUID], at: Moment | None) -> int:
    """How many bytes of text these entities say (`at`: said)."""
    revision, time = (None, None) if at is None else (at.revision, at.at)
    count: int = await tx.fetchval(queries.count_bytes, tx.tenant_id, node_ids, revision, time)
    return count


async def count_bytes_of_names(tx: Transaction, graph: Graph, names: Sequence[str]) -> int:
    """How many bytes of text the entities of these names say."""
    count: int = await tx.fetchval(queries.count_bytes_of_names, tx.tenant_id, graph.id, names)
    return count


async def open_entities(tx: Transaction, graph: Graph, names: Sequence[str]) -> list[Entity]:
    """Entities by name, in the order asked for; names that no entity has are left out."""
    return await each(await tx.fetch(queries.open_entities, tx.tenant_id, graph.id, names), _entity)


async def open_entities_at(tx: Transaction, graph: Graph, names: Sequence[str], at: Moment) -> list[Entity]:
    """Entities by name as they were, in the order asked for."""
    rows = await tx.fetch(queries.open_entities_at, tx.tenant_id, graph.id, names, at.revision, at.at)
    return await each(rows, _entity)


async def entities_by_id(tx: Transaction, node_ids: Sequence[UUID]) -> list[Entity]:
    """Entities by id, in the order asked for."""
    return await each(await tx.fetch(queries.entities_by_id, tx.tenant_id, node_ids), _entity)


async def entities_by_id_at(tx: Transaction, graph: Graph, node_ids: Sequence[UUID], at: Moment) -> list[Entity]:
    """Entities by id as they were, in the order asked for."""
    rows = await tx.fetch(queries.entities_by_id_at, tx.tenant_id, graph.id, node_ids, at.revision, at.at)
    return await each(rows, _entity)


async def list_entity_ids(
    tx: Transaction, graph: Graph, *, kind: str | None, offset: int, limit: int | None, archived: bool
) -> list[UUID]:
    """Live entities in the order in which they were made."""
    rows = await tx.fetch(queries.list_entity_ids, tx.tenant_id, graph.id, kind, offset, limit, archived)
    return [row["id"] for row in rows]


async def list_entities_at(
    tx: Transaction, graph: Graph, at: Moment, *, kind: str | None, offset: int, limit: int | None, archived: bool
) -> list[Entity]:
    """Entities of a graph as they were, in the order in which they were made."""
    past = (at.revision, at.at)
    rows = await tx.fetch(queries.list_entities_at, tx.tenant_id, graph.id, kind, *past, offset, limit, archived)
    return await each(rows, _entity)


async def count_kinds(tx: Transaction, graph: Graph, *, limit: int, at: Moment | None) -> list[tuple[str, int]]:
    """How many live entities of each kind a graph has (`at`: as it was), most first."""
    query, past = queries.count_kinds, tuple[Any, ...]()
    if at is not None:
        query, past = queries.count_kinds_at, (at.revision, at.at)
    return [(row["kind"], row["count"]) for row in await tx.fetch(query, tx.tenant_id, graph.id, limit, *past)]


async def find_children_of(tx: Transaction, node_ids: Sequence[UUID]) -> list[UUID]:
    """Live nodes whose parent is one of these."""
    return [row["id"] for row in await tx.fetch(queries.find_children_of, tx.tenant_id, node_ids)]


async def backdate_node(tx: Transaction, node_id: UUID, created_at: datetime) -> None:
    """Let a node be at least as old as this."""
    await tx.execute(queries.backdate_node, tx.tenant_id, node_id, created_at)


async def mark_compared(tx: Transaction, graph: Graph, node_ids: Sequence[UUID], at: datetime) -> None:
    """Note up to when entities were compared with all others."""
    await tx.execute(queries.mark_compared, tx.tenant_id, graph.id, at, node_ids)


def _row(entity: NewEntity) -> dict[str, Any]:
    return {
        "id": new_id(),
        "version_id": new_id(),
        "name": entity.name,
        "kind": entity.kind,
        "tags": entity.tags,
        "importance": entity.importance,
        "metadata": entity.metadata,
        "source": entity.source,
        "content": entity.content,
    }


def _entity(row: asyncpg.Record) -> Entity:
    return Entity(**{**row, "observations": tuple(row["observations"]), "tags": tuple(row["tags"])})
