"""Use cases of single relations: between nodes by id, between lineages of one call, and between entities by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from recollect.errors import ErrorCode, Forbidden, InvalidInput, NotFound, RecollectError
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.nodes import naming
from recollect.graph.nodes.model import ACTIVE, unique
from recollect.graph.observations import service as observations
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import (
    MENTIONS_ENTITY,
    Edge,
    EdgeUpsert,
    NewEdge,
    NewRelation,
    Relation,
    RelationFilter,
)
from recollect.memory.model import (
    EdgeSpec,
    MemoryRef,
)
from recollect.memory.reading import require_nodes
from recollect.postgres.transactions import Transaction

FACT_ID = "fact_id"
"""The key of a triplet's fact in the metadata of its edge, so that the fact shares the edge's history."""


@dataclass(frozen=True, slots=True)
class Triplet:
    """A relation between two names, in both its shapes, and the fact that states it, if there is one."""

    named: Relation
    edge: Edge
    fact_id: UUID | None


async def relate(tx: Transaction, revision: Revision, edge: NewEdge) -> EdgeUpsert:
    """Relate two nodes by id, or change the properties of the existing relation. Raises NotFound for either end."""
    await require_nodes(GraphView(tx, revision.graph), [edge.from_node, edge.to_node])
    (upserted,) = await relations.upsert_edges(tx, revision, [edge])
    return upserted


async def unrelate(tx: Transaction, revision: Revision, from_node: UUID, to_node: UUID, type_: str | None) -> int:
    """Delete the relations from one node to another, of every type where `type_` is None; return how many."""
    edges = await relations.edges_between(tx, revision.graph, from_node, to_node, type_)
    return await relations.delete_edges(tx, revision, [edge.id for edge in edges]) if edges else 0


async def create_triplet(
    tx: Transaction,
    revision: Revision,
    triplet: NewRelation,
    fact_id: UUID | None,
    kinds: tuple[str | None, str | None] = (None, None),
) -> tuple[EdgeUpsert, UUID | None]:
    """Relate two entities by name, or change the metadata of the existing relation. New entities are created.

    `kinds`: of the subject and of the object, where these are new. The fact that states the triplet, if one is given,
    is related to both. Returns the edge and the fact that it keeps. Raises NotFound for the fact, InvalidInput for a
    kind of a new entity that the whitelist leaves out.
    """
    if fact_id is not None:
        await require_nodes(GraphView(tx, revision.graph), [fact_id])
    ends = unique([triplet.source, triplet.target])
    new_entities = [NewEntity(triplet.source, kinds[0]), NewEntity(triplet.target, kinds[1])]
    await entities.create_entities(tx, revision, new_entities, paths=["subject_type", "object_type"], bring_back=False)
    named = await naming.require_entities(tx, revision.graph, ends)
    if named[triplet.source].status != ACTIVE:
        await observations.bring_back(tx, revision, [named[triplet.source].id])
    source, target = named[triplet.source].id, named[triplet.target].id
    if fact_id is not None:
        mentions = [NewEdge(fact_id, node_id, MENTIONS_ENTITY) for node_id in unique([source, target])]
        await relations.put_edges(tx, revision, mentions)
    existing = await relations.edges_between(tx, revision.graph, source, target, triplet.type)
    metadata = _metadata(existing[0] if existing else None, triplet, fact_id)
    (upserted,) = await relations.upsert_edges(tx, revision, [NewEdge(source, target, triplet.type, metadata=metadata)])
    facts = await _existing_facts(GraphView(tx, revision.graph), [upserted.edge])
    edge, stored_fact_id = _split_fact(upserted.edge, facts)
    return replace(upserted, edge=edge), stored_fact_id


async def search_triplets(
    view: GraphView, filters: RelationFilter, *, offset: int, limit: int
) -> tuple[list[Triplet], bool]:
    """Relations between names, oldest first, and whether more follow."""
    found = await relations.search_relations(view, filters, offset=offset, limit=limit + 1)
    page = found[:limit]
    edges = await relations.edges_by_id(view, [relation.id for relation in page])
    facts = await _existing_facts(view, edges)
    triplets = [Triplet(named, *_split_fact(edge, facts)) for named, edge in zip(page, edges, strict=True)]
    return triplets, len(found) > limit


async def connect(
    tx: Transaction, revision: Revision, edges: Sequence[EdgeSpec], refs: Mapping[str, UUID] | None = None
) -> list[EdgeUpsert | RecollectError]:
    """Upsert edges, best effort. Their ends are lineages or `refs`; edges into other graphs have the graph's name."""
    homes = await graphs.find_graph_ids(tx, unique(edge.to_graph for edge in edges if edge.to_graph is not None))
    resolved = [_resolve(tx, revision.graph, edge, refs or {}, homes) for edge in edges]
    upserts = iter(await relations.connect(tx, revision, [edge for edge in resolved if isinstance(edge, NewEdge)]))
    return [next(upserts) if isinstance(edge, NewEdge) else edge for edge in resolved]


async def put_edge(tx: Transaction, revision: Revision, edge: EdgeSpec) -> EdgeUpsert:
    """Make one edge, or change the properties of the existing one; raises the error that `connect` would return."""
    (outcome,) = await connect(tx, revision, [edge])
    if isinstance(outcome, RecollectError):
        raise outcome
    return outcome


def _metadata(existing: Edge | None, triplet: NewRelation, fact_id: UUID | None) -> dict[str, Any]:
    """The metadata of the upserted edge: the triplet's, else the existing; and the new fact's id, else the existing."""
    before = {} if existing is None else existing.metadata
    metadata = before if triplet.metadata is None else triplet.metadata
    fact_before = {FACT_ID: before[FACT_ID]} if FACT_ID in before else {}
    return metadata | (fact_before if fact_id is None else {FACT_ID: str(fact_id)})


async def _existing_facts(view: GraphView, edges: Sequence[Edge]) -> set[UUID]:
    """The ids of facts in the metadata of these edges, as far as the graph has such facts."""
    fact_ids = unique(fact_id for edge in edges if (fact_id := _stored_fact_id(edge)) is not None)
    found = await lineages.get_nodes(view, fact_ids) if fact_ids else []
    return {node.node_id for node in found if node.name is None}


def _stored_fact_id(edge: Edge) -> UUID | None:
    """The id of the fact in an edge's metadata. A text that the user stored under that key may be no id."""
    try:
        return UUID(str(edge.metadata.get(FACT_ID)))
    except ValueError:
        return None


def _split_fact(edge: Edge, facts: set[UUID]) -> tuple[Edge, UUID | None]:
    """An edge without the fact in its metadata, and the id of that fact, if it is one of `facts`."""
    fact_id = _stored_fact_id(edge)
    if fact_id not in facts:
        return edge, None
    return replace(edge, metadata={key: value for key, value in edge.metadata.items() if key != FACT_ID}), fact_id


def _resolve(
    tx: Transaction, graph: Graph, edge: EdgeSpec, refs: Mapping[str, UUID], homes: Mapping[str, UUID]
) -> NewEdge | RecollectError:
    try:
        source = _end("from", edge.source, refs)
        target = _end("to", edge.target, refs)
        to_graph = graph.id if edge.to_graph is None else _home(tx, edge.to_graph, homes)
    except RecollectError as error:
        return error
    return NewEdge(source, target, edge.type, to_graph, edge.metadata, edge.ordinal, edge.actor)


def _end(side: str, target: MemoryRef, refs: Mapping[str, UUID]) -> UUID:
    """The node that an end of an edge names, by a ref (the target's name) or by id."""
    if (target.id is None) == (target.name is None):
        raise InvalidInput(f"Give either {side}_ref or {side}_lineage", path=f"{side}_ref")
    if target.id is not None:
        return target.id
    assert target.name is not None
    if target.name not in refs:
        raise InvalidInput(f"This call has written no node with the ref {target.name!r}", path=f"{side}_ref")
    return refs[target.name]


def _home(tx: Transaction, name: str, homes: Mapping[str, UUID]) -> UUID:
    if name in homes:
        return homes[name]
    if tx.caller.graphs is not None:
        raise Forbidden(
            "This credential has no access to that graph.", code=ErrorCode.GRAPH_NOT_ALLOWED, path="to_graph"
        )
    raise NotFound(f"There is no graph named {name!r}.", code=ErrorCode.GRAPH_NOT_FOUND, path="to_graph")
