"""Walks along relations, whichever way they point: paths between two entities, and what lies around some."""

from typing import Annotated

from msgspec import Meta, Struct, field

from recollect.traversal import service as traversal
from recollect_gateway.mcp_endpoint.tool import Call, Reading, Reply
from recollect_gateway.mcp_endpoint.toolsets.memory.shapes import (
    MAX_BATCH,
    EntityOut,
    Limit,
    Name,
    RelationOut,
    SoughtName,
    bare,
    cut_note,
    entity_out,
    relation_out,
)

From = Annotated[Name, Meta(description="Name of the entity where the path starts")]
To = Annotated[Name, Meta(description="Name of the entity where the path ends")]


class FindPath(Reading, frozen=True):
    """Arguments of `find_path`."""

    from_: From = field(name="from")
    to: To


class FindAllPaths(Reading, frozen=True):
    """Arguments of `find_all_paths`."""

    from_: From = field(name="from")
    to: To
    max_depth: Annotated[int, Meta(ge=1, le=12, description="Relations on one path at most")] = 6
    max_paths: Annotated[int, Meta(ge=1, le=MAX_BATCH, description="Paths at most")] = 50


class ExtractSubgraph(Reading, frozen=True):
    """Arguments of `extract_subgraph`."""

    names: Annotated[list[SoughtName], Meta(max_length=MAX_BATCH, description="Names of the entities to start from")]
    depth: Annotated[int, Meta(ge=0, le=10, description="Relations away at most")] = 1
    limit: Limit = MAX_BATCH


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


async def find_path(call: Call, arguments: FindPath) -> Reply:
    """Find a shortest path, whichever way relations point."""
    async with call.transaction() as tx:
        found = await traversal.find_path(tx, arguments.graph, arguments.from_, arguments.to, as_of=arguments.as_of)
    return bare(FoundPath(found.paths[0] if found.paths else [], found.cut), cut_note(found.cut))


async def find_all_paths(call: Call, arguments: FindAllPaths) -> Reply:
    """Find simple paths, shortest first, whichever way relations point."""
    async with call.transaction() as tx:
        found = await traversal.find_all_paths(
            tx,
            arguments.graph,
            arguments.from_,
            arguments.to,
            max_depth=arguments.max_depth,
            max_paths=arguments.max_paths,
            as_of=arguments.as_of,
        )
    return bare(FoundPaths(found.paths, found.cut), cut_note(found.cut))


async def extract_subgraph(call: Call, arguments: ExtractSubgraph) -> Reply:
    """Show what lies around entities."""
    async with call.transaction() as tx:
        found = await traversal.extract_subgraph(
            tx,
            arguments.graph,
            arguments.names,
            depth=arguments.depth,
            max_nodes=arguments.limit,
            as_of=arguments.as_of,
        )
    entities = [*map(entity_out, found.subgraph.entities)]
    return Reply(
        ExtractedGraph(entities, [*map(relation_out, found.subgraph.relations)], found.cut), note=cut_note(found.cut)
    )
