"""Use cases of a picture of a graph: the neighbourhood of a node with little of each node, and where to begin."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages.model import not_found
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeOutline
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import Edge, Walk
from recollect.graph.traversal import service as traversal

EXCERPT = 120
"""Characters of the text of a node that has no name, at most."""

MAX_CANDIDATES = 20
"""Nodes with many relations that are looked at for one to begin with, at most: the others may have expired."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Nodes, nearest first, with the edges among them, oldest first; `cut` says why it ended early (None: it did not)."""

    nodes: list[NodeOutline]
    edges: list[Edge]
    cut: str | None = None


async def picture(view: GraphView, start: UUID, *, depth: int, max_nodes: int, max_edges: int) -> Picture:
    """The nodes within `depth` relations of a node, the node itself first; raises NotFound."""
    if not await nodes.outlines_of(view, [start], excerpt=EXCERPT):
        raise not_found(start)
    reached = await traversal.neighbourhood(view, [start], Walk(), depth=depth, max_nodes=max_nodes)
    outlines = await nodes.outlines_of(view, list(reached.depths), excerpt=EXCERPT)
    shown = [outlines[node_id] for node_id in reached.depths if node_id in outlines]
    among = _among(outlines, sorted(reached.edges.values(), key=lambda edge: edge.id))
    return Picture(shown, among[:max_edges], "edges" if len(among) > max_edges else reached.cut)


async def most_connected(view: GraphView) -> UUID | None:
    """The node with most relations among the graph's newest ones, or None where it has no relations."""
    if not view.is_there:
        return None
    candidates = await relations.most_connected(view, limit=MAX_CANDIDATES)
    there = await nodes.outlines_of(view, candidates, excerpt=1)
    return next((node_id for node_id in candidates if node_id in there), None)


def _among(node_ids: Container[UUID], edges: Sequence[Edge]) -> list[Edge]:
    return [edge for edge in edges if edge.from_node in node_ids and edge.to_node in node_ids]
