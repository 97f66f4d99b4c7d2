"""Use cases of links: relations that a node is given as it is made, and those that its own text asks for.

By name at once: a fact mentions the entities whose names, or former names, stand in it. By meaning only once the worker
has embedded the fact; that part is not built yet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.graphs.model import Revision
from recollect.lineages import service as lineages
from recollect.lineages.model import not_found
from recollect.nodes.model import unique
from recollect.platform.db import Transaction
from recollect.relations import service as relations
from recollect.relations.model import Edge, NewEdge
from recollect.search import service as search

MENTIONS_ENTITY = "MENTIONS_ENTITY"
"""The type of a relation from a fact to an entity that it names."""


@dataclass(frozen=True, slots=True)
class Link:
    """A relation that a new node is to have to a node that is there. `named`: it must be an entity, or must not be."""

    to_node: UUID
    type: str
    named: bool | None = None


async def link(tx: Transaction, revision: Revision, node_id: UUID, links: Sequence[Link]) -> list[Edge]:
    """Give a node its links; those that it has already stay, and none leads back to it.

    Raises NotFound for the first target that is not there.
    """
    targets = unique(link.to_node for link in links)
    found = {node.node_id: node for node in await lineages.get_nodes(tx, revision.graph, targets)}
    for wanted in links:
        target = found.get(wanted.to_node)
        if target is None or wanted.named not in (None, target.name is not None):
            raise not_found(wanted.to_node)
    return await _put(tx, revision, [NewEdge(node_id, wanted.to_node, wanted.type) for wanted in links])


async def link_mentions(tx: Transaction, revision: Revision, node_id: UUID, text: str) -> list[Edge]:
    """Relate a node to every entity that its text names."""
    named = await search.find_mentioned(tx, revision.graph, text)
    return await _put(tx, revision, [NewEdge(node_id, entity, MENTIONS_ENTITY) for entity in named])


async def _put(tx: Transaction, revision: Revision, edges: Sequence[NewEdge]) -> list[Edge]:
    others = [edge for edge in edges if edge.from_node != edge.to_node]
    return await relations.put_edges(tx, revision, others) if others else []
