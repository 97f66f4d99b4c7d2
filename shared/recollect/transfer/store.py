"""One function per query of `queries.sql`."""

from uuid import UUID

from recollect.nodes.model import NewEntity, unique
from recollect.platform.db import Transaction
from recollect.platform.sql import Queries
from recollect.relations.model import NewRelation
from recollect.transfer.model import Page, Snapshot

queries = Queries("recollect.transfer")


async def find_snapshot(tx: Transaction, graph_id: UUID) -> Snapshot:
    """The newest state of a graph that exists."""
    row = await tx.fetchrow(queries.find_snapshot, tx.tenant_id, graph_id)
    assert row is not None
    return Snapshot(**row)


async def entities_as_of(tx: Transaction, snapshot: Snapshot, *, after: UUID, limit: int, max_bytes: int) -> Page:
    """Entities of that state after the lineage `after`, oldest first: at most `limit`, and about `max_bytes` of text.

    A statement that came from two threads is given once.
    """
    rows = await tx.fetch(
        queries.entities_as_of,
        tx.tenant_id,
        snapshot.graph_id,
        snapshot.revision,
        snapshot.at,
        after,
        limit,
        max_bytes,
    )
    entities = [NewEntity(row["name"], row["kind"], tuple(unique(row["observations"]))) for row in rows if row["name"]]
    return Page(entities, rows[-1]["id"] if rows else None)


async def relations_as_of(tx: Transaction, snapshot: Snapshot, *, after: UUID, limit: int) -> Page:
    """Relations of that state after the relation `after`, oldest first: at most `limit`."""
    rows = await tx.fetch(
        queries.relations_as_of, tx.tenant_id, snapshot.graph_id, snapshot.revision, snapshot.at, after, limit
    )
    edges = [NewRelation(row["source"], row["target"], row["type"]) for row in rows if row["source"] and row["target"]]
    return Page(edges, rows[-1]["id"] if rows else None)
