"""Use cases of single relations: between nodes by id, and between entities by name, made where they are new."""

from uuid import UUID

from recollect.entities import service as entities
from recollect.entities.model import NewEntity
from recollect.graphs import service as graphs
from recollect.graphs.model import Revision
from recollect.memory.facts import require_nodes
from recollect.memory.links import MENTIONS_ENTITY
from recollect.nodes import service as nodes
from recollect.nodes.model import unique
from recollect.platform.db import Transaction
from recollect.relations import service as relations
from recollect.relations.model import Edge, NewEdge, NewRelation, Relation, RelationFilter


async def relate(tx: Transaction, revision: Revision, edge: NewEdge) -> Edge:
    """Relate two nodes by id; a relation that is there comes back as it is. Raises NotFound for either end."""
    await require_nodes(tx, revision.graph, [edge.from_node, edge.to_node])
    (made,) = await relations.put_edges(tx, revision, [edge])
    return made


async def unrelate(tx: Transaction, revision: Revision, from_node: UUID, to_node: UUID, type_: str | None) -> int:
    """Take the relations from one node to another away, `type_` None: of every type; how many there were."""
    edges = await relations.edges_between(tx, revision.graph, from_node, to_node, type_)
    return await relations.delete_edges(tx, revision, [edge.id for edge in edges]) if edges else 0


async def create_triplet(tx: Transaction, revision: Revision, triplet: NewRelation, fact_id: UUID | None) -> Edge:
    """Relate two entities by name, made where they are new; one that is there comes back as it is.

    The fact that says so, if there is one, is related to both. Raises NotFound for that fact, InvalidInput where the
    whitelist leaves entities without a kind out.
    """
    if fact_id is not None:
        await require_nodes(tx, revision.graph, [fact_id])
    ends = unique([triplet.source, triplet.target])
    await entities.create_entities(tx, revision, [NewEntity(name) for name in ends])
    named = await nodes.require_entities(tx, revision.graph, ends)
    source, target = named[triplet.source].id, named[triplet.target].id
    if fact_id is not None:
        await relations.put_edges(
            tx, revision, [NewEdge(fact_id, i, MENTIONS_ENTITY) for i in unique([source, target])]
        )
    (made,) = await relations.put_edges(
        tx, revision, [NewEdge(source, target, triplet.type, metadata=triplet.metadata)]
    )
    return made


async def search_triplets(
    tx: Transaction,
    graph_name: str | None,
    only: RelationFilter,
    *,
    offset: int,
    limit: int,
    as_of: str | None = None,
) -> tuple[list[tuple[Relation, Edge]], bool]:
    """Relations between names (`as_of`: as they were), oldest first, in both their shapes, and whether more follow."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return [], False
    found, more = await relations.find_relations(tx, graph_name, only, offset=offset, limit=limit, as_of=as_of)
    edges = await relations.edges_by_id(tx, graph, [relation.id for relation in found])
    return list(zip(found, edges, strict=True)), more
