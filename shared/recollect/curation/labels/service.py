"""Use cases of labels: tags and importance of many entities at once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from recollect.curation.labels.model import TagChange, TagChangeResult
from recollect.graph.graphs.model import Revision
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import Rewrite, unique_by
from recollect.postgres.transactions import Transaction


async def retag(tx: Transaction, revision: Revision, retaggings: Sequence[TagChange]) -> list[TagChangeResult]:
    """Add tags to entities and remove tags from them, each entity once; return what changed, in order.

    Raises NotFound for the first name that no entity has.
    """
    heads = await nodes.require_entity_heads(tx, revision.graph, [retagging.name for retagging in retaggings])
    tags = [_retagged(heads[retagging.name].fields.tags, retagging) for retagging in retaggings]
    changed = [
        Rewrite(heads[result.name], replace(heads[result.name].fields, tags=tags_after))
        for tags_after, result in tags
        if result.added or result.removed
    ]
    await nodes.rewrite(tx, revision, changed)
    return [result for _, result in tags]


async def set_importance(tx: Transaction, revision: Revision, importances: Mapping[str, float]) -> None:
    """Give entities, by their names, an importance of 0 to 10.

    Raises NotFound for the first name that no entity has.
    """
    heads = await nodes.require_entity_heads(tx, revision.graph, list(importances))
    changed = [
        Rewrite(head, replace(head.fields, importance=importances[name]))
        for name, head in heads.items()
        if head.fields.importance != importances[name]
    ]
    await nodes.rewrite(tx, revision, changed)


def _retagged(tags: Sequence[str], change: TagChange) -> tuple[tuple[str, ...], TagChangeResult]:
    """The tags of an entity after the change, and what changed."""
    to_remove = {tag.lower() for tag in change.remove}
    removed = [tag for tag in tags if tag.lower() in to_remove]
    known = {tag.lower() for tag in tags} - to_remove
    added = [tag for tag in unique_by(str.lower, change.add) if tag.lower() not in known]
    remaining = [tag for tag in tags if tag.lower() not in to_remove]
    return (*remaining, *added), TagChangeResult(change.name, tuple(added), tuple(removed))
