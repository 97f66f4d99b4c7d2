"""Use cases of links: the relations that a call requests for a new node, and those that its text implies.

A fact is related by name at once: it mentions the entities whose names, or former names, stand in its text. It is
related by meaning once the worker has embedded it: it mentions the entities of which something similar is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.graph.graphs.model import Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import not_found
from recollect.graph.nodes.model import unique
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import MENTIONS_ENTITY, Edge, NewEdge
from recollect.memory import store
from recollect.postgres.database import Database
from recollect.postgres.transactions import Transaction
from recollect.retrieval.search import service as search
from recollect.retrieval.similarity import service as similarity

MIN_LINK_SIMILARITY = 0.8
"""The least cosine of a fact and a memory about an entity that relates the two, unless the caller gives another."""

MAX_LINKED_BY_SIMILARITY = 5
"""The maximum number of entities to which a fact is related by its meaning: the nearest ones."""

MAX_GRAPHS = 10
"""The maximum number of graphs of a tenant that one query returns."""


@dataclass(frozen=True, slots=True)
class RequestedLink:
    """A relation from a new node to an existing one. `named`: the target must be an entity, or (False) must not be."""

    to_node: UUID
    type: str
    named: bool | None = None


async def link(tx: Transaction, revision: Revision, node_id: UUID, links: Sequence[RequestedLink]) -> list[Edge]:
    """Give a node its links. Links that it has already stay; a link to the node itself is left out.

    Raises NotFound for the first target that does not exist.
    """
    targets = unique(link.to_node for link in links)
    found = {node.node_id: node for node in await lineages.get_nodes(GraphView(tx, revision.graph), targets)}
    for requested in links:
        target = found.get(requested.to_node)
        if target is None or requested.named not in (None, target.name is not None):
            raise not_found(requested.to_node)
    return await _put(tx, revision, [NewEdge(node_id, requested.to_node, requested.type) for requested in links])


async def link_mentions(tx: Transaction, revision: Revision, node_id: UUID, text: str) -> list[Edge]:
    """Relate a node to every entity that its text names."""
    entity_ids = await search.find_mentioned(tx, revision.graph, text)
    return await _put(tx, revision, [NewEdge(node_id, entity_id, MENTIONS_ENTITY) for entity_id in entity_ids])


async def link_when_embedded(tx: Transaction, revision: Revision, node_id: UUID, threshold: float | None) -> None:
    """Queue a fact for the worker, which relates it to similar entities: `threshold` is the least cosine."""
    await store.insert_autolink(tx, revision, node_id, MIN_LINK_SIMILARITY if threshold is None else threshold)


async def tenants_with_unlinked(db: Database) -> list[UUID]:
    """Tenants that have embedded facts in the queue."""
    async with db.system() as session:
        return await store.tenants_with_autolinks(session)


async def graphs_with_unlinked(tx: Transaction) -> list[UUID]:
    """Graphs that have embedded facts in the queue, up to MAX_GRAPHS."""
    return await store.graphs_with_autolinks(tx, limit=MAX_GRAPHS)


async def link_similar(tx: Transaction, revision: Revision, *, limit: int) -> int:
    """Relate up to `limit` embedded facts to the entities that are similar to them; return how many facts.

    A fact that is gone, outdated or archived by now is related to nothing.
    """
    thresholds = await store.take_autolinks(tx, revision.graph.id, limit=limit)
    if not thresholds:
        return 0
    similar = await similarity.find_similar_entities(tx, revision.graph, thresholds, limit=MAX_LINKED_BY_SIMILARITY)
    await _put(tx, revision, [NewEdge(fact_id, entity_id, MENTIONS_ENTITY) for fact_id, entity_id in similar])
    return len(thresholds)


async def _put(tx: Transaction, revision: Revision, edges: Sequence[NewEdge]) -> list[Edge]:
    without_loops = [edge for edge in edges if edge.from_node != edge.to_node]
    return await relations.put_edges(tx, revision, without_loops) if without_loops else []
