"""The use case of changing several nodes alike, as one revision: outdate them, archive them, or give them tags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID

from recollect.errors import InvalidInput
from recollect.graph.derivations import service as derivations
from recollect.graph.graphs.model import Revision
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, NodeHead, Rewrite
from recollect.graph.observations.model import each_tag_once
from recollect.postgres.transactions import Transaction

MAX_CHOSEN = 100
"""Most nodes that are changed at once."""


@dataclass(frozen=True, slots=True)
class CommonPatch:
    """The change of every node. `status`: the new one; None leaves it as it is. `tags`: those to add.

    `reason`: why the status changes.
    """

    status: Literal["outdated", "archived"] | None = None
    tags: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SeveralChanged:
    """The outcomes of the nodes that were chosen, each node as it was before.

    `same`: the change made no difference. `overtaken`: another call has changed them since they were chosen. `gone`:
    they no longer exist. The last two are left as they are. `derived`: facts that were derived from changed nodes
    alone, and become outdated with them.
    """

    changed: Sequence[NodeHead]
    same: Sequence[NodeHead]
    overtaken: Sequence[NodeHead]
    gone: Sequence[UUID]
    derived: Sequence[NodeHead] = ()

    @property
    def is_whole(self) -> bool:
        """Whether every node was unchanged since it was chosen."""
        return not self.overtaken and not self.gone


async def change_several(
    tx: Transaction, revision: Revision, chosen: Mapping[UUID, int], patch: CommonPatch, *, partly: bool = False
) -> SeveralChanged:
    """Change the nodes that were chosen, except those that have another version now. `chosen`: their versions, by id.

    If one is overtaken or gone, nothing is written at all, unless `partly`. Raises InvalidInput for no node, and for
    more than MAX_CHOSEN, and TooLarge as `nodes.require_readable`.
    """
    if not 1 <= len(chosen) <= MAX_CHOSEN:
        raise InvalidInput(f"Choose 1 to {MAX_CHOSEN} nodes", path="node")
    await nodes.require_readable(tx, revision.graph, list(chosen))
    heads = await nodes.read_heads(tx, revision.graph, list(chosen))
    there = [heads[node] for node in chosen if node in heads and not heads[node].placeholder]
    current = [head for head in there if head.version == chosen[head.id]]
    rewrites = await nodes.differing(Rewrite(head, _patched(head.fields, patch)) for head in current)
    changed = {rewrite.head.id: rewrite.head for rewrite in rewrites}
    outcome = SeveralChanged(
        list(changed.values()),
        [head for head in current if head.id not in changed],
        [head for head in there if head.version != chosen[head.id]],
        [node for node in chosen if node not in {head.id for head in there}],
        await _derived(tx, revision, list(changed)) if patch.status else (),
    )
    if outcome.is_whole or partly:
        outdated = [Rewrite(fact, replace(fact.fields, status="outdated")) for fact in outcome.derived]
        await nodes.rewrite(tx, revision, [*outdated, *rewrites])
    return outcome


def _patched(fields: NodeFields, patch: CommonPatch) -> NodeFields:
    if patch.tags:
        fields = replace(fields, tags=each_tag_once((*fields.tags, *patch.tags)))
    if patch.status in (None, fields.status):
        return fields
    return replace(fields, status=patch.status, reason=patch.reason)


async def _derived(tx: Transaction, revision: Revision, changed: Sequence[UUID]) -> list[NodeHead]:
    """The active facts that were derived from these nodes alone."""
    found = await derivations.without_support(tx, revision, changed)
    heads = await nodes.read_heads(tx, revision.graph, [fact for fact in found if fact not in changed])
    return [head for head in heads.values() if not head.is_hidden]
