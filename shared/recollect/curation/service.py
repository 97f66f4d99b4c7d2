"""Use cases of curation."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from recollect.aliases import service as aliases
from recollect.curation.model import Merged, Retagged, Retagging
from recollect.entities import service as entities
from recollect.errors import InvalidInput, TooLarge
from recollect.graphs.model import Revision
from recollect.hierarchy import service as hierarchy
from recollect.nodes import service as nodes
from recollect.nodes.model import NodeHead, NodeRef, Rewrite, unique, unique_by
from recollect.platform.db import Transaction
from recollect.relations import service as relations
from recollect.relations.model import Edge, NewEdge, Walk

MAX_REDIRECTED = 100_000
"""Relations that one merge moves, at most."""


async def merge_entities(
    tx: Transaction, revision: Revision, names: Sequence[str], target: str | None = None
) -> Merged:
    """Make several entities one: the one named `target`, else the first.

    A `target` that no entity has renames the first. Relations are redirected, doubled ones and self-loops dropped; the
    others' history stays. Raises NotFound for a name, InvalidInput for fewer than two.
    """
    kept, *others = await _merge_order(tx, revision, unique(names), target)
    return await _merge(tx, revision, kept, others)


async def merge_nodes(tx: Transaction, revision: Revision, kept: UUID, others: Sequence[UUID]) -> Merged:
    """Let an entity take over others, by id; all of them are there, as the caller knows."""
    heads = await nodes.read_heads(tx, revision.graph, [kept, *others])
    return await _merge(tx, revision, heads[kept], [heads[other] for other in others])


async def _merge(tx: Transaction, revision: Revision, kept: NodeHead, others: Sequence[NodeHead]) -> Merged:
    ids = [other.id for other in others]
    redirected = await _redirect(tx, revision, kept.id, ids)
    parent_id = await hierarchy.place_of_merged(tx, kept.id, kept.fields.parent_id, ids)
    moved, added = await entities.absorb(tx, revision, kept, others, parent_id=parent_id)
    await relations.delete_nodes(tx, revision, ids)
    (entity,) = await entities.entities_by_id(tx, [kept.id])
    return Merged(entity, moved, added, redirected)


async def retag(tx: Transaction, revision: Revision, retaggings: Sequence[Retagging]) -> list[Retagged]:
    """Give entities tags and take tags from them, each entity once; what changed, in order.

    Raises NotFound for the first name that no entity has.
    """
    heads = await _heads(tx, revision, [retagging.name for retagging in retaggings])
    tags = [_retagged(heads[retagging.name].fields.tags, retagging) for retagging in retaggings]
    changed = [
        Rewrite(heads[one.name], replace(heads[one.name].fields, tags=after))
        for (after, one) in tags
        if one.added or one.removed
    ]
    await nodes.rewrite(tx, revision, changed)
    return [one for _, one in tags]


async def set_importance(tx: Transaction, revision: Revision, importances: Mapping[str, float]) -> None:
    """Give entities, by name, an importance of 0 to 10; raises NotFound for the first name that no entity has."""
    heads = await _heads(tx, revision, list(importances))
    changed = [
        Rewrite(head, replace(head.fields, importance=importances[name]))
        for name, head in heads.items()
        if head.fields.importance != importances[name]
    ]
    await nodes.rewrite(tx, revision, changed)


async def _heads(tx: Transaction, revision: Revision, names: Sequence[str]) -> dict[str, NodeHead]:
    named = await nodes.require_entities(tx, revision.graph, names)
    heads = await nodes.read_heads(tx, revision.graph, [named[name].id for name in names])
    return {name: heads[named[name].id] for name in names}


def _retagged(tags: Sequence[str], wanted: Retagging) -> tuple[tuple[str, ...], Retagged]:
    """The tags that an entity has then, and what changed."""
    gone = {tag.lower() for tag in wanted.remove}
    removed = [tag for tag in tags if tag.lower() in gone]
    known = {tag.lower() for tag in tags} - gone
    added = [tag for tag in unique_by(str.lower, wanted.add) if tag.lower() not in known]
    kept = [tag for tag in tags if tag.lower() not in gone]
    return (*kept, *added), Retagged(wanted.name, tuple(added), tuple(removed))


async def _merge_order(tx: Transaction, revision: Revision, names: Sequence[str], target: str | None) -> list[NodeHead]:
    """The heads to merge, the one that stays first."""
    found = await nodes.find_named(tx, revision.graph, [target] if target is not None else [])
    place = found.get(target) if target is not None else None
    first = [target] if place is not None and not place.placeholder and target is not None else []
    heads = await _heads(tx, revision, unique([*first, *names]))
    if len(heads) < 2:
        raise InvalidInput("At least two entities are needed", path="entityNames")
    kept, *others = heads.values()
    if target is not None and not first:
        kept = await _renamed(tx, revision, kept, target, place)
    return [kept, *others]


async def _renamed(
    tx: Transaction, revision: Revision, head: NodeHead, name: str, placeholder: NodeRef | None
) -> NodeHead:
    """Give an entity a name that none has; it takes over the relations of a placeholder that stood for it."""
    if placeholder is not None:
        await _redirect(tx, revision, head.id, [placeholder.id])
        await relations.delete_nodes(tx, revision, [placeholder.id])
    await aliases.keep_name(tx, revision, head.id)
    await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, name=name))])
    return (await nodes.read_heads(tx, revision.graph, [head.id]))[head.id]


async def _redirect(tx: Transaction, revision: Revision, kept: UUID, others: Sequence[UUID]) -> int:
    """Copy the others' edges to the entity that stays; how many. The old ones leave with their nodes."""
    edges = await relations.edges_of(tx, revision.graph, others, Walk(), within=None, limit=MAX_REDIRECTED + 1)
    if len(edges) > MAX_REDIRECTED:
        raise TooLarge(f"One merge moves {MAX_REDIRECTED} relations at most. Delete some first")
    own = [_moved(edge, kept, set(others)) for edge in edges if edge.graph_id == revision.graph.id]
    moved = [edge for edge in own if edge.from_node != edge.to_node]
    await relations.put_edges(tx, revision, moved)
    return len(moved)


def _moved(edge: Edge, kept: UUID, others: set[UUID]) -> NewEdge:
    return NewEdge(
        from_node=kept if edge.from_node in others else edge.from_node,
        to_node=kept if edge.to_node in others else edge.to_node,
        type=edge.type,
        to_graph=edge.to_graph,
        metadata=edge.metadata,
        ordinal=edge.ordinal,
        actor=edge.created_by,
    )
