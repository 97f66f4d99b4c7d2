"""/v1/graphs/{name}/search: find nodes."""

from typing import Annotated

from litestar import Controller
from litestar.di import NamedDependency
from litestar.params import QueryParameter
from msgspec import Meta, Struct

from recollect.graph.graphs import service as graphs
from recollect.memory import searching
from recollect.memory.searching import NodeMatch
from recollect.retrieval.recall.model import RecallFilter
from recollect.retrieval.recall.prompts import MAX_QUESTION
from recollect_gateway.calls import Call, Services, read_by_replica
from recollect_gateway.management.guards import CallerRequest, mirrors
from recollect_gateway.management.memory.nodes import Kinds, StatusFilter, Tags
from recollect_gateway.operations.nodes import NodeItemBody, node_item
from recollect_http.fields import GraphInPath
from recollect_http.openapi.routes import get
from recollect_http.pages import AsOf, Cursor, Limit, Page, integer, position_of
from recollect_http.requests.parsing import check_text

Words = Annotated[str, QueryParameter(min_length=1, max_length=MAX_QUESTION, description="A question or a few words")]

MAX_MATCHES = 5
"""Texts of one node that a search returns, at most."""


class FoundNodeBody(Struct, frozen=True):
    """A node that was found."""

    node: Annotated[NodeItemBody, Meta(description="Entity or fact that was found")]
    score: Annotated[float, Meta(description="Relevance, from 0 to 1, comparable within this search only")]
    similarity: Annotated[
        float, Meta(description="Similarity of meaning to the question, from 0 to 1; 1 if the question names the node")
    ]
    matches: Annotated[
        list[str],
        Meta(
            description=f"Texts of the node that match, at most {MAX_MATCHES}: observations, and versions in conflict"
        ),
    ]


class SearchController(Controller):
    """Find nodes."""

    path = "/graphs/{name:str}"
    tags = ("nodes",)

    @get(
        "/search",
        response_description="A page of the nodes that were found, best first.",
        summary="Search nodes",
        opt=mirrors("search", tokens=True),
    )
    async def search_nodes(
        self,
        request: CallerRequest,
        services: NamedDependency[Services],
        name: GraphInPath,
        q: Words,
        kind: Kinds = None,
        tag: Tags = None,
        status: StatusFilter = None,
        as_of: AsOf = None,
        cursor: Cursor = None,
        limit: Limit = 20,
    ) -> Page[FoundNodeBody]:
        """Find entities and facts by words, meaning and name, best matches first.

        All pages together hold about a hundred results.
        """
        check_text({"q": q, "kind": kind, "tag": tag, "as_of": as_of})
        begin = position_of(cursor, integer) or 0
        filters = RecallFilter(
            kinds=tuple(kind or ()),
            tags=tuple(tag or ()),
            status=status,
            include_outdated=status == "outdated",
        )
        call = Call(request.user, services, "search", read_only=True)
        (question,) = await call.questions([q])

        end = begin + limit

        async def find_matches(call: Call) -> list[NodeMatch]:
            async with call.recalling(name, [question], filters, as_of=as_of) as (view, cached):
                graphs.require_there(view)
                return await searching.find(view, question, filters, limit=end + 1, threshold=None, cached=cached)

        matches = await read_by_replica(call, find_matches)
        return Page([_found_node(match) for match in matches[begin:end]], str(end) if len(matches) > end else None)


def _found_node(match: NodeMatch) -> FoundNodeBody:
    texts = list(match.matches[:MAX_MATCHES])
    return FoundNodeBody(node_item(match.node), round(match.score, 4), round(match.similarity, 4), texts)
