"""The tools of toolset `agent`."""

from recollect_gateway.mcp_endpoint import confirmation
from recollect_gateway.mcp_endpoint.resource_uris import GRAPH_VIEW
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_gateway.mcp_endpoint.toolsets.agent import changes, memories, relations
from recollect_gateway.operations.memories import RecalledMemories, RememberedMemories

AGENT: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="remember",
        title="Remember",
        description="Keep facts for later. Say what each is about, so that it is found with that entity; what is known "
        "is updated, not doubled, and close memories come back so that you can revise instead. Tags and the like are "
        "the memory's own.",
        toolsets=frozenset({"agent"}),
        arguments=memories.Remember,
        result=RememberedMemories,
        handler=memories.remember_items,
    ),
    ToolSpec(
        name="recall",
        title="Recall",
        description="Find what was remembered, by words and by meaning. Ask before answering from memory. Filters look "
        "at what the memory says, else at its entity.",
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
        description="Keep how entities relate, as triples in active voice. Names need not exist yet. "
        "Metadata replaces that of a known triple.",
        toolsets=frozenset({"agent"}),
        arguments=relations.Relate,
        result=relations.RelatedTriples,
        handler=relations.relate,
        idempotent=True,
    ),
    ToolSpec(
        name="revise",
        title="Revise",
        description="Correct a memory or node. What it was stays in history.",
        toolsets=frozenset({"agent"}),
        arguments=changes.Revise,
        result=changes.RevisedMemory,
        handler=changes.revise,
    ),
    ToolSpec(
        name="forget",
        title="Forget",
        description="Let memories or nodes go: outdated (kept, recalled only with include_outdated) or deleted.",
        toolsets=frozenset({"agent"}),
        arguments=changes.Forget,
        result=changes.ForgottenMemories,
        handler=changes.forget,
        ask=confirmation.FORGET,
        destructive=True,
        idempotent=True,
    ),
    ToolSpec(
        name="explore",
        title="Explore",
        description="See what lies around a node, or the paths between two.",
        toolsets=frozenset({"agent"}),
        arguments=relations.Explore,
        result=relations.ExploredGraph,
        handler=relations.explore,
        read_only=True,
        idempotent=True,
        view=GRAPH_VIEW,
    ),
)
