"""Use cases of links: relations that a node is given as it is made, and those that its own text asks for.

By name at once: a fact mentions the entities whose names, or former names, stand in it. By meaning once the worker has
embedded the fact: then it mentions the entities, too, of which something is known that means nearly the same.
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
from recollect.platform.db import Database
from recollect.platform.transactions import Transaction
from recollect.retrieval.recall import service as recall
from recollect.retrieval.search import service as search

MIN_LINK_SIMILARITY = 0.8
"""The least cosine of a fact and what is known of an entity from which it is related, where none is given."""

MAX_LINKED_BY_SIMILARITY = 5
"""Entities that a fact is related to for its meaning, at most: the nearest."""

MAX_GRAPHS = 10
"""Graphs of a tenant that one look finds."""


@dataclass(frozen=True, slots=True)
class RequestedLink:
    """A relation that a new node is to have to a node that is there. `named`: it must be an entity, or must not be."""

    to_node: UUID
    type: str
    named: bool | None = None


async def link(tx: Transaction, revision: Revision, node_id: UUID, links: Sequence[RequestedLink]) -> list[Edge]:
    """Give a node its links; those that it has already stay, and none leads back to it.

    Raises NotFound for the first target that is not there.
    """
    targets = unique(link.to_node for link in links)
    found = {node.node_id: node for node in await lineages.get_nodes(GraphView(tx, revision.graph), targets)}
    for wanted in links:
        target = found.get(wanted.to_node)
        if target is None or wanted.named not in (None, target.name is not None):
            raise not_found(wanted.to_node)
    return await _put(tx, revision, [NewEdge(node_id, wanted.to_node, wanted.type) for wanted in links])


async def link_mentions(tx: Transaction, revision: Revision, node_id: UUID, text: str) -> list[Edge]:
    """Relate a node to every entity that its text names."""
    named = await search.find_mentioned(tx, revision.graph, text)
    return await _put(tx, revision, [NewEdge(node_id, entity, MENTIONS_ENTITY) for entity in named])


async def link_when_embedded(tx: Transaction, revision: Revision, node_id: UUID, threshold: float | None) -> None:
    """Have the worker relate a fact to the entities that it is like, at least as near as `threshold` (a cosine)."""
    await store.insert_autolink(tx, revision, node_id, MIN_LINK_SIMILARITY if threshold is None else threshold)


async def tenants_with_unlinked(db: Database) -> list[UUID]:
    """Tenants that have embedded facts to be related."""
    async with db.system() as session:
        return await store.tenants_with_autolinks(session)


async def graphs_with_unlinked(tx: Transaction) -> list[UUID]:
    """Graphs that have embedded facts to be related, up to MAX_GRAPHS."""
    return await store.graphs_with_autolinks(tx, limit=MAX_GRAPHS)


async def link_similar(tx: Transaction, revision: Revision, *, limit: int) -> int:
    """Relate up to `limit` facts that were embedded to the entities that they are like; how many facts.

    A fact that is gone, outdated or archived by now is related to nothing.
    """
    wanted = await store.take_autolinks(tx, revision.graph.id, limit=limit)
    alike = (
        await recall.find_similar_entities(tx, revision.graph, wanted, limit=MAX_LINKED_BY_SIMILARITY) if wanted else []
    )
    await _put(tx, revision, [NewEdge(fact, entity, MENTIONS_ENTITY) for fact, entity in alike])
    return len(wanted)


async def _put(tx: Transaction, revision: Revision, edges: Sequence[NewEdge]) -> list[Edge]:
    others = [edge for edge in edges if edge.from_node != edge.to_node]
    return await relations.put_edges(tx, revision, others) if others else []
