"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from recollect.graphs.model import Graph, Moment, Revision
from recollect.ids import new_id
from recollect.nodes.model import (
    Entity,
    NewEntity,
    NewFact,
    NodeFields,
    NodeHead,
    NodeRef,
    Observation,
    RememberedFact,
    Rewrite,
)
from recollect.passages.model import Memory
from recollect.platform.db import Transaction
from recollect.platform.sql import Queries

queries = Queries("recollect.nodes")


@dataclass(frozen=True, slots=True)
class InsertedEntity:
    """An entity that a write made; `promoted` from a placeholder, or new."""

    id: UUID
    name: str
    promoted: bool


@dataclass(frozen=True, slots=True)
class CreatedNode:
    """A node that a write made: its first version, or a later one where a placeholder became it."""

    id: UUID
    version_id: UUID
    version: int


@dataclass(frozen=True, slots=True)
class KnownAs:
    """An entity's name, in one text those that it had before a merge, and when it expires."""

    id: UUID
    name: str
    expires_at: datetime | None
    aliases: str | None


@dataclass(frozen=True, slots=True)
class RemovedNode:
    """What a removed node was, and how many observations left with it."""

    id: UUID
    placeholder: bool
    fact: bool
    observations: int


async def insert_entities(tx: Transaction, revision: Revision, entities: Sequence[NewEntity]) -> list[InsertedEntity]:
    """Make entities, each name once in the batch; those whose name was free, or a placeholder's."""
    rows = await tx.fetch(queries.insert_entities, *_stamp(tx, revision), [_entity_row(entity) for entity in entities])
    return [InsertedEntity(**row) for row in rows]


async def insert_placeholders(tx: Transaction, revision: Revision, names: Sequence[str]) -> list[NodeRef]:
    """Make placeholders for those of these names that no live node has."""
    ids, version_ids = [new_id() for _ in names], [new_id() for _ in names]
    rows = await tx.fetch(queries.insert_placeholders, *_stamp(tx, revision), ids, version_ids, names)
    return [NodeRef(row["id"], row["name"], placeholder=True) for row in rows]


async def insert_facts(tx: Transaction, revision: Revision, facts: Sequence[NewFact]) -> list[RememberedFact]:
    """Make facts, in order; a known one answers with its id."""
    rows = await tx.fetch(
        queries.insert_facts, *_stamp(tx, revision), [_fact_row(place, fact) for place, fact in enumerate(facts)]
    )
    return [RememberedFact(**row) for row in rows]


@dataclass(frozen=True, slots=True)
class Appended:
    """A head to keep as a version. `based_on` None: the version before; `actor` None: the caller."""

    node_id: UUID
    based_on: int | None = None
    beside_heads: bool = False
    actor: str | None = None


async def append_versions(tx: Transaction, revision: Revision, appended: Sequence[Appended]) -> None:
    """Keep the heads of these nodes, as they are now, as versions."""
    await tx.execute(
        queries.append_versions,
        tx.tenant_id,
        revision.number,
        tx.caller.subject,
        [version.node_id for version in appended],
        [version.based_on for version in appended],
        [version.beside_heads for version in appended],
        [version.actor for version in appended],
    )


async def read_heads(tx: Transaction, graph: Graph, node_ids: Sequence[UUID]) -> dict[UUID, NodeHead]:
    """Live nodes of a graph as they are now, by id."""
    rows = await tx.fetch(queries.read_heads, tx.tenant_id, graph.id, node_ids)
    return {row["id"]: _head(row) for row in rows}


async def expired_heads(tx: Transaction, graph: Graph, names: Sequence[str]) -> list[NodeHead]:
    """Nodes of these names that have expired."""
    return [_head(row) for row in await tx.fetch(queries.expired_heads, tx.tenant_id, graph.id, names)]


async def rewrite_heads(tx: Transaction, revision: Revision, rewrites: Sequence[Rewrite]) -> None:
    """Give live nodes a new version with other fields."""
    rows = [{"id": r.head.id, "version_id": new_id(), **asdict(r.fields)} for r in rewrites]
    await tx.execute(queries.rewrite_heads, tx.tenant_id, revision.graph.id, revision.at, rows)


async def insert_nodes(
    tx: Transaction, revision: Revision, nodes: Sequence[tuple[NodeFields, str | None]]
) -> list[CreatedNode]:
    """Make nodes with every field given, and by whom (None: the caller), in order; placeholders become them."""
    rows = [{"id": new_id(), "version_id": new_id(), "actor": actor, **asdict(fields)} for fields, actor in nodes]
    made = {row["version_id"]: row for row in await tx.fetch(queries.insert_nodes, *_stamp(tx, revision), rows)}
    return [CreatedNode(**made[row["version_id"]]) for row in rows]


async def memories_of_nodes(tx: Transaction, node_ids: Sequence[UUID]) -> list[Memory]:
    """The texts of live nodes that search knows."""
    rows = await tx.fetch(queries.memories_of_nodes, tx.tenant_id, node_ids)
    return [Memory(**row) for row in rows]


async def remove_nodes(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> list[RemovedNode]:
    """Delete live nodes with their observations."""
    version_ids = [new_id() for _ in node_ids]
    rows = await tx.fetch(queries.remove_nodes, tx.tenant_id, revision.number, revision.at, node_ids, version_ids)
    return [RemovedNode(**row) for row in rows]


async def find_named(tx: Transaction, graph: Graph, names: Sequence[str]) -> dict[str, NodeRef]:
    """Live nodes of these names, placeholders too, by name."""
    rows = await tx.fetch(queries.find_named, tx.tenant_id, graph.id, names)
    return {row["name"]: NodeRef(**row) for row in rows}


async def find_named_at(tx: Transaction, graph: Graph, names: Sequence[str], at: Moment) -> dict[str, NodeRef]:
    """Nodes of these names as they were, placeholders too, by name."""
    rows = await tx.fetch(queries.find_named_at, tx.tenant_id, graph.id, names, at.revision, at.at)
    return {row["name"]: NodeRef(**row) for row in rows}


async def insert_observations(
    tx: Transaction, revision: Revision, observations: Sequence[Observation], *, across_threads: bool
) -> list[Observation]:
    """Attach statements to nodes; those that the node did not have (`across_threads`: in any thread), in order."""
    rows = await tx.fetch(
        queries.insert_observations,
        *_stamp(tx, revision),
        [observation.id for observation in observations],
        [observation.node_id for observation in observations],
        [observation.content for observation in observations],
        [observation.thread for observation in observations],
        across_threads,
        [observation.said_at for observation in observations],
        [observation.expires_at for observation in observations],
    )
    inserted = {row["id"] for row in rows}
    return [observation for observation in observations if observation.id in inserted]


async def find_observations(
    tx: Transaction, revision: Revision, keys: Sequence[tuple[UUID, str]]
) -> dict[tuple[UUID, str, str | None], UUID]:
    """Observations live at this revision by (node, content, thread), for these nodes and contents."""
    rows = await tx.fetch(
        queries.find_observations, tx.tenant_id, [k[0] for k in keys], [k[1] for k in keys], revision.at
    )
    return {(row["node_id"], row["content"], row["thread"]): row["id"] for row in rows}


async def remove_observations(
    tx: Transaction, revision: Revision, keys: Sequence[tuple[UUID, str]]
) -> dict[UUID, UUID]:
    """Take statements away from nodes, by content; the nodes of those that were there."""
    rows = await tx.fetch(
        queries.remove_observations, tx.tenant_id, revision.number, [k[0] for k in keys], [k[1] for k in keys]
    )
    return {row["id"]: row["node_id"] for row in rows}


async def touch_nodes(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Note that what belongs to these nodes changed."""
    await tx.execute(queries.touch_nodes, tx.tenant_id, revision.at, node_ids)


async def open_entities(tx: Transaction, graph: Graph, names: Sequence[str]) -> list[Entity]:
    """Entities by name, in the order asked for; names that no entity has are left out."""
    return [_entity(row) for row in await tx.fetch(queries.open_entities, tx.tenant_id, graph.id, names)]


async def entities_by_id(tx: Transaction, node_ids: Sequence[UUID]) -> list[Entity]:
    """Entities by id, in the order asked for."""
    return [_entity(row) for row in await tx.fetch(queries.entities_by_id, tx.tenant_id, node_ids)]


async def open_entities_at(tx: Transaction, graph: Graph, names: Sequence[str], at: Moment) -> list[Entity]:
    """Entities by name as they were, in the order asked for."""
    rows = await tx.fetch(queries.open_entities_at, tx.tenant_id, graph.id, names, at.revision, at.at)
    return [_entity(row) for row in rows]


async def entities_by_id_at(tx: Transaction, graph: Graph, node_ids: Sequence[UUID], at: Moment) -> list[Entity]:
    """Entities by id as they were, in the order asked for."""
    rows = await tx.fetch(queries.entities_by_id_at, tx.tenant_id, graph.id, node_ids, at.revision, at.at)
    return [_entity(row) for row in rows]


async def list_entities_at(
    tx: Transaction, graph: Graph, at: Moment, *, kind: str | None, offset: int, limit: int | None
) -> list[Entity]:
    """Entities of a graph as they were, in the order in which they were made."""
    rows = await tx.fetch(queries.list_entities_at, tx.tenant_id, graph.id, kind, at.revision, at.at, offset, limit)
    return [_entity(row) for row in rows]


async def move_names(tx: Transaction, revision: Revision, node_id: UUID, sources: Sequence[UUID]) -> None:
    """Let a node be found by the names and aliases of these nodes."""
    await tx.execute(queries.move_names, tx.tenant_id, revision.graph.id, node_id, revision.number, sources)


async def backdate_node(tx: Transaction, node_id: UUID, created_at: datetime) -> None:
    """Let a node be at least as old as this."""
    await tx.execute(queries.backdate_node, tx.tenant_id, node_id, created_at)


async def list_observations(tx: Transaction, node_ids: Sequence[UUID]) -> list[Observation]:
    """Live observations of nodes, oldest first."""
    return [Observation(**row) for row in await tx.fetch(queries.list_observations, tx.tenant_id, node_ids)]


async def observations_by_id(tx: Transaction, graph: Graph, ids: Sequence[UUID]) -> dict[UUID, Observation]:
    """Live observations of a graph by id."""
    rows = await tx.fetch(queries.observations_by_id, tx.tenant_id, graph.id, ids)
    return {row["id"]: Observation(**row) for row in rows}


async def nodes_of_observations_at(tx: Transaction, graph: Graph, ids: Sequence[UUID], at: Moment) -> dict[UUID, UUID]:
    """What observations were about."""
    rows = await tx.fetch(queries.nodes_of_observations_at, tx.tenant_id, graph.id, ids, at.revision, at.at)
    return {row["id"]: row["node_id"] for row in rows}


async def remove_observations_by_id(tx: Transaction, revision: Revision, ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """Take observations of a graph away, by id; the nodes of those that were there."""
    rows = await tx.fetch(queries.remove_observations_by_id, tx.tenant_id, revision.graph.id, revision.number, ids)
    return {row["id"]: row["node_id"] for row in rows}


async def names_of(tx: Transaction, node_ids: Sequence[UUID]) -> dict[UUID, KnownAs]:
    """How live entities are known."""
    return {row["id"]: KnownAs(**row) for row in await tx.fetch(queries.names_of, tx.tenant_id, node_ids)}


async def labels_of(tx: Transaction, graph: Graph, node_ids: Sequence[UUID], at: Moment | None) -> dict[UUID, str]:
    """The names of nodes (`at`: as they were), placeholders too."""
    if at is None:
        rows = await tx.fetch(queries.labels_of, tx.tenant_id, node_ids)
    else:
        rows = await tx.fetch(queries.labels_at, tx.tenant_id, node_ids, graph.id, at.revision)
    return {row["id"]: row["name"] for row in rows}


async def find_homes(tx: Transaction, node_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """The graphs that live nodes are in, by the nodes' ids."""
    return {row["id"]: row["graph_id"] for row in await tx.fetch(queries.find_homes, tx.tenant_id, node_ids)}


async def count_kinds(tx: Transaction, graph: Graph, *, limit: int, at: Moment | None) -> list[tuple[str, int]]:
    """How many live entities of each kind a graph has (`at`: as it was), most first."""
    query, past = queries.count_kinds, tuple[Any, ...]()
    if at is not None:
        query, past = queries.count_kinds_at, (at.revision, at.at)
    return [(row["kind"], row["count"]) for row in await tx.fetch(query, tx.tenant_id, graph.id, limit, *past)]


async def find_children_of(tx: Transaction, node_ids: Sequence[UUID]) -> list[UUID]:
    """Live nodes whose parent is one of these."""
    return [row["id"] for row in await tx.fetch(queries.find_children_of, tx.tenant_id, node_ids)]


async def list_entity_ids(
    tx: Transaction, graph: Graph, *, kind: str | None, offset: int, limit: int | None
) -> list[UUID]:
    """Live entities in the order in which they were made."""
    rows = await tx.fetch(queries.list_entity_ids, tx.tenant_id, graph.id, kind, offset, limit)
    return [row["id"] for row in rows]


def _stamp(tx: Transaction, revision: Revision) -> tuple[Any, ...]:
    return tx.tenant_id, revision.graph.id, revision.number, revision.at, tx.caller.subject


def _head(row: asyncpg.Record) -> NodeHead:
    return NodeHead(**{**row, "tags": tuple(row["tags"])})


def _entity_row(entity: NewEntity) -> dict[str, Any]:
    return {
        "id": new_id(),
        "version_id": new_id(),
        "name": entity.name,
        "kind": entity.kind,
        "tags": entity.tags,
        "importance": entity.importance,
        "metadata": entity.metadata,
        "source": entity.source,
    }


def _fact_row(place: int, fact: NewFact) -> dict[str, Any]:
    return {
        "place": place,
        "id": new_id(),
        "version_id": new_id(),
        "kind": fact.kind,
        "content": fact.content,
        "tags": fact.tags,
        "importance": fact.importance,
        "metadata": fact.metadata,
        "source": fact.source,
        "thread": fact.thread,
        "said_at": fact.said_at,
        "ttl_days": fact.ttl_days,
        "expires_at": fact.expires_at,
        "status": fact.status,
    }


def _entity(row: asyncpg.Record) -> Entity:
    return Entity(**{**row, "observations": tuple(row["observations"]), "tags": tuple(row["tags"])})
