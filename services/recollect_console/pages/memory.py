"""Memory: the entities and facts of a graph, filtered by what is in the address."""

from typing import Annotated, Literal

from litestar import Controller, Response, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from recollect.graph.entities import service as entities
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import VersionFilter
from recollect_console.authors import authors_of
from recollect_console.paging import PAGE, paging_of
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_gateway.management.nodes import node_cursor, node_place
from recollect_gateway.management.pages import Cursor, place_of
from recollect_gateway.operations.nodes import node_item

MAX_KINDS = 50
"""Kinds that the filter offers, the most frequent ones."""

Filter = Annotated[str, QueryParameter(max_length=512)]
Status = Annotated[Literal["", "active", "outdated", "archived"], QueryParameter()]

DONE = {"forgotten": "It is forgotten: recall no longer returns it.", "deleted": "It is deleted. Its history is kept."}


class MemoryController(Controller):
    """The nodes of a graph."""

    path = "/memory"

    @get("/")
    async def show(
        self,
        visit: NamedDependency[Visit],
        kind: Filter = "",
        tag: Filter = "",
        status: Status = "",
        prefix: Filter = "",
        cursor: Cursor = None,
    ) -> Response[str]:
        """One page of the nodes that pass every filter, oldest first."""
        place = place_of(cursor or None, node_place)
        one = tuple(filter(None, (kind,))), tuple(filter(None, (tag,)))
        filters = VersionFilter(*one, PAGE, 0, status or None, prefix, place)
        async with visit.reading("list_nodes") as view:
            found, more = await lineages.list_nodes(view, filters)
            kinds = await entities.count_kinds(view, limit=MAX_KINDS)
            authors = await authors_of(view.tx, (version.created_by for version in found))
        return render(
            visit,
            "memory/list.html",
            done=DONE,
            nodes=[node_item(version) for version in found],
            authors=authors,
            paging=paging_of(visit, node_cursor(found[-1]) if more else None),
            kind_options=[("", "All"), *((name, f"{name} ({count})") for name, count in kinds)],
            filters={"kind": kind, "tag": tag, "status": status, "prefix": prefix},
        )
