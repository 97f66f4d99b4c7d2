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
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import unique
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
    Target,
)
from recollect.memory.reading import require_nodes
from recollect.platform.transactions import Transaction

FACT_ID = "fact_id"
"""Where a triplet's properties keep the fact that says it: with the edge, so that it has the edge's history."""


@dataclass(frozen=True, slots=True)
class Triplet:
    """A relation between two names, in both its shapes, and the fact that says so, if one that is there does."""

    named: Relation
    edge: Edge
    fact_id: UUID | None


async def relate(tx: Transaction, revision: Revision, edge: NewEdge) -> EdgeUpsert:
    """Relate two nodes by id, or give the relation that is there other properties. Raises NotFound for either end."""
    await require_nodes(GraphView(tx, revision.graph), [edge.from_node, edge.to_node])
    (upserted,) = await relations.upsert_edges(tx, revision, [edge])
    return upserted


async def unrelate(tx: Transaction, revision: Revision, from_node: UUID, to_node: UUID, type_: str | None) -> int:
    """Take the relations from one node to another away, `type_` None: of every type; how many there were."""
    edges = await relations.edges_between(tx, revision.graph, from_node, to_node, type_)
    return await relations.delete_edges(tx, revision, [edge.id for edge in edges]) if edges else 0


async def create_triplet(
    tx: Transaction,
    revision: Revision,
    triplet: NewRelation,
    fact_id: UUID | None,
    kinds: tuple[str | None, str | None] = (None, None),
) -> tuple[EdgeUpsert, UUID | None]:
    """Relate two entities by name, made where they are new, or give the relation that is there other metadata.

    `kinds` are those of a subject and an object that are new. The fact that says so, if there is one, is related to
    both, and is answered where the relation keeps it. Raises NotFound for that fact, InvalidInput for a kind of a new
    entity that the whitelist leaves out.
    """
    if fact_id is not None:
        await require_nodes(GraphView(tx, revision.graph), [fact_id])
    ends = unique([triplet.source, triplet.target])
    made_of = [NewEntity(triplet.source, kinds[0]), NewEntity(triplet.target, kinds[1])]
    await entities.create_entities(tx, revision, made_of, paths=["subject_type", "object_type"])
    named = await nodes.require_entities(tx, revision.graph, ends)
    source, target = named[triplet.source].id, named[triplet.target].id
    if fact_id is not None:
        await relations.put_edges(
            tx, revision, [NewEdge(fact_id, i, MENTIONS_ENTITY) for i in unique([source, target])]
        )
    there = await relations.edges_between(tx, revision.graph, source, target, triplet.type)
    metadata = _properties(there[0] if there else None, triplet, fact_id)
    edge = NewEdge(source, target, triplet.type, metadata=metadata)
    (upserted,) = await relations.upsert_edges(tx, revision, [edge])
    told, kept = _with_fact(upserted.edge, await _facts_there(GraphView(tx, revision.graph), [upserted.edge]))
    return replace(upserted, edge=told), kept


async def search_triplets(
    view: GraphView, only: RelationFilter, *, offset: int, limit: int
) -> tuple[list[Triplet], bool]:
    """Relations between names, oldest first, and whether more follow."""
    found = await relations.search_relations(view, only, offset=offset, limit=limit + 1)
    page = found[:limit]
    edges = await relations.edges_by_id(view, [relation.id for relation in page])
    there = await _facts_there(view, edges)
    triplets = [Triplet(named, *_with_fact(edge, there)) for named, edge in zip(page, edges, strict=True)]
    return triplets, len(found) > limit


async def connect(
    tx: Transaction, revision: Revision, edges: Sequence[EdgeSpec], refs: Mapping[str, UUID] | None = None
) -> list[EdgeUpsert | RecollectError]:
    """Upsert edges, best effort, between lineages and what `refs` stand for; into other graphs by their names."""
    homes = await graphs.find_graph_ids(tx, unique(edge.to_graph for edge in edges if edge.to_graph is not None))
    steps = [_resolved(tx, revision.graph, edge, refs or {}, homes) for edge in edges]
    upserted = iter(await relations.connect(tx, revision, [step for step in steps if isinstance(step, NewEdge)]))
    return [next(upserted) if isinstance(step, NewEdge) else step for step in steps]


async def put_edge(tx: Transaction, revision: Revision, edge: EdgeSpec) -> EdgeUpsert:
    """Make one edge, or give the one that is there other properties; raises what `connect` would answer."""
    (outcome,) = await connect(tx, revision, [edge])
    if isinstance(outcome, RecollectError):
        raise outcome
    return outcome


def _properties(there: Edge | None, triplet: NewRelation, fact_id: UUID | None) -> dict[str, Any]:
    """What the relation is to keep: what is given, else what it has; and the fact, as long as no other is given."""
    former = {} if there is None else there.metadata
    given = former if triplet.metadata is None else triplet.metadata
    said = {FACT_ID: former[FACT_ID]} if FACT_ID in former else {}
    return given | (said if fact_id is None else {FACT_ID: str(fact_id)})


async def _facts_there(view: GraphView, edges: Sequence[Edge]) -> set[UUID]:
    """Those of the facts that these edges keep which the graph has."""
    kept = unique(fact_id for edge in edges if (fact_id := _kept_fact(edge)) is not None)
    found = await lineages.get_nodes(view, kept) if kept else []
    return {node.node_id for node in found if node.name is None}


def _kept_fact(edge: Edge) -> UUID | None:
    """The fact that an edge keeps. A text of the user's own under that key may be no id."""
    try:
        return UUID(str(edge.metadata.get(FACT_ID)))
    except ValueError:
        return None


def _with_fact(edge: Edge, facts: set[UUID]) -> tuple[Edge, UUID | None]:
    """An edge with the properties that it was given, and the fact that says it, if that is one of these."""
    fact_id = _kept_fact(edge)
    if fact_id not in facts:
        return edge, None
    return replace(edge, metadata={key: value for key, value in edge.metadata.items() if key != FACT_ID}), fact_id


def _resolved(
    tx: Transaction, graph: Graph, edge: EdgeSpec, refs: Mapping[str, UUID], homes: Mapping[str, UUID]
) -> NewEdge | RecollectError:
    try:
        source = _end("from", edge.source, refs)
        target = _end("to", edge.target, refs)
        to_graph = graph.id if edge.to_graph is None else _home(tx, edge.to_graph, homes)
    except RecollectError as error:
        return error
    return NewEdge(source, target, edge.type, to_graph, edge.metadata, edge.ordinal, edge.actor)


def _end(side: str, target: Target, refs: Mapping[str, UUID]) -> UUID:
    """The node that an end of an edge names, by a ref (the target's name) or by id."""
    if (target.id is None) == (target.name is None):
        raise InvalidInput(f"Give {side}_ref or {side}_lineage, one of them", path=f"{side}_ref")
    if target.id is not None:
        return target.id
    assert target.name is not None
    if target.name not in refs:
        raise InvalidInput(f"No node of this call that was written has the ref {target.name!r}", path=f"{side}_ref")
    return refs[target.name]


def _home(tx: Transaction, name: str, homes: Mapping[str, UUID]) -> UUID:
    if name in homes:
        return homes[name]
    if tx.caller.graphs is not None:
        raise Forbidden("This credential does not reach that graph.", code=ErrorCode.GRAPH_NOT_ALLOWED, path="to_graph")
    raise NotFound(f"There is no graph named {name!r}.", code=ErrorCode.GRAPH_NOT_FOUND, path="to_graph")
