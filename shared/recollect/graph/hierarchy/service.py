"""Use cases of hierarchy. A subtree moves by one new version of its top; no walk takes a query per node."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from recollect.errors import Conflict, ErrorCode
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import Entity
from recollect.graph.graphs.model import Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.hierarchy import store
from recollect.graph.hierarchy.model import MAX_SUBTREE, EntityPage, PageRequest
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import EntityNotFound, Rewrite, unique
from recollect.graph.relations import subgraphs
from recollect.graph.relations.model import Subgraph
from recollect.postgres.transactions import Transaction

CHECKS_PER_YIELD = 10
"""Entities whose new parents are checked before other calls may run; a check follows all ancestors."""


async def set_parent(tx: Transaction, revision: Revision, name: str, parent: str | None) -> Entity:
    """Move an entity, with its descendants, under another; None makes it a root.

    The graph's write lock is held, so that two moves cannot close a cycle between them.
    Raises NotFound for either name, Conflict where the parent lies below the entity.
    """
    named = await naming.require_entities(tx, revision.graph, [name, *([parent] if parent is not None else [])])
    child_id, parent_id = named[name].id, named[parent].id if parent is not None else None
    if parent_id is not None and child_id in _from_on_up(await store.list_ancestor_ids(tx, [parent_id]), parent_id):
        raise Conflict(f"Setting parent '{parent}' for entity '{name}' would close a cycle", code=ErrorCode.CYCLE)
    head = (await nodes.read_heads(tx, revision.graph, [child_id]))[child_id]
    if head.fields.parent_id != parent_id:
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, parent_id=parent_id))])
    (entity,) = await entities.entities_by_id(GraphView(tx, revision.graph), [child_id])
    return entity


async def set_parents(tx: Transaction, revision: Revision, parents: Mapping[UUID, UUID | None]) -> set[UUID]:
    """Move entities, by id, under others, or (None) make them roots; return those that moved.

    An entity whose new parent is one of its descendants stays where it is, and is not returned.
    """
    above = await store.list_ancestor_ids(tx, [node_id for link in parents.items() for node_id in link if node_id])
    child_counts = Counter(above.values())
    moved: dict[UUID, UUID | None] = {}
    for index, (node_id, parent_id) in enumerate(parents.items()):
        if index % CHECKS_PER_YIELD == 0:
            await asyncio.sleep(0)
        # Only a node with children can be above its new parent: a chain is moved without a walk for each link.
        if above.get(node_id) == parent_id or node_id == parent_id:
            continue
        if not child_counts[node_id] or node_id not in _from_on_up(above, parent_id):
            child_counts.subtract([above.get(node_id)])
            child_counts.update([parent_id])
            above[node_id] = moved[node_id] = parent_id
    return await _move(tx, revision, moved)


async def _move(tx: Transaction, revision: Revision, parents: Mapping[UUID, UUID | None]) -> set[UUID]:
    """Give entities these parents, in pages of bounded size; return those that are there."""
    moved = set[UUID]()
    for page in await nodes.pages_of(tx, revision.graph, list(parents)):
        heads = await nodes.read_heads(tx, revision.graph, page)
        rewrites = [Rewrite(head, replace(head.fields, parent_id=parents[head.id])) for head in heads.values()]
        await nodes.rewrite(tx, revision, rewrites)
        moved |= heads.keys()
    return moved


async def set_parents_by_name(tx: Transaction, revision: Revision, parents: Mapping[str, str]) -> None:
    """Move entities, by name, under others. Raises NotFound for any name, Conflict where that closes a cycle."""
    named = await naming.require_entities(tx, revision.graph, unique(name for link in parents.items() for name in link))
    parent_ids = {named[name].id: named[parent].id for name, parent in parents.items()}
    moved = await set_parents(tx, revision, parent_ids) if parent_ids else set()
    if len(moved) < len(parent_ids):
        name = next(name for name in parents if named[name].id not in moved)
        raise Conflict(
            f"Setting parent '{parents[name]}' for entity '{name}' would close a cycle", code=ErrorCode.CYCLE
        )


async def parent_of_merged(
    tx: Transaction, survivor: UUID, parent_id: UUID | None, others: Sequence[UUID]
) -> UUID | None:
    """The parent of an entity (`survivor`) into which others are merged, whose children it gets.

    Its own parent, unless it lies below one of the others: then the parent of the topmost of these, since the entity
    would else be its own ancestor.
    """
    above = list(_from_on_up(await store.list_ancestor_ids(tx, [survivor]), survivor))[1:]
    tops = [index for index, node_id in enumerate(above) if node_id in others]
    if not tops:
        return parent_id
    return above[tops[-1] + 1] if tops[-1] + 1 < len(above) else None


async def get_parent(view: GraphView, name: str) -> Entity | None:
    """The parent of an entity, or None; raises NotFound."""
    node_id = await _entity_id(view, name)
    above = await store.list_ancestors(view, node_id, levels=1)
    found = await entities.entities_by_id(view, above)
    return found[0] if found else None


async def get_ancestors(view: GraphView, name: str, page: PageRequest | None = None) -> EntityPage:
    """The ancestors of an entity, nearest first; raises NotFound."""
    page = page or PageRequest()
    node_id = await _entity_id(view, name)
    above = await store.list_ancestors(view, node_id, levels=page.offset + page.limit + 1)
    return await _page(view, page, above[page.offset :])


async def get_children(view: GraphView, name: str, page: PageRequest) -> EntityPage:
    """The children of an entity, oldest first; raises NotFound."""
    node_id = await _entity_id(view, name)
    return await _page(view, page, await store.list_children(view, node_id, page.with_lookahead))


async def get_descendants(view: GraphView, name: str, page: PageRequest) -> EntityPage:
    """The descendants of an entity, depth first; raises NotFound."""
    node_id = await _entity_id(view, name)
    return await _page(view, page, await store.list_descendants(view, node_id, page.with_lookahead))


async def get_roots(view: GraphView, page: PageRequest) -> EntityPage:
    """The entities that have no parent, oldest first."""
    return await _page(view, page, await store.list_roots(view, page.with_lookahead))


async def get_subtree(view: GraphView, name: str, page: PageRequest) -> Subgraph:
    """An entity and its descendants, depth first, and the relations among those of the page; raises NotFound."""
    node_id = await _entity_id(view, name)
    first = [node_id] if page.offset == 0 else []
    below = PageRequest(max(page.offset - 1, 0), page.limit + 1 - len(first))
    ids = [*first, *await store.list_descendants(view, node_id, below)]
    found = await _page(view, page, ids)
    return await subgraphs.subgraph_within(view, found.entities, next_offset=found.next_offset)


async def subtree_ids(view: GraphView, name: str) -> list[UUID]:
    """An entity and its descendants, up to MAX_SUBTREE in all; raises NotFound."""
    node_id = await _entity_id(view, name)
    return [node_id, *await store.list_descendants(view, node_id, PageRequest(0, MAX_SUBTREE - 1))]


def _from_on_up(above: Mapping[UUID, UUID | None], node_id: UUID | None) -> dict[UUID, None]:
    """A node and its ancestors, nearest first, as far as they live."""
    path: dict[UUID, None] = {}
    while node_id is not None and node_id in above and node_id not in path:
        path[node_id] = None
        node_id = above[node_id]
    return path


async def _entity_id(view: GraphView, name: str) -> UUID:
    """The id of the entity of that name; raises NotFound. Its observations are not read."""
    named = (await naming.find_named(view, [name])).get(name)
    if named is None or named.placeholder:
        raise EntityNotFound(name)
    return named.id


async def _page(view: GraphView, page: PageRequest, ids: Sequence[UUID]) -> EntityPage:
    found = await entities.entities_by_id(view, ids[: page.limit])
    return EntityPage(found, page.offset + page.limit if len(ids) > page.limit else None)
