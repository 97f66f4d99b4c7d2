"""Remember a conversation as it is, by tool or by route."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import partial
from math import inf
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from recollect.distilling.threads import service as distilling
from recollect.errors import InvalidInput, InvalidInputs
from recollect.fairness.computing import compute, in_one_slice
from recollect.memory import conversations, remembering
from recollect.memory.model import NewMemory, Remembered, RememberOutcome
from recollect.text.turns import Turn, speaker_of, turns_of_text
from recollect.times import require_zone, zone_of
from recollect_gateway.calls import Call
from recollect_gateway.requests.lenient_parsing import parse_leniently
from recollect_gateway.requests.local_times import FIELD, zone_of_call
from recollect_http.requests.argument_types import Tag, Time, TimeZone
from recollect_http.requests.parsing import utc

MAX_MESSAGES = 500
"""The maximum number of messages of one call, and of memories that it makes of them."""

MAX_PARTS = 100
"""The maximum number of parts of a message's content."""

MAX_MESSAGE = 100_000
"""The maximum length of a message, in characters."""

MAX_TRANSCRIPT = 500_000
"""The maximum length of a conversation in plain text, in characters."""

_PATH = "conversation"
"""The name of the argument that has a conversation."""

Role = Annotated[str, Meta(max_length=64)]
Speaker = Annotated[str, Meta(max_length=256)]
Words = Annotated[str, Meta(max_length=MAX_MESSAGE)]


class ContentPart(Struct, frozen=True):
    """A part of a message. Those without a text, such as images and calls of tools, are left out."""

    type: Annotated[str, Meta(max_length=64)] = "text"
    text: Words | None = None

    @property
    def is_said(self) -> bool:
        """Whether the part was said, rather than thought by a model or answered by a tool."""
        return self.text is not None and self.type in ("text", "input_text", "output_text")


class Message(Struct, frozen=True):
    """A message as the APIs of OpenAI and Anthropic have it, with when it was said. Other fields are ignored.

    `name`: who speaks, where the role does not say it.
    """

    content: (
        Annotated[str, Meta(max_length=MAX_MESSAGE)] | Annotated[list[ContentPart], Meta(max_length=MAX_PARTS)] | None
    ) = None
    role: Role | None = None
    name: Speaker | None = None
    at: Time | None = None

    @property
    def words(self) -> str:
        """What was said."""
        if isinstance(self.content, str):
            return self.content
        return "\n\n".join(part.text for part in self.content or () if part.is_said and part.text)


class Conversation(Struct, frozen=True, kw_only=True):
    """A conversation, or the part of it that is new: its messages, or its text."""

    thread: Annotated[str, Meta(min_length=1, max_length=256, description="The conversation's id or name")]
    messages: Annotated[list[Message], Meta(max_length=MAX_MESSAGES)] = []
    text: Annotated[str, Meta(max_length=MAX_TRANSCRIPT, description="Or its text, lines like `Ada: …`")] | None = None


class ConversationBody(Conversation, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A conversation to remember.

    The graph is named apart: by an argument of the tool, or in the path of the route.
    """

    tags: Annotated[list[Tag], Meta(max_length=50)] = []
    source: Annotated[str, Meta(max_length=256)] | None = None
    time_zone: TimeZone | None = None


class RememberedTurn(Struct, frozen=True):
    """A memory of a conversation, and its outcome. `message`: the number of its message or turn, from 0."""

    id: str
    message: int
    status: str


class RememberedConversation(Struct, frozen=True):
    """The outcome of a conversation. `left_out`: the numbers, from 0, of messages without anything said."""

    thread: str
    memories: list[RememberedTurn]
    left_out: list[int]


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """The outcomes of each turn's memories, in order; none for turns without anything said."""

    thread: str
    turns: Sequence[Sequence[Remembered]]

    @property
    def memories(self) -> list[Remembered]:
        """The outcomes of all memories, in order."""
        return [memory for turn in self.turns for memory in turn]

    @property
    def left_out(self) -> list[int]:
        """The numbers, from 0, of turns that became no memory."""
        return [number for number, turn in enumerate(self.turns) if not turn]


async def parse_conversation(call: Call, graph: str | None, text: str, time_zone: str | None) -> Conversation:
    """Parse a conversation in JSON, in threads beside the event loop; raises InvalidInput for any other text."""
    tenant_id = call.caller.tenant_id
    sent = await compute(tenant_id, in_one_slice(partial(_decoded, text)), seconds=inf, advice="")
    if time_zone is not None:
        zone = zone_of(require_zone(time_zone, FIELD))
    else:
        zone = await zone_of_call(call, graph, Conversation, sent)
    return await compute(tenant_id, in_one_slice(partial(_parsed, sent, zone)), seconds=inf, advice="")


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise InvalidInput("Must be a conversation: {thread, messages} or {thread, text}", path=_PATH) from None


def _parsed(sent: Any, zone: tzinfo) -> Conversation:
    try:
        return parse_leniently(Conversation, sent, zone=zone)
    except InvalidInputs as faults:
        raise InvalidInputs([_within(fault) for fault in faults.faults]) from None
    except InvalidInput as error:
        raise _within(error) from None


def _within(error: InvalidInput) -> InvalidInput:
    return InvalidInput(error.message, path=f"{_PATH}.{error.path}" if error.path else _PATH)


async def remember_conversation(
    call: Call,
    graph: str | None,
    conversation: Conversation,
    *,
    tags: Sequence[str] = (),
    source: str | None = None,
    time_zone: str | None = None,
) -> StoredConversation:
    """Store the turns of a conversation that are new; return the outcome of each turn.

    Raises InvalidInput for a conversation without a turn, for one with both messages and text, and for one that makes
    more than MAX_MESSAGES memories.
    """
    if bool(conversation.messages) == bool(conversation.text):
        raise InvalidInput("Give either messages or text", path="messages")
    zone = await _zone(call, graph, conversation, time_zone)
    make = partial(_memories_by_turn, conversation, tuple(tags), source, zone)
    by_turn = await compute(call.caller.tenant_id, in_one_slice(make), seconds=inf, advice="")
    memories = [memory for turn in by_turn for memory in turn]
    _require_a_few(memories, "text" if conversation.text else "messages")
    prepared = await call.prepare((None, memory.text) for memory in memories)
    async with call.writing(graph, prepared=prepared) as (tx, revision):
        turns = await remembering.remember_turns(tx, revision, memories)
        if not all(turn.known for turn in turns):
            await distilling.start_by_itself(tx, revision.graph, conversation.thread, call.settings)
    remembered = iter(turns)
    return StoredConversation(conversation.thread, [[next(remembered) for _ in turn] for turn in by_turn])


async def _zone(call: Call, graph: str | None, conversation: Conversation, time_zone: str | None) -> tzinfo:
    """The zone of times in a plain text. Times of messages already have offsets here."""
    if time_zone is not None:
        return zone_of(require_zone(time_zone, FIELD))
    return zone_of(await call.time_zone(graph)) if conversation.text else UTC


def _memories_by_turn(
    conversation: Conversation, tags: Sequence[str], source: str | None, zone: tzinfo
) -> list[list[NewMemory]]:
    if conversation.text:
        turns = turns_of_text(conversation.text, zone)
    else:
        turns = [_turn(message, number) for number, message in enumerate(conversation.messages)]
    return conversations.memories_of(turns, conversation.thread, tags=tags, source=source)


def _turn(message: Message, number: int) -> Turn:
    utc(message.at, f"messages.{number}.at")  # Refuses what its offset moves out of the calendar.
    return Turn(message.words, speaker_of(message.role, message.name), message.at)


def _require_a_few(memories: Sequence[NewMemory], path: str) -> None:
    if not memories:
        raise InvalidInput("Nobody says anything in it", path=path)
    if len(memories) > MAX_MESSAGES:
        raise InvalidInput(
            f"It would make {len(memories)} memories, more than {MAX_MESSAGES}: send its parts one after another",
            path=path,
        )


def conversation_body(stored: StoredConversation) -> RememberedConversation:
    """The outcome of a conversation, as the route answers it."""
    memories = [
        RememberedTurn(str(memory.id), number, memory.outcome)
        for number, turn in enumerate(stored.turns)
        for memory in turn
    ]
    return RememberedConversation(stored.thread, memories, stored.left_out)


def conversation_text(stored: StoredConversation) -> str:
    """The outcome of a conversation in a sentence."""
    outcomes = [memory.outcome for memory in stored.memories]
    new = outcomes.count(RememberOutcome.NEW)
    known = len(outcomes) - new
    left_out = f"; {len(stored.left_out)} left out, in which nobody says anything" if stored.left_out else ""
    return f"{stored.thread}: {new} new, {known} known{left_out}"
