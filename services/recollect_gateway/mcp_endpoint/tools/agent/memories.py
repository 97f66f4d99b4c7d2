"""`remember` and `recall`."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from math import ceil
from typing import Annotated

from msgspec import Meta, field

from recollect.errors import InvalidInput
from recollect.memory.model import Remembered
from recollect.retrieval.recall.model import MemoryAttributes, NearDuplicate, Recalled
from recollect.retrieval.recall.ranking import Hit
from recollect.times import in_zone, with_offset, zone_of
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Listing, Reply
from recollect_gateway.mcp_endpoint.tools.agent.lines import in_one_line, under_its_line
from recollect_gateway.operations.conversations import (
    MAX_TRANSCRIPT,
    Conversation,
    conversation_text,
    parse_conversation,
    remember_conversation,
)
from recollect_gateway.operations.memories import (
    DEFAULT_LIMIT,
    DEFAULT_TOKENS,
    RecallBody,
    RememberBody,
    RememberItem,
    note_of,
    recall,
    recalled_body,
    remember,
    remembered_body,
)
from recollect_http.requests.argument_types import MAX_ITEMS, GraphChoice

ConversationAsSent = Annotated[
    Annotated[str, Meta(max_length=MAX_TRANSCRIPT)] | Conversation,
    Meta(description="Or {thread, messages}"),
]
"""A conversation, or its JSON: listed as a text, since its schema would take a tenth of the toolset's."""


class Remember(RememberBody, frozen=True):
    """Arguments of `remember`: items, or a conversation."""

    items: Annotated[list[RememberItem], Meta(min_length=1, max_length=MAX_ITEMS)] = field(default_factory=list)
    conversation: ConversationAsSent | None = None
    graph: GraphChoice | None = None


class Recall(RecallBody, frozen=True):
    """Arguments of `recall`."""

    graph: GraphChoice | None = None


async def remember_items(call: Call, arguments: Remember) -> Reply:
    """Keep memories; answer the outcome of each, and older memories close to it. Of a conversation, what is new."""
    if bool(arguments.items) == (arguments.conversation is not None):
        raise InvalidInput("Give either items or a conversation", path="items")
    if arguments.conversation is not None:
        return await _remember_conversation(call, arguments, arguments.conversation)
    remembered = await remember(call, arguments.graph, arguments)
    return Reply(remembered_body(remembered), _remembered_text(remembered))


async def _remember_conversation(call: Call, arguments: Remember, sent: str | Conversation) -> Reply:
    conversation = (
        await parse_conversation(call, arguments.graph, sent, arguments.time_zone) if isinstance(sent, str) else sent
    )
    kept = await remember_conversation(call, arguments.graph, conversation, time_zone=arguments.time_zone)
    new = [memory for memory in kept.memories if not memory.known]
    return Reply(remembered_body(new), conversation_text(kept))


async def recall_memories(call: Call, arguments: Recall) -> Reply | Listing:
    """Find memories by words and meaning; a call that asks for more than the defaults may fill as many pages more."""
    recalled = await recall(call, arguments.graph, arguments)
    zone = None if arguments.time_zone is None else zone_of(arguments.time_zone)

    def render(count: int) -> Reply:
        more = recalled.more or count < len(recalled.hits)
        page = replace(recalled, hits=recalled.hits[:count], more=more)
        return Reply(recalled_body(page, explain=arguments.explain), _recalled_text(page, arguments.explain, zone))

    pages = ceil(max(arguments.most / DEFAULT_LIMIT, arguments.token_budget / DEFAULT_TOKENS))
    return Listing(len(recalled.hits), render, pages=pages)


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


def _recalled_text(recalled: Recalled, explain: bool, zone: tzinfo | None) -> str:
    lines = [
        _line(hit, explain, hit.key in recalled.parts, recalled.attributes[hit.memory_id], zone)
        for hit in recalled.hits
    ] or [" ".join(filter(None, ("Nothing found.", note_of(recalled.holdings))))]
    if recalled.corrected:
        lines.insert(0, f"Searched for: {'; '.join(map(in_one_line, recalled.corrected))}")
    if any(hit.key in recalled.parts for hit in recalled.hits):
        lines.append("Of a long memory only the best part is shown: raise token_budget to get it whole.")
    if recalled.next_cursor:
        lines.append(f"More follow: give cursor {recalled.next_cursor}")
    elif recalled.more:
        lines.append("More was found: raise limit or token_budget, or narrow the question.")
    if recalled.waiting and not recalled.places:
        waiting = "1 passage is" if recalled.waiting == 1 else f"{recalled.waiting} passages are"
        lines.append(f"{waiting} not embedded yet: found by words only.")
    return "\n".join(lines)


def _day(at: datetime, said_offset: int | None, zone: tzinfo | None) -> str:
    """The day of a time by the clock of who said it, or else in the zone of the call, with that clock's offset."""
    local = with_offset(at, said_offset) if said_offset is not None or zone is None else in_zone(at, zone)
    clock = f" UTC{local.isoformat(timespec='minutes')[16:]}" if local.utcoffset() else ""
    return f"{local:%Y-%m-%d}{clock}"


def _line(hit: Hit, explain: bool, is_part: bool, attributes: MemoryAttributes, zone: tzinfo | None) -> str:
    """A memory in one line; its version is told from the second on, and not of one of several in conflict."""
    prefix = f"{hit.name}: " if hit.name and not hit.text.startswith(hit.name) else ""
    version = attributes.version
    notes = [_day(hit.at, attributes.said_offset, zone)] if hit.at else []
    notes += ["part"] if is_part else []
    notes += [f"version {version}"] if version and version > 1 and hit.version_id is None else []
    notes += ["outdated"] if hit.outdated else []
    notes += [f"one of {len(hit.conflicts) + 1} versions in conflict"] if hit.conflicts else []
    suffix = f" ({', '.join(notes)})" if notes else ""
    score = f" {hit.score:.2f}" if explain else ""
    return f"- {under_its_line(prefix + hit.text)}{suffix} [{hit.memory_id}{score}]"
