"""Walks along relations, whichever way they point: paths between two entities, and what lies around some."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from recollect.graph.relations.model import Direction, Walk
from recollect.graph.traversal import service as traversal
from recollect.graph.traversal.model import NamedPaths, Paths, PathSearch
from recollect.platform.computing import Slices, each
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import ReadArguments, Reply
from recollect_gateway.mcp_endpoint.toolsets.memory.shapes import (
    MAX_BATCH,
    EntityOut,
    Limit,
    Offset,
    RelationOut,
    bare,
    cut_note,
    entity_out,
    relation_out,
)
from recollect_gateway.shapes import Name, RelationType, SoughtName

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
    max_paths: Annotated[int, Meta(ge=1, le=MAX_BATCH, description="Paths at most")] = 50


class ExtractSubgraph(ReadArguments, frozen=True):
    """Arguments of `extract_subgraph`."""

    names: Annotated[list[SoughtName], Meta(max_length=MAX_BATCH, description="Names of the entities to start from")]
    depth: Annotated[int, Meta(ge=0, le=10, description="Relations away at most")] = 1
    limit: Limit = MAX_BATCH


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
    limit: Limit = 100


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
    async with call.reading(arguments.graph, arguments.as_of) as view:
        searched = await traversal.open_path_between(view, arguments.from_, arguments.to)
    found = await _named(call, searched, searched.shortest_path())
    return bare(FoundPath(found.paths[0] if found.paths else [], found.cut), cut_note(found.cut))


async def find_all_paths(call: Call, arguments: FindAllPaths) -> Reply:
    """Find simple paths, shortest first, whichever way relations point."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        searched = await traversal.open_paths_between(
            view,
            arguments.from_,
            arguments.to,
            max_depth=arguments.max_depth,
            max_paths=arguments.max_paths,
        )
    found = await _named(call, searched, searched.all_paths())
    return bare(FoundPaths(found.paths, found.cut), cut_note(found.cut))


async def _named(call: Call, searched: PathSearch, paths: Slices[Paths]) -> NamedPaths:
    found = await call.compute(paths, advice="Ask for fewer or shorter paths: maxDepth, maxPaths.")
    async with call.transaction() as tx:
        return await traversal.name_paths(tx, searched, found)


async def get_neighbors(call: Call, arguments: GetNeighbors) -> Reply:
    """Show the entities one relation away."""
    walk = Walk(Direction(arguments.direction), tuple(arguments.relation_types))
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await traversal.neighbours_of(
            view,
            arguments.name,
            walk,
            offset=arguments.offset,
            limit=arguments.limit,
        )
    entities, relations = await each(found.entities, entity_out), await each(found.relations, relation_out)
    return Reply(Neighbors(entities, relations, found.next_offset))


async def extract_subgraph(call: Call, arguments: ExtractSubgraph) -> Reply:
    """Show what lies around entities."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        found = await traversal.extract_subgraph(
            view,
            arguments.names,
            depth=arguments.depth,
            max_nodes=arguments.limit,
        )
    entities = await each(found.subgraph.entities, entity_out)
    relations = await each(found.subgraph.relations, relation_out)
    return Reply(ExtractedGraph(entities, relations, found.cut), note=cut_note(found.cut))
