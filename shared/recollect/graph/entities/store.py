"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from recollect.graph.entities.model import Entity, NewEntity, ObservationsSize, SimilarName
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.ids import new_id
from recollect.postgres.json_rows import json_rows
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction
from recollect.words.analysis import LABELS_VERSION, label_vector

queries = Queries(__package__)


@dataclass(frozen=True, slots=True)
class InsertedEntity:
    """An entity that a write created; `promoted`: from a placeholder, whose form of the name it keeps."""

    id: UUID
    name: str
    promoted: bool


async def insert_entities(
    tx: Transaction, revision: Revision, entities: Sequence[NewEntity]
) -> dict[str, InsertedEntity]:
    """Create entities, each name once in the batch; return those whose name was free, or a placeholder's.

    By the name that the batch has.
    """
    names = {new_id(): entity.name for entity in entities}
    encoded = await json_rows(zip(names, entities, strict=True), lambda version: _row(*version))
    rows = await tx.fetch(queries.insert_entities, **revision.parameters, subject=tx.caller.subject, entities=encoded)
    return {names[row["version_id"]]: InsertedEntity(row["id"], row["name"], row["promoted"]) for row in rows}


async def find_similar_names(
    tx: Transaction, graph: Graph, entities: Sequence[tuple[UUID, str]], *, limit: int
) -> dict[UUID, list[SimilarName]]:
    """Entities whose names look like those of these entities (ids and names), up to `limit` for each, by its id."""
    ids, names = [node_id for node_id, _ in entities], [name for _, name in entities]
    rows = await tx.fetch(queries.find_similar_names, graph_id=graph.id, ids=ids, names=names, limit=limit)
    found: dict[UUID, list[SimilarName]] = {}
    for row in rows:
        found.setdefault(row["like_id"], []).append(SimilarName(row["id"], row["name"]))
    return found


async def open_entities(view: GraphView, names: Sequence[str], *, max_bytes: int | None) -> tuple[list[Entity], bool]:
    """Entities by name, in the order of `names`; names that no entity has are left out.

    They come without observations, and with False, where these exceed `max_bytes` in all.
    """
    return _with_wholeness(await view.fetch_as(queries.open_entities, _entity, names=names, max_bytes=max_bytes))


async def entities_by_id(
    view: GraphView, node_ids: Sequence[UUID], *, max_bytes: int | None
) -> tuple[list[Entity], bool]:
    """Entities in the order of `node_ids`; without observations, and with False, where these exceed `max_bytes`."""
    return _with_wholeness(await view.fetch_as(queries.entities_by_id, _entity, node_ids=node_ids, max_bytes=max_bytes))


async def measure_observations(view: GraphView, node_ids: Sequence[UUID]) -> dict[UUID, ObservationsSize]:
    """How many active observations each of these nodes has, and their size."""
    rows = await view.fetch(queries.measure_observations, node_ids=node_ids)
    return {row["node_id"]: ObservationsSize(row["count"], row["bytes"]) for row in rows}


async def newest_observations(
    view: GraphView, node_ids: Sequence[UUID], *, skipped: int, max_bytes: int
) -> dict[UUID, tuple[str, ...]]:
    """The newest active observations of each node, oldest first, within `max_bytes` of each, after `skipped` newer."""
    rows = await view.fetch(queries.newest_observations, node_ids=node_ids, skipped=skipped, max_bytes=max_bytes)
    return {row["node_id"]: tuple(row["observations"]) for row in rows}


async def list_entity_ids(
    view: GraphView, *, kind: str | None, offset: int, limit: int | None, archived: bool
) -> list[UUID]:
    """Live entities in order of creation."""
    return await view.fetch_column(
        queries.list_entity_ids, "id", kind=kind, offset=offset, limit=limit, archived=archived
    )


async def count_kinds(view: GraphView, *, limit: int) -> list[tuple[str, int]]:
    """How many live entities there are of each kind, most frequent first."""
    return [(row["kind"], row["count"]) for row in await view.fetch(queries.count_kinds, limit=limit)]


async def find_children_of(tx: Transaction, node_ids: Sequence[UUID], *, limit: int | None) -> list[UUID]:
    """Live nodes whose parent is one of these."""
    return [row["id"] for row in await tx.fetch(queries.find_children_of, node_ids=node_ids, limit=limit)]


async def backdate_node(tx: Transaction, node_id: UUID, created_at: datetime) -> None:
    """Move the creation time of a node back to this time, if it is later."""
    await tx.execute(queries.backdate_node, node_id=node_id, created_at=created_at)


async def mark_compared(tx: Transaction, graph: Graph, node_ids: Sequence[UUID], at: datetime) -> None:
    """Record up to when entities were compared with all others."""
    await tx.execute(queries.mark_compared, graph_id=graph.id, compared_at=at, node_ids=node_ids)


def _row(version_id: UUID, entity: NewEntity) -> dict[str, Any]:
    return {
        "id": new_id(),
        "version_id": version_id,
        "name": entity.name,
        "kind": entity.kind,
        "tags": entity.tags,
        "importance": entity.importance,
        "metadata": entity.metadata,
        "source": entity.source,
        "content": entity.content,
        "labels": label_vector(None, entity.tags),
        "labels_version": LABELS_VERSION,
    }


def _with_wholeness(found: Sequence[tuple[Entity, bool]]) -> tuple[list[Entity], bool]:
    """Entities, and whether their observations were read: all of them, or none."""
    return [entity for entity, _ in found], all(is_whole for _, is_whole in found)


def _entity(row: asyncpg.Record) -> tuple[Entity, bool]:
    """An entity, and whether its observations were read."""
    entity = Entity(**{**row, "observations": tuple(row["observations"] or ()), "tags": tuple(row["tags"])})
    return entity, row["observations"] is not None
