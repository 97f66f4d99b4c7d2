"""The tool `find_duplicates`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.curation.duplicates import service as duplicates
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.pages import PAGE_ROWS, paged
from recollect_gateway.mcp_endpoint.tool import PagedReply, ReadArguments, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_BATCH, bare, more_note
from recollect_gateway.mcp_endpoint.tools.organize.shapes import STEP_BY_STEP, Threshold, organize_tool

MAX_GROUPS = 10_000


class FindDuplicates(ReadArguments, frozen=True):
    """Arguments of `find_duplicates`."""

    threshold: Threshold = 0.8
    offset: Annotated[int, Meta(ge=0, le=MAX_GROUPS, description="Number of groups to skip")] = 0
    limit: Annotated[int, Meta(ge=1, le=MAX_BATCH, description="Maximum number of groups")] | None = None


class Duplicates(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Result of `find_duplicates`: names, the oldest of each group first."""

    groups: list[list[str]]
    next_offset: int | None = None


async def find_duplicates(call: Call, arguments: FindDuplicates) -> Reply | PagedReply:
    """Find groups of similar entities."""
    offset, limit = arguments.offset, arguments.limit or PAGE_ROWS
    async with call.searching(arguments.graph, arguments.as_of) as view:
        search = await duplicates.open_search(view, threshold=arguments.threshold)
    groups = await call.compute(search.groups(), advice=f"Raise the threshold, or {STEP_BY_STEP}.")
    async with call.transaction() as tx:
        found = await duplicates.list_groups(tx, search, groups, offset=offset, limit=limit)
    return paged(
        found.groups,
        lambda rows, next_offset: bare(Duplicates(rows, next_offset), more_note(next_offset)),
        limit=arguments.limit,
        offset=offset,
        next_offset=offset + limit if found.more else None,
    )


FIND_DUPLICATES = organize_tool(
    description="Find entities of the same type with similar names, observations and tags. For a large graph, it "
    "returns what propose_duplicates found last.",
    result=Duplicates,
    handler=find_duplicates,
    read_only=True,
)
