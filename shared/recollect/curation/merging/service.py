"""Use cases of merging: several entities become one."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from recollect.curation.dismissals import service as dismissals
from recollect.curation.merging.model import MergedEntity, RedirectedRelations
from recollect.errors import Conflict, ErrorCode, InvalidInput, TooLarge
from recollect.graph.aliases import service as aliases
from recollect.graph.entities import service as entities
from recollect.graph.graphs.model import Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.hierarchy import service as hierarchy
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeHead, NodeRef, Rewrite, unique
from recollect.graph.observations import service as observations
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import Edge, NewEdge, Walk
from recollect.postgres.transactions import Transaction

MAX_MOVED = {"relations": 100_000, "observations": 50_000, "children": 10_000}
"""Most relations, observations and children that entities may have which one merge makes part of another."""

MAX_MOVED_BYTES = 20_000_000
"""Bytes of the texts, tags and metadata of each of these three, at most: a merge holds the graph's lock while it writes
them. It reads them in pages."""

NAMES = "entityNames"
"""The argument that holds the names of the entities, for errors."""

ADVICE = {
    "relations": "Delete some first",
    "observations": "Delete some first",
    "children": "Give some another parent first",
}


async def merge_entities(
    tx: Transaction, revision: Revision, names: Sequence[str], target: str | None = None
) -> MergedEntity:
    """Make several entities one. The entity that stays is the one that is named `target`, else the first.

    A `target` that no entity has becomes the new name of the first. Relations are redirected; duplicates and self-loops
    are dropped. The history of the others stays. Raises NotFound for a name that no entity has, InvalidInput for fewer
    than two entities, Conflict for a `target` that belongs to an entity which is not in the list, TooLarge for more to
    move than MAX_MOVED or MAX_MOVED_BYTES.
    """
    survivor, *others = await _merge_order(tx, revision, unique(names), target)
    return await _merge(tx, revision, survivor, others, path=NAMES)


async def merge_nodes(tx: Transaction, revision: Revision, survivor: UUID, others: Sequence[UUID]) -> MergedEntity:
    """Merge entities, by id, into one that stays. The caller knows that all of them exist.

    Raises TooLarge as `merge_entities` does, before anything is written.
    """
    await nodes.require_readable(tx, revision.graph, [survivor, *others])
    heads = await nodes.read_heads(tx, revision.graph, [survivor, *others])
    return await _merge(tx, revision, heads[survivor], [heads[other] for other in others])


async def _merge(
    tx: Transaction, revision: Revision, survivor: NodeHead, others: Sequence[NodeHead], *, path: str | None = None
) -> MergedEntity:
    """`path`: the argument that holds the names of the entities, for errors."""
    ids = [other.id for other in others]
    await _require_movable(tx, revision, survivor, others, path=path)
    redirected = await _redirect(tx, revision, survivor.id, ids)
    parent_id = await hierarchy.parent_of_merged(tx, survivor.id, survivor.fields.parent_id, ids)
    moved, added = await entities.merge_fields(tx, revision, survivor, others, parent_id=parent_id)
    await dismissals.inherit(tx, revision.graph, survivor.id, ids)
    await relations.delete_nodes(tx, revision, ids)
    (entity,) = await entities.entities_by_id(GraphView(tx, revision.graph), [survivor.id])
    return MergedEntity(entity, moved, added, redirected.moved, redirected.doubled, redirected.self_loops)


async def _require_movable(
    tx: Transaction, revision: Revision, survivor: NodeHead, others: Sequence[NodeHead], *, path: str | None
) -> None:
    """Raise TooLarge where a merge would move too much, and name what."""
    ids = [other.id for other in others]
    # What is known of a hidden entity, or of one that expires, may change when others become part of it.
    changing = [*ids, survivor.id] if survivor.is_hidden or survivor.expires_at is not None else ids
    edges = await relations.measure_edges_of(tx, ids, limit=MAX_MOVED["relations"] + 1)
    _require_few("relations", *edges, path=path)
    stored = await observations.measure_of_nodes(tx, changing, limit=MAX_MOVED["observations"] + 1)
    _require_few("observations", len(stored), sum(observation.bytes for observation in stored), path=path)
    children = await entities.children_of(tx, ids, limit=MAX_MOVED["children"] + 1)
    sizes = await nodes.measure(tx, revision.graph, children[: MAX_MOVED["children"]])
    _require_few("children", len(children), sum(sizes.values()), path=path)


def _require_few(kind: str, count: int, size: int, *, path: str | None) -> None:
    if count > MAX_MOVED[kind] or size > MAX_MOVED_BYTES:
        raise TooLarge(
            f"One merge can move at most {MAX_MOVED[kind]} {kind}, of {MAX_MOVED_BYTES} bytes together. {ADVICE[kind]}",
            code=ErrorCode.REQUEST_TOO_LARGE,
            path=path,
        )


async def _merge_order(tx: Transaction, revision: Revision, names: Sequence[str], target: str | None) -> list[NodeHead]:
    """The heads to merge; the first one stays."""
    if len(names) < 2:
        raise InvalidInput("At least two entities are needed", path=NAMES)
    if len(names) > nodes.FEW_READ:
        found = await naming.require_entities(tx, revision.graph, names)
        await nodes.require_readable(tx, revision.graph, [entity.id for entity in found.values()])
    named = await nodes.require_entity_heads(tx, revision.graph, names)
    heads = {head.id: head for head in named.values()}
    if len(heads) < 2:
        raise InvalidInput("These are forms of one name: at least two entities are needed", path=NAMES)
    if target is None or target in named:
        survivor = heads.pop(named[target or names[0]].id)
        return [survivor, *heads.values()]
    holder = (await naming.find_named(GraphView(tx, revision.graph), [target])).get(target)
    if holder is not None and holder.id in heads:
        survivor = heads.pop(holder.id)
        return [survivor, *heads.values()]
    if holder is not None and not holder.placeholder:
        raise Conflict(
            f"Another entity is named {target!r}: list it among entityNames to merge it, too",
            code=ErrorCode.NAME_TAKEN,
            path="targetName",
        )
    survivor, *others = heads.values()
    return [await _renamed(tx, revision, survivor, target, holder), *others]


async def _renamed(
    tx: Transaction, revision: Revision, head: NodeHead, name: str, placeholder: NodeRef | None
) -> NodeHead:
    """Give an entity a name that no entity has. It takes over the relations of a placeholder of that name."""
    if placeholder is not None:
        edges = await relations.measure_edges_of(tx, [placeholder.id], limit=MAX_MOVED["relations"] + 1)
        _require_few("relations", *edges, path=NAMES)
        await _redirect(tx, revision, head.id, [placeholder.id])
        await relations.delete_nodes(tx, revision, [placeholder.id])
    await aliases.keep_name(tx, revision, head.id)
    await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, name=name))])
    return (await nodes.read_heads(tx, revision.graph, [head.id]))[head.id]


async def _redirect(tx: Transaction, revision: Revision, survivor: UUID, others: Sequence[UUID]) -> RedirectedRelations:
    """Copy the edges of the others to the entity that stays. The old ones are removed with their nodes."""
    view, merged_ids = GraphView(tx, revision.graph), set(others)
    edges = await relations.edges_of(view, others, Walk(), within=None, limit=MAX_MOVED["relations"] + 1)
    _require_few("relations", len(edges), 0, path=NAMES)  # Other graphs may have got some since they were counted.
    own = [edge for edge in edges if edge.graph_id == revision.graph.id]
    added = loops = 0
    async for page in relations.with_metadata(view, own):
        moved = [_moved(edge, survivor, merged_ids) for edge in page]
        without_loops = [edge for edge in moved if edge.from_node != edge.to_node]
        added += len(await relations.add_edges(tx, revision, without_loops))
        loops += len(moved) - len(without_loops)
    return RedirectedRelations(added, len(own) - loops - added, loops)


def _moved(edge: Edge, survivor: UUID, others: set[UUID]) -> NewEdge:
    return NewEdge(
        from_node=survivor if edge.from_node in others else edge.from_node,
        to_node=survivor if edge.to_node in others else edge.to_node,
        type=edge.type,
        to_graph=edge.to_graph,
        metadata=edge.metadata,
        ordinal=edge.ordinal,
        actor=edge.created_by,
        created_at=edge.created_at,
    )
