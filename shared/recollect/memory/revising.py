"""Use cases of changing what is known: revise a memory or a node, forget it, and delete it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.errors import InvalidInput
from recollect.graph.derivations import service as derivations
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Draft, Version
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import ACTIVE, NodeFields, NodeHead, Rewrite, unique
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import Observation, each_tag_once
from recollect.graph.relations import service as relations
from recollect.memory.model import (
    Forgotten,
    MemoryPatch,
    MemoryRef,
    Revised,
    expiry,
    reason_of,
    require_short_name,
)
from recollect.memory.reading import newest_version
from recollect.postgres.transactions import Transaction


@dataclass(frozen=True, slots=True)
class NodePatch:
    """The changes to a node; None leaves a field as it is. `text`: an entity's name, or a fact's content.

    `kind` is an entity's, `fact_kind` a fact's. `expires_at` wins over `ttl_days`, which counts from the change;
    `never_expires` over both. `reason`: why, kept with the version.
    """

    text: str | None = None
    kind: str | None = None
    fact_kind: str | None = None
    metadata: dict[str, Any] | None = None
    status: str | None = None
    source: str | None = None
    ttl_days: float | None = None
    expires_at: datetime | None = None
    never_expires: bool = False
    reason: str | None = None
    thread: str | None = None
    said_at: datetime | None = None


async def revise(tx: Transaction, revision: Revision, target: MemoryRef, patch: MemoryPatch) -> Revised:
    """Change a memory or a node; the former state stays in history.

    Each gets a new version under its id, unless nothing differs. An observation whose new text another observation of
    its entity has already gives way to that one, whose id is returned. A revision that is based on another version than
    the newest is a conflict, and nothing is written; a node of a graph with the policy `manual` gets it as a sibling.
    Raises NotFound, and InvalidInput for a version that there never was, or for the status `archived` of an
    observation.

    A new text without a status holds from now on: what was outdated or archived is active again, and what else was
    known of such an entity is outdated.
    """
    observation = await _find_observation(tx, revision.graph, target)
    if observation is not None:
        return await _revise_observation(tx, revision, observation, patch)
    head = await _find_head(tx, revision.graph, target)
    if target.name is not None and patch.hides:
        await _hide_other_forms(tx, revision, target.name, head, patch)
    fields = _patched_fields(head.fields, patch, revision.at)
    is_manual = revision.graph.conflict_policy == "manual"
    if not is_manual and not fields.is_same_as(head.fields) and _is_overtaken(patch, head.version):
        return _refused(head.id, head.id, head.version, head.content, patch)
    if head.is_hidden and patch.reactivates:
        await observations.outdate_former(tx, revision, [head])
    if fields.status != ACTIVE:
        await _outdate_derived(tx, revision, [head.id])
    put = await lineages.put_node(tx, revision, Draft(fields, head.id, based_on=patch.based_on))
    node = await lineages.get_node(GraphView(tx, revision.graph), head.id)
    siblings = await lineages.get_versions(tx, revision.graph, node.conflicts) if put.conflict else []
    conflict = tuple(sibling.content or "" for sibling in siblings)
    return Revised(head.id, head.id, put.version, node.content, conflict, put.unchanged)


async def forget(
    tx: Transaction,
    revision: Revision,
    targets: Sequence[MemoryRef],
    *,
    reason: str | None = None,
    delete: bool = False,
) -> Forgotten:
    """Mark memories and nodes as outdated (recall returns them on request only), or delete them.

    Targets that do not exist are skipped, and returned. A name stands for all its forms that the graph has, so that to
    forget it again does nothing. An outdated observation is no longer listed with its entity. All of it stays in
    history.
    """
    ids = unique(target.id for target in targets if target.id is not None)
    found = await observations.observations_by_id(tx, revision.graph, ids)  # Expired ones are not found.
    if delete:
        await observations.remove_observations_by_id(tx, revision, list(found))
    else:
        await outdate_observations(tx, revision, list(found.values()), dict.fromkeys(found, reason))
    named = await naming.find_forms(tx, revision.graph, unique(t.name for t in targets if t.name is not None))
    node_ids = unique([*(i for i in ids if i not in found), *(node.id for forms in named.values() for node in forms)])
    await nodes.require_readable(tx, revision.graph, node_ids)
    heads = list((await nodes.read_heads(tx, revision.graph, node_ids)).values())
    if delete:
        await relations.delete_nodes(tx, revision, [head.id for head in heads], reason=reason)
    else:
        heads = [head for head in heads if not head.fields.placeholder]
        await outdate_nodes(tx, revision, heads, dict.fromkeys((head.id for head in heads), reason))
    forgotten = [*found, *(head.id for head in heads)]
    done = set(forgotten)
    forms = {name: [node.name for node in nodes if node.id in done] for name, nodes in named.items()}
    unknown = [t for t in targets if t.id not in done and not forms.get(t.name or "")]
    return Forgotten(forgotten, unknown, forms)


async def outdate_observations(
    tx: Transaction, revision: Revision, found: Sequence[Observation], reasons: Mapping[UUID, str | None]
) -> None:
    """Mark observations as outdated, each for its reason."""
    after = [
        _patched_observation(each, MemoryPatch(status="outdated", reason=reasons[each.id]), revision.at)
        for each in found
    ]
    await observations.rewrite(tx, revision, found, after)


async def outdate_nodes(
    tx: Transaction, revision: Revision, heads: Sequence[NodeHead], reasons: Mapping[UUID, str | None]
) -> None:
    """Mark nodes as outdated, each for its reason, and facts that were derived from them alone."""
    await _outdate_derived(tx, revision, [head.id for head in heads])
    rewrites = [
        Rewrite(
            head, _patched_fields(head.fields, MemoryPatch(status="outdated", reason=reasons[head.id]), revision.at)
        )
        for head in heads
    ]
    await nodes.rewrite(tx, revision, await nodes.differing(rewrites))


async def _outdate_derived(tx: Transaction, revision: Revision, turn_ids: Sequence[UUID]) -> None:
    """Mark the active facts as outdated that were derived from these turns alone. The caller then hides the turns."""
    derived = await derivations.without_support(tx, revision, turn_ids)
    found = await nodes.read_heads(tx, revision.graph, [node_id for node_id in derived if node_id not in turn_ids])
    heads = [head for head in found.values() if not head.is_hidden]
    await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, status="outdated")) for head in heads])


async def change(tx: Transaction, revision: Revision, node_id: UUID, patch: NodePatch) -> Version:
    """Change a node; the former state stays in history, and no version is made where nothing differs.

    Raises NotFound, Conflict for a name that is taken, InvalidInput for a fact's kind.
    """
    await rewrite_node(tx, revision, node_id, patch)
    return await newest_version(tx, revision.graph, node_id)


async def delete(tx: Transaction, revision: Revision, node_id: UUID) -> None:
    """Delete a node with all that belongs to it; raises NotFound."""
    head = await lineages.require_head(tx, revision.graph, node_id)
    await relations.delete_nodes(tx, revision, [head.id])


async def _find_observation(tx: Transaction, graph: Graph, target: MemoryRef) -> Observation | None:
    return None if target.id is None else (await observations.observations_by_id(tx, graph, [target.id])).get(target.id)


async def _find_head(tx: Transaction, graph: Graph, target: MemoryRef) -> NodeHead:
    if target.id is not None:
        return await lineages.require_head(tx, graph, target.id)
    assert target.name is not None
    node = (await naming.require_entities(tx, graph, [target.name]))[target.name]
    return await lineages.require_head(tx, graph, node.id)


async def _hide_other_forms(tx: Transaction, revision: Revision, name: str, head: NodeHead, patch: MemoryPatch) -> None:
    """Give the status of a patch also to active entities with other forms of a name, which would be found instead."""
    forms = (await naming.find_forms(tx, revision.graph, [name])).get(name, [])
    others = [node.id for node in forms if node.id != head.id and not node.placeholder and node.status == ACTIVE]
    heads = (await nodes.read_heads(tx, revision.graph, others)).values()
    status = MemoryPatch(status=patch.status, reason=patch.reason)
    await nodes.rewrite(tx, revision, [Rewrite(o, _patched_fields(o.fields, status, revision.at)) for o in heads])


async def _revise_observation(
    tx: Transaction, revision: Revision, observation: Observation, patch: MemoryPatch
) -> Revised:
    if patch.status == "archived":
        raise InvalidInput(
            "A statement about an entity can be active or outdated only; archive the entity instead", path="status"
        )
    patched = _patched_observation(observation, patch, revision.at)
    if _is_overtaken(patch, observation.version) and not patched.is_same_as(observation):
        return _refused(observation.id, observation.node_id, observation.version, observation.content, patch)
    if patch.reactivates:
        observation = await _brought_back(tx, revision, observation)
        patched = _patched_observation(observation, patch, revision.at)
    if patched.content != observation.content:
        patched = replace(patched, created_by=revision.actor)
    written = await observations.rewrite_one(tx, revision, observation, patched)
    unchanged = written.is_same_as(observation)
    return Revised(written.id, written.node_id, written.version, written.content, unchanged=unchanged)


def _is_overtaken(patch: MemoryPatch, newest: int) -> bool:
    """Whether a patch is based on an older version than the newest. Raises InvalidInput if there is no such version."""
    if patch.based_on is not None and not 1 <= patch.based_on <= newest:
        raise InvalidInput(f"It has versions 1 to {newest}", path="based_on_version")
    return patch.based_on not in (None, newest)


def _refused(id_: UUID, node_id: UUID, version: int, text: str | None, patch: MemoryPatch) -> Revised:
    """The outcome of a patch that is based on an older version: the present state, and the text not written."""
    refused = () if patch.text is None else (patch.text,)
    return Revised(id_, node_id, version, text, refused, refused=True)


async def _brought_back(tx: Transaction, revision: Revision, observation: Observation) -> Observation:
    """Make the observation's entity active, if it is not; return the observation, which that makes outdated."""
    head = (await nodes.read_heads(tx, revision.graph, [observation.node_id])).get(observation.node_id)
    if head is None or not head.is_hidden:
        return observation
    await observations.bring_back(tx, revision, [head.id])
    found = await observations.observations_by_id(tx, revision.graph, [observation.id])
    return found.get(observation.id, observation)


def _patched_observation(observation: Observation, patch: MemoryPatch, now: datetime) -> Observation:
    """The observation with the changes of a patch."""
    status, text = patch.status_after(observation.status), patch.text or observation.content
    return replace(
        observation,
        content=text,
        tags=observation.tags if patch.tags is None else each_tag_once(patch.tags),
        importance=observation.importance if patch.importance is None else patch.importance,
        status=status,
        reason=reason_of(observation.reason, patch.reason, status_changes=status != observation.status),
        expires_at=_expiry_of(observation.expires_at, patch, now),
    )


def _expiry_of(before: datetime | None, patch: MemoryPatch, now: datetime) -> datetime | None:
    return before if patch.ttl_days is None else expiry(now, patch.ttl_days)


def _patched_fields(fields: NodeFields, patch: MemoryPatch, now: datetime) -> NodeFields:
    status = patch.status_after(fields.status)
    return replace(
        fields,
        content=fields.content if patch.text is None else patch.text,
        tags=fields.tags if patch.tags is None else each_tag_once(patch.tags),
        importance=fields.importance if patch.importance is None else patch.importance,
        status=status,
        ttl_days=fields.ttl_days if patch.ttl_days is None else patch.ttl_days or None,
        expires_at=_expiry_of(fields.expires_at, patch, now),
        reason=reason_of(fields.reason, patch.reason, status_changes=status != fields.status),
    )


async def rewrite_node(tx: Transaction, revision: Revision, node_id: UUID, patch: NodePatch) -> bool:
    """Give a node a new version with the changes; return whether anything differed."""
    head = await lineages.require_head(tx, revision.graph, node_id)
    fields = _patched(head.fields, patch, revision.at)
    if fields.kind != head.fields.kind:
        revision.graph.require_kind(fields.kind, "kind" if fields.name is None else "entity_type")
    if fields.is_same_as(head.fields):
        return False
    if fields.status != ACTIVE:
        await _outdate_derived(tx, revision, [head.id])
    await nodes.rewrite(tx, revision, [Rewrite(head, fields)])
    return True


def _patched(fields: NodeFields, patch: NodePatch, now: datetime) -> NodeFields:
    if patch.kind is not None and fields.name is None:
        raise InvalidInput("A fact has no entity type", path="entity_type")
    if patch.fact_kind is not None and fields.name is not None:
        raise InvalidInput("An entity's kind is its entity_type", path="kind")
    if patch.text is not None and fields.name is not None:
        require_short_name(patch.text)
    status = patch.status or fields.status
    ttl_days = fields.ttl_days if patch.ttl_days is None else patch.ttl_days
    expires_at = expiry(now, patch.ttl_days, patch.expires_at) or fields.expires_at
    return replace(
        fields,
        name=fields.name if patch.text is None or fields.name is None else patch.text,
        content=fields.content if patch.text is None or fields.name is not None else patch.text,
        kind=patch.kind or patch.fact_kind or fields.kind,
        metadata=fields.metadata if patch.metadata is None else patch.metadata,
        status=status,
        source=fields.source if patch.source is None else patch.source or None,
        ttl_days=None if patch.never_expires else ttl_days,
        expires_at=None if patch.never_expires else expires_at,
        reason=reason_of(fields.reason, patch.reason, status_changes=status != fields.status),
        thread=fields.thread if patch.thread is None else patch.thread,
        said_at=fields.said_at if patch.said_at is None else patch.said_at,
        said_offset=fields.said_offset if patch.said_at is None else None,
    )
