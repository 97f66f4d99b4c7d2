"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

import asyncpg

from recollect.graph.graphs.model import Graph
from recollect.graph.nodes.model import any_case
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction
from recollect.times import with_offset
from recollect.transfer.formats.writer import ExportedEdge, ExportedNode
from recollect.transfer.model import ExportSelection, Snapshot
from recollect.transfer.records import ACTIVE, End, EntityRecord, FactKey, FactRecord, ObservationRecord, RelationRecord

queries = Queries(__package__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ExportPage(Generic[T]):
    """A page of an export. `last`: the id after which the next page begins, None if this page is the last."""

    items: list[T]
    last: UUID | None


async def find_snapshot(tx: Transaction, graph_id: UUID) -> Snapshot:
    """The newest state of a graph."""
    row = await tx.fetchrow(queries.find_snapshot, graph_id=graph_id)
    assert row is not None
    return Snapshot(**row)


async def written_since(tx: Transaction, node_ids: Sequence[UUID], revision: int) -> tuple[set[UUID], set[UUID]]:
    """Those of these nodes that the caller has created since a revision, and those that it has written last."""
    rows = await tx.fetch(queries.written_since, node_ids=node_ids, since_revision=revision, subject=tx.caller.subject)
    return {row["id"] for row in rows if row["created"]}, {row["id"] for row in rows}


async def nodes_as_of(
    tx: Transaction,
    snapshot: Snapshot,
    selection: ExportSelection,
    *,
    named: bool,
    hidden: bool,
    after: UUID,
    limit: int,
    max_bytes: int,
) -> ExportPage[ExportedNode]:
    """Nodes of a state after the lineage `after`, oldest first: with names, placeholders too, or (not `named`) without.

    `hidden`: outdated and archived ones, too. At most `limit`, and about `max_bytes` of texts, metadata and
    observations.
    """
    rows = await tx.fetch_as(
        queries.nodes_as_of,
        _shown_node,
        **_state(snapshot, selection),
        after=after,
        limit=limit,
        max_bytes=max_bytes,
        named=named,
        hidden=hidden,
    )
    return _export_page(rows)


async def relations_as_of(
    tx: Transaction,
    snapshot: Snapshot,
    selection: ExportSelection,
    *,
    named: bool,
    hidden: bool,
    after: UUID,
    limit: int,
    max_bytes: int,
) -> ExportPage[ExportedEdge]:
    """Relations of a state after the relation `after`, oldest first. `named`: only those between nodes with names.

    `hidden`: also those of outdated and archived nodes. At most `limit`, and about `max_bytes` of metadata and of
    facts at their ends.
    """
    rows = await tx.fetch_as(
        queries.relations_as_of,
        _shown_edge,
        **_state(snapshot, selection),
        after=after,
        limit=limit,
        max_bytes=max_bytes,
        named=named,
        hidden=hidden,
    )
    return _export_page(rows)


async def find_facts(tx: Transaction, graph: Graph, ends: Sequence[FactKey]) -> dict[FactKey, UUID]:
    """The live facts of a graph that have these texts, threads and statuses."""
    rows = await tx.fetch(
        queries.find_facts,
        graph_id=graph.id,
        texts=[end.text for end in ends],
        threads=[end.thread for end in ends],
        statuses=[end.status for end in ends],
    )
    return {ends[row["position"] - 1]: row["id"] for row in rows}


async def added_since(tx: Transaction, graph: Graph, since: datetime, *, limit: int) -> list[EntityRecord | FactRecord]:
    """Records that identify the live entities and facts that changed after a time."""
    rows = await tx.fetch(queries.added_since, graph_id=graph.id, since=since, limit=limit)
    return [
        FactRecord(text=row["content"], thread=row["thread"], status=row["status"])
        if row["name"] is None
        else EntityRecord(name=row["name"], entity_type="", observations=[])
        for row in rows
    ]


def _state(snapshot: Snapshot, selection: ExportSelection) -> dict[str, Any]:
    """The parameters for the state and the selection, which both export queries have."""
    return {
        "graph_id": snapshot.graph_id,
        "as_of_revision": snapshot.revision,
        "as_of_time": snapshot.at,
        "kind": selection.kind,
        "tags": any_case(selection.tags),
        "since": selection.since,
        "until": selection.until,
    }


def _export_page(rows: Sequence[tuple[UUID, T | None]]) -> ExportPage[T]:
    """The page that these rows make: the id of each, and what is shown of it, if anything."""
    return ExportPage([item for _, item in rows if item is not None], rows[-1][0] if rows else None)


def _shown_node(row: asyncpg.Record) -> tuple[UUID, ExportedNode | None]:
    return row["id"], _exported_node(row) if row["shown"] else None


def _shown_edge(row: asyncpg.Record) -> tuple[UUID, ExportedEdge | None]:
    return row["id"], _exported_edge(row) if row["shown"] else None


def _exported_node(row: asyncpg.Record) -> ExportedNode:
    if row["placeholder"]:
        return ExportedNode(row["id"], row["name"], None)
    return ExportedNode(row["id"], row["name"], _fact(row) if row["name"] is None else _entity(row))


def _entity(row: asyncpg.Record) -> EntityRecord:
    return EntityRecord(
        name=row["name"],
        entity_type=row["kind"] or "",
        observations=row["contents"] or [],
        parent_id=row["parent"],
        aliases=row["aliases"],
        different_from=row["different_from"],
        said=_observation_records(
            row["threads"] or [],
            list(map(_said, row["said_ats"] or [], row["said_offsets"] or [])),
            row["expiries"] or [],
            row["attributes"] or [],
        ),
        text=row["content"] or None,
        **_common(row),
    )


def _fact(row: asyncpg.Record) -> FactRecord:
    return FactRecord(text=row["content"], kind=row["kind"] or "", **_common(row))


def _common(row: asyncpg.Record) -> dict[str, Any]:
    same = ("tags", "importance", "created_at", "summary", "metadata", "source", "thread", "freshness_at", "reason")
    return {name: row[name] for name in (*same, "ttl_days", "expires_at")} | {
        "status": ACTIVE if row["status"] == ACTIVE else row["status"],
        "last_modified": row["updated_at"],
        "at": _said(row["said_at"], row["said_offset"]),
    }


def _said(at: datetime | None, offset: int | None) -> datetime | None:
    """When something was said, by the clock of who said it."""
    return None if at is None else with_offset(at, offset)


def _observation_records(
    threads: list[str | None],
    ats: list[datetime | None],
    expiries: list[datetime | None],
    attributes: list[dict[str, Any] | None],
) -> list[ObservationRecord]:
    return [
        ObservationRecord(thread=thread, at=at, expires_at=expires, **(rest or {}))
        for thread, at, expires, rest in zip(threads, ats, expiries, attributes, strict=True)
    ]


def _exported_edge(row: asyncpg.Record) -> ExportedEdge:
    record = RelationRecord(
        from_=_end(row, "source"),
        to=_end(row, "target"),
        relation_type=row["type"],
        metadata=row["metadata"],
        ordinal=row["ordinal"],
        created_at=row["created_at"],
        last_modified=row["updated_at"],
    )
    return ExportedEdge(row["id"], row["from_node"], row["to_node"], record)


def _end(row: asyncpg.Record, end: str) -> End:
    name: str | None = row[end]
    if name is not None:
        return name
    status = ACTIVE if row[f"{end}_status"] == ACTIVE else row[f"{end}_status"]
    return FactKey(text=row[f"{end}_text"], thread=row[f"{end}_thread"], status=status)
