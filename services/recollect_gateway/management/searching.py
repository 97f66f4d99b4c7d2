"""/v1/graphs/{name}/search and /changes: find nodes, and see what was done."""

from datetime import datetime
from typing import Annotated, Any

from litestar import Controller, Request, get
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter
from msgspec import Struct

from recollect.caller import Caller
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Change
from recollect.memory import searching
from recollect.memory.searching import NodeMatch
from recollect.retrieval.recall.model import RecallFilter
from recollect_gateway.calls import Call, Services
from recollect_gateway.errors import RESPONSES
from recollect_gateway.guards import mirrors
from recollect_gateway.management.nodes import Kinds, StatusFilter, Tags
from recollect_gateway.management.pages import AsOf, Cursor, Limit, Page, counted, place_of
from recollect_gateway.operations.nodes import NodeItemBody, node_item
from recollect_gateway.parsing import check_text

AnyRequest = Request[Caller, Any, State]
Words = Annotated[str, QueryParameter(min_length=1, max_length=1_000, description="A question or a few words")]
Revision = Annotated[int, QueryParameter(ge=0, le=2**53, description="Changes after this revision")]

MAX_MATCHES = 5
"""Texts of one node that a search tells, at most."""


class FoundNodeBody(Struct, frozen=True):
    """A node that answers. `score`, and `similarity` in meaning, are from 0 to 1; `matches`: what is said of it."""

    node: NodeItemBody
    score: float
    similarity: float
    matches: list[str]


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


class SearchController(Controller):
    """Find nodes, and read the log."""

    path = "/graphs/{name:str}"
    tags = ("nodes",)

    @get("/search", responses=RESPONSES, summary="Find nodes", opt=mirrors("search"))
    async def search(
        self,
        request: AnyRequest,
        services: NamedDependency[Services],
        name: FromPath[str],
        q: Words,
        kind: Kinds = None,
        tag: Tags = None,
        status: StatusFilter = None,
        as_of: AsOf = None,
        cursor: Cursor = None,
        limit: Limit = 20,
    ) -> Page[FoundNodeBody]:
        """Entities and facts that answer, best first, by words, meaning and name; about a hundred on all pages."""
        check_text({"q": q, "kind": kind, "tag": tag, "as_of": as_of})
        begin = place_of(cursor, counted) or 0
        only = RecallFilter(
            kinds=tuple(kind or ()),
            tags=tuple(tag or ()),
            status=status,
            include_outdated=status == "outdated",
        )
        call = Call(request.user, services, "search", read_only=True)
        (question,) = await call.questions([q])
        async with call.recalling(name, [question], only, as_of=as_of) as (view, cached):
            graphs.require_there(view)
            found = await searching.find(view, question, only, limit=begin + limit + 1, threshold=None, cached=cached)
        page = found[begin : begin + limit]
        return Page([_found(match) for match in page], str(begin + limit) if len(found) > begin + limit else None)

    @get("/changes", responses=RESPONSES, summary="List changes", opt=mirrors("recent_changes"))
    async def list_changes(
        self,
        request: AnyRequest,
        services: NamedDependency[Services],
        name: FromPath[str],
        after_revision: Revision = 0,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> ChangePage:
        """What was written to a graph, oldest first, no text. Ask again after `last_revision` for what came since.

        Revisions have no gaps and never change, so that whoever goes on after the last one misses nothing and gets
        nothing twice.
        """
        after = place_of(cursor, _revision)
        since = after_revision if after is None else after
        async with Call(request.user, services, "changes", read_only=True).transaction() as tx:
            await graphs.get_graph(tx, name)
            found, more = await graphs.recent_changes(tx, name, since=since, limit=limit)
        last = found[-1].revision if found else since
        return ChangePage([_change(change) for change in found], str(last) if more else None, last)


def _revision(cursor: str) -> int:
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 15:
        raise ValueError(cursor)
    return int(cursor)


def _found(match: NodeMatch) -> FoundNodeBody:
    matches = list(match.matches[:MAX_MATCHES])
    return FoundNodeBody(node_item(match.node), round(match.score, 4), round(match.similarity, 4), matches)


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
