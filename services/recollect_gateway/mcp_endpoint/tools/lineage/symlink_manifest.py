"""The tool `symlink_manifest`."""

from collections.abc import Iterable
from itertools import zip_longest
from uuid import UUID

from msgspec import Struct

from recollect.memory import exploring
from recollect.memory.model import NamedEdge
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import Arguments, PagedReply, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.lineage.shapes import EdgeLimit, LineageEdgeOut, Offset, edge_out


class SymlinkManifest(Arguments, frozen=True, rename=None):
    """Arguments of `symlink_manifest`."""

    limit: EdgeLimit | None = None
    offset: Offset = 0


class SymlinkGraph(Struct, frozen=True, omit_defaults=True):
    """A graph that symlinks of a page lead to, or come from; `graph`, its name, is left out where it was deleted."""

    graph_id: str
    count: int
    dangling: int
    graph: str | None = None


class Symlinks(Struct, frozen=True, omit_defaults=True):
    """Result of `symlink_manifest`: a page of the symlinks, oldest first, and the graphs that they lead to.

    `inbound`: the same page of those that lead into the graph, and the graphs that they come from. `next_offset`: where
    more of either follow.
    """

    symlinks: list[LineageEdgeOut]
    targets: list[SymlinkGraph]
    more: bool
    inbound: list[LineageEdgeOut]
    sources: list[SymlinkGraph]
    more_inbound: bool
    next_offset: int | None = None


async def symlink_manifest(call: Call, arguments: SymlinkManifest) -> Reply | PagedReply:
    """List the edges that lead from this graph into others, and from others into this one."""
    name, offset, limit = arguments.graph, arguments.offset, arguments.limit or PAGE_ROWS
    async with call.searching(name) as view:
        outbound = await exploring.symlinks_of(view, offset=offset, limit=limit)
        inbound = await exploring.symlinks_of(view, inbound=True, offset=offset, limit=limit)
    # Both lists go on at the same offset, also where one of them had no room for `limit` edges.
    rows_read = min((len(page.links) for page in (outbound, inbound) if page.more), default=limit)

    def reply(rows: list[tuple[NamedEdge | None, NamedEdge | None]], next_offset: int | None) -> Reply:
        page_outbound = [link for link, _ in rows if link is not None]
        page_inbound = [link for _, link in rows if link is not None]
        return Reply(
            Symlinks(
                [edge_out(link) for link in page_outbound],
                _far_graphs((link.edge.to_graph, link.to_graph, link) for link in page_outbound),
                outbound.more or len(page_outbound) < len(outbound.links),
                [edge_out(link) for link in page_inbound],
                _far_graphs((link.edge.graph_id, link.graph, link) for link in page_inbound),
                inbound.more or len(page_inbound) < len(inbound.links),
                next_offset,
            )
        )

    return paged(
        [*zip_longest(outbound.links[:rows_read], inbound.links[:rows_read])],
        reply,
        limit=arguments.limit,
        offset=offset,
        next_offset=offset + rows_read if outbound.more or inbound.more else None,
    )


SYMLINK_MANIFEST = ToolSpec(
    title="Symlinks of a graph",
    description="List the edges that lead from a graph into other graphs, and those whose target no longer exists.",
    toolsets=frozenset({"lineage"}),
    result=Symlinks,
    handler=symlink_manifest,
    read_only=True,
)


def _far_graphs(ends: Iterable[tuple[UUID, str | None, NamedEdge]]) -> list[SymlinkGraph]:
    """The graphs at the far ends of symlinks, by id and name, each with the number of its symlinks."""
    by_graph: dict[UUID, tuple[str | None, list[NamedEdge]]] = {}
    for graph_id, name, link in ends:
        by_graph.setdefault(graph_id, (name, []))[1].append(link)
    return [
        SymlinkGraph(str(graph_id), len(links), sum(link.dangling for link in links), name)
        for graph_id, (name, links) in by_graph.items()
    ]
