"""Recall memories, by tool or by route."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from random import random
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from recollect.errors import InvalidInput
from recollect.graph.graphs.model import local_as_of
from recollect.retrieval.recall import service as recalling
from recollect.retrieval.recall.listing import with_holdings
from recollect.retrieval.recall.model import MemoryAttributes, Recalled, RecallFilter
from recollect.retrieval.recall.pages import Holdings, ListPosition, MemoryPage, Order
from recollect.retrieval.recall.prompts import MAX_QUESTION
from recollect.retrieval.recall.ranking import Hit
from recollect.times import require_zone, with_offset, zone_of
from recollect_gateway.calls import Call
from recollect_gateway.requests.local_times import FIELD
from recollect_http.requests.argument_types import AsOf, Importance, Kind, Name, Tag, Time, TimeZone, Until, as_text
from recollect_http.requests.parsing import utc, utc_through

MAX_QUERIES = 8

DEFAULT_LIMIT = 10
DEFAULT_TOKENS = 1_500
"""The maximum number of memories that are returned, and of tokens of their texts, if the caller gives none."""

Query = Annotated[str, Meta(min_length=1, max_length=MAX_QUESTION)]

MAX_SHOWN_NAME = 60
"""The maximum length of a name in a note on what a graph holds, in characters."""

_LIMIT = f"Maximum number of memories; default: {DEFAULT_LIMIT}, without those far less relevant than the best"


class RecallBody(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """What to recall, and how much of it.

    The graph is named apart: by an argument of the tool, or in the path of the route.
    """

    query: Query | None = None
    queries: Annotated[list[Query], Meta(max_length=MAX_QUERIES, description="Phrasings of one question")] = []
    limit: Annotated[int, Meta(ge=1, le=100, description=_LIMIT)] | None = None
    token_budget: Annotated[int, Meta(ge=50, le=50_000)] = DEFAULT_TOKENS
    kinds: Annotated[list[Kind], Meta(max_length=50)] = []
    not_kinds: Annotated[list[Kind], Meta(max_length=50)] = []
    tags: Annotated[list[Tag], Meta(max_length=50)] = []
    all_tags: bool = False
    not_tags: Annotated[list[Tag], Meta(max_length=50)] = []
    about: Annotated[list[Name], Meta(max_length=50)] = []
    under: Annotated[Name, Meta(description="Only about this entity and its descendants")] | None = None
    thread: Annotated[str, Meta(max_length=256)] | None = None
    min_importance: Importance | None = None
    since: Time | None = None
    until: Until | None = None
    time_zone: TimeZone | None = None
    fresh_only: bool = False
    include_outdated: bool = False
    explain: bool = False
    order: Literal["newest", "importance"] | None = None
    cursor: Annotated[str, Meta(max_length=100, description="`next_cursor` of the previous page of a list")] | None = (
        None
    )
    raw_as_of: AsOf | None = field(default=None, name="as_of")

    @property
    def as_of(self) -> str | None:
        """The revision or time to read at; None for now."""
        return as_text(self.raw_as_of)

    @property
    def limit_or_default(self) -> int:
        """The maximum number of memories that are returned."""
        return DEFAULT_LIMIT if self.limit is None else self.limit


class RecalledMemory(Struct, frozen=True, omit_defaults=True):
    """One memory that was found, with what it says of itself.

    `part`: the memory is longer, and `text` the part of it that was found.
    `outdated`: it no longer holds. `version`: the number of its newest version, on which to base a revision.
    `conflicts`: the other versions, between which nobody has chosen; `version_id`: its own, where it is not the newest.
    `reason`: why it was last changed, where that was stated. `why`: the terms of its score,
    each from 0 to 1, where asked for.
    """

    id: str
    node: str
    text: str
    score: float
    part: bool = False
    name: str | None = None
    at: datetime | None = None
    outdated: bool = False
    version: int | None = None
    version_id: str | None = None
    conflicts: list[str] = []
    why: dict[str, float] | None = None
    kind: str | None = None
    tags: list[str] = []
    importance: float | None = None
    source: str | None = None
    metadata: dict[str, Any] = {}
    reason: str | None = None


class RecalledMemories(Struct, frozen=True, omit_defaults=True):
    """Result of `recall`. `waiting`: passages of the graph that are found by words only, not embedded yet.

    `next_cursor`: where the next page of a list begins. `note`: where nothing was found, what the graph holds.
    `searched_for`: what was searched for instead of queries that have typing errors.
    """

    memories: list[RecalledMemory]
    more: bool
    waiting: int
    searched_for: list[str] = field(default_factory=list)
    next_cursor: str | None = None
    note: str | None = None


def _filter(body: RecallBody) -> RecallFilter:
    return RecallFilter(
        kinds=tuple(body.kinds),
        not_kinds=tuple(body.not_kinds),
        tags=tuple(body.tags),
        not_tags=tuple(body.not_tags),
        all_tags=body.all_tags,
        about=tuple(body.about),
        min_importance=body.min_importance,
        since=utc(body.since, "since"),
        until=utc_through(body.until, "until"),
        fresh_only=body.fresh_only,
        include_outdated=body.include_outdated,
        under=body.under,
        thread=body.thread or None,
    )


def _recalled_memory(hit: Hit, attributes: MemoryAttributes, explain: bool, *, is_part: bool) -> RecalledMemory:
    why = {name: round(value, 4) for name, value in hit.terms.items()} if explain else None
    return RecalledMemory(
        str(hit.memory_id),
        str(hit.node_id),
        hit.text,
        round(hit.score, 4),
        part=is_part,
        name=hit.name,
        at=None if hit.at is None else with_offset(hit.at, attributes.said_offset),
        outdated=hit.outdated,
        version=attributes.version if hit.version_id is None else None,
        version_id=None if hit.version_id is None else str(hit.version_id),
        conflicts=[str(other) for other in hit.conflicts],
        why=why,
        kind=attributes.kind,
        tags=list(attributes.tags),
        importance=attributes.importance,
        source=attributes.source,
        metadata=attributes.metadata,
        reason=attributes.reason,
    )


async def recall(call: Call, graph: str | None, body: RecallBody, *, only_near_best: bool = True) -> Recalled:
    """Find memories by words and meaning, or list those that pass a filter.

    If a query has typing errors, the corrected query is searched for instead. `only_near_best`: without memories far
    below the best. Raises InvalidInput if there is neither a query nor a filter, and for more than MAX_QUERIES.
    """
    queries = [*([body.query] if body.query else []), *body.queries]
    recalled = await _recall_once(
        call, graph, body, queries, correcting=body.as_of is None, only_near_best=only_near_best
    )
    if not recalled.corrected:
        return recalled
    corrected = await _recall_once(
        call, graph, body, recalled.corrected, correcting=False, only_near_best=only_near_best
    )
    return replace(corrected, corrected=recalled.corrected)


async def _recall_once(
    call: Call,
    graph: str | None,
    body: RecallBody,
    queries: Sequence[str],
    *,
    correcting: bool,
    only_near_best: bool,
) -> Recalled:
    filter_ = _filter(body)
    if len(queries) > MAX_QUERIES or not (queries or filter_.narrows):
        raise InvalidInput(
            f"Give query, or queries with 1 to {MAX_QUERIES} entries, or a filter such as about or tags, which lists",
            path="query",
        )
    page = MemoryPage(
        body.order and Order(body.order), None if body.cursor is None else ListPosition.of_cursor(body.cursor)
    )
    zone = None if body.time_zone is None else require_zone(body.time_zone, FIELD)
    questions = await call.questions(queries, time_zone=zone) if queries else []
    as_of = body.as_of if body.as_of is None or zone is None else local_as_of(body.as_of, zone_of(zone))
    async with call.recalling(graph, questions, filter_, as_of=as_of) as (view, cached):
        recalled = await recalling.recall(
            view,
            questions,
            filter_,
            limit=body.limit_or_default,
            only_near_best=only_near_best,
            whole_days=body.limit is None,
            token_budget=body.token_budget,
            cached=cached,
            described=True,
            correcting=correcting,
            audited=random() < call.settings.recall_audit_share,  # noqa: S311 - sampling needs no secure randomness
            page=page,
        )
        return recalled if recalled.hits or recalled.corrected else await with_holdings(view, recalled)


def recalled_body(recalled: Recalled, *, explain: bool) -> RecalledMemories:
    """The memories that were found, as tool and route answer them."""
    memories = [
        _recalled_memory(hit, recalled.attributes[hit.memory_id], explain, is_part=hit.key in recalled.parts)
        for hit in recalled.hits
    ]
    return RecalledMemories(
        memories,
        recalled.more,
        recalled.waiting,
        list(recalled.corrected),
        recalled.next_cursor,
        None if memories else note_of(recalled.holdings),
    )


def note_of(holdings: Holdings | None) -> str | None:
    """A sentence on what a graph holds, for an answer in which nothing was found; None if that is not known."""
    if holdings is None:
        return None
    if not holdings.is_graph:
        return "There is no such graph: the first memory makes it."
    if not holdings.memories:
        return "The graph holds no memories yet."
    count = (
        f"{'more than ' if holdings.more else ''}{holdings.memories} memor{'y' if holdings.memories == 1 else 'ies'}"
    )
    names = [name if len(name) <= MAX_SHOWN_NAME else f"{name[: MAX_SHOWN_NAME - 1]}…" for name in holdings.subjects]
    about = f", most about {', '.join(' '.join(name.split()) for name in names)}" if names else ""
    return f"The graph holds {count}{about}."
