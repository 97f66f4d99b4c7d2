"""One function per query of `queries.sql`."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.observations.model import ATTRIBUTES, Key, MeasuredObservation, Observation, ObservationOutline
from recollect.postgres.json_rows import json_rows
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction

queries = Queries(__package__)

MAX_WRITTEN = 100
"""Observations of one SQL statement, at most: other calls wait for a core."""


@dataclass(frozen=True, slots=True)
class RemovedObservation:
    """A removed observation, with its node and its status."""

    id: UUID
    node_id: UUID
    status: str


@dataclass(frozen=True, slots=True)
class RemovedByText(RemovedObservation):
    """An observation that was removed by its text."""

    content: str


async def insert_observations(
    tx: Transaction, revision: Revision, observations: Sequence[Observation], *, across_threads: bool
) -> list[Observation]:
    """Attach observations to nodes, and touch the nodes; return those that the nodes did not have, in order.

    `across_threads`: in any thread.
    """
    inserted = set[UUID]()
    for batch in tx.batches(observations, MAX_WRITTEN):
        columns = await _columns(batch)
        rows = await tx.fetch(
            queries.insert_observations, **revision.parameters, **columns, across_threads=across_threads
        )
        inserted.update(row["id"] for row in rows)
    return [observation for observation in observations if observation.id in inserted]


async def rewrite_observations(tx: Transaction, revision: Revision, observations: Sequence[Observation]) -> None:
    """Give live observations of the graph new versions, by their ids."""
    for batch in tx.batches(observations, MAX_WRITTEN):
        await tx.execute(queries.rewrite_observations, **revision.parameters, **await _columns(batch))


async def find_observations(
    tx: Transaction, revision: Revision, keys: Sequence[tuple[UUID, str]]
) -> dict[Key, Observation]:
    """Active observations live at this revision, for these nodes and contents."""
    found = await tx.fetch_as(
        queries.find_observations,
        _observation,
        node_ids=[k[0] for k in keys],
        contents=[k[1] for k in keys],
        revision_time=revision.at,
    )
    return {observation.key: observation for observation in found}


async def observations_by_id(tx: Transaction, graph: Graph, ids: Sequence[UUID]) -> dict[UUID, Observation]:
    """Live observations of a graph by id."""
    found = await tx.fetch_as(queries.observations_by_id, _observation, graph_id=graph.id, ids=ids)
    return {observation.id: observation for observation in found}


async def past_nodes_of(view: GraphView, ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """The nodes that observations had at the view's moment, by the observation's id."""
    return {row["id"]: row["node_id"] for row in await view.fetch(queries.past_nodes_of, ids=ids)}


async def list_observations(tx: Transaction, node_ids: Sequence[UUID]) -> list[Observation]:
    """Live observations of nodes, oldest first."""
    return await tx.fetch_as(queries.list_observations, _observation, node_ids=node_ids)


async def measure_of_nodes(
    tx: Transaction, node_ids: Sequence[UUID], *, only_active: bool, limit: int | None
) -> list[MeasuredObservation]:
    """The live observations of nodes and the bytes of each, oldest first; `only_active`: without outdated ones."""
    return await tx.fetch_as(
        queries.measure_of_nodes,
        lambda row: MeasuredObservation(**row),
        node_ids=node_ids,
        only_active=only_active,
        limit=limit,
    )


async def measure_saying(tx: Transaction, keys: Sequence[tuple[UUID, str]]) -> dict[UUID, int]:
    """The bytes of each live observation with these nodes and contents, outdated ones too, by id."""
    rows = await tx.fetch(queries.measure_saying, node_ids=[k[0] for k in keys], contents=[k[1] for k in keys])
    return {row["id"]: row["bytes"] for row in rows}


async def outlines_of_nodes(tx: Transaction, node_ids: Sequence[UUID]) -> AsyncIterator[ObservationOutline]:
    """What tells the live observations of nodes apart, outdated ones too; a few are read at a time."""
    async for row in tx.stream(queries.outlines_of_nodes, node_ids=node_ids):
        yield ObservationOutline(**row)


async def list_expired_observations(tx: Transaction, graph: Graph, *, limit: int) -> list[UUID]:
    """Expired observations of a graph, longest expired first."""
    return await tx.fetch_column(queries.list_expired_observations, "id", graph_id=graph.id, limit=limit)


async def remove_observations(
    tx: Transaction, revision: Revision, keys: Sequence[tuple[UUID, str]]
) -> list[RemovedByText]:
    """Remove observations by node and content; return those that existed."""
    return await tx.fetch_objects(
        queries.remove_observations,
        RemovedByText,
        revision=revision.number,
        node_ids=[k[0] for k in keys],
        contents=[k[1] for k in keys],
    )


async def remove_outdated(tx: Transaction, revision: Revision, keys: Sequence[Key]) -> list[RemovedObservation]:
    """Remove outdated observations by node, content and thread; return those that existed."""
    removed = list[RemovedObservation]()
    for batch in tx.batches(keys, MAX_WRITTEN):
        rows = await tx.fetch(
            queries.remove_outdated,
            revision=revision.number,
            node_ids=[k[0] for k in batch],
            contents=[k[1] for k in batch],
            threads=[k[2] for k in batch],
        )
        removed.extend(RemovedObservation(**row) for row in rows)
    return removed


async def remove_observations_by_id(
    tx: Transaction, revision: Revision, ids: Sequence[UUID]
) -> list[RemovedObservation]:
    """Remove observations of a graph by id; return those that existed."""
    return await tx.fetch_objects(
        queries.remove_observations_by_id,
        RemovedObservation,
        graph_id=revision.graph.id,
        revision=revision.number,
        ids=ids,
    )


async def _columns(observations: Sequence[Observation]) -> dict[str, list[Any]]:
    """Observations, column by column. Attributes are JSON, since lists of lists are no columns."""
    return {
        "created_by": [o.created_by for o in observations],
        "ids": [o.id for o in observations],
        "node_ids": [o.node_id for o in observations],
        "contents": [o.content for o in observations],
        "threads": [o.thread for o in observations],
        "said_at": [o.said_at for o in observations],
        "expires_at": [o.expires_at for o in observations],
        "attributes": await json_rows(observations, lambda o: {name: getattr(o, name) for name in _JSON_FIELDS}),
    }


_JSON_FIELDS = (*ATTRIBUTES, "status", "reason", "first_revision", "version", "said_offset")


def _observation(row: asyncpg.Record) -> Observation:
    return Observation(**{**row, "tags": tuple(row["tags"])})
