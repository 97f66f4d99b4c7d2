"""One function per query of `queries.sql`, or per pair: of now, and of a past moment."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import asyncpg

from recollect.curation.footprint import Alias, Before, Statement, Tie, Touched
from recollect.curation.likeness import Pair, Profile
from recollect.curation.model import Archivable, Configured, Criteria, Fault, Place, Proposal, Span
from recollect.graphs.model import Graph, Moment
from recollect.nodes.model import any_case, unique
from recollect.observations.model import Observation
from recollect.platform.db import Session, Transaction
from recollect.platform.sql import Queries
from recollect.relations.model import Edge

queries = Queries("recollect.curation")

T = TypeVar("T", Observation, Edge)


async def count_comparable(tx: Transaction, graph: Graph, at: Moment | None, *, limit: int) -> int:
    """How many entities there are (`at`: were) to compare with each other, counted up to `limit`."""
    query = queries.count_comparable if at is None else queries.count_comparable_at
    count: int = await tx.fetchval(query, tx.tenant_id, graph.id, limit, *_past(at))
    return count


async def list_profiles(tx: Transaction, graph: Graph, at: Moment | None, *, kind: str | None = None) -> list[Profile]:
    """What entities are (`at`: were) compared by, oldest first. `kind`: only of this type; '' for none."""
    query = queries.list_profiles if at is None else queries.list_profiles_at
    return [_profile(row) for row in await tx.fetch(query, tx.tenant_id, graph.id, kind, *_past(at))]


async def profiles_of(tx: Transaction, graph: Graph, node_ids: Sequence[UUID]) -> dict[UUID, Profile]:
    """What these entities are compared by, by id; those that are not there are left out."""
    rows = await tx.fetch(queries.profiles_of, tx.tenant_id, graph.id, node_ids)
    return {row["id"]: _profile(row) for row in rows}


async def find_archivable(tx: Transaction, graph: Graph, criteria: Criteria, *, limit: int) -> list[Archivable]:
    """Entities in use that the criteria hold for, longest unchanged first."""
    wanted = criteria.older_than, criteria.importance_below, any_case(criteria.tags)
    rows = await tx.fetch(queries.find_archivable, tx.tenant_id, graph.id, *wanted, limit)
    return [Archivable(**row) for row in rows]


async def count_faults(tx: Transaction, graph: Graph, at: Moment | None, *, examples: int) -> list[Fault]:
    """What is (`at`: was) not as it should be: the first of each kind, each with how many there are of its kind."""
    revision, time = (None, None) if at is None else (at.revision, at.at)
    rows = await tx.fetch(queries.count_faults, tx.tenant_id, graph.id, revision, time, examples)
    return [Fault(**row) for row in rows]


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


async def tenants_with_expired(session: Session) -> list[UUID]:
    """Tenants that have something whose time has come."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_expired)]


async def graphs_with_expired(tx: Transaction, *, limit: int) -> list[str]:
    """Graphs that have something whose time has come."""
    return [row["name"] for row in await tx.fetch(queries.graphs_with_expired, tx.tenant_id, limit)]


async def tenants_with_purgeable(session: Session, *, retention: timedelta) -> list[UUID]:
    """Tenants that have something archived that expired longer ago than the retention."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_purgeable, retention)]


async def graphs_with_purgeable(tx: Transaction, *, retention: timedelta, limit: int) -> list[str]:
    """Graphs that have something archived that expired longer ago than the retention."""
    return [row["name"] for row in await tx.fetch(queries.graphs_with_purgeable, tx.tenant_id, retention, limit)]


async def find_purgeable(tx: Transaction, graph: Graph, *, before: datetime, limit: int) -> list[UUID]:
    """Archived nodes that expired before a time and that no relation ties to what still lives."""
    return [row["id"] for row in await tx.fetch(queries.find_purgeable, tx.tenant_id, graph.id, before, limit)]


async def find_uncompared(
    tx: Transaction, graph: Graph, *, until: datetime, after: Place | None, limit: int
) -> tuple[str, list[Place]]:
    """Entities of one type that changed since they were compared, and not after `until`; '' and none where all are.

    With `after`, the next behind that place, whether they changed since or not.
    """
    kind, node_id = (None, None) if after is None else (after.kind, after.node_id)
    rows = await tx.fetch(queries.find_uncompared, tx.tenant_id, graph.id, until, limit, kind, node_id)
    return (rows[0]["kind"] if rows else ""), [Place(row["place"], row["id"]) for row in rows]


async def count_of_kind(tx: Transaction, graph: Graph, kind: str, *, limit: int) -> int:
    """How many entities of a type a graph has, counted up to `limit`."""
    count: int = await tx.fetchval(queries.count_of_kind, tx.tenant_id, graph.id, kind, limit)
    return count


async def remove_duplicates(tx: Transaction, graph: Graph, node_ids: Sequence[UUID]) -> None:
    """Forget what was proposed of these entities."""
    await tx.execute(queries.remove_duplicates, tx.tenant_id, graph.id, node_ids)


async def insert_duplicates(tx: Transaction, graph: Graph, pairs: Sequence[Pair], at: datetime) -> None:
    """Propose pairs of entities, each with the lesser id first."""
    ordered = {tuple(sorted((pair.node_id, pair.other_id))): pair.likeness for pair in pairs}
    ids, others = [ends[0] for ends in ordered], [ends[1] for ends in ordered]
    await tx.execute(queries.insert_duplicates, tx.tenant_id, graph.id, at, ids, others, list(ordered.values()))


async def list_duplicates(tx: Transaction, graph: Graph, *, least: float, offset: int, limit: int) -> list[Proposal]:
    """Proposed pairs, the most alike first."""
    rows = await tx.fetch(queries.list_duplicates, tx.tenant_id, graph.id, least, offset, limit)
    return [Proposal(**row) for row in rows]


async def finish_deduplication(tx: Transaction, graph: Graph) -> None:
    """Note that the entities of a graph were compared from end to end."""
    await tx.execute(queries.finish_deduplication, tx.tenant_id, graph.id)


async def find_deduplication(tx: Transaction, graph: Graph) -> datetime | None:
    """When the entities of a graph were last compared from end to end."""
    at: datetime | None = await tx.fetchval(queries.find_deduplication, tx.tenant_id, graph.id)
    return at


async def tenants_with_deduplication_due(session: Session) -> list[UUID]:
    """Tenants with graphs that ask to be compared again."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_with_deduplication_due)]


async def list_deduplications(tx: Transaction, *, limit: int) -> list[Configured]:
    """Graphs whose metadata speaks of duplicates, those that wait longest first."""
    rows = await tx.fetch(queries.list_deduplications, tx.tenant_id, limit)
    return [Configured(**row) for row in rows]


def _past(at: Moment | None) -> tuple[Any, ...]:
    return () if at is None else (at.revision, at.at)


def _profile(row: asyncpg.Record) -> Profile:
    return Profile(**{**row, "tags": frozenset(row["tags"]), "statements": frozenset(row["statements"])})


def _without(row: asyncpg.Record, kind: type[T]) -> T:
    """The part of a row that makes one of these."""
    return kind(**{name: row[name] for name in kind.__dataclass_fields__})
