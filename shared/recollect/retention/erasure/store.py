"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from recollect.fairness.computing import batches
from recollect.graph.graphs.model import Graph
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction
from recollect.retention.erasure.model import ErasedItem, ErasureTargets, NamedHead
from recollect.words.analysis import all_of

queries = Queries(__package__)

ROWS_AT_A_TIME = 1_000
"""Rows that one round trip brings, where a query may find as many as the graph has: a thousand become values in a few
milliseconds."""

TEXTS_PER_STATEMENT = 2_000
"""Texts that a statement gets at most, for the same reason."""


async def allow_long_statements(tx: Transaction, longest: timedelta) -> None:
    """Let every statement of this transaction run for this time."""
    await tx.execute(queries.allow_long_statements, milliseconds=round(longest.total_seconds() * 1000))


async def lineages_named(
    tx: Transaction, graph: Graph, *, wanted: Sequence[str], whole: Sequence[str]
) -> list[ErasedItem]:
    """Live lineages with a name that `wanted` matches, and deleted ones that had a name that `whole` matches."""
    given = {"graph_id": graph.id, "wanted": wanted, "whole": whole}
    return [ErasedItem(**row) async for row in tx.stream(queries.lineages_named, prefetch=ROWS_AT_A_TIME, **given)]


async def names_of(tx: Transaction, node_ids: Sequence[UUID], *, limit: int) -> list[str]:
    """Names that these lineages have or had, `limit` at most."""
    return [row["name"] for row in await tx.fetch(queries.names_of, node_ids=node_ids, limit=limit)]


async def lineages_about(tx: Transaction, graph: Graph, targets: ErasureTargets, *, relation: str) -> list[ErasedItem]:
    """Further lineages to erase with those of the targets."""
    given = {"graph_id": graph.id, **_about(targets), "relation": relation}
    return [ErasedItem(**row) async for row in tx.stream(queries.lineages_about, prefetch=ROWS_AT_A_TIME, **given)]


async def observations_about(tx: Transaction, graph: Graph, targets: ErasureTargets) -> list[ErasedItem]:
    """Observations of other lineages to erase with the targets."""
    given = {"graph_id": graph.id, **_about(targets)}
    return [ErasedItem(**row) async for row in tx.stream(queries.observations_about, prefetch=ROWS_AT_A_TIME, **given)]


async def relations_about(tx: Transaction, graph: Graph, targets: ErasureTargets) -> list[ErasedItem]:
    """Relations between other lineages to erase with the targets."""
    given = {"graph_id": graph.id, **_about(targets)}
    return [ErasedItem(**row) async for row in tx.stream(queries.relations_about, prefetch=ROWS_AT_A_TIME, **given)]


async def heads_about(tx: Transaction, graph: Graph, targets: ErasureTargets) -> list[NamedHead]:
    """Other live entities in whose fields an erased name is found."""
    given = {"graph_id": graph.id, "node_ids": targets.node_ids, "patterns": targets.patterns}
    return [NamedHead(**row) async for row in tx.stream(queries.heads_about, prefetch=ROWS_AT_A_TIME, **given)]


async def texts_named(tx: Transaction, texts: Sequence[str], targets: ErasureTargets) -> list[str]:
    """Those of the texts in which an erased name is found."""
    named: list[str] = []
    for batch in batches(texts, TEXTS_PER_STATEMENT):
        rows = await tx.fetch(queries.texts_named, texts=batch, patterns=targets.patterns)
        named += [batch[row["position"] - 1] for row in rows]
    return named


async def erase_passages(tx: Transaction, graph: Graph, targets: ErasureTargets) -> tuple[int, int, list[UUID]]:
    """Delete the passages of the targets and their vectors; return how many of each, and their sequences."""
    row = await tx.fetchrow(
        queries.erase_passages,
        graph_id=graph.id,
        **_about(targets),
        observation_ids=[observation.id for observation in targets.observations],
        names=list(targets.names),
        name_words=list(filter(None, map(all_of, targets.names))),
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
        patterns=targets.patterns,
        created_by=targets.created_by,
        whole=targets.whole,
    )
    return dict(row or {})


async def count_remaining(tx: Transaction, graph: Graph, targets: ErasureTargets) -> dict[str, int]:
    """The number of rows of each table that still hold an erased name."""
    row = await tx.fetchrow(
        queries.count_remaining, graph_id=graph.id, patterns=targets.patterns, created_by=targets.created_by
    )
    return dict(row or {})


async def count_of_graph(tx: Transaction, graph_id: UUID) -> dict[str, int]:
    """The number of rows of each table that belong to a graph."""
    row = await tx.fetchrow(queries.count_of_graph, graph_id=graph_id)
    return dict(row or {})


async def forget_statistics(tx: Transaction, only: Sequence[str] | None) -> list[str]:
    """Renew the planner's statistics of all tables with texts of users, or of these; return the skipped ones."""
    return await tx.fetchval(queries.forget_statistics, tables=only)


def _about(targets: ErasureTargets) -> dict[str, Any]:
    return {"node_ids": targets.node_ids, "patterns": targets.patterns, "created_by": targets.created_by}
