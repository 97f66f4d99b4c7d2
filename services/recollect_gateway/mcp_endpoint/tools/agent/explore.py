"""The tool `explore`."""

from recollect.memory.model import NeighbourNode
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import CUT, cut_short
from recollect_gateway.mcp_endpoint.prompts_and_resources.resource_uris import GRAPH_VIEW
from recollect_gateway.mcp_endpoint.tool import PagedReply, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.agent.lines import in_one_line
from recollect_gateway.operations.explore import ExploreBody, ExploredGraph, ExploredNode, explore, explored_body
from recollect_http.requests.argument_types import GraphChoice


class Explore(ExploreBody, frozen=True):
    """Arguments of `explore`."""

    graph: GraphChoice | None = None


async def explore_graph(call: Call, arguments: Explore) -> Reply | PagedReply:
    """Show the neighbourhood of a node, or the paths from it to another node."""
    found = await explore(call, arguments.graph, arguments)

    def reply(nodes: list[NeighbourNode], cut: str | None) -> Reply:
        explored = explored_body(found, nodes, cut)
        return Reply(explored, _explored_text(explored))

    return cut_short(found.nodes, reply, limit=arguments.max_nodes, cut=found.cut, related_items=len(found.edges))


EXPLORE = ToolSpec(
    name="explore",
    description="Show what surrounds a node, or the paths between two.",
    toolsets=frozenset({"agent"}),
    result=ExploredGraph,
    handler=explore_graph,
    read_only=True,
    view=GRAPH_VIEW,
)


def _notes(node: ExploredNode) -> str:
    notes = ", ".join(note for note in (node.kind, node.status) if note)
    return f" ({notes})" if notes else ""


def _explored_text(explored: ExploredGraph) -> str:
    lines = [" → ".join(path) for path in explored.paths]
    lines += [
        f"{edge.subject} -{edge.predicate}-> {edge.object} ({edge.created_at:%Y-%m-%d})" for edge in explored.relations
    ]
    lines += [f"- {node.name or node.id}{_notes(node)}: {node.text or ''}" for node in explored.nodes]
    lines = [in_one_line(line) for line in lines]
    if explored.cut == CUT:
        lines.append(
            "Not everything is shown: a page is full. Narrow predicates, start farther out, or give max_nodes."
        )
    elif explored.cut:
        lines.append(f"Not everything is shown: the limit on {explored.cut} was reached. Narrow predicates or depth.")
    return "\n".join(lines) or "Nothing found."
