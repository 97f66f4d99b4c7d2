"""The tool `create_summary_fact`."""

from typing import Annotated

from msgspec import Meta

from recollect.errors import require_none
from recollect.graph.nodes.model import NewFact
from recollect.memory import writing
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Reply
from recollect_gateway.mcp_endpoint.tools.facts.errors import facts_tool
from recollect_gateway.mcp_endpoint.tools.facts.node_arguments import FactKind, Text, text_fault
from recollect_gateway.mcp_endpoint.tools.facts.shapes import (
    DEFAULT_SOURCE,
    NodeId,
    OneNode,
    OwnedArguments,
    graph_of,
    node_id,
    one_node,
)

MAX_SUMMARIZED = 100


class CreateSummaryFact(OwnedArguments, frozen=True, rename=None):
    """Arguments of `create_summary_fact`."""

    fact_ids: Annotated[list[NodeId], Meta(min_length=1, max_length=MAX_SUMMARIZED)]
    summary_text: Text
    kind: Annotated[FactKind, Meta(description="Kind of the new fact")] | None = None


async def create_summary_fact(call: Call, arguments: CreateSummaryFact) -> Reply:
    """Create a fact that sums up others."""
    graph = graph_of(arguments)
    text = arguments.summary_text
    require_none([text_fault(text, "summary_text", call.settings)])
    ids = [node_id(fact_id) for fact_id in arguments.fact_ids]
    summary = NewFact(text, kind=arguments.kind, source=DEFAULT_SOURCE)
    async with call.writing(graph, prepared=await call.prepare([(None, text)])) as (tx, revision):
        return await one_node(tx, graph, await writing.summarize(tx, revision, ids, summary))


CREATE_SUMMARY_FACT = facts_tool(
    description="Create a fact that summarizes other facts, with a relation to each (SUMMARIZES).",
    result=OneNode,
    handler=create_summary_fact,
    idempotent=True,
)
