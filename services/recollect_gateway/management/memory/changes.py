"""/v1/graphs/{name}/changes: the log of a graph, page by page, or as a stream."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated
from uuid import UUID

from litestar import Controller, Response
from litestar.di import NamedDependency
from litestar.openapi.spec import OpenAPIMediaType, OpenAPIResponse, OpenAPIType, Operation, Schema
from litestar.params import QueryParameter
from litestar.response import Stream as StreamResponse
from msgspec import Meta, Struct

from recollect.caller import Caller
from recollect.errors import InvalidInput
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Change
from recollect.notifications import service as notifications
from recollect.notifications.model import ChangeFilter, FoundChanges
from recollect_gateway.calls import Call, Services
from recollect_gateway.management.guards import CallerRequest, caller_renewal, mirrors, open_stream
from recollect_gateway.management.memory.nodes import Kinds, Tags
from recollect_gateway.streaming import server_sent_events
from recollect_gateway.streaming.streams import DRAINING, PollResult, Renew, Stream
from recollect_http.fields import SUBJECT, GraphInPath
from recollect_http.openapi.routes import get
from recollect_http.pages import Cursor, Limit, NextCursor, position_of
from recollect_http.requests.parsing import check_text

Revision = Annotated[
    int | None,
    QueryParameter(
        ge=0,
        le=2**53,
        description="Only changes after this revision. Default: all changes; for a stream, only new ones",
    ),
]

AT_ONCE = 50
"""Changes that a stream reads, and sends, at a time."""

RETRY_MILLISECONDS = 1_000
"""How long a client waits before it reconnects."""

LAST_EVENT = "Last-Event-ID"


class ChangeBody(Struct, frozen=True):
    """One revision of a graph: what was done, by whom, on which ids."""

    revision: Annotated[int, Meta(description="Number of the revision, one more than that of the change before")]
    at: Annotated[datetime, Meta(description="Time of the change")]
    actor: Annotated[str, Meta(description=f"Subject that made the change, {SUBJECT}")]
    operation: Annotated[str, Meta(description="Name of the operation, such as `remember`")]
    counts: Annotated[
        dict[str, int], Meta(description="Numbers of touched items by what was done to them, such as `entities_added`")
    ]
    ids: Annotated[list[str], Meta(description="Ids of touched nodes, observations and relations")]
    ids_cut: Annotated[bool, Meta(description="Whether more ids were touched than `ids` lists")]


class ChangePage(Struct, frozen=True):
    """A page of changes."""

    items: Annotated[list[ChangeBody], Meta(description="Changes, oldest first")]
    next_cursor: NextCursor
    last_revision: Annotated[
        int, Meta(description="Revision to send as `after_revision` later, even if no changes follow yet")
    ]


@dataclass
class ChangesOperation(Operation):
    """Adds to the OpenAPI document that the route also answers with events."""

    def __post_init__(self) -> None:
        """Add the media type."""
        schema = Schema(type=OpenAPIType.STRING, description="Server-sent events: `change`, `refetch` and `end`")
        answer = (self.responses or {}).get("200")
        if isinstance(answer, OpenAPIResponse) and answer.content is not None:
            answer.content[server_sent_events.MEDIA_TYPE] = OpenAPIMediaType(schema=schema)


class ChangeController(Controller):
    """Read the log."""

    path = "/graphs/{name:str}"
    tags = ("nodes",)

    @get(
        "/changes",
        response_description="A page of changes or, if requested, a stream of them.",
        summary="List changes",
        opt=mirrors("recent_changes", tokens=True),
        operation_class=ChangesOperation,
    )
    async def list_changes(
        self,
        request: CallerRequest,
        services: NamedDependency[Services],
        name: GraphInPath,
        after_revision: Revision = None,
        kind: Kinds = None,
        tag: Tags = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Response[ChangePage]:
        """List the changes of a graph, oldest first, without texts. Continue after `last_revision` to get later
        changes.

        Revisions have no gaps and never change, so a client that continues after the last revision misses nothing and
        gets nothing twice. `kind` and `tag` return only changes that touched a node of that kind, or with that tag.
        With them, a page may hold fewer changes than `limit`, or none, although more follow: `next_cursor` says so.

        With `Accept: text/event-stream`, the response is a stream of server-sent events that stays open. Each change is
        an event `change`, whose `id` is its graph and revision. Send that id as `Last-Event-ID` to continue after it.
        """
        check_text({"kind": kind, "tag": tag})
        filters = ChangeFilter(tuple(kind or ()), tuple(tag or ()))
        if server_sent_events.MEDIA_TYPE in request.headers.get("accept", ""):
            resumed = _last_event(request) or ResumePoint(after_revision)
            changes = await open_changes(request, services, name, filters, resumed, caller_renewal(request))
            return StreamResponse(  # type: ignore[return-value]  # the OpenAPI document describes the page
                changes.events(), media_type=server_sent_events.MEDIA_TYPE, headers=server_sent_events.HEADERS
            )
        after = position_of(cursor, _revision)
        since = (after_revision or 0) if after is None else after
        async with Call(request.user, services, "changes", read_only=True).transaction() as tx:
            graph = await graphs.get_graph(tx, name)
            page = await notifications.changes_after(tx, graph.id, filters, since=since, limit=limit)
        items = [_change(change) for change in page.changes]
        return Response(ChangePage(items, str(page.reached) if page.more else None, page.reached))


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """Where a client goes on: after a revision (None: with new ones) of the graph with this mark (None: of any)."""

    revision: int | None
    graph: str | None = None

    def is_of(self, graph_id: UUID, newest: int) -> bool:
        """Whether the graph with this id and newest revision has this position."""
        return self.graph in (None, _mark(graph_id)) and (self.revision or 0) <= newest


@dataclass(slots=True)
class ChangeStream:
    """The log of one graph as a stream. `reached`: the last revision that the client need not be sent again.

    `is_lost`: the client's last event is not of this log.
    """

    stream: Stream
    services: Services
    graph_id: UUID
    filters: ChangeFilter
    reached: int
    is_lost: bool

    async def events(self) -> AsyncIterator[bytes]:
        """The server-sent events for the client."""
        yield server_sent_events.retry_after(RETRY_MILLISECONDS)
        event_id = _event_id(self.graph_id, self.reached)
        if self.is_lost:
            yield server_sent_events.event("refetch", {"revision": self.reached}, event_id=event_id)
        else:
            yield server_sent_events.id_only(event_id)
        async for page in self.stream.follow(self._poll):
            yield server_sent_events.KEEP_ALIVE if page is None else _events_of(self.graph_id, page)
        yield server_sent_events.event("end", {"reason": self.stream.ended or DRAINING})

    async def _poll(self, caller: Caller) -> PollResult[FoundChanges]:
        page = await self.stream.shared((self.graph_id, self.filters, self.reached), partial(self._read, caller))
        news, self.reached = page.reached > self.reached, page.reached
        return PollResult(page if news else None, page.more)

    async def _read(self, caller: Caller) -> FoundChanges:
        async with Call(caller, self.services, "changes", read_only=True).transaction() as tx:
            graph = await graphs.graph_of(tx, self.graph_id)
            return await notifications.changes_after(tx, graph.id, self.filters, since=self.reached, limit=AT_ONCE)


async def open_changes(
    request: CallerRequest, services: Services, name: str, filters: ChangeFilter, after: ResumePoint, renew: Renew
) -> ChangeStream:
    """A stream of a graph's changes after a position, as long as `renew` finds the caller; raises as `open_stream`
    does.

    Raises NotFound where there is no such graph.
    """
    async with Call(request.user, services, "changes", read_only=True).transaction() as tx:
        graph = await graphs.get_graph(tx, name)
        newest = await graphs.newest_revision(tx, graph)
    stream = await open_stream(request, renew)
    stream.listener.graphs = frozenset({graph.id})
    is_lost = not after.is_of(graph.id, newest)
    reached = newest if is_lost or after.revision is None else after.revision
    return ChangeStream(stream, services, graph.id, filters, reached, is_lost)


def _last_event(request: CallerRequest) -> ResumePoint | None:
    """The position that a client read last: the id of an earlier event, or a revision; raises InvalidInput."""
    event_id = request.headers.get(LAST_EVENT, "").strip()
    if not event_id:
        return None
    graph, dash, revision = event_id.rpartition("-")
    try:
        return ResumePoint(_revision(revision if graph else event_id), graph if dash else None)
    except ValueError:
        raise InvalidInput("This is not an id that an earlier stream sent", path=LAST_EVENT) from None


def _revision(cursor: str) -> int:
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 15:
        raise ValueError(cursor)
    return int(cursor)


def _event_id(graph_id: UUID, revision: int) -> str:
    """The id of an event: its graph, since another graph may get the same name, and its revision."""
    return f"{_mark(graph_id)}-{revision}"


def _mark(graph_id: UUID) -> str:
    """A mark that distinguishes a graph from others of the same name: the random end of its id."""
    return graph_id.hex[-8:]


def _events_of(graph_id: UUID, page: FoundChanges) -> bytes:
    event_ids = [_event_id(graph_id, change.revision) for change in page.changes]
    changes_with_ids = zip(page.changes, event_ids, strict=True)
    events = [
        server_sent_events.event("change", _change(change), event_id=event_id) for change, event_id in changes_with_ids
    ]
    if not page.changes or page.changes[-1].revision < page.reached:
        events.append(server_sent_events.id_only(_event_id(graph_id, page.reached)))
    return b"".join(events)


def _change(change: Change) -> ChangeBody:
    return ChangeBody(
        change.revision,
        change.at,
        change.actor,
        change.operation,
        change.counts,
        [str(changed_id) for changed_id in change.ids],
        change.cut,
    )
