"""Use cases of walking from a node: what lies around it, and the paths from it to another."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Version
from recollect.graph.nodes.model import unique
from recollect.graph.relations.model import Edge, Walk
from recollect.graph.traversal import service as traversal
from recollect.graph.traversal.model import MAX_PATH_DEPTH, Paths, PathSearch
from recollect.memory.facts import require_nodes
from recollect.platform.db import Transaction


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Nodes, nearest first, with the edges among them, or paths through them; `cut` says why it ended early."""

    nodes: list[Version]
    edges: list[Edge]
    paths: list[list[UUID]] = field(default_factory=list)
    cut: str | None = None


async def neighbourhood(view: GraphView, node_id: UUID, *, depth: int, max_nodes: int) -> Neighbourhood:
    """What lies within `depth` relations of a node, the node itself first; raises NotFound."""
    await require_nodes(view, [node_id])
    reached = await traversal.neighbourhood(view, [node_id], Walk(), depth=depth, max_nodes=max_nodes)
    met = await lineages.get_nodes(view, list(reached.depths))
    return Neighbourhood(met, _among(list(reached.edges.values()), met), cut=reached.cut)


async def open_trace(view: GraphView, start: UUID, end: UUID, *, max_paths: int) -> PathSearch:
    """What it takes to find paths between two nodes, whichever way relations point; raises NotFound for either."""
    await require_nodes(view, [start, end])
    return await traversal.open_paths(view, start, end, Walk(), max_depth=MAX_PATH_DEPTH, max_paths=max_paths)


async def traced(tx: Transaction, searched: PathSearch, found: Paths) -> Neighbourhood:
    """The nodes on the paths that were found."""
    on_paths = unique(node for path in found.paths for node in path)
    view = await traversal.view_of_paths(tx, searched)
    # A path may lead over a placeholder, which is shown nowhere else: it is told by its name, as find_path tells it.
    met = await lineages.get_nodes(view, on_paths, placeholders=True)
    return Neighbourhood(met, found.edges, found.paths, found.cut)


def _among(edges: Sequence[Edge], met: Sequence[Version]) -> list[Edge]:
    known = {node.node_id for node in met}
    return [edge for edge in edges if edge.from_node in known and edge.to_node in known]
