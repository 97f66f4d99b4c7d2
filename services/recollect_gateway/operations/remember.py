"""Remember memories, by tool or by route."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta, Struct

from recollect.memory import remembering
from recollect.memory.model import NewMemory, Remembered
from recollect.times import in_zone, offset_minutes, require_zone, zone_of
from recollect_gateway.calls import Call
from recollect_gateway.requests.local_times import FIELD
from recollect_http.requests.argument_types import (
    MAX_ITEMS,
    VISIBLE,
    Importance,
    Kind,
    Name,
    Tag,
    Time,
    TimeZone,
    Ttl,
    check_metadata,
)
from recollect_http.requests.parsing import utc

MAX_SUPERSEDED = 20
"""The maximum number of older memories that one item makes outdated."""

MAX_CLOSE_TEXT = 500
"""The maximum number of characters of an older memory that is close. A call may return three hundred of these, twice,
and the official client refuses an answer of more than a megabyte."""


class RememberItem(Struct, forbid_unknown_fields=True, frozen=True):
    """One thing to remember."""

    text: Annotated[
        str, Meta(min_length=1, max_length=10_000, description="One fact, in a sentence that stands alone"), VISIBLE
    ]
    about: Annotated[list[Name], Meta(max_length=20, description="Entities it is about; created if new")] = []
    thread: Annotated[str, Meta(max_length=256, description="Conversation or document")] | None = None
    at: Time | None = None
    kind: Kind | None = None
    tags: Annotated[list[Tag], Meta(max_length=50)] = []
    importance: Importance | None = None
    ttl_days: Ttl | None = None
    source: Annotated[str, Meta(max_length=256)] | None = None
    name: Annotated[Name, Meta(description="Shorthand for about=[name]")] | None = None
    metadata: dict[str, Any] = {}
    supersedes: Annotated[
        list[UUID], Meta(max_length=MAX_SUPERSEDED, description="Ids of memories that it makes outdated")
    ] = []


class RememberBody(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The items to remember.

    The graph is named apart: by an argument of the tool, or in the path of the route.
    """

    items: Annotated[list[RememberItem], Meta(min_length=1, max_length=MAX_ITEMS)]
    time_zone: TimeZone | None = None


class CloseMemory(Struct, frozen=True, omit_defaults=True):
    """An older memory that says nearly the same; of a long one, the beginning of the passage that does.

    `superseded`: the new one probably replaces it.
    """

    id: str
    text: str
    score: float
    superseded: bool = False


class RememberedMemory(Struct, frozen=True):
    """The outcome of one item."""

    id: str
    node: str
    status: str
    close: list[CloseMemory]


class RememberedMemories(Struct, frozen=True):
    """Result of `remember`: one entry for each item, in order."""

    memories: list[RememberedMemory]


def _new_memory(item: RememberItem, index: int, max_metadata_size: int, clock: tzinfo | None) -> NewMemory:
    check_metadata(item.metadata, f"items.{index}.metadata", max_metadata_size)
    names = [*([item.name] if item.name else []), *item.about]
    return NewMemory(
        item.text,
        about=tuple(dict.fromkeys(names)),
        thread=item.thread or None,
        at=utc(item.at, f"items.{index}.at"),
        said_offset=_offset(item.at, clock),
        kind=item.kind,
        tags=tuple(item.tags),
        importance=item.importance,
        ttl_days=item.ttl_days,
        source=item.source or None,
        metadata=item.metadata,
        supersedes=tuple(item.supersedes),
    )


def _offset(at: datetime | None, clock: tzinfo | None) -> int | None:
    """The offset of an item's clock from UTC, in minutes: that of its time, or else of the call's zone."""
    offset = None if at is None else offset_minutes(at)
    if offset is not None or clock is None:
        return offset
    return offset_minutes(in_zone(at or datetime.now(UTC), clock))


def _remembered_memory(memory: Remembered) -> RememberedMemory:
    close = [
        CloseMemory(str(older.memory_id), older.text, round(older.score, 3), older.superseded) for older in memory.close
    ]
    return RememberedMemory(str(memory.id), str(memory.node_id), memory.outcome, close)


async def remember(call: Call, graph: str | None, body: RememberBody) -> list[Remembered]:
    """Store memories; return the outcome of each, with older memories close to it."""
    clock = None if body.time_zone is None else zone_of(require_zone(body.time_zone, FIELD))
    largest = call.settings.max_metadata_size
    memories = [_new_memory(item, index, largest, clock) for index, item in enumerate(body.items)]
    texts = [memory.text for memory in memories]
    named = ((name, memory.text) for memory in memories for name in memory.about or (None,))
    questions, prepared = await call.embed_new_memories(texts, named)
    async with call.writing(graph, prepared=prepared) as (tx, revision):
        return [_with_short_texts(memory) for memory in await remembering.remember(tx, revision, memories, questions)]


def _with_short_texts(memory: Remembered) -> Remembered:
    return replace(memory, close=[replace(older, text=_beginning(older.text)) for older in memory.close])


def _beginning(text: str) -> str:
    return text if len(text) <= MAX_CLOSE_TEXT else f"{text[: MAX_CLOSE_TEXT - 1]}…"


def remembered_body(remembered: Sequence[Remembered]) -> RememberedMemories:
    """The outcome of each item, as tool and route answer it."""
    return RememberedMemories([_remembered_memory(memory) for memory in remembered])
