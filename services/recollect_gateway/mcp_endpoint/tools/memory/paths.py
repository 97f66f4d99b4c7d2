"""Walks along relations, in either direction: paths between two entities, and the surroundings of some."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from recollect.fairness.computing import Slices, map_yielding
from recollect.graph.nodes.model import stored_form, unique
from recollect.graph.relations.model import Direction, Walk
from recollect.graph.traversal import service as traversal
from recollect.graph.traversal.model import NamedPaths, Paths, PathSearch
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, cut_short, paged
from recollect_gateway.mcp_endpoint.tool import Listing, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import (
    MAX_BATCH,
    EntityOut,
    Limit,
    Offset,
    RelationOut,
    bare,
    cut_note,
    entity_out,
    more_note,
    relation_out,
)
from recollect_http.requests.argument_types import Name, RelationType, SoughtName

MAX_PATHS = 50
"""Paths that are answered, at most, if the caller does not say how many."""

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
    max_depth: Annotated[int, Meta(ge=1, le=12, description="Maximum relations per path")] = 6
    max_paths: (
        Annotated[
            int,
            Meta(ge=1, le=MAX_BATCH, description="Maximum paths", extra_json_schema={"default": MAX_PATHS}),
        ]
        | None
    ) = None


class ExtractSubgraph(ReadArguments, frozen=True):
    """Arguments of `extract_subgraph`."""

    names: Annotated[list[SoughtName], Meta(max_length=MAX_BATCH, description="Names of the entities to start from")]
    depth: Annotated[int, Meta(ge=0, le=10, description="Maximum relations from the start")] = 1
    limit: Limit | None = None


class GetNeighbors(ReadArguments, frozen=True):
    """Arguments of `get_neighbors`."""

    name: Annotated[Name, Meta(description="The name of the entity")]
    direction: Annotated[
        Literal["outgoing", "incoming", "both"], Meta(description="Which way relations point, seen from the entity")
    ] = "both"
    relation_types: Annotated[
        list[RelationType], Meta(max_length=50, description="Only along relations of these types; default: any")
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
    """Result of `get_neighbors`: neighbours, and the relations that lead to them. `nextOffset`: more follow.

    `cut`: there are more relations than are told; search_relations tells all, in pages.
    """

    entities: list[EntityOut]
    relations: list[RelationOut]
    next_offset: int | None = None
    cut: str | None = None


async def find_path(call: Call, arguments: FindPath) -> Reply:
    """Find a shortest path, whichever way relations point."""
    async with call.reading(arguments.graph, arguments.as_of, keyed=True) as view:
        search = await traversal.open_path_between(view, arguments.from_, arguments.to)
    found = await _find_named_paths(call, search, search.shortest_path())
    return bare(FoundPath(found.paths[0] if found.paths else [], found.cut), cut_note(found.cut))


async def find_all_paths(call: Call, arguments: FindAllPaths) -> Reply | Listing:
    """Find simple paths, shortest first, whichever way relations point."""
    async with call.reading(arguments.graph, arguments.as_of, keyed=True) as view:
        search = await traversal.open_paths_between(
            view,
            arguments.from_,
            arguments.to,
            max_depth=arguments.max_depth,
            max_paths=arguments.max_paths or MAX_PATHS,
        )
    found = await _find_named_paths(call, search, search.all_paths())
    return cut_short(
        found.paths,
        lambda paths, cut: bare(FoundPaths(paths, cut), cut_note(cut)),
        limit=arguments.max_paths,
        cut=found.cut,
    )


async def _find_named_paths(call: Call, search: PathSearch, computation: Slices[Paths]) -> NamedPaths:
    paths = await call.compute(computation, advice="Ask for fewer or shorter paths: maxDepth, maxPaths.")
    async with call.transaction(keyed=True) as tx:
        return await traversal.name_paths(tx, search, paths)


async def get_neighbors(call: Call, arguments: GetNeighbors) -> Reply | Listing:
    """Show the entities one relation away, including names that occur in relations only."""
    walk = Walk(Direction(arguments.direction), tuple(arguments.relation_types))
    async with call.reading(arguments.graph, arguments.as_of, keyed=True) as view:
        found = await traversal.neighbours_of(
            view,
            arguments.name,
            walk,
            offset=arguments.offset,
            limit=arguments.limit or PAGE_ROWS,
        )
    entities, relations = (
        await map_yielding(found.entities, entity_out),
        await map_yielding(found.relations, relation_out),
    )
    ends = unique(end for relation in relations for end in (relation.from_, relation.to))
    start = stored_form(arguments.name, ends)
    neighbours = [end for end in ends if end != start]

    def reply(page: list[str], next_offset: int | None) -> Reply:
        names = {*page, start}
        page_entities = [entity for entity in entities if entity.name in names]
        page_relations = [relation for relation in relations if {relation.from_, relation.to} <= names]
        note = more_note(next_offset, found.cut)
        return Reply(Neighbors(page_entities, page_relations, next_offset, found.cut), note=note)

    return paged(neighbours, reply, limit=arguments.limit, offset=arguments.offset, next_offset=found.next_offset)


async def extract_subgraph(call: Call, arguments: ExtractSubgraph) -> Reply | Listing:
    """Show the entities and relations around some entities."""
    async with call.reading(arguments.graph, arguments.as_of, keyed=True) as view:
        found = await traversal.extract_subgraph(
            view,
            arguments.names,
            depth=arguments.depth,
            max_nodes=arguments.limit or PAGE_ROWS,
        )
    entities = await map_yielding(found.subgraph.entities, entity_out)
    relations = await map_yielding(found.subgraph.relations, relation_out)

    def reply(page: list[EntityOut], cut: str | None) -> Reply:
        left_out = {entity.name for entity in entities[len(page) :]}
        page_relations = [relation for relation in relations if not left_out & {relation.from_, relation.to}]
        return Reply(ExtractedGraph(page, page_relations, cut), note=cut_note(cut))

    return cut_short(entities, reply, limit=arguments.limit, cut=found.cut, related_items=len(relations))
