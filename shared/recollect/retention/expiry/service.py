"""Use cases of expiry: archive what has expired, and purge it later. Reads leave it out as soon as it has expired.

If both are given, `expires_at` wins over `ttl_days`: the graph-memory contract says so, and a number of days may be a
default, while a moment is always intended.
"""

from datetime import datetime, timedelta
from uuid import UUID

from recollect.accounts.tenants import service as tenants
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import ARCHIVE_EXPIRED
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import service as nodes
from recollect.graph.observations import service as observations
from recollect.graph.relations import service as relations
from recollect.postgres.database import Database
from recollect.postgres.transactions import Transaction
from recollect.retention.expiry import store
from recollect.retention.expiry.model import ExpiringMemory, ExpiryStep

PURGE_EXPIRED = "purge_expired"
"""The name of the operation in the log of a graph."""

MAX_STEP = 1_000
"""Nodes, and as many observations, that one step handles, at most."""


async def tenants_with_expired(db: Database) -> list[UUID]:
    """Active tenants that have expired nodes or observations to archive."""
    async with db.system() as session:
        return await store.tenants_with_expired(session)


async def graphs_with_expired(tx: Transaction) -> list[UUID]:
    """The tenant's graphs that have something expired to archive, up to MAX_GRAPHS."""
    return await store.graphs_with_expired(tx, limit=graphs.MAX_GRAPHS)


async def list_expiring(
    view: GraphView, *, within: timedelta, after: tuple[datetime, UUID] | None = None, limit: int
) -> list[ExpiringMemory]:
    """Active memories that expire within this time, soonest first.

    `after`: the time and the id of the last one of the page before.
    """
    return await store.find_expiring(view, within=within, after=after, limit=limit) if view.is_there else []


async def tenants_with_purgeable(db: Database, *, retention: timedelta) -> list[UUID]:
    """Active tenants with archived nodes that expired longer ago than their retention (default: `retention`)."""
    async with db.system() as session:
        return await store.tenants_with_purgeable(session, retention=retention)


async def graphs_with_purgeable(tx: Transaction, *, retention: timedelta) -> list[UUID]:
    """The tenant's graphs that have something to purge, up to MAX_GRAPHS.

    `retention`: for tenants that have not set their own.
    """
    retention = await tenants.retention_of(tx, retention)
    return await store.graphs_with_purgeable(tx, retention=retention, limit=graphs.MAX_GRAPHS)


async def archive_expired(tx: Transaction, graph_id: UUID, *, limit: int = MAX_STEP) -> ExpiryStep:
    """Archive the expired nodes of a graph and remove its expired observations, as one revision: one step.

    Up to `limit` of each. The step holds the graph's lock from the search to the commit, so that of several workers one
    finds them. Raises NotFound for a graph that was deleted, Unavailable if its configuration changes at the same time.
    """
    async with graphs.write_graph_of(tx, graph_id, ARCHIVE_EXPIRED) as revision:
        archived = await nodes.archive_expired(tx, revision, limit=limit)
        ended = await observations.remove_expired(tx, revision, limit=limit)
    return ExpiryStep(archived, ended, more=limit in (archived, ended))


async def purge_expired(tx: Transaction, graph_id: UUID, *, retention: timedelta, limit: int = MAX_STEP) -> ExpiryStep:
    """Delete nodes of a graph that expired longer ago than the retention, as one revision: one step, up to `limit`.

    Only archived nodes are deleted, and none that has a relation with a live node: such a node stays archived. Their
    history goes with the next compaction. `retention`: for tenants that have not set their own. Raises the errors of
    `archive_expired`.
    """
    retention = await tenants.retention_of(tx, retention)
    async with graphs.write_graph_of(tx, graph_id, PURGE_EXPIRED) as revision:
        before: datetime = revision.at - retention
        purged = await store.find_purgeable(tx, revision.graph, before=before, limit=limit)
        await relations.delete_nodes(tx, revision, purged)
    return ExpiryStep(len(purged), 0, more=len(purged) == limit)
