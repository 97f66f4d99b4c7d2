"""The tools `find_path` and `find_all_paths`."""

from typing import Annotated

from msgspec import Meta, Struct, field

from recollect.fairness.computing import Slices
from recollect.graph.traversal import service as traversal
from recollect.graph.traversal.model import NamedPaths, Paths, PathSearch
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import cut_short
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_BATCH, bare, cut_note
from recollect_http.requests.argument_types import Name

MAX_PATHS = 50
"""The maximum number of paths, if the caller gives none."""

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


class FoundPath(Struct, omit_defaults=True, frozen=True):
    """Result of `find_path`: names from one end to the other; none where there is no path. `cut`: a bound ended it."""

    path: list[str]
    cut: str | None = None


class FoundPaths(Struct, omit_defaults=True, frozen=True):
    """Result of `find_all_paths`, shortest first. `cut`: which bound left some out."""

    paths: list[list[str]]
    cut: str | None = None


async def find_path(call: Call, arguments: FindPath) -> Reply:
    """Find a shortest path, along relations of either direction."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
        search = await traversal.open_path_between(view, arguments.from_, arguments.to)
    found = await _find_named_paths(call, search, search.shortest_path())
    return bare(FoundPath(found.paths[0] if found.paths else [], found.cut), cut_note(found.cut))


FIND_PATH = ToolSpec(
    description="Find a shortest path between two entities, in any direction.",
    toolsets=frozenset({"memory"}),
    result=FoundPath,
    handler=find_path,
    read_only=True,
)


async def find_all_paths(call: Call, arguments: FindAllPaths) -> Reply | PagedReply:
    """Find simple paths, shortest first, along relations of either direction."""
    async with call.reading(arguments.graph, arguments.as_of) as view:
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


FIND_ALL_PATHS = ToolSpec(
    description="Find the paths between two entities, shortest first, in any direction.",
    toolsets=frozenset({"memory"}),
    result=FoundPaths,
    handler=find_all_paths,
    read_only=True,
)


async def _find_named_paths(call: Call, search: PathSearch, computation: Slices[Paths]) -> NamedPaths:
    paths = await call.compute(computation, advice="Ask for fewer or shorter paths: maxDepth, maxPaths.")
    async with call.looking_up() as tx:
        return await traversal.name_paths(tx, search, paths)
