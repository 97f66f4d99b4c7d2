"""The tool `merge_entities`."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from recollect.curation.merging import service as merging
from recollect.curation.merging.model import MergedEntity
from recollect.errors import InvalidInput
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.confirmation import confirm
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply, ToolSpec
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_BATCH
from recollect_gateway.mcp_endpoint.tools.organize.shapes import organize_tool, organized
from recollect_http.requests.argument_types import Name, OmittedObservations


class MergeEntities(Arguments, frozen=True):
    """Arguments of `merge_entities`, in either shape."""

    source: Annotated[Name, Meta(description="The entity to merge into target")] | None = None
    target: Annotated[Name, Meta(description="The entity that stays")] | None = None
    entity_names: Annotated[
        list[Name], Meta(max_length=MAX_BATCH, description="Or the entities to merge, at least two")
    ] = []
    target_name: (
        Annotated[
            Name,
            Meta(description="With entityNames: name of the merged entity, unused by others; default: the first"),
        ]
        | None
    ) = None


class MergedEntities(Struct, rename="camel", omit_defaults=True, frozen=True):
    """Result of `merge_entities`: counts for source and target, the entity that is left for entityNames.

    `redirectedRelations` counts those that are the target's now; `duplicateRelations` (it had them already) and
    `selfLoops` (they would lead to itself) those that were dropped.
    """

    source: str | UnsetType = UNSET
    target: str | UnsetType = UNSET
    moved_observations: int | UnsetType = UNSET
    added_observations: int | UnsetType = UNSET
    redirected_relations: int | UnsetType = UNSET
    duplicate_relations: int | UnsetType = UNSET
    self_loops: int | UnsetType = UNSET
    name: str | UnsetType = UNSET
    entity_type: str | UnsetType = UNSET
    observations: list[str] | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    created_at: str | UnsetType = UNSET
    last_modified: str | UnsetType = UNSET
    importance: float | UnsetType = UNSET
    parent_id: str | UnsetType = UNSET
    content: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    omitted_observations: OmittedObservations | UnsetType = UNSET


async def merge_entities(call: Call, arguments: MergeEntities) -> Reply:
    """Merge several entities into one; answer in the shape that belongs to the arguments given."""
    names, target = _merge_order(arguments)
    async with call.writing(arguments.graph) as (tx, revision):
        merged = await merging.merge_entities(tx, revision, names, target)
    return Reply(_merged_entities(arguments, merged))


async def _count_merged(_: Call, arguments: MergeEntities) -> int:
    return len(arguments.entity_names)


MERGE_ENTITIES_IN_ORGANIZE = organize_tool(
    description="Merge entities into one, which takes over their observations, tags and relations. The others "
    "stay in history.",
    result=MergedEntities,
    handler=merge_entities,
    ask=confirm("merges {size} entities of the graph {graph} into one", _count_merged),
    destructive=True,
    idempotent=True,
)

MERGE_ENTITIES = ToolSpec(
    description="Merge entities into one, which takes over their observations, tags and relations. The others "
    "stay in history.",
    toolsets=frozenset({"memory", "organize"}),
    result=MergedEntities,
    handler=merge_entities,
    ask=confirm("merges {size} entities of the graph {graph} into one", _count_merged),
    destructive=True,
    idempotent=True,
    dialects=(MERGE_ENTITIES_IN_ORGANIZE,),
)


def _merge_order(arguments: MergeEntities) -> tuple[list[str], str | None]:
    """The names to merge, first the entity that stays, and its new name, if any."""
    if arguments.entity_names:
        if arguments.source is not None or arguments.target is not None:
            raise InvalidInput("Give either source and target, or entityNames", path="entityNames")
        return arguments.entity_names, arguments.target_name
    if arguments.source is None or arguments.target is None or arguments.target_name is not None:
        raise InvalidInput("Give source and target, or entityNames with or without targetName", path="source")
    if arguments.source == arguments.target:
        raise InvalidInput("An entity cannot be merged into itself", path="source")
    return [arguments.target, arguments.source], None


def _merged_entities(arguments: MergeEntities, merged: MergedEntity) -> MergedEntities:
    if arguments.source is not None and arguments.target is not None:
        return MergedEntities(
            source=arguments.source,
            target=arguments.target,
            moved_observations=merged.moved_observations,
            added_observations=merged.added_observations,
            redirected_relations=merged.redirected_relations,
            duplicate_relations=merged.duplicate_relations,
            self_loops=merged.self_loops,
        )
    entity = organized(merged.entity)
    fields = {name: getattr(entity, name) for name in entity.__struct_fields__}
    return MergedEntities(**{name: value for name, value in fields.items() if value is not None})
