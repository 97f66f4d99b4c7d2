"""The tool `set_importance`."""

from msgspec import Struct

from recollect.curation.labels import service as labels
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply
from recollect_gateway.mcp_endpoint.tools.organize.shapes import EntityName, organize_tool
from recollect_http.requests.argument_types import Importance


class SetImportance(Arguments, frozen=True):
    """Arguments of `set_importance`."""

    entity_name: EntityName
    importance: Importance


class ChangedImportance(Struct, rename="camel", frozen=True):
    """Result of `set_importance`."""

    entity_name: str
    importance: float


async def set_importance(call: Call, arguments: SetImportance) -> Reply:
    """Set an entity's importance."""
    async with call.writing(arguments.graph) as (tx, revision):
        await labels.set_importance(tx, revision, {arguments.entity_name: arguments.importance})
    return Reply(ChangedImportance(arguments.entity_name, arguments.importance))


SET_IMPORTANCE = organize_tool(
    description="Set how much an entity matters, from 0 to 10.",
    result=ChangedImportance,
    handler=set_importance,
    idempotent=True,
)
