"""Use cases of curation."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from recollect.curation.model import Merged
from recollect.errors import InvalidInput
from recollect.graphs.model import Revision
from recollect.nodes import service as nodes
from recollect.nodes.model import NodeHead, Rewrite, unique
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
    redirected = await _redirect(tx, revision, kept.id, [other.id for other in others])
    moved, added = await nodes.absorb(tx, revision, kept, others)
    await relations.delete_nodes(tx, revision, [other.id for other in others])
    (entity,) = await nodes.entities_by_id(tx, [kept.id])
    return Merged(entity, moved, added, redirected)


async def _merge_order(tx: Transaction, revision: Revision, names: Sequence[str], target: str | None) -> list[NodeHead]:
    """The heads to merge, the one that stays first."""
    found = await nodes.find_named(tx, revision.graph, [target] if target else [])
    exists = target is not None and target in found and not found[target].placeholder
    named = await nodes.require_entities(tx, revision.graph, unique([*([target] if target and exists else []), *names]))
    if len(named) < 2:
        raise InvalidInput("At least two entities are needed", path="entityNames")
    heads = await nodes.read_heads(tx, revision.graph, [node.id for node in named.values()])
    first = heads[named[target or names[0]].id] if exists or target is None else heads[named[names[0]].id]
    if target is not None and not exists:
        await nodes.rewrite(tx, revision, [Rewrite(first, replace(first.fields, name=target))])
        first = (await nodes.read_heads(tx, revision.graph, [first.id]))[first.id]
    return [first, *(heads[named[name].id] for name in names if named[name].id != first.id)]


async def _redirect(tx: Transaction, revision: Revision, kept: UUID, others: Sequence[UUID]) -> int:
    """Copy the others' edges to the entity that stays; how many. The old ones leave with their nodes."""
    edges = await relations.edges_of(tx, revision.graph, others, Walk(), within=None, limit=MAX_REDIRECTED)
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
