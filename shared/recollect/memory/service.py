"""Use cases that span capabilities: revise, forget, explore, read a graph, open nodes, delete entities."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from recollect.errors import InvalidInput, TooLarge
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import Entity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, Moment, Revision
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
    node = await lineages.get_node(tx, revision.graph, head.id)
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
    named = await nodes.find_named(tx, revision.graph, unique(t.name for t in targets if t.name is not None))
    wanted = unique([*(i for i in ids if i not in said), *(node.id for node in named.values())])
    heads = await nodes.read_heads(tx, revision.graph, wanted)
    gone = list(heads.values()) if delete else [head for head in heads.values() if not head.fields.placeholder]
    if delete:
        await relations.delete_nodes(tx, revision, [head.id for head in gone])
    else:
        rewrites = [Rewrite(head, _amended(head.fields, outdated, revision.at)) for head in gone]
        await nodes.rewrite(tx, revision, [rewrite for rewrite in rewrites if rewrite.fields != rewrite.head.fields])
    return [*said, *(head.id for head in gone)]


async def explore(
    tx: Transaction,
    graph_name: str | None,
    start: Target,
    walk: Walk,
    *,
    depth: int = 1,
    max_nodes: int = 30,
    as_of: str | None = None,
) -> Explored:
    """What lies around a node; raises NotFound. The start of a memory is the node that it is about."""
    graph = await graphs.get_graph(tx, graph_name or tx.caller.default_graph)
    walk = replace(walk, at=await graphs.moment(tx, graph, as_of))
    begin = await _node_id(tx, graph, start, walk.at)
    reached = await traversal.neighbourhood(tx, graph, [begin], walk, depth=depth, max_nodes=max_nodes)
    return await _explored(tx, graph, list(reached.depths), list(reached.edges.values()), [], reached.cut, walk.at)


async def open_paths(
    tx: Transaction,
    graph_name: str | None,
    start: Target,
    to: Target,
    walk: Walk,
    *,
    depth: int = 1,
    as_of: str | None = None,
) -> PathSearch:
    """What it takes to find the paths from a node to another, of at most `depth` edges; raises NotFound for either."""
    graph = await graphs.get_graph(tx, graph_name or tx.caller.default_graph)
    walk = replace(walk, at=await graphs.moment(tx, graph, as_of))
    begin, end = await _node_id(tx, graph, start, walk.at), await _node_id(tx, graph, to, walk.at)
    return await traversal.open_paths(tx, graph, begin, end, walk, max_depth=depth, max_paths=MAX_PATHS)


async def explored_paths(tx: Transaction, searched: PathSearch, found: Paths) -> Explored:
    """What lies on the paths that were found."""
    on_paths = unique(node for path in found.paths for node in path)
    at = await traversal.moment_of_paths(tx, searched)
    return await _explored(tx, searched.graph, on_paths, found.edges, found.paths, found.cut, at)


async def delete_entities(tx: Transaction, revision: Revision, names: Sequence[str]) -> None:
    """Delete entities, or placeholders, with all that belongs to them; what is not there is passed over."""
    found = await nodes.find_named(tx, revision.graph, unique(names))
    if found:
        await relations.delete_nodes(tx, revision, [node.id for node in found.values()])


async def open_nodes(
    tx: Transaction, graph_name: str | None, names: Sequence[str], *, as_of: str | None = None
) -> Subgraph:
    """Entities by name (`as_of`: as they were), in the order asked for, with every relation that touches them."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return Subgraph([], [])
    at = await graphs.moment(tx, graph, as_of)
    return await relations.subgraph_of(tx, graph, await entities.open_entities(tx, graph, names, at=at), at=at)


async def get_entities(
    tx: Transaction, graph_name: str | None, names: Sequence[str], *, as_of: str | None = None
) -> list[Entity | None]:
    """Entities by name (`as_of`: as they were), one for each name in order; None where no entity has it."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return [None] * len(names)
    at = await graphs.moment(tx, graph, as_of)
    found = {entity.name: entity for entity in await entities.open_entities(tx, graph, names, at=at)}
    return [found.get(name) for name in names]


async def read_graph(
    tx: Transaction,
    graph_name: str | None,
    *,
    kind: str | None = None,
    offset: int = 0,
    limit: int | None = None,
    max_items: int,
    archived: bool = True,
    as_of: str | None = None,
) -> Subgraph:
    """A graph (`as_of`: as it was), or a page of its entities (`archived`: those too), oldest first.

    A page carries the relations that touch it; a page of one kind only those with both ends in it. Without a limit the
    whole graph comes back, or TooLarge where it has more than `max_items` entities, observations and relations.
    """
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return Subgraph([], [])
    at = await graphs.moment(tx, graph, as_of)
    if limit is None:
        await _require_small(tx, graph, max_items, at)
    page = await entities.list_entities(
        tx, graph, kind=kind, offset=offset, limit=None if limit is None else limit + 1, archived=archived, at=at
    )
    shown = page if limit is None else page[:limit]
    next_offset = None if limit is None or len(page) <= limit else offset + limit
    if kind is not None:
        return await relations.subgraph_within(tx, graph, shown, next_offset=next_offset, at=at)
    if limit is None and offset == 0:
        return Subgraph(shown, await relations.list_relations(tx, graph, at=at))
    return await relations.subgraph_of(tx, graph, shown, next_offset=next_offset, at=at)


async def _require_small(tx: Transaction, graph: Graph, max_items: int, at: Moment | None) -> None:
    head = await graphs.head_of(tx, graph, at=at)
    if head.entities + head.observations + head.relations > max_items:
        raise TooLarge(
            f"The graph holds {head.entities} entities, {head.observations} observations and {head.relations} "
            f"relations, more than one reply may ({max_items}). Read it in pages: limit=100, offset=0, then 100 …",
            path="limit",
        )


async def _node_id(tx: Transaction, graph: Graph, target: Target, at: Moment | None) -> UUID:
    if target.name is not None:
        named = (await nodes.find_named(tx, graph, [target.name], at=at)).get(target.name)
        if named is None:
            raise EntityNotFound(target.name)
        return named.id
    assert target.id is not None
    about = (await observations.nodes_of_observations(tx, graph, [target.id], at=at)).get(target.id, target.id)
    if not await lineages.get_nodes(tx, graph, [about], at=at):
        raise not_found(target.id)
    return about


async def _explored(
    tx: Transaction,
    graph: Graph,
    node_ids: Sequence[UUID],
    edges: Sequence[Edge],
    paths: Sequence[Sequence[UUID]],
    cut: str | None,
    at: Moment | None,
) -> Explored:
    live = await lineages.get_nodes(tx, graph, node_ids, at=at)
    said = await entities.observations_of(tx, graph, [node.node_id for node in live], at=at)
    return Explored(
        nodes=[NeighbourNode(n.node_id, n.name, n.kind, n.content, said.get(n.node_id, ())) for n in live],
        labels=await nodes.labels_of(tx, graph, node_ids, at=at),
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
