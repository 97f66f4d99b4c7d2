"""The tool `relate`."""

from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.agent.lines import in_one_line
from recollect_gateway.operations.relate import RelateBody, RelatedTriples, relate
from recollect_http.requests.argument_types import GraphChoice


class Relate(RelateBody, frozen=True):
    """Arguments of `relate`."""

    graph: GraphChoice | None = None


async def relate_entities(call: Call, arguments: Relate) -> Reply:
    """Store relations; answer which are new, and which got other metadata."""
    related = await relate(call, arguments.graph, arguments)
    lines = (f"{each.status} {each.subject} -{each.predicate}-> {each.object}" for each in related.relations)
    return Reply(related, "\n".join(map(in_one_line, lines)))


RELATE = ToolSpec(
    name="relate",
    description="Store how entities relate, as triples in active voice. They need not exist yet. Metadata "
    "replaces that of a known triple.",
    toolsets=frozenset({"agent"}),
    result=RelatedTriples,
    handler=relate_entities,
    idempotent=True,
)
