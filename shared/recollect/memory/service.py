"""Use cases that span capabilities: revise and forget, explore, read and open a graph, delete with all that belongs."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from recollect.entities import service as entities
from recollect.entities.model import Entity
from recollect.errors import InvalidInput, TooLarge
from recollect.graphs import service as graphs
from recollect.graphs.model import Graph, Moment, Revision
from recollect.lineages import service as lineages
from recollect.lineages.model import Draft, not_found
from recollect.memory.model import Amendment, Explored, Neighbour, Revised, Target
from recollect.nodes import service as nodes
from recollect.nodes.model import EntityNotFound, NodeFields, NodeHead, Rewrite, unique
from recollect.observations import service as observations
from recollect.observations.model import Observation
from recollect.platform.db import Transaction
from recollect.relations import service as relations
from recollect.relations.model import Edge, Subgraph, Walk
from recollect.traversal import service as traversal

MAX_PATHS = 10
"""Paths that an exploration answers, at most."""


async def revise(tx: Transaction, revision: Revision, target: Target, amendment: Amendment) -> Revised:
    """Change a memory or a node; what it was stays in history.

    An observation is replaced by another statement; a node gets a new version. Raises NotFound, and InvalidInput for
    what the target does not have.
    """
    observation = await _find_observation(tx, revision.graph, target)
    if observation is not None:
        return await _revise_observation(tx, revision, observation, amendment)
    head = await _find_head(tx, revision.graph, target)
    put = await lineages.put_node(
        tx, revision, Draft(_amended(head.fields, amendment), head.id, based_on=amendment.based_on)
    )
    node = await lineages.get_node(tx, revision.graph, head.id)
    others = await lineages.get_versions(tx, revision.graph, node.conflicts) if put.conflict else []
    return Revised(head.id, head.id, put.version, node.content, tuple(other.content or "" for other in others))


async def forget(
    tx: Transaction, revision: Revision, targets: Sequence[Target], *, reason: str | None = None, delete: bool = False
) -> list[UUID]:
    """Let memories and nodes go: outdated (kept, found when asked for) or deleted; what is not there is passed over.

    An observation has no status: it is taken away from its entity either way. All of it stays in history.
    """
    ids = unique(target.id for target in targets if target.id is not None)
    said = await observations.observations_by_id(tx, revision.graph, ids)  # What has expired is not there.
    unsaid = await observations.remove_observations_by_id(tx, revision, list(said))
    named = await nodes.find_named(tx, revision.graph, unique(t.name for t in targets if t.name is not None))
    wanted = unique([*(i for i in ids if i not in unsaid), *(node.id for node in named.values())])
    heads = await nodes.read_heads(tx, revision.graph, wanted)
    gone = list(heads.values()) if delete else [head for head in heads.values() if not head.fields.placeholder]
    if delete:
        await relations.delete_nodes(tx, revision, [head.id for head in gone])
    else:
        outdated = Amendment(status="outdated", reason=reason)
        rewrites = [Rewrite(head, _amended(head.fields, outdated)) for head in gone]
        await nodes.rewrite(tx, revision, [rewrite for rewrite in rewrites if rewrite.fields != rewrite.head.fields])
    return [*unsaid, *(head.id for head in gone)]


async def explore(
    tx: Transaction,
    graph_name: str | None,
    start: Target,
    walk: Walk,
    *,
    to: Target | None = None,
    depth: int = 1,
    max_nodes: int = 30,
    as_of: str | None = None,
) -> Explored:
    """What lies around a node, or the paths from it to another; raises NotFound for either.

    With `to`, `depth` bounds the length of paths; the start of a memory is the node that it is about.
    """
    graph = await graphs.get_graph(tx, graph_name or tx.caller.default_graph)
    walk = replace(walk, at=await graphs.moment(tx, graph, as_of))
    begin = await _node_id(tx, graph, start, walk.at)
    if to is None:
        reached = await traversal.neighbourhood(tx, graph, [begin], walk, depth=depth, max_nodes=max_nodes)
        return await _explored(tx, graph, list(reached.depths), list(reached.edges.values()), [], reached.cut, walk.at)
    end = await _node_id(tx, graph, to, walk.at)
    found = await traversal.all_paths(tx, graph, begin, end, walk, max_depth=depth, max_paths=MAX_PATHS)
    on_paths = unique(node for path in found.paths for node in path)
    return await _explored(tx, graph, on_paths, found.edges, found.paths, found.cut, walk.at)


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
    as_of: str | None = None,
) -> Subgraph:
    """A graph (`as_of`: as it was), or a page of its entities, oldest first.

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
        tx, graph, kind=kind, offset=offset, limit=None if limit is None else limit + 1, at=at
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
    told = await entities.entities_by_id(tx, [node.node_id for node in live], graph=graph, at=at)
    said = {entity.id: entity.observations for entity in told}
    return Explored(
        nodes=[Neighbour(n.node_id, n.name, n.kind, n.content, said.get(n.node_id, ())) for n in live],
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
    tx: Transaction, revision: Revision, observation: Observation, amendment: Amendment
) -> Revised:
    if amendment.text is None or amendment.tags is not None or amendment.importance is not None or amendment.status:
        raise InvalidInput(
            f"This memory is a statement about {observation.entity!r}: its text can be revised; tags, importance and "
            "status are the entity's, by its name",
            path="id",
        )
    new = await observations.replace_observation(tx, revision, observation, amendment.text)
    return Revised(new.id, new.node_id, None, new.content)


def _amended(fields: NodeFields, amendment: Amendment) -> NodeFields:
    reason = {} if amendment.reason is None else {"reason": amendment.reason}
    return replace(
        fields,
        content=fields.content if amendment.text is None else amendment.text,
        tags=fields.tags if amendment.tags is None else amendment.tags,
        importance=fields.importance if amendment.importance is None else amendment.importance,
        status=amendment.status or fields.status,
        metadata=fields.metadata | reason,
    )
