"""One function per query of `queries.sql`."""

from collections.abc import Sequence
from uuid import UUID

from recollect.graph.aliases.model import FoundEntity, NamedEntity
from recollect.graph.graphs.model import Graph, Revision
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction

queries = Queries(__package__)


async def insert_aliases(tx: Transaction, revision: Revision, aliases: Sequence[tuple[UUID, str]]) -> list[UUID]:
    """Give nodes aliases; return the nodes that got a new one."""
    nodes, names = [node_id for node_id, _ in aliases], [name for _, name in aliases]
    return await tx.fetch_column(
        queries.insert_aliases,
        "node_id",
        graph_id=revision.graph.id,
        revision=revision.number,
        node_ids=nodes,
        names=names,
    )


async def remove_other_aliases(
    tx: Transaction, revision: Revision, node_ids: Sequence[UUID], except_aliases: Sequence[tuple[UUID, str]]
) -> list[UUID]:
    """Remove all aliases of nodes except those `except_aliases`; return the nodes that lost one."""
    nodes, names = [node_id for node_id, _ in except_aliases], [name for _, name in except_aliases]
    return await tx.fetch_column(
        queries.remove_other_aliases,
        "node_id",
        revision=revision.number,
        node_ids=node_ids,
        except_node_ids=nodes,
        except_names=names,
    )


async def remove_aliases(tx: Transaction, revision: Revision, aliases: Sequence[tuple[UUID, str]]) -> None:
    """Remove aliases of nodes."""
    ids, names = [node_id for node_id, _ in aliases], [name for _, name in aliases]
    await tx.execute(queries.remove_aliases, revision=revision.number, node_ids=ids, names=names)


async def move_names(tx: Transaction, revision: Revision, node_id: UUID, sources: Sequence[UUID]) -> None:
    """Give a node the names and aliases of these nodes as aliases."""
    await tx.execute(
        queries.move_names, graph_id=revision.graph.id, node_id=node_id, revision=revision.number, sources=sources
    )


async def find_entities(
    tx: Transaction, graph: Graph, names: Sequence[str], *, exactly: bool
) -> dict[str, FoundEntity]:
    """The entities of a graph with these names (`exactly` in this form), by the names that were asked for."""
    query = queries.find_entities_exactly if exactly else queries.find_entities
    rows = await tx.fetch(query, graph_id=graph.id, names=names)
    return {row["wanted"]: FoundEntity(**row) for row in rows}


async def names_of(tx: Transaction, node_ids: Sequence[UUID]) -> dict[UUID, NamedEntity]:
    """The names of live entities, by id."""
    return {row["id"]: NamedEntity(**row) for row in await tx.fetch(queries.names_of, node_ids=node_ids)}
