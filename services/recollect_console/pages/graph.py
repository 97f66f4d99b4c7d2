"""Graph: the neighbourhood of a node as a picture, as a table, and as data for the script that draws it."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Controller, Response, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from recollect.errors import NotFound
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes.model import NodeOutline
from recollect.memory import picturing, reading
from recollect.memory.picturing import Picture
from recollect_console.paging import PAGE, paging_of
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_http.pages import Cursor, integer, position_of

MAX_DEPTH = 3
"""Relations from the start to the farthest node, at most."""

MAX_NODES, MAX_EDGES = 2_000, 10_000
"""Nodes and relations of one neighbourhood, at most."""

DEPTHS, SIZES = (1, 2, 3), (100, 300, 1_000, 2_000)
"""What the page offers."""

Node = Annotated[str, QueryParameter(max_length=512)]
Depth = Annotated[int, QueryParameter(ge=1, le=MAX_DEPTH)]
Size = Annotated[int, QueryParameter(ge=1, le=MAX_NODES)]
EMPTY = Picture([], [])


class DrawnNode(msgspec.Struct, frozen=True):
    """A node of the picture. `href`: its page, empty for one that was only named and never described."""

    id: UUID
    label: str
    kind: str
    href: str
    fact: bool


class DrawnEdge(msgspec.Struct, frozen=True):
    """A relation of the picture, by the ids of its ends."""

    id: UUID
    source: UUID
    target: UUID
    type: str
    at: datetime


class Drawn(msgspec.Struct, frozen=True):
    """A neighbourhood for the script: nodes nearest first, the start itself first; `cut` says what was left out."""

    nodes: list[DrawnNode]
    edges: list[DrawnEdge]
    cut: str | None


class GraphPages(Controller):
    """The neighbourhood of a node: of the most connected one, unless another is named."""

    path = "/graph"

    @get("/")
    async def show(
        self,
        visit: NamedDependency[Visit],
        node: Node = "",
        depth: Depth = 2,
        size: Size = 300,
        cursor: Cursor = None,
    ) -> Response[str]:
        """The page: a table with one page of the relations, next to which the script draws them."""
        begin, fault = position_of(cursor or None, integer) or 0, ""
        async with visit.reading("explore") as view:
            try:
                found = await _neighbourhood(view, node.strip(), depth, size)
            except NotFound:
                found, fault = EMPTY, "Nothing in this graph has this name."
        rows = _rows(found)
        return render(
            visit,
            "graph/show.html",
            status=404 if fault else 200,
            fault=fault,
            start=found.nodes[0] if found.nodes else None,
            picture=found,
            rows=rows[begin : begin + PAGE],
            paging=paging_of(visit, begin + PAGE if len(rows) > begin + PAGE else None),
            filters={"node": node, "depth": depth, "size": size},
            depths=[(str(n), str(n)) for n in DEPTHS],
            sizes=[(str(n), f"{n:,}") for n in SIZES],
        )

    @get("/data")
    async def data(
        self, visit: NamedDependency[Visit], node: Node = "", depth: Depth = 1, size: Size = 300
    ) -> Response[bytes]:
        """The neighbourhood as JSON; 404 for a node that is not there."""
        async with visit.reading("explore") as view:
            found = await _neighbourhood(view, node.strip(), depth, size)
        return Response(msgspec.json.encode(_drawn(visit, found)), media_type="application/json")


async def _neighbourhood(view: GraphView, node: str, depth: int, size: int) -> Picture:
    """The neighbourhood of a node by its id or name, or of the most connected one; raises NotFound."""
    start = await (reading.node_called(view, node) if node else picturing.most_connected(view))
    if start is None:
        return EMPTY
    return await picturing.picture(view, start, depth=depth, max_nodes=size, max_edges=MAX_EDGES)


def _rows(found: Picture) -> list[dict[str, Any]]:
    """The rows of the table: each relation with its ends, then each node that has none."""
    outlines = {node.id: node for node in found.nodes}
    touched = {end for edge in found.edges for end in (edge.from_node, edge.to_node)}
    related = [
        {"source": outlines[e.from_node], "type": e.type, "target": outlines[e.to_node], "at": e.updated_at}
        for e in found.edges
    ]
    return [*related, *_alone(node for node in found.nodes if node.id not in touched)]


def _alone(outlines: Iterable[NodeOutline]) -> list[dict[str, Any]]:
    return [{"source": node, "type": None, "target": None, "at": None} for node in outlines]


def _drawn(visit: Visit, found: Picture) -> Drawn:
    return Drawn(
        [_drawn_node(visit, node) for node in found.nodes],
        [DrawnEdge(edge.id, edge.from_node, edge.to_node, edge.type, edge.updated_at) for edge in found.edges],
        found.cut,
    )


def _drawn_node(visit: Visit, node: NodeOutline) -> DrawnNode:
    href = "" if node.placeholder else visit.address(f"node/{node.id}")
    return DrawnNode(node.id, node.label, node.kind or "", href, fact=node.name is None)
