"""The tool `update_node`."""

from dataclasses import replace
from typing import Annotated, Any

from msgspec import Meta

from recollect.errors import require_none
from recollect.memory import revising
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Reply
from recollect_gateway.mcp_endpoint.tools.facts.errors import facts_tool
from recollect_gateway.mcp_endpoint.tools.facts.node_arguments import (
    KEPT_EMPTY,
    FactKind,
    Milliseconds,
    Source,
    Text,
    TtlDays,
    patch_of,
    text_fault,
    ttl_fault,
)
from recollect_gateway.mcp_endpoint.tools.facts.shapes import (
    NodeId,
    OneNode,
    OwnedArguments,
    Status,
    graph_of,
    metadata_fault,
    node_id,
    one_node,
)
from recollect_http.requests.argument_types import Kind


class UpdateNode(OwnedArguments, frozen=True, rename=None):
    """Arguments of `update_node`."""

    node_id: NodeId
    text: Annotated[Text, KEPT_EMPTY] | None = None
    source: Annotated[Source, KEPT_EMPTY] | None = None
    metadata: Annotated[dict[str, Any], Meta(description="Replaces the old metadata")] | None = None
    status: Status | None = None
    ttl_days: TtlDays | None = None
    expires_at: Milliseconds | None = None
    entity_type: Annotated[Kind, Meta(description="Entities only"), KEPT_EMPTY] | None = None
    kind: Annotated[FactKind, Meta(description="Facts only")] | None = None
    versioning: Annotated[bool, Meta(description="Return the new version's number; history is always kept")] = False


async def update_node(call: Call, arguments: UpdateNode) -> Reply:
    """Change a fact or an entity; answer the new version's number only if versioning is asked for."""
    graph = graph_of(arguments)
    text = arguments.text
    require_none(
        [
            None if text is None else text_fault(text, "text", call.settings),
            metadata_fault(arguments.metadata, "metadata", call.settings),
            ttl_fault(arguments.ttl_days, call.settings),
        ]
    )
    patch = replace(patch_of(arguments), text=text)
    async with call.writing(graph) as (tx, revision):
        node = await revising.change(tx, revision, node_id(arguments.node_id), patch)
        return await one_node(tx, graph, node, versioned=arguments.versioning)


UPDATE_NODE = facts_tool(
    description="Change a fact or an entity. Omitted fields stay, and every earlier version is kept.",
    result=OneNode,
    handler=update_node,
)
