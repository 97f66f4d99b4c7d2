"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.observations.model import ATTRIBUTES, Key, Observation
from recollect.platform.computing import each
from recollect.platform.sql import Queries
from recollect.platform.transactions import Transaction

queries = Queries(__package__)

MAX_WRITTEN = 100
"""Observations of one statement, at most: it is a step of a call, in which calls of others wait for a core."""


@dataclass(frozen=True, slots=True)
class RemovedObservation:
    """An observation that a write took away: of which node, and with which status."""

    id: UUID
    node_id: UUID
    status: str


async def insert_observations(
    tx: Transaction, revision: Revision, observations: Sequence[Observation], *, across_threads: bool
) -> list[Observation]:
    """Attach statements to nodes, which are updated; those that the node did not have, in order.

    `across_threads`: in any thread.
    """
    inserted = set[UUID]()
    for some in tx.batches(observations, MAX_WRITTEN):
        columns = await _columns(some)
        rows = await tx.fetch(
            queries.insert_observations, **revision.parameters, **columns, across_threads=across_threads
        )
        inserted.update(row["id"] for row in rows)
    return [observation for observation in observations if observation.id in inserted]


async def rewrite_observations(tx: Transaction, revision: Revision, observations: Sequence[Observation]) -> None:
    """Give live observations of the graph new versions, by their ids."""
    for some in tx.batches(observations, MAX_WRITTEN):
        await tx.execute(queries.rewrite_observations, **revision.parameters, **await _columns(some))


async def find_observations(
    tx: Transaction, revision: Revision, keys: Sequence[tuple[UUID, str]]
) -> dict[Key, Observation]:
    """Active observations live at this revision, for these nodes and contents."""
    rows = await tx.fetch(
        queries.find_observations,
        node_ids=[k[0] for k in keys],
        contents=[k[1] for k in keys],
        revision_time=revision.at,
    )
    return {observation.key: observation for observation in await each(rows, _observation)}


async def observations_by_id(tx: Transaction, graph: Graph, ids: Sequence[UUID]) -> dict[UUID, Observation]:
    """Live observations of a graph by id."""
    rows = await tx.fetch(queries.observations_by_id, graph_id=graph.id, ids=ids)
    return {observation.id: observation for observation in await each(rows, _observation)}


async def past_nodes_of(view: GraphView, ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """What observations were about."""
    return {row["id"]: row["node_id"] for row in await view.fetch(queries.past_nodes_of, ids=ids)}


async def list_observations(tx: Transaction, node_ids: Sequence[UUID]) -> list[Observation]:
    """Live observations of nodes, oldest first."""
    return await each(await tx.fetch(queries.list_observations, node_ids=node_ids), _observation)


async def list_expired_observations(tx: Transaction, graph: Graph, *, limit: int) -> list[UUID]:
    """Observations of a graph whose time has come, longest expired first."""
    rows = await tx.fetch(queries.list_expired_observations, graph_id=graph.id, limit=limit)
    return [row["id"] for row in rows]


async def remove_observations(
    tx: Transaction, revision: Revision, keys: Sequence[tuple[UUID, str]]
) -> list[RemovedObservation]:
    """Take statements away from nodes, by content; those that were there."""
    rows = await tx.fetch(
        queries.remove_observations,
        revision=revision.number,
        node_ids=[k[0] for k in keys],
        contents=[k[1] for k in keys],
    )
    return [RemovedObservation(**row) for row in rows]


async def remove_outdated(tx: Transaction, revision: Revision, keys: Sequence[Key]) -> list[RemovedObservation]:
    """Take outdated statements away from nodes, by content and thread; those that were there."""
    removed = list[RemovedObservation]()
    for some in tx.batches(keys, MAX_WRITTEN):
        rows = await tx.fetch(
            queries.remove_outdated,
            revision=revision.number,
            node_ids=[k[0] for k in some],
            contents=[k[1] for k in some],
            threads=[k[2] for k in some],
        )
        removed.extend(RemovedObservation(**row) for row in rows)
    return removed


async def remove_observations_by_id(
    tx: Transaction, revision: Revision, ids: Sequence[UUID]
) -> list[RemovedObservation]:
    """Take observations of a graph away, by id; those that were there."""
    rows = await tx.fetch(
        queries.remove_observations_by_id, graph_id=revision.graph.id, revision=revision.number, ids=ids
    )
    return [RemovedObservation(**row) for row in rows]


async def _columns(observations: Sequence[Observation]) -> dict[str, list[Any]]:
    """Observations, column by column; what stands beside their texts as JSON, since lists of lists are no columns."""
    return {
        "created_by": [o.created_by for o in observations],
        "ids": [o.id for o in observations],
        "node_ids": [o.node_id for o in observations],
        "contents": [o.content for o in observations],
        "threads": [o.thread for o in observations],
        "said_at": [o.said_at for o in observations],
        "expires_at": [o.expires_at for o in observations],
        "attributes": await each(observations, lambda o: {name: getattr(o, name) for name in _BESIDE}),
    }


_BESIDE = (*ATTRIBUTES, "status", "reason", "first_revision")


def _observation(row: asyncpg.Record) -> Observation:
    return Observation(**{**row, "tags": tuple(row["tags"])})
