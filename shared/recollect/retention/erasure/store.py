"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from recollect.graph.graphs.model import Graph
from recollect.platform.sql import Queries
from recollect.platform.transactions import Transaction
from recollect.retention.erasure.model import ErasedItem, ErasureTargets

queries = Queries(__package__)


async def allow_long_statements(tx: Transaction, longest: timedelta) -> None:
    """Let every statement of this transaction run for this time."""
    await tx.execute(queries.allow_long_statements, milliseconds=round(longest.total_seconds() * 1000))


async def lineages_named(tx: Transaction, graph: Graph, names: str, *, wanted: str) -> list[ErasedItem]:
    """Live lineages that have the wanted name, and deleted ones that had any of the names; patterns of whole names."""
    rows = await tx.fetch(queries.lineages_named, graph_id=graph.id, patterns=names, wanted_pattern=wanted)
    return [ErasedItem(**row) for row in rows]


async def names_of(tx: Transaction, node_ids: Sequence[UUID]) -> list[str]:
    """Every name that these lineages ever had."""
    return [row["name"] for row in await tx.fetch(queries.names_of, node_ids=node_ids)]


async def lineages_about(tx: Transaction, graph: Graph, targets: ErasureTargets, *, relation: str) -> list[ErasedItem]:
    """Further lineages to erase with those of the targets."""
    rows = await tx.fetch(queries.lineages_about, graph_id=graph.id, **_about(targets), relation=relation)
    return [ErasedItem(**row) for row in rows]


async def observations_about(tx: Transaction, graph: Graph, targets: ErasureTargets) -> list[ErasedItem]:
    """Observations of other lineages to erase with the targets."""
    rows = await tx.fetch(queries.observations_about, graph_id=graph.id, **_about(targets))
    return [ErasedItem(**row) for row in rows]


async def relations_about(tx: Transaction, graph: Graph, targets: ErasureTargets) -> list[ErasedItem]:
    """Relations between other lineages to erase with the targets."""
    rows = await tx.fetch(queries.relations_about, graph_id=graph.id, **_about(targets))
    return [ErasedItem(**row) for row in rows]


async def heads_about(tx: Transaction, graph: Graph, targets: ErasureTargets) -> list[UUID]:
    """Other live entities in whose fields an erased name is found."""
    rows = await tx.fetch(queries.heads_about, graph_id=graph.id, node_ids=targets.node_ids, pattern=targets.pattern)
    return [row["id"] for row in rows]


async def erase_passages(tx: Transaction, graph: Graph, targets: ErasureTargets) -> tuple[int, int, list[UUID]]:
    """Delete the passages of the targets and their vectors; return how many of each, and their sequences."""
    row = await tx.fetchrow(
        queries.erase_passages,
        graph_id=graph.id,
        **_about(targets),
        observation_ids=[observation.id for observation in targets.observations],
        names=list(targets.names),
    )
    assert row is not None
    return row["passages"], row["vectors"], row["sequences"]


async def clear_windows(tx: Transaction, graph: Graph, sequences: Sequence[UUID]) -> None:
    """Clear the text of neighbours in the passages of these sequences."""
    await tx.execute(queries.clear_windows, graph_id=graph.id, sequences=sequences)


async def erase_rows(tx: Transaction, graph: Graph, targets: ErasureTargets) -> dict[str, int]:
    """Delete the targets; return how many rows of each table."""
    row = await tx.fetchrow(
        queries.erase_rows,
        graph_id=graph.id,
        node_ids=targets.node_ids,
        observation_ids=[observation.id for observation in targets.observations],
        relation_ids=[relation.id for relation in targets.relations],
        pattern=targets.pattern,
        created_by=targets.created_by,
        whole_pattern=targets.whole,
    )
    return dict(row or {})


async def count_kept(tx: Transaction, graph: Graph, targets: ErasureTargets) -> dict[str, int]:
    """The number of rows of each table that still hold an erased name."""
    row = await tx.fetchrow(
        queries.count_kept, graph_id=graph.id, pattern=targets.pattern, created_by=targets.created_by
    )
    return dict(row or {})


async def count_of_graph(tx: Transaction, graph_id: UUID) -> dict[str, int]:
    """The number of rows of each table that belong to a graph."""
    row = await tx.fetchrow(queries.count_of_graph, graph_id=graph_id)
    return dict(row or {})


async def forget_statistics(tx: Transaction, only: Sequence[str] | None) -> list[str]:
    """Renew the planner's statistics of all tables with texts of users, or of these; return the skipped ones."""
    left_out: list[str] = await tx.fetchval(queries.forget_statistics, tables=only)
    return left_out


def _about(targets: ErasureTargets) -> dict[str, Any]:
    return {"node_ids": targets.node_ids, "pattern": targets.pattern, "created_by": targets.created_by}
