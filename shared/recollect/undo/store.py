"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from typing import TypeVar
from uuid import UUID

import asyncpg

from recollect.graphs.model import Graph
from recollect.nodes.model import unique
from recollect.observations.model import Observation
from recollect.platform.db import Transaction
from recollect.platform.sql import Queries
from recollect.relations.model import Edge
from recollect.undo.model import Alias, Before, Span, Statement, Tie, Touched

queries = Queries("recollect.undo")

T = TypeVar("T", Observation, Edge)


async def count_touched(tx: Transaction, graph: Graph, span: Span) -> int:
    """How many ids the changes of a span touched."""
    count: int = await tx.fetchval(queries.count_touched, tx.tenant_id, graph.id, span.since, span.until, span.actor)
    return count


async def find_touched(tx: Transaction, graph: Graph, span: Span) -> tuple[list[int], list[UUID]]:
    """The revisions of a span, and the ids that they touched."""
    rows = await tx.fetch(queries.find_touched, tx.tenant_id, graph.id, span.since, span.until, span.actor)
    return [row["revision"] for row in rows], unique(i for row in rows for i in row["ids"])


async def touched_lineages(
    tx: Transaction, graph: Graph, ids: Sequence[UUID], revisions: Sequence[int], *, archived_by: str
) -> list[Touched]:
    """Lineages that the revisions wrote, as they are now; `archived_by`: the operation that takes up what expired."""
    rows = await tx.fetch(queries.touched_lineages, tx.tenant_id, graph.id, ids, revisions, archived_by)
    return [Touched(**{**row, "tags": tuple(row["tags"])}) for row in rows]


async def lineages_before(tx: Transaction, graph: Graph, ids: Sequence[UUID], revisions: Sequence[int]) -> list[Before]:
    """Lineages in the version before the first that the revisions wrote."""
    rows = await tx.fetch(queries.lineages_before, tx.tenant_id, graph.id, ids, revisions)
    return [Before(**{**row, "tags": tuple(row["tags"])}) for row in rows]


async def touched_observations(
    tx: Transaction, graph: Graph, ids: Sequence[UUID], revisions: Sequence[int], *, limit: int
) -> list[Statement]:
    """Observations that the revisions added or took away."""
    rows = await tx.fetch(queries.touched_observations, tx.tenant_id, graph.id, ids, revisions, limit)
    return [Statement(_without(row, Observation), row["added"], row["lives"], row["expired"]) for row in rows]


async def touched_relations(tx: Transaction, graph: Graph, ids: Sequence[UUID], revisions: Sequence[int]) -> list[Tie]:
    """Relations that the revisions added or took away."""
    rows = await tx.fetch(queries.touched_relations, tx.tenant_id, graph.id, ids, revisions)
    return [Tie(_without(row, Edge), row["added"], row["lives"]) for row in rows]


async def touched_aliases(tx: Transaction, graph: Graph, ids: Sequence[UUID], revisions: Sequence[int]) -> list[Alias]:
    """Names that the revisions let nodes be found by, or took from them."""
    rows = await tx.fetch(queries.touched_aliases, tx.tenant_id, graph.id, ids, revisions)
    return [Alias(**row) for row in rows]


async def owners_of_names(tx: Transaction, graph: Graph, names: Sequence[str]) -> dict[str, UUID]:
    """Who has these names."""
    rows = await tx.fetch(queries.owners_of_names, tx.tenant_id, graph.id, names)
    return {row["name"]: row["id"] for row in rows}


async def living_among(tx: Transaction, node_ids: Sequence[UUID]) -> set[UUID]:
    """Those of these nodes that live."""
    return {row["id"] for row in await tx.fetch(queries.living_among, tx.tenant_id, node_ids)}


async def lines_above(tx: Transaction, node_ids: Sequence[UUID]) -> dict[UUID, UUID | None]:
    """The parents of these nodes and of all above them."""
    return {row["id"]: row["parent_id"] for row in await tx.fetch(queries.lines_above, tx.tenant_id, node_ids)}


def _without(row: asyncpg.Record, kind: type[T]) -> T:
    """The part of a row that makes one of these."""
    return kind(**{name: row[name] for name in kind.__dataclass_fields__})
