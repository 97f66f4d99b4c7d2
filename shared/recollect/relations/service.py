"""Use cases of relations: make them, take them away, find those of given nodes."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from recollect.entities.model import Entity
from recollect.errors import RecollectError, TooLarge
from recollect.graphs import service as graphs
from recollect.graphs.model import Graph, Moment, Revision
from recollect.lineages.model import not_found
from recollect.nodes import service as nodes
from recollect.nodes.model import unique, unique_by
from recollect.platform.db import Transaction
from recollect.relations import store
from recollect.relations.model import Edge, NewEdge, NewRelation, Relation, RelationFilter, Subgraph, Symlink, Walk
from recollect.relations.store import RemovedRelation

MAX_RELATIONS = 10_000
"""Edges in one answer at most."""


async def create_relations(tx: Transaction, revision: Revision, relations: Sequence[NewRelation]) -> list[NewRelation]:
    """Make edges between names; what was not there yet, in order. Names that nothing has become placeholders."""
    wanted = unique_by(lambda relation: relation.triple, relations)
    ends = await nodes.ensure_named(tx, revision, unique(name for r in wanted for name in (r.source, r.target)))
    made = await store.insert_relations(
        tx, revision, [(ends[relation.source].id, ends[relation.target].id, relation) for relation in wanted]
    )
    revision.touch("relations_added", [edge_id for edge_id, _ in made], relations=len(made))
    return [relation for _, relation in made]


async def delete_relations(tx: Transaction, revision: Revision, triples: Sequence[tuple[str, str, str]]) -> None:
    """Take (source, target, type) edges away; what is not there is passed over. Lonely placeholders vanish."""
    ends = await nodes.find_named(
        tx, revision.graph, unique(name for source, target, _ in triples for name in (source, target))
    )
    edges = [(ends[s].id, ends[t].id, type_) for s, t, type_ in unique(triples) if s in ends and t in ends]
    removed = await store.remove_relations(tx, revision, edges) if edges else []
    await drop_lonely(tx, revision, _record_removed(revision, removed))


async def delete_nodes(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Delete nodes with all that belongs to them: relations, observations, passages. Lonely placeholders vanish."""
    removed = await store.remove_touching(tx, revision, node_ids)
    ends = _record_removed(revision, removed)
    await nodes.remove_nodes(tx, revision, node_ids)
    await drop_lonely(tx, revision, ends - set(node_ids))


async def put_edges(tx: Transaction, revision: Revision, edges: Sequence[NewEdge]) -> list[Edge]:
    """Make edges between nodes by id, in order; one that is there already is answered as it is.

    The ends are the caller's to have checked.
    """
    made = await store.insert_edges(tx, revision, unique_by(_key, edges))
    revision.touch("relations_added", made, relations=len(made))
    stored = {_key(edge): edge for edge in await store.find_edges(tx, [_key(edge) for edge in edges])}
    return [stored[_key(edge)] for edge in edges]


async def rewrite_edges(tx: Transaction, revision: Revision, edges: Sequence[tuple[Edge, NewEdge]]) -> None:
    """Put other edges in the place of some, between the same nodes and of the same type."""
    removed = await store.remove_edges(tx, revision, [edge.id for edge, _ in edges]) if edges else []
    _record_removed(revision, removed)
    if edges:
        await put_edges(tx, revision, [new for _, new in edges])


async def connect(tx: Transaction, revision: Revision, edges: Sequence[NewEdge]) -> list[Edge | RecollectError]:
    """Make edges between nodes, best effort: for each, in order, the edge, new or there already, or why it cannot be.

    NotFound where the source does not live in the graph that is written, or the target in the edge's `to_graph`.
    """
    homes = await nodes.find_homes(tx, [end for edge in edges for end in (edge.from_node, edge.to_node)])
    steps = [_checked(revision.graph, edge, homes) for edge in edges]
    wanted = [step for step in steps if isinstance(step, NewEdge)]
    stored = iter(await put_edges(tx, revision, wanted) if wanted else [])
    return [next(stored) if isinstance(step, NewEdge) else step for step in steps]


async def delete_edges(tx: Transaction, revision: Revision, edge_ids: Sequence[UUID]) -> int:
    """Take edges of the graph away, by id; how many were there. Lonely placeholders vanish."""
    removed = await store.remove_edges(tx, revision, edge_ids)
    await drop_lonely(tx, revision, _record_removed(revision, removed))
    return len(removed)


async def take_away(tx: Transaction, revision: Revision, edge_ids: Sequence[UUID]) -> set[UUID]:
    """Take edges of the graph away, by id, and leave lonely placeholders for `drop_lonely`; the ends of those edges."""
    return _record_removed(revision, await store.remove_edges(tx, revision, edge_ids)) if edge_ids else set()


async def drop_lonely(tx: Transaction, revision: Revision, node_ids: Iterable[UUID]) -> None:
    """Let those of these nodes of the graph vanish that are placeholders without a relation of it."""
    candidates = list(node_ids)
    lonely = await store.find_lonely_placeholders(tx, revision.graph, candidates) if candidates else []
    if lonely:
        await nodes.remove_nodes(tx, revision, lonely)


async def edges_between(
    tx: Transaction, graph: Graph, from_node: UUID, to_node: UUID, type_: str | None = None
) -> list[Edge]:
    """Live edges of a graph from one node to another."""
    return await store.edges_between(tx, graph, from_node, to_node, type_)


async def edges_by_id(tx: Transaction, graph: Graph, edge_ids: Sequence[UUID]) -> list[Edge]:
    """Edges of a graph by id, removed ones too, in the order asked for."""
    return await store.edges_by_id(tx, graph, edge_ids)


async def edges_of(
    tx: Transaction, graph: Graph, node_ids: Sequence[UUID], walk: Walk, *, within: Sequence[UUID] | None, limit: int
) -> list[Edge]:
    """Edges at these nodes that a walk may follow, within these graphs (None: any); at most `limit`."""
    return await store.edges_of(tx, graph, node_ids, walk, within=within, limit=limit)


async def search_relations(
    tx: Transaction,
    graph: Graph,
    only: RelationFilter,
    *,
    offset: int = 0,
    limit: int = MAX_RELATIONS,
    at: Moment | None = None,
) -> list[Relation]:
    """Relations of a graph (`at`: as it was) by the names of their ends and their type, oldest first."""
    return await store.search_relations(tx, graph, only, offset=offset, limit=limit, at=at)


async def find_relations(
    tx: Transaction,
    graph_name: str | None,
    only: RelationFilter,
    *,
    offset: int,
    limit: int,
    as_of: str | None = None,
) -> tuple[list[Relation], bool]:
    """A page of the relations of a graph (`as_of`: as it was) that pass a filter, oldest first; whether more follow."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return [], False
    at = await graphs.moment(tx, graph, as_of)
    found = await store.search_relations(tx, graph, only, offset=offset, limit=limit + 1, at=at)
    return found[:limit], len(found) > limit


async def count_types(
    tx: Transaction, graph: Graph, *, limit: int = 1000, at: Moment | None = None
) -> list[tuple[str, int]]:
    """How many relations of each type a graph has (`at`: as it was), most first, ties by name."""
    return await store.count_types(tx, graph, limit=limit, at=at)


async def list_symlinks(tx: Transaction, graph: Graph, *, offset: int = 0, limit: int = 1000) -> list[Symlink]:
    """The edges of a graph that lead into others, oldest first, and whether their targets still live."""
    return await store.list_symlinks(tx, graph, offset=offset, limit=limit)


async def subgraph_of(
    tx: Transaction,
    graph: Graph,
    entities: list[Entity],
    *,
    next_offset: int | None = None,
    at: Moment | None = None,
) -> Subgraph:
    """These entities with every relation (`at`: as they were) that touches one of them."""
    ids = [entity.id for entity in entities]
    found = await store.relations_touching(tx, graph, ids, limit=MAX_RELATIONS + 1, at=at)
    return Subgraph(entities, _bounded(found), next_offset)


async def subgraph_within(
    tx: Transaction,
    graph: Graph,
    entities: list[Entity],
    *,
    next_offset: int | None = None,
    at: Moment | None = None,
) -> Subgraph:
    """These entities with the relations (`at`: as they were) among them."""
    ids = [entity.id for entity in entities]
    found = await store.relations_between(tx, graph, ids, limit=MAX_RELATIONS + 1, at=at)
    return Subgraph(entities, _bounded(found), next_offset)


async def list_relations(
    tx: Transaction, graph: Graph, *, offset: int = 0, limit: int | None = None, at: Moment | None = None
) -> list[Relation]:
    """Every relation of a graph (`at`: as it was), oldest first."""
    return await store.list_relations(tx, graph, offset=offset, limit=limit, at=at)


def _key(edge: NewEdge | Edge) -> tuple[UUID, UUID, str]:
    return edge.from_node, edge.to_node, edge.type


def _bounded(found: list[Relation]) -> list[Relation]:
    if len(found) > MAX_RELATIONS:
        raise TooLarge(
            f"More than {MAX_RELATIONS} relations touch these entities: open fewer, or page search_relations"
        )
    return found


def _checked(graph: Graph, edge: NewEdge, homes: Mapping[UUID, UUID]) -> NewEdge | RecollectError:
    if homes.get(edge.from_node) != graph.id:
        return not_found(edge.from_node)
    if homes.get(edge.to_node) != (edge.to_graph or graph.id):
        return not_found(edge.to_node)
    return edge


def _record_removed(revision: Revision, removed: Iterable[RemovedRelation]) -> set[UUID]:
    edges = list(removed)
    revision.touch("relations_removed", [edge.id for edge in edges], relations=-len(edges))
    return {end for edge in edges for end in (edge.from_node, edge.to_node)}
