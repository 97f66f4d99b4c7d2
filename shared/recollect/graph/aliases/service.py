"""Use cases of aliases: let entities be found by other names too, such as those that they had before a merge."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from recollect.graph.aliases import store
from recollect.graph.aliases.model import FoundEntity, NamedEntity
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.nodes import indexing
from recollect.graph.nodes.model import EntityNotFound
from recollect.postgres.transactions import Transaction


async def alias(
    tx: Transaction, revision: Revision, names: Mapping[UUID, Sequence[str]], *, replaced: Iterable[UUID] = ()
) -> set[UUID]:
    """Give entities aliases; return those that changed. The caller writes a version of each in this revision.

    `replaced`: entities that lose all their other aliases.
    """
    new_aliases = [(node_id, name) for node_id, aliases in names.items() for name in aliases]
    replaced_ids = list(replaced)
    before = await store.names_of(tx, [*names, *replaced_ids])
    changed = set(await store.insert_aliases(tx, revision, new_aliases)) if new_aliases else set()
    if replaced_ids:
        changed |= set(await store.remove_other_aliases(tx, revision, replaced_ids, new_aliases))
    after = await store.names_of(tx, list(changed))
    await indexing.reindex(tx, revision, [node_id for node_id in changed if after.get(node_id) != before.get(node_id)])
    return changed


async def keep_name(tx: Transaction, revision: Revision, node_id: UUID) -> None:
    """Make the present name of a node, which is about to be renamed, an alias of it."""
    await store.move_names(tx, revision, node_id, [node_id])


async def inherit_names(tx: Transaction, revision: Revision, node_id: UUID, sources: Sequence[UUID]) -> None:
    """Give a node the names and aliases of others as aliases; the caller then calls `indexing.reindex`."""
    await store.move_names(tx, revision, node_id, sources)


async def rename_aliases(
    tx: Transaction, revision: Revision, *, remove: Sequence[tuple[UUID, str]], add: Sequence[tuple[UUID, str]]
) -> None:
    """Remove and add aliases of nodes; the caller then calls `indexing.reindex`."""
    if remove:
        await store.remove_aliases(tx, revision, remove)
    if add:
        await store.insert_aliases(tx, revision, add)


async def require_entities(
    tx: Transaction, graph: Graph, names: Sequence[str], *, exactly: bool = False
) -> dict[str, FoundEntity]:
    """The entities with these names, by the names asked for. Raises EntityNotFound for the first that no entity has.

    `exactly`: another form of a name is another name.
    """
    found = await store.find_entities(tx, graph, names, exactly=exactly)
    for name in names:
        if name not in found:
            raise EntityNotFound(name)
    return found


async def names_of(tx: Transaction, node_ids: Sequence[UUID]) -> dict[UUID, NamedEntity]:
    """The names of live entities, by id; other nodes are left out."""
    return await store.names_of(tx, node_ids)
