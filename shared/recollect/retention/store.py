"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from recollect.graphs.model import Graph
from recollect.platform.db import Session, Transaction
from recollect.platform.sql import Queries
from recollect.retention.model import Freed, Piece, Targets

queries = Queries("recollect.retention")


async def count_compactable(tx: Transaction, graph: Graph, horizon: int) -> Freed:
    """What nobody can read who reads the state at the horizon or a later one."""
    row = await tx.fetchrow(queries.count_compactable, tx.tenant_id, graph.id, horizon)
    assert row is not None
    return Freed(**row)


async def tenants_to_check(session: Session) -> list[UUID]:
    """Tenants with graphs whose turn has come to be looked at."""
    return [row["tenant_id"] for row in await session.fetch(queries.tenants_to_check)]


async def list_to_check(tx: Transaction, *, retention: timedelta, limit: int) -> list[tuple[UUID, bool]]:
    """Take graphs in hand whose turn has come, and whether something of each was gone longer ago than the retention."""
    rows = await tx.fetch(queries.list_to_check, tx.tenant_id, retention, limit)
    return [(row["id"], row["due"]) for row in rows]


async def note_checked(tx: Transaction, graph_ids: Sequence[UUID], *, again_after: timedelta) -> None:
    """Look at these graphs again after a while."""
    await tx.execute(queries.note_checked, tx.tenant_id, graph_ids, again_after)


async def compact_observations(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> int:
    """Delete observations that were taken away by a revision; how many."""
    count: int = await tx.fetchval(queries.compact_observations, tx.tenant_id, graph.id, horizon, limit)
    return count


async def compact_relations(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> int:
    """Delete relations that were taken away by a revision; how many."""
    count: int = await tx.fetchval(queries.compact_relations, tx.tenant_id, graph.id, horizon, limit)
    return count


async def compact_aliases(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> int:
    """Delete aliases that were taken away by a revision; how many."""
    count: int = await tx.fetchval(queries.compact_aliases, tx.tenant_id, graph.id, horizon, limit)
    return count


async def compact_passages(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> tuple[int, int]:
    """Delete passages that were taken away by a revision, and their vectors; how many of each."""
    row = await tx.fetchrow(queries.compact_passages, tx.tenant_id, graph.id, horizon, limit)
    assert row is not None
    return row["passages"], row["vectors"]


async def compact_versions(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> int:
    """Delete versions that were superseded by a revision, but for what each lineage was then; how many."""
    count: int = await tx.fetchval(queries.compact_versions, tx.tenant_id, graph.id, horizon, limit)
    return count


async def compact_nodes(tx: Transaction, graph: Graph, horizon: int, *, limit: int) -> tuple[int, int]:
    """Delete lineages deleted by a revision that nothing hangs on, and their versions; how many of each."""
    row = await tx.fetchrow(queries.compact_nodes, tx.tenant_id, graph.id, horizon, limit)
    assert row is not None
    return row["nodes"], row["versions"]


async def allow_long_statements(tx: Transaction, longest: timedelta) -> None:
    """Let every statement of this transaction run so long."""
    await tx.execute(queries.allow_long_statements, round(longest.total_seconds() * 1000))


async def lineages_named(tx: Transaction, graph: Graph, names: str, *, wanted: str) -> list[Piece]:
    """Lineages that have the wanted name, and deleted ones that had any of the names; patterns of whole names."""
    rows = await tx.fetch(queries.lineages_named, tx.tenant_id, graph.id, names, wanted)
    return [Piece(**row) for row in rows]


async def names_of(tx: Transaction, node_ids: Sequence[UUID]) -> list[str]:
    """Every name that lineages ever had."""
    return [row["name"] for row in await tx.fetch(queries.names_of, tx.tenant_id, node_ids)]


async def lineages_about(tx: Transaction, graph: Graph, targets: Targets, *, relation: str) -> list[Piece]:
    """Lineages that go with those of the targets."""
    found = targets.node_ids, targets.pattern, targets.created_by, relation
    return [Piece(**row) for row in await tx.fetch(queries.lineages_about, tx.tenant_id, graph.id, *found)]


async def observations_about(tx: Transaction, graph: Graph, targets: Targets) -> list[Piece]:
    """Observations of others that go with the targets."""
    found = targets.node_ids, targets.pattern, targets.created_by
    return [Piece(**row) for row in await tx.fetch(queries.observations_about, tx.tenant_id, graph.id, *found)]


async def relations_about(tx: Transaction, graph: Graph, targets: Targets) -> list[Piece]:
    """Relations between others that go with the targets."""
    found = targets.node_ids, targets.pattern, targets.created_by
    return [Piece(**row) for row in await tx.fetch(queries.relations_about, tx.tenant_id, graph.id, *found)]


async def heads_about(tx: Transaction, graph: Graph, targets: Targets) -> list[UUID]:
    """Live entities of others that say an erased name."""
    rows = await tx.fetch(queries.heads_about, tx.tenant_id, graph.id, targets.node_ids, targets.pattern)
    return [row["id"] for row in rows]


async def erase_passages(tx: Transaction, graph: Graph, targets: Targets) -> tuple[int, int, list[UUID]]:
    """Delete the targets' passages and vectors; how many of each, and the sequences that they stood in."""
    memories = [observation.id for observation in targets.observations]
    names, pattern = list(targets.names), targets.pattern
    row = await tx.fetchrow(queries.erase_passages, tx.tenant_id, graph.id, targets.node_ids, memories, pattern, names)
    assert row is not None
    return row["passages"], row["vectors"], row["sequences"]


async def clear_windows(tx: Transaction, graph: Graph, sequences: Sequence[UUID]) -> None:
    """Take from passages of these sequences what they hold of their neighbours."""
    await tx.execute(queries.clear_windows, tx.tenant_id, graph.id, sequences)


async def erase_rows(tx: Transaction, graph: Graph, targets: Targets) -> dict[str, int]:
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


async def count_kept(tx: Transaction, graph: Graph, targets: Targets) -> dict[str, int]:
    """How many rows of each table still say an erased name."""
    row = await tx.fetchrow(queries.count_kept, tx.tenant_id, graph.id, targets.pattern, targets.created_by)
    return dict(row or {})


async def count_of_graph(tx: Transaction, graph_id: UUID) -> dict[str, int]:
    """How many rows of each table are a graph's."""
    row = await tx.fetchrow(queries.count_of_graph, tx.tenant_id, graph_id)
    return dict(row or {})
