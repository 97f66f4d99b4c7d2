"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg

from recollect.accounts.quotas.model import Quotas
from recollect.graph.graphs.model import (
    Change,
    Graph,
    GraphHead,
    GraphPosition,
    KnownGraph,
    Moment,
    NewGraph,
    Revision,
    WrittenHead,
    spelled_id,
)
from recollect.ids import new_id
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import ExpectedGraph, Transaction

queries = Queries(__package__)


async def find_graph(tx: Transaction, name: str) -> KnownGraph | None:
    """The graph of that name, else of that id, or None."""
    row = await tx.fetchrow(queries.find_graph, name=name, id=spelled_id(name))
    return KnownGraph(_graph(row), ExpectedGraph(row["id"], row["fingerprint"])) if row else None


async def find_time_zone(tx: Transaction, name: str) -> str | None:
    """The time zone of the graph of that name or id, else that of the tenant."""
    return await tx.fetchval(queries.find_time_zone, name=name, id=spelled_id(name))


async def find_graph_name(tx: Transaction, graph_id: UUID) -> str | None:
    """The name that a graph has now; None if there is no such graph."""
    return await tx.fetchval(queries.find_graph_name, graph_id=graph_id)


async def find_graph_ids(tx: Transaction, names: Sequence[str]) -> dict[str, UUID]:
    """The ids of those of these graphs that exist, by the name or id in `names`."""
    rows = await tx.fetch(queries.find_graph_ids, names=names, ids=[spelled_id(name) for name in names])
    return {row["name"]: row["id"] for row in rows}


async def list_graphs(tx: Transaction, *, after: str, limit: int) -> list[Graph]:
    """Graphs that the caller may use, whose name comes after `after`, by name."""
    allowed = None if tx.caller.graphs is None else list(tx.caller.graphs)
    return [_graph(row) for row in await tx.fetch(queries.list_graphs, after=after, limit=limit, allowed=allowed)]


async def find_head(tx: Transaction, graph_id: UUID) -> GraphHead:
    """The head of a graph that exists."""
    row = await tx.fetchrow(queries.find_head, graph_id=graph_id)
    assert row is not None
    return GraphHead(**row)


async def find_position(tx: Transaction, graph_id: UUID) -> GraphPosition | None:
    """How far the server of this transaction is with a graph; None if it has no such graph."""
    return await tx.fetch_object(queries.find_position, GraphPosition, graph_id=graph_id)


async def find_live_head(tx: Transaction, graph_id: UUID) -> GraphHead:
    """The head of a graph that exists, without what has expired."""
    row = await tx.fetchrow(queries.find_live_head, graph_id=graph_id)
    assert row is not None
    return GraphHead(**row)


async def find_head_at(tx: Transaction, graph_id: UUID, at: Moment) -> GraphHead:
    """The head of a graph as it was."""
    row = await tx.fetchrow(queries.find_head_at, graph_id=graph_id, **at.parameters)
    assert row is not None
    return GraphHead(**row)


async def find_horizon(tx: Transaction, graph: Graph) -> Moment:
    """The oldest revision of a graph that can be read; revision 0: every one can be."""
    row = await tx.fetchrow(queries.find_horizon, graph_id=graph.id)
    assert row is not None
    return Moment(**row)


async def find_revision_at(tx: Transaction, graph: Graph, before: datetime) -> Moment | None:
    """The newest revision of a graph that was written by a time, with its own time; None before the first."""
    return await tx.fetch_object(queries.find_revision_at, Moment, graph_id=graph.id, before=before)


async def raise_horizon(tx: Transaction, graph: Graph, horizon: Moment) -> None:
    """Make this revision the oldest that can be read; never moves back."""
    await tx.execute(queries.raise_horizon, graph_id=graph.id, revision=horizon.revision, revision_time=horizon.at)


async def find_change(tx: Transaction, graph: Graph, revision: int) -> datetime | None:
    """When a revision was written; None if the graph has no such revision."""
    return await tx.fetchval(queries.find_change, graph_id=graph.id, revision=revision)


async def list_changes(tx: Transaction, graph_id: UUID, *, since: int, ids: int, limit: int) -> list[Change]:
    """The changes of a graph after a revision, oldest first, each with the first `ids` of its ids."""
    rows = await tx.fetch(queries.list_changes, graph_id=graph_id, since=since, max_ids=ids, limit=limit)
    return [Change(**{**row, "ids": tuple(row["ids"])}) for row in rows]


async def list_changes_back(
    tx: Transaction,
    graph: Graph,
    *,
    floor: int,
    until: int,
    actor: str | None,
    operation: str | None,
    ids: int,
    limit: int,
) -> list[Change]:
    """The changes after `floor` up to `until`, newest first, by an actor and of an operation (None: any)."""
    rows = await tx.fetch(
        queries.list_changes_back,
        graph_id=graph.id,
        floor=floor,
        until=until,
        actor=actor,
        operation=operation,
        max_ids=ids,
        limit=limit,
    )
    return [Change(**{**row, "ids": tuple(row["ids"])}) for row in rows]


async def list_actors(tx: Transaction, graph: Graph, *, floor: int, limit: int) -> list[tuple[str, str]]:
    """Pairs of an actor and an operation of the changes after `floor`."""
    rows = await tx.fetch(queries.list_actors, graph_id=graph.id, floor=floor, limit=limit)
    return [(row["actor"], row["operation"]) for row in rows]


async def find_times(tx: Transaction, graph: Graph, revisions: Sequence[int]) -> dict[int, datetime]:
    """When these revisions were written; revisions that the log does not have are left out."""
    rows = await tx.fetch(queries.find_times, graph_id=graph.id, revisions=revisions)
    return {row["revision"]: row["at"] for row in rows}


async def insert_graph(tx: Transaction, new: NewGraph) -> Graph | None:
    """Create a graph at revision 0; None if the name is taken."""
    row = await tx.fetchrow(
        queries.insert_graph,
        id=new_id(),
        name=new.name,
        conflict_policy=new.conflict_policy,
        kind_whitelist=new.kind_whitelist,
        metadata=new.metadata or {},
        time_zone=new.time_zone,
        subject=tx.caller.subject,
    )
    return _graph(row) if row else None


async def update_graph(tx: Transaction, graph: Graph) -> bool:
    """Store a graph's configuration; False if its name is another graph's."""
    try:
        updated = await tx.fetchval(
            queries.update_graph,
            graph_id=graph.id,
            name=graph.name,
            conflict_policy=graph.conflict_policy,
            kind_whitelist=graph.kind_whitelist,
            metadata=graph.metadata,
            time_zone=graph.time_zone,
        )
    except asyncpg.UniqueViolationError:  # Another call has just given that name to a graph: this transaction is over.
        return False
    return updated is not None


async def renew_head(tx: Transaction, graph: Graph) -> None:
    """Replace the row of a graph's head by another with the same values."""
    await tx.execute(queries.renew_head, graph_id=graph.id)


async def delete_nodes(tx: Transaction, graph: Graph, *, after: UUID, limit: int) -> UUID | None:
    """Delete nodes of a graph with all that belongs to them, in the order of their ids; the last of them, or None."""
    return await tx.fetchval(queries.delete_nodes, graph_id=graph.id, after=after, limit=limit)


async def delete_graph(tx: Transaction, graph: Graph) -> None:
    """Delete a graph that has no nodes, with its head and its log."""
    await tx.execute(queries.delete_graph, graph_id=graph.id)


async def lock_graph(tx: Transaction, name: str, operation: str) -> Revision | None:
    """Take the write lock of a graph, by name or id, and open its next revision; None if there is no such graph."""
    row = await tx.fetchrow(queries.lock_graph, name=name, id=spelled_id(name))
    if row is None:
        return None
    return Revision(
        _graph(row),
        row["number"],
        row["at"],
        tx.caller.subject,
        operation,
        row["stored_bytes"],
        time_zone=row["zone"],
        has_derived=row["has_derived"],
    )


async def record_revision(tx: Transaction, revision: Revision) -> WrittenHead:
    """Move the head to this revision and append its change."""
    counters = ("entities", "facts", "placeholders", "observations", "relations")
    row = await tx.fetchrow(
        queries.record_revision,
        **revision.parameters,
        **{counter: revision.deltas[counter] for counter in counters},
        actor=revision.actor,
        operation=revision.operation,
        ids=revision.ids,
        counts=dict(revision.counts),
    )
    assert row is not None
    quotas = Quotas(
        plan=row["plan"],
        graphs=row["graphs"],
        nodes_per_graph=row["nodes_per_graph"],
        observations=row["observations"],
        stored_bytes=row["stored_bytes"],
        embeddings_per_day=row["embeddings_per_day"],
    )
    return WrittenHead(row["nodes"], row["graph_bytes"], quotas)


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
        time_zone=row["time_zone"],
    )
