"""/v1/graphs/{name}/changes: the log of a graph, page by page, or as it is written."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Request, Response, get
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.openapi.spec import OpenAPIMediaType, OpenAPIResponse, OpenAPIType, Operation, Schema
from litestar.params import FromPath, QueryParameter
from litestar.response import Stream as Streamed
from msgspec import Struct

from recollect.caller import Caller
from recollect.errors import InvalidInput
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Change
from recollect.notifications import service as notifications
from recollect.notifications.model import ChangeFilter, FoundChanges
from recollect_gateway import server_sent
from recollect_gateway.calls import Call, Services
from recollect_gateway.errors import RESPONSES
from recollect_gateway.guards import become_stream, mirrors, still_allowed
from recollect_gateway.management.nodes import Kinds, Tags
from recollect_gateway.management.pages import Cursor, Limit, place_of
from recollect_gateway.parsing import check_text
from recollect_gateway.streams import DRAINING, Look, Stream

AnyRequest = Request[Caller, Any, State]
Revision = Annotated[
    int | None,
    QueryParameter(
        ge=0, le=2**53, description="Changes after this revision. Default: all, or of a stream those to come"
    ),
]

AT_ONCE = 50
"""Changes that a stream looks at, and sends, at a time."""

RETRY_MILLISECONDS = 1_000
"""How long a client is to wait before it comes back."""

LAST_EVENT = "Last-Event-ID"


class ChangeBody(Struct, frozen=True):
    """One revision of a graph: what was done, by whom, on which ids. `ids_cut`: it touched others, too."""

    revision: int
    at: datetime
    actor: str
    operation: str
    counts: dict[str, int]
    ids: list[str]
    ids_cut: bool


class ChangePage(Struct, frozen=True):
    """A page of changes. `last_revision`: go on after it, also where no more follow yet."""

    items: list[ChangeBody]
    next_cursor: str | None
    last_revision: int


@dataclass
class ChangesOperation(Operation):
    """Tells OpenAPI that events are answered, too."""

    def __post_init__(self) -> None:
        """Add the media type."""
        schema = Schema(type=OpenAPIType.STRING, description="Server-sent events: `change`, `refetch` and `end`")
        answer = (self.responses or {}).get("200")
        if isinstance(answer, OpenAPIResponse) and answer.content is not None:
            answer.content[server_sent.MEDIA_TYPE] = OpenAPIMediaType(schema=schema)


class ChangeController(Controller):
    """Read the log."""

    path = "/graphs/{name:str}"
    tags = ("nodes",)

    @get(
        "/changes",
        responses=RESPONSES,
        summary="List changes",
        opt=mirrors("recent_changes"),
        operation_class=ChangesOperation,
    )
    async def list_changes(
        self,
        request: AnyRequest,
        services: NamedDependency[Services],
        name: FromPath[str],
        after_revision: Revision = None,
        kind: Kinds = None,
        tag: Tags = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Response[ChangePage]:
        """What was written to a graph, oldest first, no text. Ask again after `last_revision` for what came since.

        Revisions have no gaps and never change, so that whoever goes on after the last one misses nothing and gets
        nothing twice. `kind` and `tag`: only what touched a node of the kind, or with the tag; then a page may hold
        fewer than there are, or none, and `next_cursor` still tells that more follow.

        With `Accept: text/event-stream` the answer is a stream of server-sent events that stays open: `change` for
        each, with its revision as `id`. Where that is sent as `Last-Event-ID`, it goes on after it.
        """
        check_text({"kind": kind, "tag": tag})
        only = ChangeFilter(tuple(kind or ()), tuple(tag or ()))
        if server_sent.MEDIA_TYPE in request.headers.get("accept", ""):
            told = await _open(request, services, name, only, _last_event(request, after_revision))
            return Streamed(  # type: ignore[return-value]  # what the description tells is the page
                told.events(), media_type=server_sent.MEDIA_TYPE, headers=server_sent.HEADERS
            )
        after = place_of(cursor, _revision)
        since = (after_revision or 0) if after is None else after
        async with Call(request.user, services, "changes", read_only=True).transaction() as tx:
            graph = await graphs.get_graph(tx, name)
            page = await notifications.changes_after(tx, graph.id, only, since=since, limit=limit)
        items = [_change(change) for change in page.changes]
        return Response(ChangePage(items, str(page.reached) if page.more else None, page.reached))


@dataclass(slots=True)
class ChangeStream:
    """The log of one graph as it is told. `reached`: the last revision that the client need not be told of again.

    `is_behind`: it was told of later ones than there are.
    """

    stream: Stream
    services: Services
    graph_id: UUID
    only: ChangeFilter
    reached: int
    is_behind: bool

    async def events(self) -> AsyncIterator[bytes]:
        """What the client is sent."""
        yield server_sent.retry_after(RETRY_MILLISECONDS)
        if self.is_behind:
            yield server_sent.event("refetch", {"revision": self.reached}, place=self.reached)
        else:
            yield server_sent.reached(self.reached)
        async for page in self.stream.follow(self._look):
            yield server_sent.SILENCE if page is None else _told(page)
        yield server_sent.event("end", {"reason": self.stream.ended or DRAINING})

    async def _look(self, caller: Caller) -> Look[FoundChanges]:
        async with Call(caller, self.services, "changes", read_only=True).transaction() as tx:
            graph = await graphs.graph_of(tx, self.graph_id)
            page = await notifications.changes_after(tx, graph.id, self.only, since=self.reached, limit=AT_ONCE)
        news, self.reached = page.reached > self.reached, page.reached
        return Look(page if news else None, page.more)


async def _open(
    request: AnyRequest, services: Services, name: str, only: ChangeFilter, after: int | None
) -> ChangeStream:
    """A stream of a graph's changes after a revision (None: from now on); raises NotFound, or TooManyRequests."""
    async with Call(request.user, services, "changes", read_only=True).transaction() as tx:
        graph = await graphs.get_graph(tx, name)
        newest = await graphs.newest_revision(tx, graph)
    stream = await become_stream(request, still_allowed(request))
    stream.listener.graphs = frozenset({graph.id})
    reached = newest if after is None else min(after, newest)
    return ChangeStream(stream, services, graph.id, only, reached, is_behind=after is not None and after > newest)


def _last_event(request: AnyRequest, otherwise: int | None) -> int | None:
    """The revision after which a client goes on: what it read last, else what it asks for; raises InvalidInput."""
    given = request.headers.get(LAST_EVENT)
    if given is None or not given.strip():
        return otherwise
    try:
        return _revision(given.strip())
    except ValueError:
        raise InvalidInput("This is no id that an earlier stream told", path=LAST_EVENT) from None


def _revision(cursor: str) -> int:
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 15:
        raise ValueError(cursor)
    return int(cursor)


def _told(page: FoundChanges) -> bytes:
    events = [server_sent.event("change", _change(change), place=change.revision) for change in page.changes]
    if not page.changes or page.changes[-1].revision < page.reached:
        events.append(server_sent.reached(page.reached))
    return b"".join(events)


def _change(change: Change) -> ChangeBody:
    return ChangeBody(
        change.revision,
        change.at,
        change.actor,
        change.operation,
        change.counts,
        [str(touched) for touched in change.ids],
        change.cut,
    )
