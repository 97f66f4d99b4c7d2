"""Handlers and shapes of curation: tags, importance, merging."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from recollect.curation.labels import service as labels
from recollect.curation.labels.model import TagChange
from recollect.curation.merging import service as merging
from recollect.curation.merging.model import MergedEntity
from recollect.errors import InvalidInput
from recollect_gateway.calls import Call
from recollect_gateway.mcp_endpoint.tool import Arguments, Reply
from recollect_gateway.mcp_endpoint.tools.memory.shapes import MAX_BATCH
from recollect_gateway.mcp_endpoint.tools.organize.shapes import EntityName, lowered, organized
from recollect_http.requests.argument_types import Importance, Name, OmittedObservations, Tag

Tags = Annotated[list[Tag], Meta(min_length=1, max_length=100, description="Tags; case is ignored")]


class ChangeTags(Arguments, frozen=True):
    """Arguments of `add_tags` and `remove_tags`."""

    entity_name: EntityName
    tags: Tags


class SetImportance(Arguments, frozen=True):
    """Arguments of `set_importance`."""

    entity_name: EntityName
    importance: Importance


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


class AddedTags(Struct, rename="camel", frozen=True):
    """Result of `add_tags`: those that the entity did not have."""

    entity_name: str
    added_tags: list[str]


class RemovedTags(Struct, rename="camel", frozen=True):
    """Result of `remove_tags`: those that the entity had."""

    entity_name: str
    removed_tags: list[str]


class ChangedImportance(Struct, rename="camel", frozen=True):
    """Result of `set_importance`."""

    entity_name: str
    importance: float


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


async def add_tags(call: Call, arguments: ChangeTags) -> Reply:
    """Give an entity tags; answer those that are new."""
    change = TagChange(arguments.entity_name, add=lowered(arguments.tags))
    async with call.writing(arguments.graph) as (tx, revision):
        [result] = await labels.retag(tx, revision, [change])
    return Reply(AddedTags(result.name, list(result.added)))


async def remove_tags(call: Call, arguments: ChangeTags) -> Reply:
    """Take tags from an entity; answer those that it had."""
    change = TagChange(arguments.entity_name, remove=lowered(arguments.tags))
    async with call.writing(arguments.graph) as (tx, revision):
        [result] = await labels.retag(tx, revision, [change])
    return Reply(RemovedTags(result.name, list(lowered(result.removed))))


async def set_importance(call: Call, arguments: SetImportance) -> Reply:
    """Set an entity's importance."""
    async with call.writing(arguments.graph) as (tx, revision):
        await labels.set_importance(tx, revision, {arguments.entity_name: arguments.importance})
    return Reply(ChangedImportance(arguments.entity_name, arguments.importance))


async def merge_entities(call: Call, arguments: MergeEntities) -> Reply:
    """Merge several entities into one; answer in the shape that belongs to the arguments given."""
    names, target = _merge_order(arguments)
    async with call.writing(arguments.graph) as (tx, revision):
        merged = await merging.merge_entities(tx, revision, names, target)
    return Reply(_merged_entities(arguments, merged))


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
