"""Use cases that span capabilities: revise, forget, explore, read a graph, open nodes, delete entities."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from recollect.errors import InvalidInput, TooLarge
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import Entity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Draft, not_found
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import EntityNotFound, NodeFields, NodeHead, Rewrite, unique
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import Observation, each_tag_once
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import Edge, Subgraph, Walk
from recollect.graph.traversal import service as traversal
from recollect.graph.traversal.model import Paths, PathSearch
from recollect.memory.model import Explored, MemoryPatch, NeighbourNode, Revised, Target, expiry, reason_of
from recollect.platform.db import Transaction

MAX_PATHS = 10
"""Paths that an exploration answers, at most."""


async def revise(tx: Transaction, revision: Revision, target: Target, amendment: MemoryPatch) -> Revised:
    """Change a memory or a node; what it was stays in history.

    Each gets a new version under its id. An observation that comes to say what its entity says already gives way to
    that one, whose id is answered. Raises NotFound, and InvalidInput for what an observation has not: versions that are
    numbered, an archive.
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
    return Revised(head.id, head.id, put.version, node.content, tuple(other.content or "" for other in others))


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
        await relations.delete_nodes(tx, revision, [head.id for head in gone])
    else:
        rewrites = [Rewrite(head, _amended(head.fields, outdated, revision.at)) for head in gone]
        await nodes.rewrite(tx, revision, [rewrite for rewrite in rewrites if rewrite.fields != rewrite.head.fields])
    return [*said, *(head.id for head in gone)]


async def explore(view: GraphView, start: Target, walk: Walk, *, depth: int = 1, max_nodes: int = 30) -> Explored:
    """What lies around a node; raises NotFound. The start of a memory is the node that it is about."""
    graphs.require_there(view)
    begin = await _node_id(view, start)
    reached = await traversal.neighbourhood(view, [begin], walk, depth=depth, max_nodes=max_nodes)
    return await _explored(view, list(reached.depths), list(reached.edges.values()), [], reached.cut)


async def open_paths(view: GraphView, start: Target, to: Target, walk: Walk, *, depth: int = 1) -> PathSearch:
    """What it takes to find the paths from a node to another, of at most `depth` edges; raises NotFound for either."""
    graphs.require_there(view)
    begin, end = await _node_id(view, start), await _node_id(view, to)
    return await traversal.open_paths(view, begin, end, walk, max_depth=depth, max_paths=MAX_PATHS)


async def explored_paths(tx: Transaction, searched: PathSearch, found: Paths) -> Explored:
    """What lies on the paths that were found."""
    on_paths = unique(node for path in found.paths for node in path)
    view = await traversal.view_of_paths(tx, searched)
    return await _explored(view, on_paths, found.edges, found.paths, found.cut)


async def delete_entities(tx: Transaction, revision: Revision, names: Sequence[str]) -> None:
    """Delete entities, or placeholders, with all that belongs to them; what is not there is passed over."""
    found = await nodes.find_named(GraphView(tx, revision.graph), unique(names))
    if found:
        await relations.delete_nodes(tx, revision, [node.id for node in found.values()])


async def open_nodes(view: GraphView, names: Sequence[str]) -> Subgraph:
    """Entities by name, in the order asked for, with every relation that touches them."""
    return await relations.subgraph_of(view, await entities.open_entities(view, names))


async def get_entities(view: GraphView, names: Sequence[str]) -> list[Entity | None]:
    """Entities by name, one for each name in order; None where no entity has it."""
    found = {entity.name: entity for entity in await entities.open_entities(view, names)}
    return [found.get(name) for name in names]


async def read_graph(
    view: GraphView,
    *,
    kind: str | None = None,
    offset: int = 0,
    limit: int | None = None,
    max_items: int,
    archived: bool = True,
) -> Subgraph:
    """A graph, or a page of its entities (`archived`: those too), oldest first.

    A page carries the relations that touch it; a page of one kind only those with both ends in it. Without a limit the
    whole graph comes back, or TooLarge where it has more than `max_items` entities, observations and relations.
    """
    if limit is None:
        await _require_small(view, max_items)
    page = await entities.list_entities(
        view, kind=kind, offset=offset, limit=None if limit is None else limit + 1, archived=archived
    )
    shown = page if limit is None else page[:limit]
    next_offset = None if limit is None or len(page) <= limit else offset + limit
    if kind is not None:
        return await relations.subgraph_within(view, shown, next_offset=next_offset)
    if limit is None and offset == 0:
        return Subgraph(shown, await relations.list_relations(view))
    return await relations.subgraph_of(view, shown, next_offset=next_offset)


async def _require_small(view: GraphView, max_items: int) -> None:
    head = await graphs.head_of(view)
    if head.entities + head.observations + head.relations > max_items:
        raise TooLarge(
            f"The graph holds {head.entities} entities, {head.observations} observations and {head.relations} "
            f"relations, more than one reply may ({max_items}). Read it in pages: limit=100, offset=0, then 100 …",
            path="limit",
        )


async def _node_id(view: GraphView, target: Target) -> UUID:
    if target.name is not None:
        named = (await nodes.find_named(view, [target.name])).get(target.name)
        if named is None:
            raise EntityNotFound(target.name)
        return named.id
    assert target.id is not None
    about = (await observations.nodes_of_observations(view, [target.id])).get(target.id, target.id)
    if not await lineages.get_nodes(view, [about]):
        raise not_found(target.id)
    return about


async def _explored(
    view: GraphView, node_ids: Sequence[UUID], edges: Sequence[Edge], paths: Sequence[Sequence[UUID]], cut: str | None
) -> Explored:
    live = await lineages.get_nodes(view, node_ids)
    said = await entities.observations_of(view, [node.node_id for node in live])
    return Explored(
        nodes=[NeighbourNode(n.node_id, n.name, n.kind, n.content, said.get(n.node_id, ())) for n in live],
        labels=await nodes.labels_of(view, node_ids),
        edges=list(edges),
        paths=[list(path) for path in paths],
        cut=cut,
    )


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
    return Revised(new.id, new.node_id, None, new.content)


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
        tags=fields.tags if amendment.tags is None else amendment.tags,
        importance=fields.importance if amendment.importance is None else amendment.importance,
        status=status,
        ttl_days=fields.ttl_days if amendment.ttl_days is None else amendment.ttl_days or None,
        expires_at=_expiry_of(fields.expires_at, amendment, now),
        reason=reason_of(fields.reason, amendment.reason, status_changes=status != fields.status),
    )
