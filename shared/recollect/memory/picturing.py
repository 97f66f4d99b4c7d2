"""Use cases for drawing a graph: the neighbourhood of a node, with a label for each node, and a node to begin with."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages.model import not_found
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeOutline, unique
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import Direction, Edge, Walk
from recollect.graph.traversal.model import ReachedNodes, far_end

EXCERPT = 120
"""The maximum number of characters of the text of a node without a name."""

EDGES_PER_NODE, MAX_PICTURE_EDGES = 2, 200
"""How many edges a level reads: the first number for each node that still fits, and the second in addition."""

MAX_CANDIDATES = 20
"""The maximum number of nodes with many relations that are read to find one to begin with: some may have expired."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Nodes, nearest first, with the edges among them, oldest first; `cut`: what was left out, `nodes` or `edges`."""

    nodes: list[NodeOutline]
    edges: list[Edge]
    cut: str | None = None


async def picture(view: GraphView, start: UUID, *, depth: int, max_nodes: int, max_edges: int) -> Picture:
    """The nodes within `depth` relations of a node, the node itself first; raises NotFound."""
    if not await nodes.outlines_of(view, [start], excerpt=EXCERPT):
        raise not_found(start)
    reached = await _reach(view, start, depth=depth, max_nodes=max_nodes, max_edges=max_edges)
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


async def _reach(view: GraphView, start: UUID, *, depth: int, max_nodes: int, max_edges: int) -> ReachedNodes:
    """Nodes level by level. A level reads only so many edges as the nodes that still fit may need."""
    reached, frontier = ReachedNodes({start: 0}), [start]
    for level in range(1, depth + 2):  # The last one reads the edges among the nodes of the last level, and adds none.
        room = max_nodes - len(reached.depths) if level <= depth else 0
        most = min(max_edges, EDGES_PER_NODE * room + MAX_PICTURE_EDGES) if room else max_edges
        far = await _look_around(view, frontier, reached, most)
        if level <= depth and len(far) > room:
            reached.cut = "nodes"
        frontier = far[:room]
        reached.depths |= dict.fromkeys(frontier, level)
        if not frontier:
            break
    return reached


async def _look_around(view: GraphView, frontier: Sequence[UUID], reached: ReachedNodes, most: int) -> list[UUID]:
    """Add the edges of these nodes, and return the new nodes to which they lead."""
    edges = await relations.edges_of(view, frontier, Walk(), within=[view.graph.id], limit=most + 1)
    if len(edges) > most:
        reached.cut = reached.cut or "edges"
    reached.edges |= {edge.id: edge for edge in edges[:most]}
    ends = (far_end(edge, reached.depths, Direction.BOTH) for edge in edges[:most])
    return unique(end for end in ends if end is not None)


def _among(node_ids: Container[UUID], edges: Sequence[Edge]) -> list[Edge]:
    return [edge for edge in edges if edge.from_node in node_ids and edge.to_node in node_ids]
