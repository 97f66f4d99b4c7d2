"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg

from recollect.graphs.model import Graph, GraphHead, Moment, NewGraph, Revision
from recollect.ids import new_id
from recollect.platform.db import Transaction
from recollect.platform.sql import Queries

queries = Queries("recollect.graphs")


async def find_graph(tx: Transaction, name: str) -> Graph | None:
    """The graph of that name, or None."""
    row = await tx.fetchrow(queries.find_graph, tx.tenant_id, name)
    return _graph(row) if row else None


async def find_graph_ids(tx: Transaction, names: Sequence[str]) -> dict[str, UUID]:
    """The ids of those graphs that exist, by name."""
    return {row["name"]: row["id"] for row in await tx.fetch(queries.find_graph_names, tx.tenant_id, names)}


async def list_graphs(tx: Transaction, *, after: str, limit: int) -> list[Graph]:
    """Graphs that the caller may use, whose name comes after `after`, by name."""
    allowed = None if tx.caller.graphs is None else list(tx.caller.graphs)
    return [_graph(row) for row in await tx.fetch(queries.list_graphs, tx.tenant_id, after, limit, allowed)]


async def find_head(tx: Transaction, graph_id: UUID) -> GraphHead:
    """The head of a graph that exists."""
    row = await tx.fetchrow(queries.find_head, tx.tenant_id, graph_id)
    assert row is not None
    return GraphHead(**row)


async def find_head_at(tx: Transaction, graph_id: UUID, at: Moment) -> GraphHead:
    """The head of a graph as it was."""
    row = await tx.fetchrow(queries.find_head_at, tx.tenant_id, graph_id, at.revision, at.at)
    assert row is not None
    return GraphHead(**row)


async def find_revision_at(tx: Transaction, graph: Graph, at: datetime) -> int:
    """The newest revision of a graph that was not later than a time; 0 before the first."""
    revision: int | None = await tx.fetchval(queries.find_revision_at, tx.tenant_id, graph.id, at)
    return revision or 0


async def find_change(tx: Transaction, graph: Graph, revision: int) -> datetime | None:
    """When a revision was written; None if the graph has no such revision."""
    at: datetime | None = await tx.fetchval(queries.find_change, tx.tenant_id, graph.id, revision)
    return at


async def insert_graph(tx: Transaction, new: NewGraph) -> Graph | None:
    """Make a graph at revision 0; None if the name is taken."""
    row = await tx.fetchrow(
        queries.insert_graph,
        tx.tenant_id,
        new_id(),
        new.name,
        new.conflict_policy,
        new.kind_whitelist,
        new.metadata or {},
        tx.caller.subject,
    )
    return _graph(row) if row else None


async def update_graph(tx: Transaction, graph: Graph) -> bool:
    """Store a graph's configuration; False if its name is another graph's."""
    updated = await tx.fetchval(
        queries.update_graph,
        tx.tenant_id,
        graph.id,
        graph.name,
        graph.conflict_policy,
        graph.kind_whitelist,
        graph.metadata,
    )
    return updated is not None


async def remove_head(tx: Transaction, graph: Graph) -> None:
    """Take a graph's head away, for another in its place."""
    await tx.execute(queries.remove_head, tx.tenant_id, graph.id)


async def insert_head(tx: Transaction, graph: Graph, head: GraphHead) -> None:
    """Put a graph's head in its place again."""
    await tx.execute(
        queries.insert_head,
        tx.tenant_id,
        graph.id,
        head.revision,
        head.at,
        head.entities,
        head.facts,
        head.placeholders,
        head.observations,
        head.relations,
    )


async def delete_nodes(tx: Transaction, graph: Graph, *, after: UUID, limit: int) -> UUID | None:
    """Delete nodes of a graph with all that is theirs, in the order of their ids; the last of them, or None."""
    last: UUID | None = await tx.fetchval(queries.delete_nodes, tx.tenant_id, graph.id, after, limit)
    return last


async def delete_graph(tx: Transaction, graph: Graph) -> None:
    """Delete a graph that has no nodes, with its head and its log."""
    await tx.execute(queries.delete_graph, tx.tenant_id, graph.id)


async def lock_graph(tx: Transaction, name: str, operation: str) -> Revision | None:
    """Take the write lock of a graph and open its next revision; None if there is no such graph."""
    row = await tx.fetchrow(queries.lock_graph, tx.tenant_id, name)
    if row is None:
        return None
    return Revision(_graph(row), row["number"], row["at"], actor=tx.caller.subject, operation=operation)


async def record_revision(tx: Transaction, revision: Revision) -> None:
    """Move the head to this revision and append its change."""
    counters = ("entities", "facts", "placeholders", "observations", "relations")
    await tx.execute(
        queries.record_revision,
        tx.tenant_id,
        revision.graph.id,
        revision.number,
        revision.at,
        *(revision.deltas[counter] for counter in counters),
        revision.actor,
        revision.operation,
        revision.ids,
        dict(revision.counts),
    )


async def raise_index_epoch(tx: Transaction, graph_ids: Sequence[UUID]) -> None:
    """Make every cached search of these graphs unreachable."""
    await tx.execute(queries.raise_index_epoch, tx.tenant_id, graph_ids)


def _graph(row: asyncpg.Record) -> Graph:
    whitelist = row["kind_whitelist"]
    return Graph(
        id=row["id"],
        name=row["name"],
        conflict_policy=row["conflict_policy"],
        kind_whitelist=None if whitelist is None else tuple(whitelist),
        metadata=row["metadata"],
        created_at=row["created_at"],
        created_by=row["created_by"],
    )
