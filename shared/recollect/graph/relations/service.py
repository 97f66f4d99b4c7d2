"""Use cases of relations: create, change, remove and find them."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from uuid import UUID

from recollect.errors import RecollectError, TooLarge
from recollect.fairness.computing import sized_batches
from recollect.graph.derivations import service as derivations
from recollect.graph.graphs.model import Graph, GraphHead, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages.model import not_found
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import ACTIVE, NodeRef, occurrences, unique, unique_by
from recollect.graph.observations import service as observations
from recollect.graph.relations import store
from recollect.graph.relations.counted import EdgeCounts
from recollect.graph.relations.model import (
    Edge,
    EdgePosition,
    EdgeUpsert,
    NewEdge,
    NewRelation,
    Relation,
    RelationFilter,
    Symlink,
    Walk,
)
from recollect.graph.relations.store import RemovedRelation
from recollect.graph.relations.subgraphs import MAX_RELATIONS
from recollect.postgres.transactions import Transaction

Key = tuple[UUID, UUID, str]
"""Both ends and the type: two edges with the same key are the same edge."""


PAGE_EDGES = 500
"""Edges that a large write reads with their metadata at a time; its bytes are bounded, too (`nodes.PAGE_BYTES`)."""

MAX_EXAMINED = 20_000
"""Edges of which the ends are counted to find the nodes that have most of them, at most."""


async def create_relations(tx: Transaction, revision: Revision, relations: Sequence[NewRelation]) -> list[NewRelation]:
    """Create edges between names; return those that are new, in order. A name that no node has gets a placeholder."""
    named = unique_by(lambda relation: relation.triple, relations)
    edges = await _between_names(tx, revision, named)
    distinct = unique_by(lambda pair: _key(pair[1]), zip(named, edges, strict=True))  # A name may come in two forms.
    added = {_key(edge) for edge in await _add(tx, revision, [edge for _, edge in distinct])}
    return [relation for relation, edge in distinct if _key(edge) in added]


async def upsert_relations(tx: Transaction, revision: Revision, relations: Sequence[NewRelation]) -> list[EdgeUpsert]:
    """Create edges between names, or give existing ones the new metadata; return all in order (`upsert_edges`).

    A name that no node has gets a placeholder.
    """
    return await upsert_edges(tx, revision, await _between_names(tx, revision, relations))


async def delete_relations(
    tx: Transaction, revision: Revision, triples: Sequence[tuple[str, str, str]]
) -> set[tuple[str, str, str]]:
    """Remove (source, target, type) edges, ignoring unknown ones; return those that were there.

    A name stands for all its forms that the graph has: an edge may be at a placeholder of another form. Orphaned
    placeholders are removed, too. Raises TooLarge where there are very many forms.
    """
    forms = await naming.find_forms(
        tx, revision.graph, unique(name for source, target, _ in triples for name in (source, target))
    )
    keys = _keys_between(forms, unique(triples))
    removed = await store.remove_relations(tx, revision, unique(chain.from_iterable(keys.values()))) if keys else []
    await drop_orphaned_placeholders(tx, revision, _record_removed(revision, removed))
    there = {(edge.from_node, edge.to_node, edge.type) for edge in removed}
    return {triple for triple, keys_of_triple in keys.items() if not there.isdisjoint(keys_of_triple)}


async def delete_nodes(
    tx: Transaction, revision: Revision, node_ids: Sequence[UUID], *, reason: str | None = None
) -> None:
    """Delete nodes with their relations, observations and passages, and facts that were derived from them alone.

    Orphaned placeholders are removed, too.
    """
    node_ids = unique([*node_ids, *await derivations.without_support(tx, revision, node_ids)])
    removed = await store.remove_touching(tx, revision, node_ids)
    ends = _record_removed(revision, removed)
    await nodes.remove_nodes(tx, revision, node_ids, reason=reason)
    await drop_orphaned_placeholders(tx, revision, ends - set(node_ids))


async def put_edges(tx: Transaction, revision: Revision, edges: Sequence[NewEdge]) -> list[Edge]:
    """Create edges between nodes; return all in order. An edge that exists is returned unchanged.

    The caller has checked that both ends exist.
    """
    stored = await _stored(tx, edges, await _add(tx, revision, unique_by(_key, edges)))
    return [stored[_key(edge)] for edge in edges]


async def add_edges(tx: Transaction, revision: Revision, edges: Sequence[NewEdge]) -> list[UUID]:
    """Create the edges that do not exist yet; return their ids. The caller has checked that both ends exist."""
    return [edge.id for edge in await _add(tx, revision, unique_by(_key, edges))]


async def upsert_edges(tx: Transaction, revision: Revision, edges: Sequence[NewEdge]) -> list[EdgeUpsert]:
    """Create edges between nodes, or give existing ones the new properties; return all in order.

    New metadata and a new ordinal replace those of the edge; None keeps them. An edge that is named twice is written
    twice. The caller has checked that both ends exist.
    """
    outcomes: dict[int, EdgeUpsert] = {}
    for indexes in occurrences(lambda index: _key(edges[index]), range(len(edges))):
        upserted = await _upsert(tx, revision, [edges[index] for index in indexes])
        outcomes |= zip(indexes, upserted, strict=True)
    return [outcomes[index] for index in range(len(edges))]


async def rewrite_edges(tx: Transaction, revision: Revision, edges: Sequence[tuple[Edge, NewEdge]]) -> None:
    """Give each stored edge exactly the metadata and ordinal of its partner. The former ones stay in history."""
    await _rewrite(tx, revision, [replace(old, metadata=new.metadata or {}, ordinal=new.ordinal) for old, new in edges])


async def connect(tx: Transaction, revision: Revision, edges: Sequence[NewEdge]) -> list[EdgeUpsert | RecollectError]:
    """Upsert edges one by one; return for each, in order, its outcome or the error that kept it from being written.

    The error is NotFound if the source is not in the graph that is written, or the target not in `to_graph`.
    """
    homes = await nodes.find_homes(tx, [end for edge in edges for end in (edge.from_node, edge.to_node)])
    checked = [_check_ends(revision.graph, edge, homes) for edge in edges]
    valid = [edge for edge in checked if isinstance(edge, NewEdge)]
    upserts = iter(await upsert_edges(tx, revision, valid))
    return [next(upserts) if isinstance(edge, NewEdge) else edge for edge in checked]


async def delete_edges(tx: Transaction, revision: Revision, edge_ids: Sequence[UUID]) -> int:
    """Remove edges of the graph by id; return how many existed. Orphaned placeholders are removed, too."""
    removed = await store.remove_edges(tx, revision, edge_ids)
    await drop_orphaned_placeholders(tx, revision, _record_removed(revision, removed))
    return len(removed)


async def remove_edges(tx: Transaction, revision: Revision, edge_ids: Sequence[UUID]) -> set[UUID]:
    """Remove edges by id; return their ends: the caller calls `drop_orphaned_placeholders` with them."""
    return _record_removed(revision, await store.remove_edges(tx, revision, edge_ids)) if edge_ids else set()


async def drop_orphaned_placeholders(tx: Transaction, revision: Revision, node_ids: Iterable[UUID]) -> None:
    """Remove those of these nodes that are placeholders without a relation in the graph."""
    candidates = list(node_ids)
    orphans = await store.find_orphaned_placeholders(tx, revision.graph, candidates) if candidates else []
    if orphans:
        await nodes.remove_nodes(tx, revision, orphans)


async def edges_between(
    tx: Transaction, graph: Graph, from_node: UUID, to_node: UUID, type_: str | None = None
) -> list[Edge]:
    """The live edges of a graph from one node to another; of any type where `type_` is None."""
    return await store.edges_between(tx, graph, from_node, to_node, type_)


async def edges_by_id(view: GraphView, edge_ids: Sequence[UUID]) -> list[Edge]:
    """The edges of a graph with these ids, in the same order; an id that no edge has is left out."""
    return await store.edges_by_id(view, edge_ids)


async def edges_of(
    view: GraphView,
    node_ids: Sequence[UUID],
    walk: Walk,
    *,
    within: Sequence[UUID] | None,
    after: EdgePosition | None = None,
    offset: int = 0,
    limit: int,
) -> list[Edge]:
    """The edges of these nodes that a walk may follow, inside the graphs `within` (None: any); one page.

    They come without their metadata, of which a hundred edges may have ten megabytes: `subgraphs.edges_within_reply`
    reads it for those that are answered, `with_metadata` for a write.
    """
    return await store.edges_of(view, node_ids, walk, within=within, after=after, offset=offset, limit=limit)


async def with_metadata(view: GraphView, edges: Sequence[Edge]) -> AsyncIterator[list[Edge]]:
    """Edges that were read without metadata, with it, in order, in pages of PAGE_EDGES and `nodes.PAGE_BYTES`."""
    by_id, page, size = {edge.id: edge for edge in edges}, list[Edge](), 0
    async for edge_id, metadata, added in store.metadata_of_edges(view, list(by_id)):
        if page and (len(page) == PAGE_EDGES or size + added > nodes.PAGE_BYTES):
            yield page
            page, size = [], 0
        page.append(replace(by_id[edge_id], metadata=metadata))
        size += added
    if page:
        yield page


async def measure_edges_of(tx: Transaction, node_ids: Sequence[UUID], *, limit: int) -> tuple[int, int]:
    """How many edges start or end at these nodes, of `limit` at most, and the bytes of their metadata."""
    return await store.measure_edges_of(tx, node_ids, limit=limit)


async def pages_of(tx: Transaction, edges: Sequence[NewEdge]) -> list[list[NewEdge]]:
    """The edges in pages of PAGE_EDGES at most, of which the stored ones have `nodes.PAGE_BYTES` of metadata at most.

    A stored edge with more is a page by itself. Edges with the same key are one edge, and on one page, in order.
    """
    by_key: dict[Key, list[NewEdge]] = {}
    for edge in edges:
        by_key.setdefault(_key(edge), []).append(edge)
    sizes = await store.measure_edges(tx, list(by_key))
    pages = sized_batches(by_key, lambda key: sizes.get(key, 0), max_items=PAGE_EDGES, max_size=nodes.PAGE_BYTES)
    return [[edge for key in page for edge in by_key[key]] for page in pages]


async def search_relations(
    view: GraphView, filters: RelationFilter, *, offset: int = 0, limit: int = MAX_RELATIONS
) -> list[Relation]:
    """The relations of a graph that pass a filter, oldest first."""
    return await store.search_relations(view, filters, offset=offset, limit=limit)


async def find_relations(
    view: GraphView, filters: RelationFilter, *, offset: int, limit: int
) -> tuple[list[Relation], bool]:
    """A page of the relations of a graph that pass a filter, oldest first, and whether more follow."""
    found = await store.search_relations(view, filters, offset=offset, limit=limit + 1)
    return found[:limit], len(found) > limit


async def most_connected(view: GraphView, *, limit: int) -> list[UUID]:
    """The nodes with most relations among the graph's newest MAX_EXAMINED ones, most first."""
    return await store.most_connected(view, examined=MAX_EXAMINED, limit=limit)


async def count_types(view: GraphView, *, limit: int = 1000) -> list[tuple[str, int]]:
    """Each relation type of a graph with its number of relations, those of facts too; most first, then by name."""
    return await store.count_types(view, limit=limit)


async def count_named_types(view: GraphView, *, limit: int | None = None) -> list[tuple[str, int]]:
    """Each relation type with its number of relations between names (those that `list_relations` lists), most first."""
    return await store.count_named_types(view, limit=limit)


async def count_named(view: GraphView, head: GraphHead, counts: EdgeCounts) -> int:
    """How many relations between names a graph has. `counts` caches the part that depends on the head alone."""
    if view.at is not None or not view.is_there:
        return sum(count for _, count in await count_named_types(view))
    tenant_id = view.tx.tenant_id
    count = counts.find(tenant_id, view.graph, head)
    if count is None:
        count = await store.count_between_names(view)
        counts.note(tenant_id, view.graph, head, count)
    return count + await store.count_edge_corrections(view)


async def list_symlinks(
    tx: Transaction, graph: Graph, *, inbound: bool = False, offset: int = 0, limit: int = 1000
) -> list[Symlink]:
    """The edges that lead from a graph into others, or with `inbound` from others into it; oldest first.

    Edges to or from graphs that the caller may not use are left out.
    """
    return await store.list_symlinks(tx, graph, inbound=inbound, offset=offset, limit=limit)


async def list_relations(view: GraphView, *, offset: int = 0, limit: int | None = None) -> list[Relation]:
    """The relations of a graph between nodes with names, oldest first."""
    return await store.list_relations(view, offset=offset, limit=limit)


async def _between_names(tx: Transaction, revision: Revision, relations: Sequence[NewRelation]) -> list[NewEdge]:
    """The edges between the nodes of these names. A relation says something of its source, which it brings back."""
    ends = await nodes.ensure_named(tx, revision, unique(name for r in relations for name in (r.source, r.target)))
    sources = unique(ends[relation.source] for relation in relations)
    await observations.bring_back(tx, revision, [source.id for source in sources if source.status != ACTIVE])
    return [NewEdge(ends[r.source].id, ends[r.target].id, r.type, metadata=r.metadata) for r in relations]


def _keys_between(
    forms: Mapping[str, Sequence[NodeRef]], triples: Sequence[tuple[str, str, str]]
) -> dict[tuple[str, str, str], list[Key]]:
    """The keys that edges between all forms of their ends have, by (source, target, type).

    Raises TooLarge where the forms make more than MAX_RELATIONS of them.
    """
    keys: dict[tuple[str, str, str], list[Key]] = {}
    possible = (
        (triple, (source.id, target.id, triple[2]))
        for triple in triples
        for source in forms.get(triple[0], ())
        for target in forms.get(triple[1], ())
    )
    for count, (triple, key) in enumerate(possible, 1):
        if count > MAX_RELATIONS:
            raise TooLarge(f"The forms of these names make more than {MAX_RELATIONS} relations: name fewer at once")
        keys.setdefault(triple, []).append(key)
    return keys


async def _add(tx: Transaction, revision: Revision, edges: Sequence[NewEdge]) -> list[Edge]:
    """Create the edges that do not exist yet, of edges with distinct keys; return the new ones."""
    added = await store.insert_edges(tx, revision, edges) if edges else []
    revision.touch("relations_added", [edge.id for edge in added], relations=len(added))
    return added


async def _upsert(tx: Transaction, revision: Revision, edges: Sequence[NewEdge]) -> list[EdgeUpsert]:
    """`upsert_edges` for edges with distinct keys."""
    added = await _add(tx, revision, edges)
    stored, added_ids = await _stored(tx, edges, added), {edge.id for edge in added}
    upserted = [_with_properties(stored[_key(edge)], edge) for edge in edges]
    with_properties = [
        edge for edge, new in zip(upserted, edges, strict=True) if (new.metadata, new.ordinal) != (None, None)
    ]
    updated = await _rewrite(tx, revision, [edge for edge in with_properties if edge.id not in added_ids])
    upserted = [replace(edge, updated_at=revision.at) if edge.id in updated else edge for edge in upserted]
    return [EdgeUpsert(edge, edge.id in added_ids, edge.id in updated) for edge in upserted]


async def _rewrite(tx: Transaction, revision: Revision, edges: Sequence[Edge]) -> set[UUID]:
    """Store the properties of these edges; return the ids of the edges whose properties changed."""
    properties = [(edge.id, edge.metadata, edge.ordinal) for edge in edges]
    updated = await store.rewrite_edges(tx, revision, properties) if properties else []
    revision.touch("relations_updated", [edge_id for edge_id in updated if edge_id not in revision.ids])
    return set(updated)


async def _stored(tx: Transaction, edges: Sequence[NewEdge], added: Sequence[Edge]) -> dict[Key, Edge]:
    """The live edges with the keys of `edges`, by key; those that were just `added` are not queried."""
    stored = {_key(edge): edge for edge in added}
    other_keys = [_key(edge) for edge in edges if _key(edge) not in stored]
    found = await store.find_edges(tx, other_keys) if other_keys else []
    return stored | {_key(edge): edge for edge in found}


def _with_properties(edge: Edge, new: NewEdge) -> Edge:
    """The edge with the new properties; a property that is None stays as it is."""
    return replace(
        edge,
        metadata=edge.metadata if new.metadata is None else new.metadata,
        ordinal=edge.ordinal if new.ordinal is None else new.ordinal,
    )


def _key(edge: NewEdge | Edge) -> Key:
    return edge.from_node, edge.to_node, edge.type


def _check_ends(graph: Graph, edge: NewEdge, homes: Mapping[UUID, UUID]) -> NewEdge | RecollectError:
    if homes.get(edge.from_node) != graph.id:
        return not_found(edge.from_node)
    if homes.get(edge.to_node) != (edge.to_graph or graph.id):
        return not_found(edge.to_node)
    return edge


def _record_removed(revision: Revision, removed: Sequence[RemovedRelation]) -> set[UUID]:
    """Record the removed edges in the revision; return their ends."""
    revision.touch("relations_removed", [edge.id for edge in removed], relations=-len(removed))
    return {end for edge in removed for end in (edge.from_node, edge.to_node)}
