"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from recollect.graph.graphs.model import Graph
from recollect.platform.db import Transaction
from recollect.platform.sql import Queries
from recollect.retention.erasure.model import ErasedItem, ErasureTargets

queries = Queries(__package__)


async def allow_long_statements(tx: Transaction, longest: timedelta) -> None:
    """Let every statement of this transaction run so long."""
    await tx.execute(queries.allow_long_statements, round(longest.total_seconds() * 1000))


async def lineages_named(tx: Transaction, graph: Graph, names: str, *, wanted: str) -> list[ErasedItem]:
    """Lineages that have the wanted name, and deleted ones that had any of the names; patterns of whole names."""
    rows = await tx.fetch(queries.lineages_named, tx.tenant_id, graph.id, names, wanted)
    return [ErasedItem(**row) for row in rows]


async def names_of(tx: Transaction, node_ids: Sequence[UUID]) -> list[str]:
    """Every name that lineages ever had."""
    return [row["name"] for row in await tx.fetch(queries.names_of, tx.tenant_id, node_ids)]


async def lineages_about(tx: Transaction, graph: Graph, targets: ErasureTargets, *, relation: str) -> list[ErasedItem]:
    """Lineages that go with those of the targets."""
    found = targets.node_ids, targets.pattern, targets.created_by, relation
    return [ErasedItem(**row) for row in await tx.fetch(queries.lineages_about, tx.tenant_id, graph.id, *found)]


async def observations_about(tx: Transaction, graph: Graph, targets: ErasureTargets) -> list[ErasedItem]:
    """Observations of others that go with the targets."""
    found = targets.node_ids, targets.pattern, targets.created_by
    return [ErasedItem(**row) for row in await tx.fetch(queries.observations_about, tx.tenant_id, graph.id, *found)]


async def relations_about(tx: Transaction, graph: Graph, targets: ErasureTargets) -> list[ErasedItem]:
    """Relations between others that go with the targets."""
    found = targets.node_ids, targets.pattern, targets.created_by
    return [ErasedItem(**row) for row in await tx.fetch(queries.relations_about, tx.tenant_id, graph.id, *found)]


async def heads_about(tx: Transaction, graph: Graph, targets: ErasureTargets) -> list[UUID]:
    """Live entities of others that say an erased name."""
    rows = await tx.fetch(queries.heads_about, tx.tenant_id, graph.id, targets.node_ids, targets.pattern)
    return [row["id"] for row in rows]


async def erase_passages(tx: Transaction, graph: Graph, targets: ErasureTargets) -> tuple[int, int, list[UUID]]:
    """Delete the targets' passages and vectors; how many of each, and the sequences that they stood in."""
    memories = [observation.id for observation in targets.observations]
    said = targets.pattern, list(targets.names), targets.created_by
    row = await tx.fetchrow(queries.erase_passages, tx.tenant_id, graph.id, targets.node_ids, memories, *said)
    assert row is not None
    return row["passages"], row["vectors"], row["sequences"]


async def clear_windows(tx: Transaction, graph: Graph, sequences: Sequence[UUID]) -> None:
    """Take from passages of these sequences what they hold of their neighbours."""
    await tx.execute(queries.clear_windows, tx.tenant_id, graph.id, sequences)


async def erase_rows(tx: Transaction, graph: Graph, targets: ErasureTargets) -> dict[str, int]:
    """Delete the targets; how many rows of each table."""
    row = await tx.fetchrow(
        queries.erase_rows,
        tx.tenant_id,
        graph.id,
        targets.node_ids,
        [observation.id for observation in targets.observations],
        [relation.id for relation in targets.relations],
        targets.pattern,
        targets.created_by,
        targets.whole,
    )
    return dict(row or {})


async def count_kept(tx: Transaction, graph: Graph, targets: ErasureTargets) -> dict[str, int]:
    """How many rows of each table still say an erased name."""
    row = await tx.fetchrow(queries.count_kept, tx.tenant_id, graph.id, targets.pattern, targets.created_by)
    return dict(row or {})


async def count_of_graph(tx: Transaction, graph_id: UUID) -> dict[str, int]:
    """How many rows of each table are a graph's."""
    row = await tx.fetchrow(queries.count_of_graph, tx.tenant_id, graph_id)
    return dict(row or {})


async def forget_statistics(tx: Transaction, only: Sequence[str] | None) -> list[str]:
    """Take new statistics of every table that holds what people wrote (or of these); those of which it could not."""
    left_out: list[str] = await tx.fetchval(queries.forget_statistics, only)
    return left_out
