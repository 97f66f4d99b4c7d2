"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import asyncpg

from recollect.graph.graphs.model import Graph
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages.model import KindUse, TagPrefixUse, TagUse, Version, VersionFilter
from recollect.graph.nodes.model import any_case
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction

queries = Queries(__package__)


async def find_versions(tx: Transaction, graph: Graph, version_ids: Sequence[UUID]) -> list[Version]:
    """Versions in the order of `version_ids`; unknown ids are left out."""
    return _versions(await tx.fetch(queries.find_versions, graph_id=graph.id, version_ids=version_ids))


async def find_numbered(tx: Transaction, graph: Graph, node_id: UUID, number: int) -> Version | None:
    """One version of a node by its number, or None."""
    return _version(await tx.fetchrow(queries.find_numbered, graph_id=graph.id, node_id=node_id, number=number))


async def past_versions(view: GraphView, node_ids: Sequence[UUID], *, placeholders: bool = False) -> list[Version]:
    """The versions that were the heads of nodes, in the order of `node_ids`; nodes that were not live are left out."""
    return _versions(await view.fetch(queries.past_versions, node_ids=node_ids, placeholders=placeholders))


async def list_versions(
    tx: Transaction, graph: Graph, node_id: UUID, *, before: int | None, offset: int, limit: int
) -> list[Version]:
    """Versions of a node, newest first; only those before the number `before`, where it is not None."""
    return _versions(
        await tx.fetch(
            queries.list_versions, graph_id=graph.id, node_id=node_id, before=before, offset=offset, limit=limit
        )
    )


async def current_versions(
    tx: Transaction, graph_ids: Sequence[UUID], node_ids: Sequence[UUID], *, placeholders: bool = False
) -> list[Version]:
    """The newest versions of live nodes of graphs, in the order of `node_ids`; unknown ids are left out."""
    return _versions(
        await tx.fetch(queries.current_versions, graph_ids=graph_ids, node_ids=node_ids, placeholders=placeholders)
    )


async def list_heads(view: GraphView, filters: VersionFilter) -> list[UUID]:
    """Heads of live nodes that pass a filter, by their own ids, oldest node first; up to one more than its limit."""
    if filters.author is None:
        rows = await view.fetch(queries.list_heads, **_filter(filters))
    else:
        rows = await view.fetch(queries.list_heads_of_author, **_filter(filters), author=filters.author)
    return [row["version_id"] for row in rows]


def _filter(filters: VersionFilter) -> dict[str, Any]:
    """The parameters of the filter, without its author."""
    after_node, after_version = filters.after or (None, None)
    return {
        "kinds": any_case(filters.kinds),
        "tags": any_case(filters.tags),
        "status": filters.status,
        "prefix": filters.prefix,
        "after_node": after_node,
        "after_version": after_version,
        "offset": filters.offset,
        "limit": filters.limit + 1,
    }


async def past_conflicts(view: GraphView, node_ids: Sequence[UUID]) -> dict[UUID, list[UUID]]:
    """The heads of nodes that had several, newest first, by node."""
    return {row["node_id"]: row["heads"] for row in await view.fetch(queries.past_conflicts, node_ids=node_ids)}


async def describe_kinds(view: GraphView, *, examples: int, limit: int) -> tuple[int, list[KindUse]]:
    """How many nodes a graph has, and the kinds of them and of their observations, most used first."""
    rows = await view.fetch(queries.describe_kinds, examples=examples, limit=limit)
    kinds = [KindUse(row["kind"], row["count"], row["observations"], tuple(row["examples"])) for row in rows]
    return (rows[0]["total"] if rows else 0), kinds


async def count_tags(view: GraphView, *, prefix: str, offset: int = 0, limit: int) -> list[TagUse]:
    """Tags of a graph with a prefix, in any case, most used first."""
    return [TagUse(**row) for row in await view.fetch(queries.count_tags, prefix=prefix, limit=limit, offset=offset)]


async def count_tag_prefixes(view: GraphView, *, values: int, limit: int) -> list[TagPrefixUse]:
    """Prefixes of the tags of a graph, most used first, each with the values used most."""
    rows = await view.fetch(queries.count_tag_prefixes, values=values, limit=limit)
    return [TagPrefixUse(**{**row, "values": tuple(row["values"])}) for row in rows]


async def lineage_exists(tx: Transaction, graph: Graph, node_id: UUID) -> bool:
    """Whether the graph has, or had, that lineage."""
    return await tx.fetchval(queries.lineage_exists, graph_id=graph.id, node_id=node_id)


def _version(row: asyncpg.Record | None) -> Version | None:
    return None if row is None else _versions([row])[0]


def _versions(rows: Sequence[asyncpg.Record]) -> list[Version]:
    return [Version(**{**row, "tags": tuple(row["tags"]), "conflicts": tuple(row["conflicts"])}) for row in rows]
