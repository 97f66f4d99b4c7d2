"""Finds the nodes that names mean, and the names of nodes."""

from collections.abc import Sequence
from uuid import UUID

from recollect.graph.graphs.model import Graph
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import store
from recollect.graph.nodes.model import EntityNotFound, NodeRef, name_key, unique
from recollect.postgres.transactions import Transaction


async def find_named(view: GraphView, names: Sequence[str]) -> dict[str, NodeRef]:
    """The live nodes with these names, by the names that are asked for; placeholders too.

    A name in another form of the stored one (`name_key`) finds it. Of several forms, an active entity comes first, then
    exactly that name.
    """
    return await store.find_named(view, names) if names else {}


async def find_named_exactly(tx: Transaction, graph: Graph, names: Sequence[str]) -> dict[str, NodeRef]:
    """The live nodes that have these names in exactly this form, by name; placeholders too."""
    return await store.find_named_exactly(tx, graph, names) if names else {}


async def find_forms(tx: Transaction, graph: Graph, names: Sequence[str]) -> dict[str, list[NodeRef]]:
    """The live nodes of these names in all their forms, by the names that are asked for; placeholders too.

    For acts after which a name no longer finds the same node: done to all forms at once, repeating them does nothing.
    """
    if not names:
        return {}
    by_key = await store.find_forms(tx, graph, unique(map(name_key, names)))
    return {name: by_key[name_key(name)] for name in names if name_key(name) in by_key}


async def find_other_forms(tx: Transaction, graph: Graph, names: Sequence[str], *, before: int) -> dict[str, str]:
    """The names of live nodes that were stored before a revision and are other forms of these names, by the latter.

    A name that a node has in exactly this form is left out.
    """
    return await store.find_other_forms(tx, graph, names, before=before) if names else {}


async def require_entities(tx: Transaction, graph: Graph, names: Sequence[str]) -> dict[str, NodeRef]:
    """The entities with these names, by name. Raises EntityNotFound for the first name that no entity has."""
    found = await store.find_named(GraphView(tx, graph), names)
    for name in names:
        if name not in found or found[name].placeholder:
            raise EntityNotFound(name)
    return found


async def names_of(view: GraphView, node_ids: Sequence[UUID]) -> dict[UUID, str]:
    """The names of these nodes, by id, placeholders too; a node without a name is left out."""
    return await store.names_of(view, node_ids)


async def labels_of(view: GraphView, node_ids: Sequence[UUID]) -> dict[UUID, str]:
    """The label of each of these nodes in paths and relations: its name, a placeholder's too, or else its id.

    This is the only place with that rule. A fact has no name: its label is its id, which every tool takes.
    """
    names = await names_of(view, node_ids)
    return {node_id: names.get(node_id, str(node_id)) for node_id in node_ids}
