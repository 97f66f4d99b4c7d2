"""The tool `archive_entities`."""

from typing import Annotated

from msgspec import Meta, Struct

from recollect.curation.archiving import service as archiving
from recollect.curation.archiving.model import ArchiveCriteria
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply
from recollect_gateway.mcp_endpoint.tools.organize.shapes import DryRun, organize_tool
from recollect_http.requests.argument_types import EMPTY_IS_A_VALUE, Importance, Tag, Time
from recollect_http.requests.parsing import utc


class ArchiveEntities(Arguments, frozen=True):
    """Arguments of `archive_entities`."""

    older_than: (
        Annotated[Time, Meta(description="Last changed before this time", extra={EMPTY_IS_A_VALUE: True})] | None
    ) = None
    importance_below: (
        Annotated[Importance, Meta(description="With an importance below this; entities without one do not match")]
        | None
    ) = None
    tags: Annotated[list[Tag], Meta(max_length=100, description="With one of these tags")] = []
    dry_run: DryRun = False


class ArchivedEntities(Struct, rename="camel", frozen=True):
    """Result of `archive_entities`."""

    archived: int
    entity_names: list[str]


async def archive_entities(call: Call, arguments: ArchiveEntities) -> Reply:
    """Archive entities that are no longer used."""
    criteria = ArchiveCriteria(
        utc(arguments.older_than, "olderThan"), arguments.importance_below, tuple(arguments.tags)
    )
    async with call.transaction() if arguments.dry_run else call.changing(arguments.graph) as tx:
        result = await archiving.archive_entities(
            tx, arguments.graph, call.operation, criteria, dry_run=arguments.dry_run
        )
    note = "There are more: call again." if result.more else None
    return Reply(ArchivedEntities(len(result.names), result.names), note=note)


ARCHIVE_ENTITIES = organize_tool(
    description="Archive the entities that match all given criteria. Recall leaves out archived entities; they "
    "can still be opened by name.",
    result=ArchivedEntities,
    handler=archive_entities,
    idempotent=True,
)
