"""Use cases of changing what is known: revise a memory or a node, let it go, and delete it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.errors import InvalidInput
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Draft, Version
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, NodeHead, Rewrite, unique
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import Observation, each_tag_once
from recollect.graph.relations import service as relations
from recollect.memory.model import MemoryPatch, Revised, Target, expiry, reason_of, require_short_name
from recollect.memory.reading import newest_version
from recollect.platform.transactions import Transaction


@dataclass(frozen=True, slots=True)
class NodePatch:
    """What to change of a node; None leaves it as it is. `text`: an entity's name, a fact's content.

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


async def revise(tx: Transaction, revision: Revision, target: Target, amendment: MemoryPatch) -> Revised:
    """Change a memory or a node; what it was stays in history.

    Each gets a new version under its id, unless that would say what it says already. An observation that comes to say
    what its entity says already gives way to that one, whose id is answered. Raises NotFound, and InvalidInput for what
    an observation has not: versions that are numbered, an archive.
    """
    observation = await _find_observation(tx, revision.graph, target)
    if observation is not None:
        return await _revise_observation(tx, revision, observation, amendment)
    head = await _find_head(tx, revision.graph, target)
    put = await lineages.put_node(
        tx, revision, Draft(_amended(head.fields, amendment, revision.at), head.id, based_on=amendment.based_on)
    )
    node = await lineages.get_node(GraphView(tx, revision.graph), head.id)
    others = await lineages.get_versions(tx, revision.graph, node.conflicts) if put.conflict else []
    beside = tuple(other.content or "" for other in others)
    return Revised(head.id, head.id, put.version, node.content, beside, put.unchanged)


async def forget(
    tx: Transaction, revision: Revision, targets: Sequence[Target], *, reason: str | None = None, delete: bool = False
) -> list[UUID]:
    """Let memories and nodes go: outdated (kept, found when asked for) or deleted; what is not there is passed over.

    An outdated observation is no longer told among what its entity says. All of it stays in history.
    """
    ids = unique(target.id for target in targets if target.id is not None)
    said = await observations.observations_by_id(tx, revision.graph, ids)  # What has expired is not there.
    outdated = MemoryPatch(status="outdated", reason=reason)
    if delete:
        await observations.remove_observations_by_id(tx, revision, list(said))
    else:
        unsaid = [_amended_observation(observation, outdated, revision.at) for observation in said.values()]
        await observations.rewrite(tx, revision, list(said.values()), unsaid)
    named = await nodes.find_named(GraphView(tx, revision.graph), unique(t.name for t in targets if t.name is not None))
    wanted = unique([*(i for i in ids if i not in said), *(node.id for node in named.values())])
    heads = await nodes.read_heads(tx, revision.graph, wanted)
    gone = list(heads.values()) if delete else [head for head in heads.values() if not head.fields.placeholder]
    if delete:
        await relations.delete_nodes(tx, revision, [head.id for head in gone], reason=reason)
    else:
        rewrites = [Rewrite(head, _amended(head.fields, outdated, revision.at)) for head in gone]
        await nodes.rewrite(
            tx, revision, [rewrite for rewrite in rewrites if not rewrite.fields.says(rewrite.head.fields)]
        )
    return [*said, *(head.id for head in gone)]


async def change(tx: Transaction, revision: Revision, node_id: UUID, wanted: NodePatch) -> Version:
    """Change a node; what it was stays in history, and no version is made where nothing differs.

    Raises NotFound, Conflict for a name that is taken, InvalidInput for a fact's kind.
    """
    await rewrite_node(tx, revision, node_id, wanted)
    return await newest_version(tx, revision.graph, node_id)


async def delete(tx: Transaction, revision: Revision, node_id: UUID) -> None:
    """Delete a node with all that belongs to it; raises NotFound."""
    head = await lineages.require_head(tx, revision.graph, node_id)
    await relations.delete_nodes(tx, revision, [head.id])


async def _find_observation(tx: Transaction, graph: Graph, target: Target) -> Observation | None:
    return None if target.id is None else (await observations.observations_by_id(tx, graph, [target.id])).get(target.id)


async def _find_head(tx: Transaction, graph: Graph, target: Target) -> NodeHead:
    if target.id is not None:
        return await lineages.require_head(tx, graph, target.id)
    assert target.name is not None
    node = (await nodes.require_entities(tx, graph, [target.name]))[target.name]
    return await lineages.require_head(tx, graph, node.id)


async def _revise_observation(
    tx: Transaction, revision: Revision, observation: Observation, amendment: MemoryPatch
) -> Revised:
    if amendment.status == "archived":
        raise InvalidInput("A statement about an entity is active or outdated; archive the entity", path="status")
    if amendment.based_on is not None:
        raise InvalidInput("A statement about an entity has no numbered versions", path="based_on_version")
    wanted = _amended_observation(observation, amendment, revision.at)
    if wanted.content != observation.content:
        wanted = replace(wanted, created_by=revision.actor)
    new = await observations.rewrite_one(tx, revision, observation, wanted)
    return Revised(new.id, new.node_id, None, new.content, unchanged=new.says(observation))


def _amended_observation(observation: Observation, amendment: MemoryPatch, now: datetime) -> Observation:
    """The statement as it becomes."""
    status, text = amendment.status or observation.status, amendment.text or observation.content
    return replace(
        observation,
        content=text,
        tags=observation.tags if amendment.tags is None else each_tag_once(amendment.tags),
        importance=observation.importance if amendment.importance is None else amendment.importance,
        status=status,
        reason=reason_of(observation.reason, amendment.reason, status_changes=status != observation.status),
        expires_at=_expiry_of(observation.expires_at, amendment, now),
    )


def _expiry_of(before: datetime | None, amendment: MemoryPatch, now: datetime) -> datetime | None:
    return before if amendment.ttl_days is None else expiry(now, amendment.ttl_days)


def _amended(fields: NodeFields, amendment: MemoryPatch, now: datetime) -> NodeFields:
    status = amendment.status or fields.status
    return replace(
        fields,
        content=fields.content if amendment.text is None else amendment.text,
        tags=fields.tags if amendment.tags is None else each_tag_once(amendment.tags),
        importance=fields.importance if amendment.importance is None else amendment.importance,
        status=status,
        ttl_days=fields.ttl_days if amendment.ttl_days is None else amendment.ttl_days or None,
        expires_at=_expiry_of(fields.expires_at, amendment, now),
        reason=reason_of(fields.reason, amendment.reason, status_changes=status != fields.status),
    )


async def rewrite_node(tx: Transaction, revision: Revision, node_id: UUID, wanted: NodePatch) -> bool:
    """Give a node a new version with what is to change; whether anything differed."""
    head = await lineages.require_head(tx, revision.graph, node_id)
    fields = _changed(head.fields, wanted, revision.at)
    if fields.kind != head.fields.kind:
        revision.graph.require_kind(fields.kind, "kind" if fields.name is None else "entity_type")
    if fields.says(head.fields):
        return False
    await nodes.rewrite(tx, revision, [Rewrite(head, fields)])
    return True


def _changed(fields: NodeFields, wanted: NodePatch, now: datetime) -> NodeFields:
    if wanted.kind is not None and fields.name is None:
        raise InvalidInput("A fact has no entity type", path="entity_type")
    if wanted.fact_kind is not None and fields.name is not None:
        raise InvalidInput("An entity's kind is its entity_type", path="kind")
    if wanted.text is not None and fields.name is not None:
        require_short_name(wanted.text)
    status = wanted.status or fields.status
    ttl_days = fields.ttl_days if wanted.ttl_days is None else wanted.ttl_days
    expires_at = expiry(now, wanted.ttl_days, wanted.expires_at) or fields.expires_at
    return replace(
        fields,
        name=fields.name if wanted.text is None or fields.name is None else wanted.text,
        content=fields.content if wanted.text is None or fields.name is not None else wanted.text,
        kind=wanted.kind or wanted.fact_kind or fields.kind,
        metadata=fields.metadata if wanted.metadata is None else wanted.metadata,
        status=status,
        source=fields.source if wanted.source is None else wanted.source or None,
        ttl_days=None if wanted.never_expires else ttl_days,
        expires_at=None if wanted.never_expires else expires_at,
        reason=reason_of(fields.reason, wanted.reason, status_changes=status != fields.status),
        thread=fields.thread if wanted.thread is None else wanted.thread,
        said_at=fields.said_at if wanted.said_at is None else wanted.said_at,
    )
