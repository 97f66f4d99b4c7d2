"""The tool `remember`."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, field

from recollect.errors import InvalidInput
from recollect.memory.model import Remembered
from recollect.retrieval.similarity.model import NearDuplicate
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.agent.lines import in_one_line
from recollect_gateway.operations.conversations import (
    MAX_TRANSCRIPT,
    Conversation,
    conversation_text,
    parse_conversation,
    remember_conversation,
)
from recollect_gateway.operations.remember import (
    RememberBody,
    RememberedMemories,
    RememberItem,
    remember,
    remembered_body,
)
from recollect_http.requests.argument_types import MAX_ITEMS, GraphChoice

ConversationAsSent = Annotated[
    Annotated[str, Meta(max_length=MAX_TRANSCRIPT)] | Conversation,
    Meta(description="Or {thread, messages}"),
]
"""A conversation, or its JSON. `tools/list` shows it as a text: its schema would be a tenth of all in the toolset."""


class Remember(RememberBody, frozen=True):
    """Arguments of `remember`: items, or a conversation."""

    items: Annotated[list[RememberItem], Meta(min_length=1, max_length=MAX_ITEMS)] = field(default_factory=list)
    conversation: ConversationAsSent | None = None
    graph: GraphChoice | None = None


async def remember_items(call: Call, arguments: Remember) -> Reply:
    """Store memories, or the turns of a conversation that are new.

    The answer has the outcome of each memory, and older memories close to it.
    """
    if bool(arguments.items) == (arguments.conversation is not None):
        raise InvalidInput("Give either items or a conversation", path="items")
    if arguments.conversation is not None:
        return await _remember_conversation(call, arguments, arguments.conversation)
    remembered = await remember(call, arguments.graph, arguments)
    return Reply(remembered_body(remembered), _remembered_text(remembered))


REMEMBER = ToolSpec(
    name="remember",
    description="Store facts for later, with the entities that each is about. A known fact is updated, not "
    "duplicated. Similar memories are returned: revise one instead.",
    toolsets=frozenset({"agent"}),
    result=RememberedMemories,
    handler=remember_items,
)


async def _remember_conversation(call: Call, arguments: Remember, sent: str | Conversation) -> Reply:
    conversation = (
        await parse_conversation(call, arguments.graph, sent, arguments.time_zone) if isinstance(sent, str) else sent
    )
    kept = await remember_conversation(call, arguments.graph, conversation, time_zone=arguments.time_zone)
    new = [memory for memory in kept.memories if not memory.known]
    return Reply(remembered_body(new), conversation_text(kept))


def _remembered_text(remembered: Sequence[Remembered]) -> str:
    lines = []
    for memory in remembered:
        lines.append(f"{memory.outcome} {memory.id}")
        lines.extend(_close_line(older) for older in memory.close)
    if any(older.superseded for memory in remembered for older in memory.close):
        lines.append("If a memory marked as superseded no longer holds, forget it, or give its id in supersedes.")
    return "\n".join(lines)


def _close_line(older: NearDuplicate) -> str:
    mark = ", probably superseded" if older.superseded else ""
    return f"  close ({older.score:.2f}{mark}) {older.memory_id}: {in_one_line(older.text)}"
