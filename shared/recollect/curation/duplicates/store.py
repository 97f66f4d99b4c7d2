"""One function per query of `queries.sql`, or per pair: of now, and of a past moment."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg

from recollect.curation.dismissals.model import Pair
from recollect.curation.duplicates.model import ConfiguredGraph, Proposal, ScanPosition
from recollect.curation.duplicates.similarity import Profile, SimilarPair
from recollect.graph.graphs.model import Graph
from recollect.graph.graphs.view import GraphView
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session, Transaction

queries = Queries(__package__)


async def count_comparable(view: GraphView, *, limit: int) -> int:
    """The number of entities to compare with each other, counted up to `limit`."""
    return await view.fetchval(queries.count_comparable, limit=limit)


async def count_of_kind(tx: Transaction, graph: Graph, kind: str, *, limit: int) -> int:
    """The number of entities of a type ('': without one) to compare with each other, counted up to `limit`."""
    return await tx.fetchval(queries.count_of_kind, graph_id=graph.id, limit=limit, kind=kind)


async def list_profiles(view: GraphView, *, kind: str | None = None) -> list[Profile]:
    """The profiles of entities, oldest first. `kind`: only of this type; '' for entities without one."""
    return await view.fetch_as(queries.list_profiles, _profile, kind=kind)


async def profiles_of(tx: Transaction, graph: Graph, node_ids: Sequence[UUID]) -> dict[UUID, Profile]:
    """The profiles of these entities by id; entities that do not exist are left out."""
    rows = await tx.fetch(queries.profiles_of, graph_id=graph.id, node_ids=node_ids)
    return {row["id"]: _profile(row) for row in rows}


async def find_uncompared(
    tx: Transaction, graph: Graph, *, until: datetime, after: ScanPosition | None, limit: int
) -> tuple[str, list[ScanPosition]]:
    """Entities of one type that changed since their last comparison, and not after `until`; ('', []) if none did.

    With `after`: the next entities behind that position, also those that did not change.
    """
    type_hash, node_id = (None, None) if after is None else (after.type_hash, after.node_id)
    rows = await tx.fetch(
        queries.find_uncompared, graph_id=graph.id, until=until, limit=limit, type_hash=type_hash, node_id=node_id
    )
    return (rows[0]["kind"] if rows else ""), [ScanPosition(row["type_hash"], row["id"]) for row in rows]


async def remove_duplicates(tx: Transaction, graph: Graph, node_ids: Sequence[UUID]) -> None:
    """Delete the proposals with one of these entities."""
    await tx.execute(queries.remove_duplicates, graph_id=graph.id, node_ids=node_ids)


async def insert_duplicates(
    tx: Transaction, graph: Graph, pairs: Sequence[SimilarPair], at: datetime
) -> list[SimilarPair]:
    """Store pairs as proposals, each once and with the lesser id first; return those whose entities are both live."""
    ordered = {tuple(sorted((pair.node_id, pair.other_id))): pair.likeness for pair in pairs}
    return await tx.fetch_objects(
        queries.insert_duplicates,
        SimilarPair,
        graph_id=graph.id,
        proposed_at=at,
        node_ids=[node_id for node_id, _ in ordered],
        other_ids=[other_id for _, other_id in ordered],
        likenesses=list(ordered.values()),
    )


async def list_duplicates(tx: Transaction, graph: Graph, *, least: float, offset: int, limit: int) -> list[Proposal]:
    """Proposed pairs, the most similar first."""
    return await tx.fetch_objects(
        queries.list_duplicates, Proposal, graph_id=graph.id, min_likeness=least, offset=offset, limit=limit
    )


async def count_duplicates(tx: Transaction, graph_id: UUID, *, searched: int, limit: int) -> int:
    """The number of proposed pairs, counted up to `limit` among the first `searched` that are stored."""
    return await tx.fetchval(queries.count_duplicates, graph_id=graph_id, searched=searched, limit=limit)


async def remove_duplicate(tx: Transaction, graph: Graph, pair: Pair) -> float | None:
    """Delete the proposal of a pair; return how similar its entities are, None if there was none."""
    return await tx.fetchval(queries.remove_duplicate, graph_id=graph.id, node_id=pair[0], other_id=pair[1])


async def raise_compared_from(tx: Transaction, graph: Graph, threshold: float) -> None:
    """Record that pairs below a threshold may not all be known in a graph."""
    await tx.execute(queries.raise_compared_from, graph_id=graph.id, threshold=threshold)


async def finish_deduplication(tx: Transaction, graph: Graph, *, threshold: float | None) -> None:
    """Record the end of a pass; `threshold`: the one that it used, if it covered all entities."""
    await tx.execute(queries.finish_deduplication, graph_id=graph.id, threshold=threshold)


async def find_compared_from(tx: Transaction, graph: Graph) -> float | None:
    """The threshold from which all entities of a graph were compared; None if no pass did that."""
    return await tx.fetchval(queries.find_compared_from, graph_id=graph.id)


async def tenants_with_deduplication_due(session: Session) -> list[UUID]:
    """Tenants with graphs for which a pass is due."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_deduplication_due)]


async def list_deduplications(tx: Transaction, *, limit: int) -> list[ConfiguredGraph]:
    """Graphs with `dedup` in their metadata, longest waiting first."""
    return await tx.fetch_objects(queries.list_deduplications, ConfiguredGraph, limit=limit)


def _profile(row: asyncpg.Record) -> Profile:
    return Profile(**{**row, "tags": frozenset(row["tags"]), "statements": frozenset(row["statements"])})
