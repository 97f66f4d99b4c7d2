"""Walks along relations, whichever way they point: paths between two entities, and what lies around some."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from recollect.graph.nodes.model import unique
from recollect.graph.relations.model import Direction, Walk
from recollect.graph.traversal import service as traversal
from recollect.graph.traversal.model import NamedPaths, Paths, PathSearch
from recollect.platform.computing import Slices, each
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, cut_short, paged
from recollect_gateway.mcp_endpoint.tool import Listing, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.toolsets.memory.shapes import (
    MAX_BATCH,
    EntityOut,
    Limit,
    Offset,
    RelationOut,
    bare,
    cut_note,
    entity_out,
    more,
    relation_out,
)
from recollect_gateway.shapes import Name, RelationType, SoughtName

MAX_PATHS = 50
"""Paths that are told where nobody says how many."""

From = Annotated[Name, Meta(description="Name of the entity where the path starts")]
To = Annotated[Name, Meta(description="Name of the entity where the path ends")]


class FindPath(ReadArguments, frozen=True):
    """Arguments of `find_path`."""

    from_: From = field(name="from")
    to: To


class FindAllPaths(ReadArguments, frozen=True):
    """Arguments of `find_all_paths`."""

    from_: From = field(name="from")
    to: To
    max_depth: Annotated[int, Meta(ge=1, le=12, description="Relations on one path at most")] = 6
    max_paths: (
        Annotated[int, Meta(ge=1, le=MAX_BATCH, description="Paths at most", extra_json_schema={"default": MAX_PATHS})]
        | None
    ) = None


class ExtractSubgraph(ReadArguments, frozen=True):
    """Arguments of `extract_subgraph`."""

    names: Annotated[list[SoughtName], Meta(max_length=MAX_BATCH, description="Names of the entities to start from")]
    depth: Annotated[int, Meta(ge=0, le=10, description="Relations away at most")] = 1
    limit: Limit | None = None


class GetNeighbors(ReadArguments, frozen=True):
    """Arguments of `get_neighbors`."""

    name: Annotated[Name, Meta(description="The name of the entity")]
    direction: Annotated[
        Literal["outgoing", "incoming", "both"], Meta(description="Which way relations point, seen from the entity")
    ] = "both"
    relation_types: Annotated[
        list[RelationType], Meta(max_length=50, description="Only over relations of these types; default any")
    ] = []
    offset: Offset = 0
    limit: Limit | None = None


class FoundPath(Struct, omit_defaults=True, frozen=True):
    """Result of `find_path`: names from one end to the other; none where there is no path. `cut`: a bound ended it."""

    path: list[str]
    cut: str | None = None


class FoundPaths(Struct, omit_defaults=True, frozen=True):
    """Result of `find_all_paths`, shortest first. `cut`: which bound left some out."""

    paths: list[list[str]]
    cut: str | None = None


class ExtractedGraph(Struct, omit_defaults=True, frozen=True):
    """Result of `extract_subgraph`, nearest first. `cut`: which bound left some out."""

    entities: list[EntityOut]
    relations: list[RelationOut]
    cut: str | None = None


class Neighbors(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Result of `get_neighbors`: neighbours, and the relations that lead to them. `nextOffset`: more follow."""

    entities: list[EntityOut]
    relations: list[RelationOut]
    next_offset: int | None = None


async def find_path(call: Call, arguments: FindPath) -> Reply:
    """Find a shortest path, whichever way relations point."""
    async with call.reading(arguments.graph, arguments.as_of, keyed=True) as view:
        searched = await traversal.open_path_between(view, arguments.from_, arguments.to)
    found = await _named(call, searched, searched.shortest_path())
    return bare(FoundPath(found.paths[0] if found.paths else [], found.cut), cut_note(found.cut))


async def find_all_paths(call: Call, arguments: FindAllPaths) -> Reply | Listing:
    """Find simple paths, shortest first, whichever way relations point."""
    async with call.reading(arguments.graph, arguments.as_of, keyed=True) as view:
        searched = await traversal.open_paths_between(
            view,
            arguments.from_,
            arguments.to,
            max_depth=arguments.max_depth,
            max_paths=arguments.max_paths or MAX_PATHS,
        )
    found = await _named(call, searched, searched.all_paths())
    return cut_short(
        found.paths,
        lambda paths, cut: bare(FoundPaths(paths, cut), cut_note(cut)),
        limit=arguments.max_paths,
        cut=found.cut,
    )


async def _named(call: Call, searched: PathSearch, paths: Slices[Paths]) -> NamedPaths:
    found = await call.compute(paths, advice="Ask for fewer or shorter paths: maxDepth, maxPaths.")
    async with call.transaction(keyed=True) as tx:
        return await traversal.name_paths(tx, searched, found)


async def get_neighbors(call: Call, arguments: GetNeighbors) -> Reply | Listing:
    """Show the entities one relation away, names that only relations know counted among them."""
    walk = Walk(Direction(arguments.direction), tuple(arguments.relation_types))
    async with call.reading(arguments.graph, arguments.as_of, keyed=True) as view:
        found = await traversal.neighbours_of(
            view,
            arguments.name,
            walk,
            offset=arguments.offset,
            limit=arguments.limit or PAGE_ROWS,
        )
    entities, relations = await each(found.entities, entity_out), await each(found.relations, relation_out)
    far = unique(end for one in relations for end in (one.from_, one.to) if end != arguments.name)

    def reply(rows: list[str], following: int | None) -> Reply:
        near = {*rows, arguments.name}
        shown = [entity for entity in entities if entity.name in near]
        leading = [relation for relation in relations if {relation.from_, relation.to} <= near]
        return Reply(Neighbors(shown, leading, following), note=more(following))

    return paged(far, reply, limit=arguments.limit, offset=arguments.offset, next_offset=found.next_offset)


async def extract_subgraph(call: Call, arguments: ExtractSubgraph) -> Reply | Listing:
    """Show what lies around entities."""
    async with call.reading(arguments.graph, arguments.as_of, keyed=True) as view:
        found = await traversal.extract_subgraph(
            view,
            arguments.names,
            depth=arguments.depth,
            max_nodes=arguments.limit or PAGE_ROWS,
        )
    entities = await each(found.subgraph.entities, entity_out)
    relations = await each(found.subgraph.relations, relation_out)

    def reply(shown: list[EntityOut], cut: str | None) -> Reply:
        left_out = {entity.name for entity in entities[len(shown) :]}
        among = [one for one in relations if not left_out & {one.from_, one.to}]
        return Reply(ExtractedGraph(shown, among, cut), note=cut_note(cut))

    return cut_short(entities, reply, limit=arguments.limit, cut=found.cut, related_items=len(relations))
