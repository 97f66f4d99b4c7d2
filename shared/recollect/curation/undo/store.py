"""One function per query of `queries.sql`."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

import asyncpg

from recollect.curation.undo.model import (
    AliasChange,
    ChangeRange,
    NodeBefore,
    ObservationVersion,
    RelationVersion,
    Sibling,
    TouchedNode,
)
from recollect.graph.graphs.model import Graph
from recollect.graph.nodes.model import unique
from recollect.graph.observations.model import Observation
from recollect.graph.relations.model import Edge
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction

queries = Queries(__package__)

T = TypeVar("T", Observation, Edge)


async def count_touched(tx: Transaction, graph: Graph, span: ChangeRange) -> int:
    """How many ids the changes of a span touched."""
    return await tx.fetchval(
        queries.count_touched, graph_id=graph.id, since=span.since, until=span.until, actor=span.actor
    )


async def count_metadata(tx: Transaction, graph: Graph, ids: Sequence[UUID]) -> int:
    """The bytes of the metadata of these nodes, observations and relations."""
    return int(await tx.fetchval(queries.count_metadata, graph_id=graph.id, ids=ids))


async def has_changed(tx: Transaction, graph: Graph, actor: str) -> bool:
    """Whether the log has a change by this actor."""
    return await tx.fetchval(queries.has_changed, graph_id=graph.id, actor=actor)


async def find_touched(tx: Transaction, graph: Graph, span: ChangeRange) -> tuple[list[int], list[UUID]]:
    """The revisions of a span, and the ids that they touched."""
    rows = await tx.fetch(queries.find_touched, graph_id=graph.id, since=span.since, until=span.until, actor=span.actor)
    return [row["revision"] for row in rows], unique(i for row in rows for i in row["ids"])


async def touched_lineages(
    tx: Transaction, graph: Graph, ids: Sequence[UUID], revisions: Sequence[int], *, archived_by: str
) -> list[TouchedNode]:
    """The lineages that the revisions wrote, as they are. `archived_by`: the operation that archives expired nodes."""
    return await tx.fetch_as(
        queries.touched_lineages,
        lambda row: TouchedNode(**{**row, "tags": tuple(row["tags"])}),
        graph_id=graph.id,
        ids=ids,
        revisions=revisions,
        archived_by=archived_by,
    )


async def lineages_before(
    tx: Transaction, graph: Graph, ids: Sequence[UUID], revisions: Sequence[int]
) -> list[NodeBefore]:
    """The versions that lineages had before the first one that the revisions wrote."""
    return await tx.fetch_as(
        queries.lineages_before,
        lambda row: NodeBefore(**{**row, "tags": tuple(row["tags"])}),
        graph_id=graph.id,
        ids=ids,
        revisions=revisions,
    )


async def sibling_heads(
    tx: Transaction, graph: Graph, ids: Sequence[UUID], revisions: Sequence[int], *, limit: int
) -> list[Sibling]:
    """The heads of lineages but the highest, both now and before the first version that the revisions wrote."""
    return await tx.fetch_as(
        queries.sibling_heads,
        lambda row: Sibling(**{**row, "tags": tuple(row["tags"])}),
        graph_id=graph.id,
        ids=ids,
        revisions=revisions,
        limit=limit,
    )


async def touched_observations(
    tx: Transaction, graph: Graph, ids: Sequence[UUID], revisions: Sequence[int], *, limit: int
) -> list[ObservationVersion]:
    """The versions of observations that the revisions added or removed."""
    return await tx.fetch_as(
        queries.touched_observations,
        _observation_version,
        graph_id=graph.id,
        ids=ids,
        revisions=revisions,
        limit=limit,
    )


async def touched_relations(
    tx: Transaction, graph: Graph, ids: Sequence[UUID], revisions: Sequence[int]
) -> list[RelationVersion]:
    """All versions of the relations that the revisions touched; those of one relation together, the first one first."""
    return await tx.fetch_as(
        queries.touched_relations, _relation_version, graph_id=graph.id, ids=ids, revisions=revisions
    )


async def touched_aliases(tx: Transaction, graph: Graph, revisions: Sequence[int]) -> list[AliasChange]:
    """The aliases that the revisions added or removed."""
    return await tx.fetch_objects(queries.touched_aliases, AliasChange, graph_id=graph.id, revisions=revisions)


async def owners_of_names(tx: Transaction, graph: Graph, names: Sequence[str]) -> dict[str, UUID]:
    """The nodes that have these names, or other forms of them: ids by the name that each has."""
    rows = await tx.fetch(queries.owners_of_names, graph_id=graph.id, names=names)
    return {row["name"]: row["id"] for row in rows}


async def names_at(tx: Transaction, graph: Graph, node_ids: Sequence[UUID], revision: int) -> dict[UUID, str]:
    """The names that nodes had at a revision, by id."""
    rows = await tx.fetch(queries.names_at, graph_id=graph.id, node_ids=node_ids, at_revision=revision)
    return {row["id"]: row["name"] for row in rows}


async def find_living(tx: Transaction, node_ids: Sequence[UUID]) -> set[UUID]:
    """Those of these nodes that live."""
    return {row["id"] for row in await tx.fetch(queries.find_living, node_ids=node_ids)}


async def list_ancestor_parents(tx: Transaction, node_ids: Sequence[UUID]) -> dict[UUID, UUID | None]:
    """The parents of these nodes and of all their ancestors, by node id."""
    return {row["id"]: row["parent_id"] for row in await tx.fetch(queries.list_ancestor_parents, node_ids=node_ids)}


def _relation_version(row: asyncpg.Record) -> RelationVersion:
    return RelationVersion(_without({**row}, Edge), row["added"], row["removed"], row["lives"])


def _observation_version(row: asyncpg.Record) -> ObservationVersion:
    observed = _without({**row, "tags": tuple(row["tags"])}, Observation)
    return ObservationVersion(observed, row["added"], row["lives"], row["expired"], row["changed_later"])


def _without(row: Mapping[str, Any], kind: type[T]) -> T:
    """A `kind` from those columns of a row that are its fields."""
    return kind(**{name: row[name] for name in kind.__dataclass_fields__})
