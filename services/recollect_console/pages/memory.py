"""Memory: the entities and facts of a graph, and what was said, filtered by what is in the address."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from litestar import Controller, Response, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from recollect.errors import InvalidInput
from recollect.graph.entities import service as entities
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import VersionFilter
from recollect.retrieval.recall import service as recalling
from recollect.retrieval.recall.model import RecallFilter
from recollect.retrieval.recall.pages import ListPosition, MemoryPage, Order
from recollect_console.authors import authors_of, writers_lately, writers_of
from recollect_console.filters import day_of, importance_of, values_of
from recollect_console.paging import PAGE, paging_of
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_gateway.management.memory.nodes import node_cursor, node_position
from recollect_gateway.operations.nodes import node_item
from recollect_http.pages import Cursor, position_of

MAX_KINDS, MAX_COUNTED = 50, 20_000
"""Kinds that the filter suggests, the most frequent ones; and of how many entities they are counted: of no more."""

MAX_TOKENS = 50_000
"""Tokens of the texts on one page, at most."""

BEFORE_ALL = datetime(1, 1, 1, tzinfo=UTC)
"""What was said has a time; the names of entities, which have none, are no part of the list."""

Filter = Annotated[str, QueryParameter(max_length=512)]
Status = Annotated[Literal["", "active", "outdated", "archived"], QueryParameter()]
Sorted = Annotated[Literal["newest", "importance"], QueryParameter()]
Chosen = Annotated[Literal["", "all"], QueryParameter()]
Outdated = Annotated[Literal["", "yes"], QueryParameter()]

DONE = {"forgotten": "It is forgotten: recall no longer returns it.", "deleted": "It is deleted. Its history is kept."}
DONE |= {
    "tag-several": "They have the tags.",
    "archive-several": "They are archived: recall leaves them out.",
    "forget-several": "They are forgotten: recall no longer returns them.",
}


class MemoryPages(Controller):
    """The nodes of a graph, and what was said."""

    path = "/memory"

    @get("/")
    async def show(
        self,
        visit: NamedDependency[Visit],
        kind: Filter = "",
        tag: Filter = "",
        status: Status = "",
        prefix: Filter = "",
        author: Filter = "",
        chosen: Chosen = "",
        cursor: Cursor = None,
    ) -> Response[str]:
        """One page of the nodes that pass every filter, oldest first. `chosen`: with all of them chosen."""
        position = position_of(cursor or None, node_position)
        filters = VersionFilter(
            values_of(kind), values_of(tag), PAGE, 0, status or None, prefix, position, author or None
        )
        async with visit.reading("list_nodes") as view:
            found, more = await lineages.list_nodes(view, filters)
            kinds = await _kinds(view)
            writers = await writers_lately(view)
            sought = {*writers, *(version.created_by for version in found), *values_of(author)}
            authors = await authors_of(view.tx, sought)
        return render(
            visit,
            "memory/list.html",
            done=DONE,
            nodes=[node_item(version) for version in found],
            authors=authors,
            paging=paging_of(visit, node_cursor(found[-1]) if more else None),
            kinds=kinds,
            writers=sorted({*writers, *values_of(author)}),
            all_chosen=bool(chosen),
            filters={"kind": kind, "tag": tag, "status": status, "prefix": prefix, "author": author},
        )

    @get("/said")
    async def show_said(
        self,
        visit: NamedDependency[Visit],
        kind: Filter = "",
        tag: Filter = "",
        about: Filter = "",
        thread: Filter = "",
        author: Filter = "",
        since: Filter = "",
        until: Filter = "",
        importance: Filter = "",
        outdated: Outdated = "",
        order: Sorted = "newest",
        cursor: Cursor = None,
    ) -> Response[str]:
        """One page of observations and facts that pass every filter."""
        filters = {"kind": kind, "tag": tag, "about": about, "thread": thread, "since": since, "until": until}
        filters |= {"importance": importance, "outdated": outdated, "order": "" if order == "newest" else order}
        filters |= {"author": author}
        context: dict[str, Any] = {"items": [], "authors": {}, "writers": [], "paging": None, "fault": ""}
        context |= {"filters": filters}
        try:
            recall_filter = _recall_filter(filters)
            page = MemoryPage(Order(order), ListPosition.of_cursor(cursor) if cursor else None)
        except InvalidInput as error:
            async with visit.reading_tenant() as tx:
                context |= {"writers": values_of(author), "authors": await authors_of(tx, values_of(author))}
            return render(visit, "memory/said.html", status=400, **(context | {"fault": error.message}))
        async with visit.reading("recall") as view:
            found = await recalling.recall(
                view, [], recall_filter, limit=PAGE, token_budget=MAX_TOKENS, described=True, page=page
            )
            writers = await writers_of(view, [hit.memory_id for hit in found.hits])
            context["writers"] = sorted({*await writers_lately(view), *values_of(author)})
            context["authors"] = await authors_of(view.tx, {*writers.values(), *context["writers"]})
        context["items"] = [
            {"hit": hit, "attributes": found.attributes[hit.memory_id], "writer": writers.get(hit.memory_id)}
            for hit in found.hits
        ]
        return render(visit, "memory/said.html", **(context | {"paging": paging_of(visit, found.next_cursor)}))


async def _kinds(view: GraphView) -> list[str]:
    """The kinds of entities to suggest: of a graph whose entities are quickly counted, as it is now."""
    if view.at is not None or (await graphs.head_of(view)).entities > MAX_COUNTED:
        return []
    return [kind for kind, _ in await entities.count_kinds(view, limit=MAX_KINDS)]


def _recall_filter(filters: Mapping[str, str]) -> RecallFilter:
    """The filter of the address. Raises InvalidInput."""
    until = day_of(filters["until"], "until")
    return RecallFilter(
        kinds=values_of(filters["kind"]),
        tags=values_of(filters["tag"]),
        about=values_of(filters["about"]),
        thread=filters["thread"] or None,
        author=filters["author"] or None,
        since=day_of(filters["since"], "since") or BEFORE_ALL,
        until=None if until is None else until + timedelta(days=1, microseconds=-1),
        min_importance=importance_of(filters["importance"]),
        include_outdated=bool(filters["outdated"]),
    )
