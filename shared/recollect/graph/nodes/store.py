"""One function per query of `queries.sql`."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from recollect.fairness.computing import batches
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes.model import (
    FIELD_NAMES,
    NewFact,
    NodeFields,
    NodeHead,
    NodeOutline,
    NodeRef,
    RememberedFact,
    RestoredNode,
    Rewrite,
)
from recollect.graph.passages.model import IndexedText
from recollect.ids import new_id
from recollect.postgres.json_rows import json_rows, within_bytes
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction
from recollect.words.analysis import LABELS_VERSION, label_vector

queries = Queries(__package__)

MAX_WRITTEN = 100
"""The maximum number of nodes that one statement writes: other calls wait for a core until it ends."""

MAX_LOOKED_UP = 2_000
"""The maximum number of ids that one statement looks up: they are encoded on the event loop in one go."""

MAX_STREAMED = 200
"""The number of texts that one round trip fetches: a node may have very many."""


@dataclass(frozen=True, slots=True)
class InsertedNode:
    """A node that a write created. Its version is not the first where a placeholder became the node."""

    id: UUID
    version_id: UUID
    version: int


@dataclass(frozen=True, slots=True)
class RemovedNode:
    """A removed node, and the number of observations that were removed with it."""

    id: UUID
    placeholder: bool
    fact: bool
    observations: int


async def insert_placeholders(tx: Transaction, revision: Revision, names: Sequence[str]) -> list[NodeRef]:
    """Create a placeholder for each of these names that no live node has; return the new placeholders."""
    ids, version_ids = [new_id() for _ in names], [new_id() for _ in names]
    rows = await tx.fetch(
        queries.insert_placeholders, **_stamp(tx, revision), ids=ids, version_ids=version_ids, names=names
    )
    return [NodeRef(row["id"], row["name"], placeholder=True) for row in rows]


async def insert_facts(tx: Transaction, revision: Revision, facts: Sequence[NewFact]) -> list[RememberedFact]:
    """Create facts; return them in order, a fact that the graph had already with its older id."""
    new_facts = await json_rows(enumerate(facts), lambda fact: _fact_row(*fact))
    return await tx.fetch_objects(queries.insert_facts, RememberedFact, **_stamp(tx, revision), facts=new_facts)


@dataclass(frozen=True, slots=True)
class AppendedVersion:
    """A head to append as a version. `based_on` None is the version before, `actor` None is the caller."""

    node_id: UUID
    based_on: int | None = None
    sibling_heads: bool = False
    actor: str | None = None


async def append_versions(tx: Transaction, revision: Revision, appended: Sequence[AppendedVersion]) -> set[UUID]:
    """Append the heads of these nodes as versions; return the ids of nodes that have siblings, or had until now."""
    divided = set[UUID]()
    for batch in tx.batches(appended, MAX_WRITTEN):
        rows = await tx.fetch(
            queries.append_versions,
            revision=revision.number,
            subject=tx.caller.subject,
            node_ids=[version.node_id for version in batch],
            based_on=[version.based_on for version in batch],
            sibling_heads=[version.sibling_heads for version in batch],
            actors=[version.actor for version in batch],
        )
        divided.update(row["node_id"] for row in rows)
    return divided


async def read_heads(
    tx: Transaction, graph: Graph, node_ids: Sequence[UUID], *, expired_too: bool
) -> dict[UUID, NodeHead]:
    """The live nodes of a graph among these ids, by id; `expired_too`: those that have expired, too."""
    heads = await tx.fetch_as(queries.read_heads, _head, graph_id=graph.id, node_ids=node_ids, expired_too=expired_too)
    return {head.id: head for head in heads}


async def measure_nodes(tx: Transaction, graph: Graph, node_ids: Sequence[UUID]) -> dict[UUID, int]:
    """The bytes of the texts, tags and metadata of each of these nodes that lives."""
    sizes: dict[UUID, int] = {}
    for batch in batches(node_ids, MAX_LOOKED_UP):
        rows = await tx.fetch(queries.measure_nodes, graph_id=graph.id, node_ids=batch)
        sizes |= {row["id"]: row["bytes"] for row in rows}
    return sizes


async def find_named_heads(tx: Transaction, graph: Graph, names: Sequence[str]) -> dict[str, NodeHead]:
    """The entities that have these names, by the names that were asked for."""
    named = await tx.fetch_as(
        queries.find_named_heads, lambda row: (row["wanted"], _head(row)), graph_id=graph.id, names=names
    )
    return dict(named)


async def expired_heads(tx: Transaction, graph: Graph, names: Sequence[str]) -> list[NodeHead]:
    """The expired nodes that have these names."""
    return [_head(row) for row in await tx.fetch(queries.expired_heads, graph_id=graph.id, names=names)]


async def list_expired(tx: Transaction, graph: Graph, *, limit: int) -> list[NodeHead]:
    """The expired nodes of a graph that are not archived yet, longest expired first."""
    return [_head(row) for row in await tx.fetch(queries.list_expired, graph_id=graph.id, limit=limit)]


async def rewrite_heads(tx: Transaction, revision: Revision, rewrites: Sequence[Rewrite]) -> set[UUID]:
    """Give live nodes other fields by new versions; return the ids of nodes that have siblings, or had until now."""
    divided = set[UUID]()
    for batch in tx.batches(rewrites, MAX_WRITTEN):
        for heads in within_bytes(await json_rows(batch, _rewrite_row)):
            rows = await tx.fetch(queries.rewrite_heads, **_stamp(tx, revision), heads=heads)
            divided.update(row["node_id"] for row in rows)
    return divided


async def release_names(tx: Transaction, graph: Graph, node_ids: Sequence[UUID]) -> None:
    """Set the names of nodes to null, before they get others."""
    await tx.execute(queries.release_names, graph_id=graph.id, node_ids=node_ids)


async def restore_heads(tx: Transaction, revision: Revision, restored: Sequence[RestoredNode]) -> None:
    """Give lineages, deleted ones too, their former fields and a new version number."""
    for batch in tx.batches(restored, MAX_WRITTEN):
        for heads in within_bytes(await json_rows(batch, _restored_row)):
            await tx.execute(queries.restore_heads, graph_id=revision.graph.id, revision_time=revision.at, heads=heads)


async def restore_siblings(tx: Transaction, revision: Revision, version_ids: Sequence[UUID]) -> None:
    """Make versions heads of their lineages again, by new versions, in order of the old numbers."""
    await tx.execute(
        queries.restore_siblings,
        revision=revision.number,
        revision_time=revision.at,
        version_ids=version_ids,
        new_version_ids=[new_id() for _ in version_ids],
    )


async def insert_nodes(
    tx: Transaction, revision: Revision, nodes: Sequence[tuple[NodeFields, str | None, datetime | None]]
) -> list[InsertedNode]:
    """Create nodes, each given as its fields, its author (None: the caller) and its creation time (None: now).

    Returns them in order. A placeholder of a node's name becomes the node.
    """

    version_ids = [new_id() for _ in nodes]
    inserted = dict[UUID, asyncpg.Record]()
    for batch in tx.batches(zip(version_ids, nodes, strict=True), MAX_WRITTEN):
        for rows in within_bytes(await json_rows(batch, _new_row)):
            records = await tx.fetch(queries.insert_nodes, **_stamp(tx, revision), nodes=rows)
            inserted.update((record["version_id"], record) for record in records)
    return [InsertedNode(**inserted[version_id]) for version_id in version_ids]


async def list_node_ids(tx: Transaction, graph: Graph, *, after: UUID, limit: int) -> list[UUID]:
    """The ids of live nodes of a graph, in order; no placeholders."""
    return [row["id"] for row in await tx.fetch(queries.list_node_ids, graph_id=graph.id, after=after, limit=limit)]


async def count_observations(tx: Transaction, node_ids: Sequence[UUID]) -> dict[UUID, int]:
    """How many live observations each of these nodes has."""
    return {row["id"]: row["count"] for row in await tx.fetch(queries.count_observations, node_ids=node_ids)}


async def memories_of_nodes(
    tx: Transaction, node_ids: Sequence[UUID], *, with_observations: bool = True
) -> AsyncIterator[IndexedText]:
    """The texts of live nodes that search finds, oldest first; MAX_STREAMED are held at a time."""
    rows = tx.stream(
        queries.memories_of_nodes, prefetch=MAX_STREAMED, node_ids=node_ids, with_observations=with_observations
    )
    async for row in rows:
        yield IndexedText(**row)


async def remove_nodes(
    tx: Transaction, revision: Revision, node_ids: Sequence[UUID], reason: str | None
) -> list[RemovedNode]:
    """Delete live nodes of the graph with their observations, for this reason, if any."""
    removed: list[RemovedNode] = []
    for batch in tx.batches(node_ids, MAX_WRITTEN):
        version_ids = [new_id() for _ in batch]
        rows = await tx.fetch(
            queries.remove_nodes, **revision.parameters, node_ids=batch, version_ids=version_ids, reason=reason
        )
        removed += [RemovedNode(**row) for row in rows]
    return removed


async def find_named(view: GraphView, names: Sequence[str]) -> dict[str, NodeRef]:
    """Live nodes of these names, placeholders too, by the names that were asked for."""
    return _refs(await view.fetch(queries.find_named, names=names))


async def find_named_exactly(tx: Transaction, graph: Graph, names: Sequence[str]) -> dict[str, NodeRef]:
    """Live nodes that have names in exactly this form, placeholders too, by name."""
    return _refs(await tx.fetch(queries.find_named_exactly, graph_id=graph.id, names=names))


async def find_forms(tx: Transaction, graph: Graph, names: Sequence[str]) -> dict[str, list[NodeRef]]:
    """Live nodes of these names in all their forms, placeholders too, oldest first, by the names asked for."""
    found: dict[str, list[NodeRef]] = {}
    for row in await tx.fetch(queries.find_forms, graph_id=graph.id, names=names):
        found.setdefault(row["wanted"], []).append(_ref(row))
    return found


async def find_other_forms(tx: Transaction, graph: Graph, names: Sequence[str], *, before: int) -> dict[str, str]:
    """The names that were stored before a revision and are other forms of these names, by the latter."""
    rows = await tx.fetch(queries.find_other_forms, graph_id=graph.id, before=before, names=names)
    return {row["wanted"]: row["name"] for row in rows}


async def touch_nodes(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Set the update time of nodes."""
    await tx.execute(queries.touch_nodes, revision_time=revision.at, node_ids=node_ids)


async def names_of(view: GraphView, node_ids: Sequence[UUID]) -> dict[UUID, str]:
    """The names of nodes by id, placeholders too."""
    names: dict[UUID, str] = {}
    for batch in batches(node_ids, MAX_LOOKED_UP):
        names |= {row["id"]: row["name"] for row in await view.fetch(queries.names_of, node_ids=batch)}
    return names


async def outlines_of(view: GraphView, node_ids: Sequence[UUID], *, excerpt: int) -> dict[UUID, NodeOutline]:
    """The outlines of these nodes, by id."""
    found: dict[UUID, NodeOutline] = {}
    for batch in batches(node_ids, MAX_LOOKED_UP):
        rows = await view.fetch(queries.outlines_of, node_ids=batch, excerpt=excerpt)
        found |= {row["id"]: NodeOutline(**row) for row in rows}
    return found


async def find_homes(tx: Transaction, node_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """The graph ids of live nodes, by node id."""
    return {row["id"]: row["graph_id"] for row in await tx.fetch(queries.find_homes, node_ids=node_ids)}


async def list_other_labels(tx: Transaction, *, limit: int) -> list[tuple[UUID, str | None]]:
    """The oldest nodes of the tenant whose labels a former analysis of words found, locked: id and words."""
    return await tx.fetch_as(
        queries.list_other_labels,
        lambda row: (row["id"], label_vector(row["summary"], row["tags"])),
        labels_version=LABELS_VERSION,
        limit=limit,
    )


async def replace_labels(tx: Transaction, ids: Sequence[UUID], labels: Sequence[str | None]) -> int:
    """Store the words of nodes' labels; return the number of nodes."""
    rows = await tx.fetch(queries.replace_labels, ids=ids, labels=labels, labels_version=LABELS_VERSION)
    return len(rows)


def _stamp(tx: Transaction, revision: Revision) -> dict[str, Any]:
    return {**revision.parameters, "subject": tx.caller.subject}


def _columns(fields: NodeFields) -> dict[str, Any]:
    own = {name: getattr(fields, name) for name in FIELD_NAMES}
    return {**own, "labels": label_vector(fields.summary, fields.tags), "labels_version": LABELS_VERSION}


def _refs(rows: Sequence[asyncpg.Record]) -> dict[str, NodeRef]:
    return {row["wanted"]: _ref(row) for row in rows}


def _ref(row: asyncpg.Record) -> NodeRef:
    return NodeRef(row["id"], row["name"], row["placeholder"], row["status"])


def _head(row: asyncpg.Record) -> NodeHead:
    columns = {name: value for name, value in row.items() if name != "wanted"}
    return NodeHead(**{**columns, "tags": tuple(row["tags"])})


def _new_row(node: tuple[UUID, tuple[NodeFields, str | None, datetime | None]]) -> dict[str, Any]:
    version_id, (fields, actor, began_at) = node
    return {"id": new_id(), "version_id": version_id, "actor": actor, "began_at": began_at, **_columns(fields)}


def _restored_row(restored: RestoredNode) -> dict[str, Any]:
    return {
        "id": restored.id,
        "version_id": new_id(),
        "began_at": restored.began_at,
        "below": len(restored.siblings),
        **_columns(restored.fields),
    }


def _rewrite_row(rewrite: Rewrite) -> dict[str, Any]:
    return {
        "id": rewrite.head.id,
        "version_id": new_id(),
        "based_on": rewrite.based_on,
        "sibling_heads": rewrite.sibling_heads,
        "actor": rewrite.actor,
        **_columns(rewrite.fields),
    }


def _fact_row(position: int, fact: NewFact) -> dict[str, Any]:
    return {
        "position": position,
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
        "said_offset": fact.said_offset,
        "labels": label_vector(None, fact.tags),
        "labels_version": LABELS_VERSION,
    }
