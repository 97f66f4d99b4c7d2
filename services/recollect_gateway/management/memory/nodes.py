"""/v1/graphs/{name}/nodes: the entities and facts of a graph, their versions, and their relations."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal, TypeVar
from uuid import UUID

from litestar import Controller
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Version, VersionFilter
from recollect.graph.relations.model import Direction, EdgePosition, Walk
from recollect.memory import exploring, reading
from recollect.memory.model import NamedEdge
from recollect_gateway.calls import Call, Services, read_by_replica
from recollect_gateway.management.guards import CallerRequest, mirrors
from recollect_gateway.operations.nodes import (
    NodeBody,
    NodeItemBody,
    VersionBody,
    node_body,
    node_item,
    version_body,
)
from recollect_gateway.operations.relations import RelationBody, relation_bodies_of
from recollect_http.fields import GraphInPath, NodeInPath
from recollect_http.openapi.routes import get
from recollect_http.pages import AsOf, Cursor, Limit, Page, integer, position_of
from recollect_http.requests.argument_types import MAX_OBSERVATIONS_OFFSET, OBSERVATIONS_TO_SKIP
from recollect_http.requests.parsing import check_text

T = TypeVar("T")
Kinds = Annotated[
    list[str] | None,
    QueryParameter(max_items=50, description="Only of this type; repeat the parameter to allow several types"),
]
Tags = Annotated[
    list[str] | None,
    QueryParameter(
        max_items=50, description="Only with this tag, ignoring case; repeat the parameter to allow several tags"
    ),
]
StatusFilter = Annotated[
    Literal["active", "outdated", "archived"] | None, QueryParameter(description="Only with this status")
]
Prefix = Annotated[
    str, QueryParameter(max_length=512, description="Only entities whose name has this prefix, ignoring case")
]
Author = Annotated[
    str | None,
    QueryParameter(
        max_length=256,
        description="Only nodes whose newest version this subject wrote: the `updated_by` of an item",
    ),
]
Types = Annotated[
    list[str] | None,
    QueryParameter(
        max_items=50, description="Only relations of this type; repeat the parameter to allow several types"
    ),
]
ObservationsToSkip = Annotated[int, QueryParameter(ge=0, le=MAX_OBSERVATIONS_OFFSET, description=OBSERVATIONS_TO_SKIP)]
Directions = Annotated[
    Direction,
    QueryParameter(description="`outgoing` (relations that start at the node), `incoming` (that end at it) or `both`"),
]


class NodeController(Controller):
    """List and read nodes. A node is addressed by its id or, an entity, by its name."""

    path = "/graphs/{name:str}/nodes"
    tags = ("nodes",)

    @get(
        "/",
        response_description="A page of entities and facts.",
        summary="List nodes",
        opt=mirrors("list_nodes", tokens=True),
    )
    async def list_nodes(
        self,
        request: CallerRequest,
        services: NamedDependency[Services],
        name: GraphInPath,
        kind: Kinds = None,
        tag: Tags = None,
        status: StatusFilter = None,
        prefix: Prefix = "",
        author: Author = None,
        as_of: AsOf = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[NodeItemBody]:
        """List the entities and facts that pass every filter, oldest first. A node in conflict is listed with each of
        its versions.
        """
        check_text({"kind": kind, "tag": tag, "prefix": prefix, "author": author, "as_of": as_of})
        position = position_of(cursor, node_position)
        filters = VersionFilter(tuple(kind or ()), tuple(tag or ()), limit, 0, status, prefix, position, author)

        async def find_page(view: GraphView) -> tuple[list[Version], bool]:
            return await lineages.list_nodes(view, filters)

        nodes, more = await _read(request, services, "list_nodes", name, as_of, find_page)
        return Page([node_item(node) for node in nodes], node_cursor(nodes[-1]) if more else None)

    @get(
        "/{node:str}",
        response_description="The newest version of the node, with its observations.",
        summary="Get a node",
        opt=mirrors("get_node", "get_node_by_lineage", tokens=True),
    )
    async def get_node(
        self,
        request: CallerRequest,
        services: NamedDependency[Services],
        name: GraphInPath,
        node: NodeInPath,
        as_of: AsOf = None,
        observations_offset: ObservationsToSkip = 0,
    ) -> NodeBody:
        """Return a node with its content and, for an entity, its observations.

        The node is addressed by its id or, if it is an entity, by its name. A value that looks like an id is taken as
        an id. A name that contains a `/` cannot be part of the address: list nodes by `prefix` instead.
        """
        check_text({"node": node, "as_of": as_of})

        async def find_node(view: GraphView) -> NodeBody:
            node_id = await reading.node_called(view, node)
            return node_body(*await reading.get_node(view, node_id, skipped=observations_offset), observations_offset)

        return await _read(request, services, "get_node", name, as_of, find_node)

    @get(
        "/{node:str}/history",
        response_description="A page of the node's versions.",
        summary="List a node's versions",
        opt=mirrors("history", tokens=True),
    )
    async def list_node_versions(
        self,
        request: CallerRequest,
        services: NamedDependency[Services],
        name: GraphInPath,
        node: NodeInPath,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[VersionBody]:
        """List every version of a node, newest first. A deleted node is addressed by its id."""
        check_text({"node": node})
        before = position_of(cursor, integer)

        async def find_page(view: GraphView) -> tuple[list[Version], bool]:
            return await reading.history(view, await reading.node_called(view, node), before=before, limit=limit)

        versions, more = await _read(request, services, "history", name, None, find_page)
        return Page([version_body(version) for version in versions], str(versions[-1].version) if more else None)

    @get(
        "/{node:str}/relations",
        response_description="A page of the node's relations.",
        summary="List a node's relations",
        opt=mirrors("outgoing", "incoming", tokens=True),
    )
    async def list_node_relations(
        self,
        request: CallerRequest,
        services: NamedDependency[Services],
        name: GraphInPath,
        node: NodeInPath,
        type: Types = None,
        direction: Directions = Direction.BOTH,
        as_of: AsOf = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[RelationBody]:
        """List the relations that start or end at a node, sorted by ordinal and age.

        Relations of other graphs are included if the key may access those graphs.
        """
        check_text({"node": node, "type": type, "as_of": as_of})
        position = position_of(cursor, edge_position)
        walk = Walk(direction, tuple(type or ()))

        async def find_page(view: GraphView) -> Page[RelationBody]:
            node_id = await reading.node_called(view, node)
            edges = await exploring.edges_at(view, node_id, walk, after=position, limit=limit)
            items = await relation_bodies_of(view, node_id, edges.links)
            return Page(items, edge_cursor(edges.links[-1]) if edges.more else None)

        return await _read(request, services, "relations", name, as_of, find_page)


async def _read(
    request: CallerRequest,
    services: Services,
    operation: str,
    graph: str,
    as_of: str | None,
    read: Callable[[GraphView], Awaitable[T]],
) -> T:
    """The result of `read` for a graph; raises NotFound where there is no such graph."""

    async def read_graph(call: Call) -> T:
        async with call.searching(graph, as_of) as view:
            graphs.require_there(view)
            return await read(view)

    return await read_by_replica(Call(request.user, services, operation, read_only=True), read_graph)


def node_cursor(node: Version) -> str:
    """The position of a node in a list, for callers."""
    return f"{node.node_id}.{node.version}"


def node_position(cursor: str) -> tuple[UUID, int]:
    """The position that a cursor tells; raises ValueError."""
    node_id, _, version = cursor.partition(".")
    return UUID(node_id), integer(version)


def edge_cursor(link: NamedEdge) -> str:
    """The position of a relation in a list, for callers."""
    ordinal = link.edge.ordinal
    return f"{link.edge.id}.{'' if ordinal is None else ordinal}"


def edge_position(cursor: str) -> EdgePosition:
    """The position that a cursor tells; raises ValueError."""
    edge_id, _, ordinal = cursor.partition(".")
    if not ordinal:
        return None, UUID(edge_id)
    number = integer(ordinal.removeprefix("-"))
    return (-number if ordinal.startswith("-") else number), UUID(edge_id)
