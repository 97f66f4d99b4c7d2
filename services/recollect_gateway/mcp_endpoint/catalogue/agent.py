"""The tools of toolset `agent`."""

from recollect_gateway.mcp_endpoint import confirmation
from recollect_gateway.mcp_endpoint.prompts_and_resources.resource_uris import GRAPH_VIEW
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.mcp_endpoint.tools.agent import changes, memories, relations
from recollect_gateway.operations.changes import ForgottenMemories, RevisedMemory
from recollect_gateway.operations.exploring import ExploredGraph, RelatedTriples
from recollect_gateway.operations.memories import RecalledMemories, RememberedMemories

AGENT: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="remember",
        title="Remember",
        description="Store facts for later, with the entities that each is about. A known fact is updated, not "
        "duplicated. Similar memories are returned: revise one instead.",
        toolsets=frozenset({"agent"}),
        arguments=memories.Remember,
        result=RememberedMemories,
        handler=memories.remember_items,
    ),
    ToolSpec(
        name="recall",
        title="Recall",
        description="Find memories by words and by meaning. Call it before you answer from memory. Filters apply to a "
        "memory's own properties, or else its entity's; any of several values counts (all_tags: all of them), in any "
        "case. A filter alone lists the newest, as do queries like everything.",
        toolsets=frozenset({"agent"}),
        arguments=memories.Recall,
        result=RecalledMemories,
        handler=memories.recall_memories,
        read_only=True,
        idempotent=True,
    ),
    ToolSpec(
        name="relate",
        title="Relate",
        description="Store how entities relate, as triples in active voice. They need not exist yet. Metadata "
        "replaces that of a known triple.",
        toolsets=frozenset({"agent"}),
        arguments=relations.Relate,
        result=RelatedTriples,
        handler=relations.relate_entities,
        idempotent=True,
    ),
    ToolSpec(
        name="revise",
        title="Revise",
        description="Correct a memory or node. The earlier version stays in history.",
        toolsets=frozenset({"agent"}),
        arguments=changes.Revise,
        result=RevisedMemory,
        handler=changes.revise_memory,
    ),
    ToolSpec(
        name="forget",
        title="Forget",
        description="Mark memories or nodes outdated (kept, recalled only with include_outdated), or delete them.",
        toolsets=frozenset({"agent"}),
        arguments=changes.Forget,
        result=ForgottenMemories,
        handler=changes.forget_memories,
        ask=confirmation.FORGET,
        destructive=True,
        idempotent=True,
    ),
    ToolSpec(
        name="explore",
        title="Explore",
        description="Show what surrounds a node, or the paths between two.",
        toolsets=frozenset({"agent"}),
        arguments=relations.Explore,
        result=ExploredGraph,
        handler=relations.explore_graph,
        read_only=True,
        idempotent=True,
        view=GRAPH_VIEW,
    ),
)
