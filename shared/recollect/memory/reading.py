"""Use cases of reading: a graph, entities by name, a node by its id, and a graph's statistics."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from recollect.errors import TooLarge
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import Entity, ListedObservations
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, GraphHead, spelled_id
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Version, not_found
from recollect.graph.nodes import naming
from recollect.graph.nodes.model import EntityNotFound, name_key
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import Observation
from recollect.graph.passages import service as passages
from recollect.graph.relations import service as relations
from recollect.graph.relations import subgraphs
from recollect.graph.relations.model import Subgraph
from recollect.postgres.transactions import Transaction


@dataclass(frozen=True, slots=True)
class GraphStatistics:
    """Statistics of a graph: exact counts, and kinds of entities and types of relations, most frequent first.

    `waiting`: passages that are not embedded yet. `refused`: passages that the embedder does not accept.
    """

    head: GraphHead | None
    kinds: list[tuple[str, int]]
    types: list[tuple[str, int]]
    waiting: int
    refused: int


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A memory with its node. Without `observation`, the memory is the node itself, and `listed` its observations."""

    node: Version
    observation: Observation | None = None
    listed: ListedObservations = field(default_factory=ListedObservations)


async def open_nodes(view: GraphView, names: Sequence[str], *, skipped: int = 0) -> Subgraph:
    """Entities by name, in the order asked for, with every relation that touches them.

    `skipped`: how many newer observations of each have been read before.
    """
    return await subgraphs.subgraph_of(view, await entities.open_entities(view, names, skipped=skipped))


async def describe(view: GraphView, name: str) -> Subgraph:
    """An entity with its relations, however many fit a reply; raises NotFound."""
    found = await entities.open_entities(view, [name])
    if not found:
        raise EntityNotFound(name)
    return await subgraphs.described(view, found[0])


async def get_entities(view: GraphView, names: Sequence[str], *, skipped: int = 0) -> list[Entity | None]:
    """Entities by name, one for each name in order; None where no entity has it.

    An entity is told once where the names have several forms of its name: under the first of them.
    `skipped`: how many newer observations of each have been read before.
    """
    found = await entities.open_entities(view, names, skipped=skipped)
    exactly = {entity.name: entity for entity in found}
    by_key = {name_key(entity.name): entity for entity in found}
    opened = [(name, exactly.get(name) or by_key.get(name_key(name))) for name in names]
    name_by_id = {entity.id: name for name, entity in reversed(opened) if entity is not None}
    return [entity for name, entity in opened if entity is None or name_by_id[entity.id] == name]


async def read_graph(
    view: GraphView,
    *,
    kind: str | None = None,
    offset: int = 0,
    limit: int | None = None,
    max_items: int,
    archived: bool = True,
) -> Subgraph:
    """A graph, or a page of its entities (`archived`: archived ones, too), oldest first.

    A page has the relations that touch it; a page of one kind only those with both ends in it. Without a limit the
    whole graph is read; raises TooLarge where it has more than `max_items` entities, observations and relations.
    """
    if limit is None:
        await _require_small(view, max_items)
    found = await entities.list_entities(
        view, kind=kind, offset=offset, limit=None if limit is None else limit + 1, archived=archived
    )
    page = found if limit is None else found[:limit]
    next_offset = None if limit is None or len(found) <= limit else offset + limit
    if kind is not None:
        return await subgraphs.subgraph_within(view, page, next_offset=next_offset)
    if limit is None and offset == 0:
        return Subgraph(page, await relations.list_relations(view))
    return await subgraphs.subgraph_of(view, page, next_offset=next_offset)


async def get_node(view: GraphView, node_id: UUID, *, skipped: int = 0) -> tuple[Version, ListedObservations]:
    """A live node, and the observations of an entity, oldest first; raises NotFound.

    `skipped`: how many newer observations have been read before.
    """
    found = await lineages.get_nodes(view, [node_id])
    if not found:
        raise not_found(node_id)
    listed = await entities.observations_of(view, [node_id], skipped=skipped)
    return found[0], listed.get(node_id, ListedObservations())


async def find_memory(view: GraphView, memory_id: UUID, *, skipped: int = 0) -> FoundMemory | None:
    """A live memory by its id: an observation, or a node with its observations; None where there is none.

    `skipped`: how many newer observations of the node have been read before.
    """
    if not view.is_there:
        return None
    observation = (await observations.observations_by_id(view.tx, view.graph, [memory_id])).get(memory_id)
    node_id = memory_id if observation is None else observation.node_id
    found = await lineages.get_nodes(view, [node_id])
    if not found:
        return None
    if observation is not None:
        return FoundMemory(found[0], observation)
    listed = await entities.observations_of(view, [node_id], skipped=skipped)
    return FoundMemory(found[0], listed=listed.get(node_id, ListedObservations()))


async def node_called(view: GraphView, id_or_name: str) -> UUID:
    """The id of a node, from its id or from an entity's name; raises NotFound for a name that no entity has.

    A text in the form of an id is taken for an id, whether or not a node has it.
    """
    node_id = spelled_id(id_or_name)
    if node_id is not None:
        return node_id
    named = (await naming.find_named(view, [id_or_name])).get(id_or_name)
    if named is None or named.placeholder:
        raise EntityNotFound(id_or_name)
    return named.id


async def history(
    view: GraphView, node_id: UUID, *, before: int | None = None, offset: int = 0, limit: int
) -> tuple[list[Version], bool]:
    """Versions of a node, also of a deleted one, newest first, and whether more follow; raises NotFound.

    `before`: only versions with a lower number.
    """
    found = await lineages.history(view.tx, view.graph, node_id, before=before, offset=offset, limit=limit + 1)
    return found[:limit], len(found) > limit


async def graph_stats(view: GraphView) -> GraphStatistics:
    """The statistics of a graph; a graph that does not exist is empty."""
    if not view.is_there:
        return GraphStatistics(None, [], [], 0, 0)
    return GraphStatistics(
        await graphs.head_of(view),
        await entities.count_kinds(view),
        await relations.count_types(view),
        await passages.count_waiting(view.tx, view.graph.id),
        await passages.count_refused(view.tx, view.graph.id),
    )


async def require_nodes(view: GraphView, node_ids: Sequence[UUID]) -> None:
    """Raise NotFound for the first of these nodes that does not exist."""
    found = {node.node_id for node in await lineages.get_nodes(view, node_ids)}
    for node_id in node_ids:
        if node_id not in found:
            raise not_found(node_id)


async def _require_small(view: GraphView, max_items: int) -> None:
    head = await graphs.head_of(view)
    if head.entities + head.observations + head.relations > max_items:
        raise TooLarge(
            f"The graph holds {head.entities} entities, {head.observations} observations and {head.relations} "
            f"relations, but one reply may hold {max_items} in all. Read it in pages: limit=100, offset=0, then 100 …",
            path="limit",
        )


async def newest_version(tx: Transaction, graph: Graph, node_id: UUID) -> Version:
    """The newest version of a node that this call writes, expired or not."""
    return (await lineages.history(tx, graph, node_id, limit=1))[0]
