"""Use cases of aliases: let entities be found by other names too, such as those that they had before a merge."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from recollect.graph.aliases import store
from recollect.graph.aliases.model import FoundEntity, NamedEntity
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import EntityNotFound
from recollect.platform.transactions import Transaction


async def alias(
    tx: Transaction, revision: Revision, names: Mapping[UUID, Sequence[str]], *, replaced: Iterable[UUID] = ()
) -> set[UUID]:
    """Let entities be found by other names too; those for which that changed. Write a version of each in this revision.

    `replaced`: entities that are found by no others then.
    """
    wanted = [(node_id, name) for node_id, others in names.items() for name in others]
    changed = set(await store.insert_aliases(tx, revision, wanted)) if wanted else set()
    if bare := list(replaced):
        changed |= set(await store.keep_aliases(tx, revision, bare, wanted))
    await nodes.reindex(tx, revision, list(changed))
    return changed


async def keep_name(tx: Transaction, revision: Revision, node_id: UUID) -> None:
    """Let a node that is about to be renamed be found by the name that it has."""
    await store.move_names(tx, revision, node_id, [node_id])


async def inherit_names(tx: Transaction, revision: Revision, node_id: UUID, sources: Sequence[UUID]) -> None:
    """Let a node be found by the names and aliases of others; `nodes.reindex` is due then."""
    await store.move_names(tx, revision, node_id, sources)


async def rename_aliases(
    tx: Transaction, revision: Revision, *, remove: Sequence[tuple[UUID, str]], add: Sequence[tuple[UUID, str]]
) -> None:
    """Change by which former names nodes are found; `nodes.reindex` is due then."""
    if remove:
        await store.remove_aliases(tx, revision, remove)
    if add:
        await store.insert_aliases(tx, revision, add)


async def require_entities(tx: Transaction, graph: Graph, names: Sequence[str]) -> dict[str, FoundEntity]:
    """The entities with these names, by name, and how they are known. Raises EntityNotFound for the first without."""
    found = await store.find_entities(tx, graph, names)
    for name in names:
        if name not in found:
            raise EntityNotFound(name)
    return found


async def names_of(tx: Transaction, node_ids: Sequence[UUID]) -> dict[UUID, NamedEntity]:
    """How live entities are known, by id; nodes that are none are left out."""
    return await store.names_of(tx, node_ids)
