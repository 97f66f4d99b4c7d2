"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from uuid import UUID

from recollect.graphs.model import Graph, Moment, Revision
from recollect.observations.model import Observation
from recollect.platform.db import Transaction
from recollect.platform.sql import Queries

queries = Queries("recollect.observations")


async def insert_observations(
    tx: Transaction, revision: Revision, observations: Sequence[Observation], *, across_threads: bool
) -> list[Observation]:
    """Attach statements to nodes; those that the node did not have (`across_threads`: in any thread), in order."""
    rows = await tx.fetch(
        queries.insert_observations,
        tx.tenant_id,
        revision.graph.id,
        revision.number,
        revision.at,
        [observation.created_by for observation in observations],
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


async def observations_by_id(tx: Transaction, graph: Graph, ids: Sequence[UUID]) -> dict[UUID, Observation]:
    """Live observations of a graph by id."""
    rows = await tx.fetch(queries.observations_by_id, tx.tenant_id, graph.id, ids)
    return {row["id"]: Observation(**row) for row in rows}


async def nodes_of_observations_at(tx: Transaction, graph: Graph, ids: Sequence[UUID], at: Moment) -> dict[UUID, UUID]:
    """What observations were about."""
    rows = await tx.fetch(queries.nodes_of_observations_at, tx.tenant_id, graph.id, ids, at.revision, at.at)
    return {row["id"]: row["node_id"] for row in rows}


async def list_observations(tx: Transaction, node_ids: Sequence[UUID]) -> list[Observation]:
    """Live observations of nodes, oldest first."""
    return [Observation(**row) for row in await tx.fetch(queries.list_observations, tx.tenant_id, node_ids)]


async def list_expired_observations(tx: Transaction, graph: Graph, *, limit: int) -> list[UUID]:
    """Observations of a graph whose time has come, longest expired first."""
    rows = await tx.fetch(queries.list_expired_observations, tx.tenant_id, graph.id, limit)
    return [row["id"] for row in rows]


async def remove_observations(
    tx: Transaction, revision: Revision, keys: Sequence[tuple[UUID, str]]
) -> dict[UUID, UUID]:
    """Take statements away from nodes, by content; the nodes of those that were there."""
    rows = await tx.fetch(
        queries.remove_observations, tx.tenant_id, revision.number, [k[0] for k in keys], [k[1] for k in keys]
    )
    return {row["id"]: row["node_id"] for row in rows}


async def remove_observations_by_id(tx: Transaction, revision: Revision, ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """Take observations of a graph away, by id; the nodes of those that were there."""
    rows = await tx.fetch(queries.remove_observations_by_id, tx.tenant_id, revision.graph.id, revision.number, ids)
    return {row["id"]: row["node_id"] for row in rows}
