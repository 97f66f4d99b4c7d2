"""Use cases of relations: make them, take them away, find those of given nodes."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from recollect.graphs.model import Graph, Revision
from recollect.nodes import service as nodes
from recollect.nodes.model import Entity, unique, unique_by
from recollect.platform.db import Transaction
from recollect.relations import store
from recollect.relations.model import NewRelation, Relation, Subgraph
from recollect.relations.store import RemovedRelation

MAX_RELATIONS = 10_000
"""Edges in one answer at most."""


async def create_relations(tx: Transaction, revision: Revision, relations: Sequence[NewRelation]) -> list[NewRelation]:
    """Make edges between names; what was not there yet, in order. Names that nothing has become placeholders."""
    wanted = unique_by(lambda relation: relation.triple, relations)
    ends = await nodes.ensure_named(tx, revision, unique(name for r in wanted for name in (r.source, r.target)))
    made = await store.insert_relations(
        tx, revision, [(ends[relation.source].id, ends[relation.target].id, relation) for relation in wanted]
    )
    revision.touch("relations_added", [edge_id for edge_id, _ in made], relations=len(made))
    return [relation for _, relation in made]


async def delete_relations(tx: Transaction, revision: Revision, triples: Sequence[tuple[str, str, str]]) -> None:
    """Take (source, target, type) edges away; what is not there is passed over. Lonely placeholders vanish."""
    ends = await nodes.find_named(
        tx, revision.graph, unique(name for source, target, _ in triples for name in (source, target))
    )
    edges = [(ends[s].id, ends[t].id, type_) for s, t, type_ in unique(triples) if s in ends and t in ends]
    removed = await store.remove_relations(tx, revision, edges) if edges else []
    await _drop_lonely(tx, revision, _record_removed(revision, removed))


async def delete_nodes(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Delete nodes with all that belongs to them: relations, observations, passages. Lonely placeholders vanish."""
    removed = await store.remove_touching(tx, revision, node_ids)
    ends = _record_removed(revision, removed)
    await nodes.remove_nodes(tx, revision, node_ids)
    await _drop_lonely(tx, revision, ends - set(node_ids))


async def subgraph_of(tx: Transaction, entities: list[Entity], *, next_offset: int | None = None) -> Subgraph:
    """These entities with every relation that touches one of them."""
    found = await store.relations_touching(tx, [entity.id for entity in entities], limit=MAX_RELATIONS)
    return Subgraph(entities, found, next_offset)


async def subgraph_within(tx: Transaction, entities: list[Entity], *, next_offset: int | None = None) -> Subgraph:
    """These entities with the relations among them."""
    found = await store.relations_between(tx, [entity.id for entity in entities], limit=MAX_RELATIONS)
    return Subgraph(entities, found, next_offset)


async def list_relations(tx: Transaction, graph: Graph, *, offset: int = 0, limit: int | None = None) -> list[Relation]:
    """Every relation of a graph, oldest first."""
    return await store.list_relations(tx, graph, offset=offset, limit=limit)


def _record_removed(revision: Revision, removed: Iterable[RemovedRelation]) -> set[UUID]:
    edges = list(removed)
    revision.touch("relations_removed", [edge.id for edge in edges], relations=-len(edges))
    return {end for edge in edges for end in (edge.from_node, edge.to_node)}


async def _drop_lonely(tx: Transaction, revision: Revision, node_ids: Iterable[UUID]) -> None:
    candidates = list(node_ids)
    lonely = await store.find_lonely_placeholders(tx, candidates) if candidates else []
    if lonely:
        await nodes.remove_nodes(tx, revision, lonely)
