"""`relate` and `explore`."""

from recollect.memory.model import NeighbourNode
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import CUT, cut_short
from recollect_gateway.mcp_endpoint.tool import Listing, Reply
from recollect_gateway.mcp_endpoint.tools.agent.lines import in_one_line
from recollect_gateway.operations.exploring import (
    ExploreBody,
    ExploredGraph,
    ExploredNode,
    RelateBody,
    explore,
    explored_body,
    relate,
)
from recollect_http.requests.argument_types import GraphChoice


class Relate(RelateBody, frozen=True):
    """Arguments of `relate`."""

    graph: GraphChoice | None = None


class Explore(ExploreBody, frozen=True):
    """Arguments of `explore`."""

    graph: GraphChoice | None = None


async def relate_entities(call: Call, arguments: Relate) -> Reply:
    """Keep relations; answer which are new, and whose metadata has changed."""
    related = await relate(call, arguments.graph, arguments)
    lines = (f"{each.status} {each.subject} -{each.predicate}-> {each.object}" for each in related.relations)
    return Reply(related, "\n".join(map(in_one_line, lines)))


async def explore_graph(call: Call, arguments: Explore) -> Reply | Listing:
    """Show what lies around a node, or the paths to another."""
    found = await explore(call, arguments.graph, arguments)

    def reply(nodes: list[NeighbourNode], cut: str | None) -> Reply:
        explored = explored_body(found, nodes, cut)
        return Reply(explored, _explored_text(explored))

    return cut_short(found.nodes, reply, limit=arguments.max_nodes, cut=found.cut, related_items=len(found.edges))


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
