"""Use cases of walking from a node: what lies around it, and the paths from it to another."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from recollect.graphs import service as graphs
from recollect.lineages import service as lineages
from recollect.lineages.model import Version
from recollect.memory.facts import graph_of, require_nodes
from recollect.nodes.model import unique
from recollect.platform.db import Transaction
from recollect.relations.model import Edge, Walk
from recollect.traversal import service as traversal
from recollect.traversal.model import MAX_PATH_DEPTH


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Nodes, nearest first, with the edges among them, or paths through them; `cut` says why it ended early."""

    nodes: list[Version]
    edges: list[Edge]
    paths: list[list[UUID]] = field(default_factory=list)
    cut: str | None = None


async def surroundings(
    tx: Transaction, graph_name: str | None, node_id: UUID, *, depth: int, max_nodes: int, as_of: str | None = None
) -> Surroundings:
    """What lies within `depth` relations of a node (`as_of`: lay), the node itself first; raises NotFound."""
    graph = await graph_of(tx, graph_name, node_id)
    walk = Walk(at=await graphs.moment(tx, graph, as_of))
    await require_nodes(tx, graph, [node_id], walk)
    reached = await traversal.neighbourhood(tx, graph, [node_id], walk, depth=depth, max_nodes=max_nodes)
    met = await lineages.get_nodes(tx, graph, list(reached.depths), at=walk.at)
    return Surroundings(met, _among(list(reached.edges.values()), met), cut=reached.cut)


async def trace(
    tx: Transaction, graph_name: str | None, start: UUID, end: UUID, *, max_paths: int, as_of: str | None = None
) -> Surroundings:
    """Paths between two nodes, shortest first, whichever way their relations point; raises NotFound for either."""
    graph = await graph_of(tx, graph_name, start)
    walk = Walk(at=await graphs.moment(tx, graph, as_of))
    await require_nodes(tx, graph, [start, end], walk)
    found = await traversal.all_paths(tx, graph, start, end, walk, max_depth=MAX_PATH_DEPTH, max_paths=max_paths)
    met = await lineages.get_nodes(tx, graph, unique(node for path in found.paths for node in path), at=walk.at)
    known = {node.node_id for node in met}
    # A path may lead over a placeholder, which is shown nowhere.
    paths = [path for path in found.paths if known.issuperset(path)]
    return Surroundings(met, _among(found.edges, met), paths, found.cut)


def _among(edges: Sequence[Edge], met: Sequence[Version]) -> list[Edge]:
    known = {node.node_id for node in met}
    return [edge for edge in edges if edge.from_node in known and edge.to_node in known]
