"""Handler and shapes of usage: what the tenant called, and what its graphs hold. /v1/usage answers the same shapes."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from recollect.usage import service as usage
from recollect.usage.model import Per, Stored, UsageRow, cursor_of, usage_span
from recollect_gateway.mcp_endpoint.tool import Arguments, Call, Reply

MAX_STORED = 100
"""Graphs whose contents are told, at most; `GET /v1/usage/stored` has pages."""

Time = Annotated[datetime, Meta(tz=True)]


class Usage(Arguments, frozen=True, rename=None):
    """Arguments of `usage`; calls are counted for the tenant, a graph narrows what is told of the stored."""

    since: Annotated[Time, Meta(description="From the hour of this time on; default a day before `to`")] | None = (
        msgspec.field(default=None, name="from")
    )
    until: Annotated[Time, Meta(description="Hours that begin before this; default now")] | None = msgspec.field(
        default=None, name="to"
    )
    per: Annotated[Per, Meta(description="Sums of each hour, day or month, or of all")] = "hour"
    limit: Annotated[int, Meta(ge=1, le=1_000, description="Rows at most")] = 100
    cursor: Annotated[str, Meta(max_length=300, description="`next_cursor` of the page before")] | None = None


class UsageBody(Struct, frozen=True):
    """What was counted from `since` on, for an hour, a day, a month or all.

    `kind` is `tool`, `resource`, `route` or `work` (of the worker). `passages`: given their vectors.
    """

    since: datetime
    kind: str
    name: str
    calls: int
    errors: int
    passages: int
    bytes_received: int


class StoredBody(Struct, frozen=True):
    """What a graph holds now; `passage_bytes` is about right, by a sample."""

    graph: str
    entities: int
    facts: int
    observations: int
    relations: int
    passages: int
    passage_bytes: int


class UsageTold(Struct, frozen=True):
    """Result of `usage`, oldest first. `stored` is there on the first page; `stored_more`: of other graphs, too."""

    usage: list[UsageBody]
    next_cursor: str | None
    stored: list[StoredBody]
    stored_more: bool


async def read_usage(call: Call, arguments: Usage) -> Reply:
    """Tell what was called and, on the first page, what is stored."""
    now, cursor = datetime.now(UTC), arguments.cursor
    span = usage_span(arguments.since, arguments.until, arguments.per, now=now, cursor=cursor)
    async with call.transaction() as tx:
        found, more = await usage.read_usage(tx, span, limit=arguments.limit)
        stored, others = list[Stored](), False
        if cursor is None:
            stored, others = await usage.list_stored(tx, graph=arguments.graph, limit=MAX_STORED)
    following = cursor_of(span, found[-1]) if more else None
    return Reply(UsageTold([*map(usage_body, found)], following, [*map(stored_body, stored)], others))


def usage_body(row: UsageRow) -> UsageBody:
    """What was counted, as tool and route tell it."""
    return UsageBody(row.since, row.kind, row.name, row.calls, row.errors, row.passages, row.bytes_received)


def stored_body(one: Stored) -> StoredBody:
    """What is stored, as tool and route tell it."""
    return StoredBody(
        one.graph, one.entities, one.facts, one.observations, one.relations, one.passages, one.passage_bytes
    )
