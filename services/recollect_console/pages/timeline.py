"""Timeline: what was changed in a graph, by whom, while it happens; and the slider that leads to its past."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter
from litestar.response import Stream as StreamResponse

from recollect.errors import InvalidInput, NotFound
from recollect.graph.graphs import history
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.history import LogPage
from recollect.graph.graphs.model import Change
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import naming
from recollect.graph.observations import service as observations
from recollect.notifications.model import ChangeFilter
from recollect_console.access import renewal_of
from recollect_console.authors import authors_of
from recollect_console.moments import slider_of
from recollect_console.paging import PAGE, paging_of
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_gateway.management.memory.changes import ResumePoint, open_changes
from recollect_gateway.streaming import server_sent_events
from recollect_http.pages import Cursor, integer, position_of

MAX_REVISION = 2**53

Filter = Annotated[str, QueryParameter(max_length=256)]
After = Annotated[int | None, QueryParameter(ge=0, le=MAX_REVISION)]
DONE = {"nothing": "There was nothing to take back, so nothing was written."}


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """A change, with what of its items is there at the moment: entities by id and name, and texts."""

    change: Change
    names: Sequence[tuple[UUID, str]]
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Group:
    """The changes that one author made in an hour, by one client, newest first."""

    hour: datetime
    actor: str
    entries: Sequence[TimelineEntry]


class TimelinePages(Controller):
    """The log of a graph."""

    path = "/timeline"

    @get("/")
    async def show(
        self,
        visit: NamedDependency[Visit],
        actor: Filter = "",
        operation: Filter = "",
        after: After = None,
        cursor: Cursor = None,
    ) -> Response[str]:
        """One page of the changes that pass the filters, newest first. `after`: only those after a revision."""
        until = position_of(cursor or None, integer)
        async with visit.reading("changes") as view:
            newest = await _newest(view)
            end = newest if until is None else min(until, newest)
            page = await _page(view, end, after or 0, actor, operation)
            groups = await _groups(view, page.changes)
            actors, operations = await history.actors_of(view.tx, view.graph, newest) if view.is_there else ([], [])
            authors = await authors_of(view.tx, {*actors, *(change.actor for change in page.changes)})
            slider = await slider_of(view)
        return render(
            visit,
            "timeline/show.html",
            done=DONE,
            groups=groups,
            authors=authors,
            actors=actors,
            operations=operations,
            slider=slider,
            newest=newest,
            is_live=view.is_there and visit.as_of is None and until is None,
            is_cut=page.next is not None,
            paging=paging_of(visit, page.next),
            filters={"actor": actor, "operation": operation},
        )

    @get("/slider")
    async def show_slider(self, visit: NamedDependency[Visit]) -> Response[str]:
        """The slider by itself, for the menu of every page."""
        async with visit.reading("changes") as view:
            slider = await slider_of(view)
        return render(visit, "timeline/slider.html", slider=slider)

    @get("/live")
    async def follow(self, visit: NamedDependency[Visit], after: After = None) -> StreamResponse:
        """The changes after a revision as server-sent events, until the session or the membership ends."""
        if visit.as_of is not None:
            raise InvalidInput("The past does not change", path="as_of")
        changes = await open_changes(
            visit.request, visit.services, visit.graph, ChangeFilter(), ResumePoint(after), renewal_of(visit)
        )
        return StreamResponse(
            changes.events(), media_type=server_sent_events.MEDIA_TYPE, headers=server_sent_events.HEADERS
        )

    @get("/{revision:int}")
    async def show_change(self, visit: NamedDependency[Visit], revision: FromPath[int]) -> Response[str]:
        """One change. What is after the moment of the page is not there yet."""
        async with visit.reading("changes") as view:
            is_there = 0 < revision <= await _newest(view)
            page = await _page(view, revision, revision - 1, "", "") if is_there else LogPage([], None)
            if not page.changes:
                raise NotFound("There is no such change.")
            (group,) = await _groups(view, page.changes)
            authors = await authors_of(view.tx, [group.actor])
        return render(visit, "timeline/change.html", group=group, entry=group.entries[0], authors=authors)


async def _newest(view: GraphView) -> int:
    """The newest revision at the moment of the page; 0 where there is no graph."""
    if view.at is not None:
        return view.at.revision
    return await graphs.newest_revision(view.tx, view.graph) if view.is_there else 0


async def _page(view: GraphView, until: int, after: int, actor: str, operation: str) -> LogPage:
    if not view.is_there:
        return LogPage([], None)
    return await history.changes_until(
        view.tx, view.graph, until, after=after, actor=actor or None, operation=operation or None, limit=PAGE
    )


async def _groups(view: GraphView, changes: Sequence[Change]) -> list[Group]:
    """The changes by hour and author, with what of their items is there."""
    ids = list(dict.fromkeys(id_ for change in changes for id_ in change.ids))
    names: Mapping[UUID, str] = await naming.names_of(view, ids) if ids else {}
    said: Mapping[UUID, Any] = await observations.observations_by_id(view.tx, view.graph, ids) if ids else {}
    texts = {id_: observation.content for id_, observation in said.items()}
    groups = groupby(changes, key=lambda change: (_hour(change.at), change.actor))
    return [Group(hour, actor, [_entry(each, names, texts) for each in found]) for (hour, actor), found in groups]


def _entry(change: Change, names: Mapping[UUID, str], texts: Mapping[UUID, str]) -> TimelineEntry:
    named = [(id_, names[id_]) for id_ in change.ids if id_ in names]
    return TimelineEntry(change, named, [texts[id_] for id_ in change.ids if id_ in texts])


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)
