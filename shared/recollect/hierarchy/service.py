"""Use cases of hierarchy. A subtree moves by one new version of its top; no walk takes a query per node."""

from dataclasses import replace
from uuid import UUID

from recollect.errors import Conflict, ErrorCode
from recollect.graphs.model import Graph, Revision
from recollect.hierarchy import store
from recollect.nodes import service as nodes
from recollect.nodes.model import Entity, Rewrite
from recollect.platform.db import Transaction


async def set_parent(tx: Transaction, revision: Revision, name: str, parent: str | None) -> Entity:
    """Put an entity, with all that is below it, under another; None makes it a root.

    The graph's write lock is held, so that two moves cannot close a cycle between them.
    Raises NotFound for either name, Conflict where the parent lies below the entity.
    """
    named = await nodes.require_entities(tx, revision.graph, [name, *([parent] if parent else [])])
    child_id, parent_id = named[name].id, named[parent].id if parent else None
    if parent_id is not None and child_id in (parent_id, *await store.list_ancestors(tx, parent_id)):
        raise Conflict(f"{parent!r} lies below {name!r}: this would close a cycle", code=ErrorCode.CYCLE)
    head = (await nodes.read_heads(tx, revision.graph, [child_id]))[child_id]
    if head.fields.parent_id != parent_id:
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, parent_id=parent_id))])
    (entity,) = await nodes.entities_by_id(tx, [child_id])
    return entity


async def get_parent(tx: Transaction, graph: Graph, name: str) -> Entity | None:
    """The entity right above, or None; raises NotFound."""
    above = await get_ancestors(tx, graph, name)
    return above[0] if above else None


async def get_ancestors(tx: Transaction, graph: Graph, name: str) -> list[Entity]:
    """The entities above, nearest first; raises NotFound."""
    return await nodes.entities_by_id(tx, await store.list_ancestors(tx, await _id_of(tx, graph, name)))


async def get_children(tx: Transaction, graph: Graph, name: str, *, offset: int, limit: int) -> list[Entity]:
    """The entities right below, oldest first; raises NotFound."""
    node_id = await _id_of(tx, graph, name)
    return await nodes.entities_by_id(tx, await store.list_children(tx, node_id, offset=offset, limit=limit))


async def get_descendants(tx: Transaction, graph: Graph, name: str, *, offset: int, limit: int) -> list[Entity]:
    """The entities below, depth first; raises NotFound."""
    node_id = await _id_of(tx, graph, name)
    return await nodes.entities_by_id(tx, await store.list_descendants(tx, node_id, offset=offset, limit=limit))


async def get_roots(tx: Transaction, graph: Graph, *, offset: int, limit: int) -> list[Entity]:
    """The entities that have no parent, oldest first."""
    return await nodes.entities_by_id(tx, await store.list_roots(tx, graph, offset=offset, limit=limit))


async def _id_of(tx: Transaction, graph: Graph, name: str) -> UUID:
    return (await nodes.require_entities(tx, graph, [name]))[name].id
