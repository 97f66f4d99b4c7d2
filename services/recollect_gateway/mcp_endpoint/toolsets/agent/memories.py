"""Keep memories and find them again."""

from datetime import datetime
from random import random
from typing import Annotated, Any

from msgspec import Meta, Struct

from recollect.errors import InvalidInput
from recollect.memory import remembering
from recollect.memory.model import Item, Remembered
from recollect.recall import service as recall
from recollect.recall.model import Recalled, RecallFilter
from recollect.recall.ranking import Hit
from recollect_gateway.mcp_endpoint.schema import utc
from recollect_gateway.mcp_endpoint.tool import AsOf, Call, GraphChoice, Reply
from recollect_gateway.mcp_endpoint.toolsets.agent.shapes import MAX_ITEMS, Time
from recollect_gateway.mcp_endpoint.toolsets.memory.shapes import Importance, Kind, Name, Tag
from recollect_gateway.shapes import check_metadata

MAX_QUERIES = 8

Query = Annotated[str, Meta(min_length=1, max_length=1_000)]


class RememberItem(Struct, forbid_unknown_fields=True, frozen=True):
    """One thing to remember."""

    text: Annotated[str, Meta(min_length=1, max_length=10_000, description="One fact, in a sentence that stands alone")]
    about: Annotated[list[Name], Meta(max_length=20, description="Names of the entities it is about; made if new")] = []
    thread: Annotated[str, Meta(max_length=256, description="Conversation or document it came from")] | None = None
    at: Annotated[Time, Meta(description="When it was said; default now")] | None = None
    kind: Kind | None = None
    tags: Annotated[list[Tag], Meta(max_length=50)] = []
    importance: Importance | None = None
    ttl_days: Annotated[float, Meta(gt=0, le=3650, description="Forget it after so many days")] | None = None
    source: Annotated[str, Meta(max_length=256)] | None = None
    name: Annotated[Name, Meta(description="Shorthand for about=[name]")] | None = None
    metadata: dict[str, Any] = {}


class Told(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """What to remember, in whichever graph."""

    items: Annotated[list[RememberItem], Meta(min_length=1, max_length=MAX_ITEMS)]


class Remember(Told, frozen=True):
    """Arguments of `remember`."""

    graph: GraphChoice | None = None


class Asked(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """What to recall, from whichever graph."""

    query: Annotated[Query, Meta(description="A question or a few words")] | None = None
    queries: Annotated[list[Query], Meta(max_length=MAX_QUERIES, description="Several phrasings, answered as one")] = []
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    token_budget: Annotated[int, Meta(ge=50, le=50_000, description="Tokens of memories at most")] = 1500
    kinds: Annotated[list[Kind], Meta(max_length=50)] = []
    tags: Annotated[list[Tag], Meta(max_length=50)] = []
    about: Annotated[list[Name], Meta(max_length=50, description="Only memories about these entities")] = []
    under: Annotated[Name, Meta(description="Only about this entity and what stands below it")] | None = None
    min_importance: Importance | None = None
    since: Time | None = None
    until: Time | None = None
    fresh_only: bool = False
    include_outdated: bool = False
    explain: Annotated[bool, Meta(description="Give each term of the scores")] = False
    as_of: AsOf | None = None


class Recall(Asked, frozen=True):
    """Arguments of `recall`."""

    graph: GraphChoice | None = None


class CloseMemory(Struct, frozen=True):
    """An older memory that says nearly the same."""

    id: str
    text: str
    score: float


class RememberedMemory(Struct, frozen=True):
    """What became of one item."""

    id: str
    node: str
    status: str
    close: list[CloseMemory]


class RememberedMemories(Struct, frozen=True):
    """Result of `remember`, one entry an item, in order."""

    memories: list[RememberedMemory]


class RecalledMemory(Struct, frozen=True, omit_defaults=True):
    """One memory that was found. `why`: the terms of its score, each from 0 to 1, where asked for."""

    id: str
    node: str
    text: str
    score: float
    name: str | None = None
    at: datetime | None = None
    why: dict[str, float] | None = None


class RecalledMemories(Struct, frozen=True):
    """Result of `recall`. `waiting`: passages of the graph that are found by words only, not embedded yet."""

    memories: list[RecalledMemory]
    more: bool
    waiting: int


async def remember_items(call: Call, arguments: Remember) -> Reply:
    """Keep memories; answer what became of each, and what is close to it."""
    items = [_item(item, place, call.settings.max_metadata_size) for place, item in enumerate(arguments.items)]
    questions = await call.statements([item.text for item in items])
    async with call.writing(arguments.graph) as (tx, revision):
        remembered = await remembering.remember(tx, revision, items, questions)
    return Reply(RememberedMemories([_remembered(one) for one in remembered]), _remembered_text(remembered))


async def recall_memories(call: Call, arguments: Recall) -> Reply:
    """Find memories by words and meaning."""
    asked = [*([arguments.query] if arguments.query else []), *arguments.queries]
    if not 1 <= len(asked) <= MAX_QUERIES:
        raise InvalidInput(f"Give query, or queries with 1 to {MAX_QUERIES} entries", path="query")
    questions = await call.questions(asked)
    only = _filter(arguments)
    async with call.recalling(arguments.graph, questions, only) as (tx, cached):
        recalled = await recall.recall(
            tx,
            arguments.graph,
            questions,
            only,
            limit=arguments.limit,
            token_budget=arguments.token_budget,
            as_of=arguments.as_of,
            cached=cached,
            audited=random() < call.settings.recall_audit_share,  # noqa: S311 - a sample keeps no secret
        )
    found = [_recalled(hit, arguments.explain) for hit in recalled.hits]
    return Reply(RecalledMemories(found, recalled.more, recalled.waiting), _recalled_text(recalled, arguments.explain))


def _item(item: RememberItem, place: int, max_metadata_size: int) -> Item:
    check_metadata(item.metadata, f"items.{place}.metadata", max_metadata_size)
    names = [*([item.name] if item.name else []), *item.about]
    return Item(
        item.text,
        about=tuple(dict.fromkeys(names)),
        thread=item.thread,
        at=utc(item.at, f"items.{place}.at"),
        kind=item.kind,
        tags=tuple(item.tags),
        importance=item.importance,
        ttl_days=item.ttl_days,
        source=item.source,
        metadata=item.metadata,
    )


def _filter(arguments: Recall) -> RecallFilter:
    return RecallFilter(
        kinds=tuple(arguments.kinds),
        tags=tuple(arguments.tags),
        about=tuple(arguments.about),
        min_importance=arguments.min_importance,
        since=utc(arguments.since, "since"),
        until=utc(arguments.until, "until"),
        fresh_only=arguments.fresh_only,
        include_outdated=arguments.include_outdated,
        under=arguments.under,
    )


def _remembered(one: Remembered) -> RememberedMemory:
    close = [CloseMemory(str(older.memory_id), older.text, round(older.score, 3)) for older in one.close]
    return RememberedMemory(str(one.id), str(one.node_id), "known" if one.known else "new", close)


def _remembered_text(remembered: list[Remembered]) -> str:
    lines = []
    for one in remembered:
        lines.append(f"{'known' if one.known else 'new'} {one.id}")
        lines.extend(f"  close ({older.score:.2f}) {older.memory_id}: {older.text}" for older in one.close)
    return "\n".join(lines)


def _recalled(hit: Hit, explain: bool) -> RecalledMemory:
    why = {name: round(value, 4) for name, value in hit.terms.items()} if explain else None
    return RecalledMemory(
        str(hit.memory_id), str(hit.node_id), hit.text, round(hit.score, 4), name=hit.name, at=hit.at, why=why
    )


def _recalled_text(recalled: Recalled, explain: bool) -> str:
    lines = [_line(hit, explain) for hit in recalled.hits] or ["Nothing found."]
    if recalled.more:
        lines.append("More was found: raise limit or token_budget, or narrow the question.")
    if recalled.waiting:
        lines.append(f"{recalled.waiting} passages are not embedded yet: found by their words only.")
    return "\n".join(lines)


def _line(hit: Hit, explain: bool) -> str:
    about = f"{hit.name}: " if hit.name and not hit.text.startswith(hit.name) else ""
    when = f" ({hit.at:%Y-%m-%d})" if hit.at else ""
    score = f" {hit.score:.2f}" if explain else ""
    return f"- {about}{hit.text}{when} [{hit.memory_id}{score}]"
