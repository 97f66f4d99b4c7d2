"""Use cases of nodes: create facts and other nodes, write their versions, find them, remove them."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from recollect.errors import Conflict, ErrorCode, TooLarge
from recollect.fairness.computing import collect_yielding, sized_batches
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import indexing, naming, store
from recollect.graph.nodes.labelling import MAX_TAG_CHARACTERS, MAX_TAGS, fit_one_node
from recollect.graph.nodes.model import (
    ACTIVE,
    EntityNotFound,
    NewFact,
    NodeFields,
    NodeHead,
    NodeOutline,
    NodeRef,
    RememberedFact,
    RestoredNode,
    Rewrite,
    name_key,
    unique,
    unique_by,
)
from recollect.graph.nodes.store import AppendedVersion
from recollect.graph.passages import service as passages
from recollect.postgres.transactions import Transaction

FEW_READ, MAX_READ_BYTES = 20, 5_000_000
"""How many nodes a call may read to change them, whatever their size, and the maximum number of bytes of the texts and
metadata of more nodes: decoded, values of JSON take many times as much memory."""

PAGE_NODES, PAGE_BYTES = 200, 2_000_000
"""How many nodes a write without such a bound reads and changes at a time, and how many bytes of their texts and
metadata: numbers in metadata take 15 times that in memory."""


async def create_facts(
    tx: Transaction, revision: Revision, new_facts: Iterable[NewFact], *, paths: Sequence[str] = ()
) -> list[RememberedFact]:
    """Create facts; return them in order. One that the graph has (same content, thread, status) is returned as known.

    The facts of one call must differ. Raises InvalidInput for a new fact of a kind that is not on the graph's
    whitelist; `paths`: for each fact, the argument that holds its kind.
    """
    facts = await collect_yielding(_with_time_said(fact, revision) for fact in new_facts)
    remembered = await store.insert_facts(tx, revision, facts)
    made = [(node.id, fact) for node, fact in zip(remembered, facts, strict=True) if not node.known]
    for index, node in enumerate(remembered):
        if not node.known:
            revision.graph.require_kind(facts[index].kind, paths[index] if paths else "kind")
    if made:
        node_ids = [node_id for node_id, _ in made]
        revision.touch("facts_added", node_ids, facts=len(made))
        await indexing.index_facts(tx, revision, made)
    return remembered


async def remove_nodes(
    tx: Transaction, revision: Revision, node_ids: Sequence[UUID], *, reason: str | None = None
) -> None:
    """Delete live nodes with their observations and passages. The caller removes their relations first.

    `reason`: why, kept with the version that records the deletion; None keeps the reason of the version before.
    """
    removed = await store.remove_nodes(tx, revision, node_ids, reason)
    if not removed:
        return
    ids = [node.id for node in removed]
    placeholders, facts = sum(node.placeholder for node in removed), sum(node.fact for node in removed)
    revision.touch(
        "nodes_removed",
        ids,
        entities=placeholders + facts - len(removed),
        facts=-facts,
        placeholders=-placeholders,
        observations=-sum(node.observations for node in removed),
    )
    await append_versions(tx, revision, ids)
    await passages.forget_nodes(tx, revision, ids)


async def create_nodes(
    tx: Transaction,
    revision: Revision,
    nodes: Sequence[NodeFields],
    *,
    actors: Sequence[str | None] = (),
    began: Sequence[datetime | None] = (),
    names_with_observations: Container[str] = (),
    exactly: bool = False,
) -> list[UUID]:
    """Create nodes with all their fields; return their ids in order. A placeholder of a node's name becomes the node.

    A node that a placeholder becomes keeps the placeholder's form of the name. `exactly`: another form of a name is
    another name.

    `actors`: who is recorded as the author; None is the caller. `began`: the creation time of a node that existed
    elsewhere before; None is now. `names_with_observations`: names of entities to which the caller adds lasting
    observations next, so that the names need no passages. Raises InvalidInput for a kind that is not on the whitelist,
    Conflict for a name that another node has.
    """
    if not nodes:
        return []
    _require_kinds(revision.graph, nodes)
    names = [node.name for node in nodes if node.name is not None]
    placeholders = await _require_free_names(tx, revision, names, placeholders=True, exactly=exactly)
    nodes = [_renamed(node, placeholders) for node in nodes]
    authors, created_at = list(actors) or [None] * len(nodes), list(began) or [None] * len(nodes)
    inserted = await store.insert_nodes(tx, revision, list(zip(nodes, authors, created_at, strict=True)))
    ids, counts = [node.id for node in inserted], _counts(nodes)
    counts["placeholders"] -= sum(node.version > 1 for node in inserted)
    revision.touch("nodes_added", ids, **counts)
    await store.append_versions(
        tx, revision, [AppendedVersion(i, actor=author) for i, author in zip(ids, authors, strict=True)]
    )
    await indexing.index_nodes(tx, revision, ids, without_names=names_with_observations)
    return ids


async def require_readable(tx: Transaction, graph: Graph, node_ids: Sequence[UUID]) -> None:
    """Raise TooLarge where nodes have more texts and metadata together than a call may hold: MAX_READ_BYTES."""
    if len(node_ids) <= FEW_READ:
        return
    if sum((await measure(tx, graph, node_ids)).values()) <= MAX_READ_BYTES:
        return
    raise TooLarge(
        f"These nodes have more than {MAX_READ_BYTES} bytes of texts and metadata together. Name fewer in one call",
        code=ErrorCode.REQUEST_TOO_LARGE,
    )


async def measure(tx: Transaction, graph: Graph, node_ids: Sequence[UUID]) -> dict[UUID, int]:
    """The number of bytes of the texts, tags and metadata of each of these nodes, by id; only of live ones."""
    return await store.measure_nodes(tx, graph, unique(node_ids))


async def pages_of(tx: Transaction, graph: Graph, node_ids: Sequence[UUID]) -> list[list[UUID]]:
    """The live nodes of a graph among these ids, in order, in pages that a write reads and changes one by one.

    A page has PAGE_NODES and PAGE_BYTES at most, or one node that is larger; so few nodes as FEW_READ are one page.
    """
    ids = unique(node_ids)
    if len(ids) <= FEW_READ:
        return [ids] if ids else []
    sizes = await measure(tx, graph, ids)
    live = [node_id for node_id in ids if node_id in sizes]
    return list(sized_batches(live, sizes.__getitem__, max_items=PAGE_NODES, max_size=PAGE_BYTES))


async def read_heads(
    tx: Transaction, graph: Graph, node_ids: Sequence[UUID], *, expired_too: bool = False
) -> dict[UUID, NodeHead]:
    """The live nodes of a graph among these ids, by id. `expired_too`: also expired ones, which no read finds."""
    return await store.read_heads(tx, graph, unique(node_ids), expired_too=expired_too) if node_ids else {}


async def require_entity_heads(tx: Transaction, graph: Graph, names: Sequence[str]) -> dict[str, NodeHead]:
    """The heads of the entities with these names, by name. Raises NotFound for the first name that no entity has."""
    heads = await store.find_named_heads(tx, graph, unique(names))
    for name in names:
        if name not in heads:
            raise EntityNotFound(name)
    return {name: heads[name] for name in names}


async def hidden_heads(tx: Transaction, graph: Graph, names: Sequence[str]) -> dict[str, NodeHead]:
    """The outdated and archived entities among those with these names, by name. Raises as `require_readable`."""
    found = await naming.find_named(GraphView(tx, graph), unique(names))
    hidden = {name: node.id for name, node in found.items() if node.status != ACTIVE and not node.placeholder}
    await require_readable(tx, graph, ids := unique(hidden.values()))
    heads = await read_heads(tx, graph, ids)
    return {name: heads[node_id] for name, node_id in hidden.items() if node_id in heads}


async def rewrite(tx: Transaction, revision: Revision, rewrites: Sequence[Rewrite]) -> None:
    """Write a new version of each node; each node may occur only once.

    Raises InvalidInput for a new kind that is not on the whitelist, Conflict for a name that another node has, TooLarge
    for more tags than a node may have.
    """
    if not rewrites:
        return
    _require_few_tags(rewrites)
    _require_kinds(revision.graph, [r.fields for r in rewrites if r.fields.kind != r.head.fields.kind])
    renamed = [(r.fields.name, r.head.id) for r in rewrites if r.fields.name not in (None, r.head.fields.name)]
    names = [name for name, _ in renamed if name is not None]
    await _require_free_names(tx, revision, names, own=set(renamed))
    before, after = _counts(r.head.fields for r in rewrites), _counts(r.fields for r in rewrites)
    ids = [r.head.id for r in rewrites]
    revision.touch("nodes_rewritten", ids, **{counter: after[counter] - before[counter] for counter in after})
    divided = await store.rewrite_heads(tx, revision, rewrites)
    await indexing.index_rewritten(tx, revision, rewrites, divided)


async def differing(rewrites: Iterable[Rewrite], *, always: Container[UUID] = ()) -> list[Rewrite]:
    """The rewrites that change their nodes. `always`: nodes whose rewrites are among them in any case."""
    found = await collect_yielding(
        None if rewrite.head.id not in always and rewrite.fields.is_same_as(rewrite.head.fields) else rewrite
        for rewrite in rewrites
    )
    return [rewrite for rewrite in found if rewrite is not None]


async def archive_expired(tx: Transaction, revision: Revision, *, limit: int) -> int:
    """Archive expired nodes, up to `limit`; return how many."""
    heads = await store.list_expired(tx, revision.graph, limit=limit)
    await rewrite(tx, revision, [Rewrite(head, replace(head.fields, status="archived", reason=None)) for head in heads])
    return len(heads)


async def ensure_named(
    tx: Transaction, revision: Revision, names: Sequence[str], *, exactly: bool = False
) -> dict[str, NodeRef]:
    """A live node for each of these names, by name. A name that no node has gets a placeholder.

    `exactly`: another form of a name is another name.
    """
    found = await _find_named(tx, revision.graph, names, exactly=exactly)
    absent = [name for name in unique(names) if name not in found]
    missing = absent if exactly else unique_by(name_key, absent)
    if missing:
        await release_names(tx, revision, missing)
        placeholders = await store.insert_placeholders(tx, revision, missing)
        node_ids = [node.id for node in placeholders]
        revision.touch("placeholders_added", node_ids, placeholders=len(placeholders))
        await append_versions(tx, revision, node_ids)
        made = {name_key(node.name): node for node in placeholders} | {node.name: node for node in placeholders}
        found |= {name: made.get(name) or made[name_key(name)] for name in absent}
    return found


async def restore(tx: Transaction, revision: Revision, restored: Sequence[RestoredNode]) -> None:
    """Give lineages, deleted ones too, their former fields, by new versions.

    No other node may have their names. The caller calls `indexing.reindex` once all that belongs to them is restored.
    """
    if not restored:
        return
    ids = [r.id for r in restored]
    before, after = _counts(r.lived for r in restored if r.lived), _counts(r.fields for r in restored)
    revision.touch("nodes_restored", ids, **{counter: after[counter] - before[counter] for counter in after})
    await store.release_names(tx, revision.graph, ids)
    await release_names(tx, revision, [r.fields.name for r in restored if r.fields.name is not None])
    siblings = [version_id for r in restored for version_id in r.siblings]
    if siblings:
        await store.restore_siblings(tx, revision, siblings)
    await store.restore_heads(tx, revision, restored)
    await store.append_versions(tx, revision, [AppendedVersion(r.id, r.based_on, bool(r.siblings)) for r in restored])


async def append_versions(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Append the present state of nodes to their lineages, as new versions."""
    await store.append_versions(tx, revision, [AppendedVersion(node_id) for node_id in node_ids])


async def touch_nodes(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Set the update time of nodes, because their observations, relations or the like changed."""
    await store.touch_nodes(tx, revision, node_ids)


async def release_names(tx: Transaction, revision: Revision, names: Sequence[str]) -> None:
    """Archive the expired nodes that have these names and free the names for other nodes."""
    expired = await store.expired_heads(tx, revision.graph, names) if names else []
    archived = [Rewrite(h, replace(h.fields, name=None, status="archived", reason=None)) for h in expired]
    await rewrite(tx, revision, archived)


async def outlines_of(view: GraphView, node_ids: Sequence[UUID], *, excerpt: int) -> dict[UUID, NodeOutline]:
    """The outlines of these nodes, by id, placeholders too; `excerpt`: the number of characters of each text."""
    return await store.outlines_of(view, node_ids, excerpt=excerpt)


async def find_homes(tx: Transaction, node_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """The graph of each of these nodes, by the node's id, in all graphs of the tenant; only live nodes are found."""
    return await store.find_homes(tx, unique(node_ids))


def _require_kinds(graph: Graph, fields: Iterable[NodeFields]) -> None:
    for node in fields:  # A use case whose arguments hold the kind has checked it before, and named the argument.
        graph.require_kind(node.kind, None)


def _require_few_tags(rewrites: Iterable[Rewrite]) -> None:
    for rewrite in rewrites:
        before, after = rewrite.head.tags, rewrite.fields.tags
        if after != before and len(after) >= len(before) and not fit_one_node(after):
            raise TooLarge(
                f"A node may have {MAX_TAGS} tags, of {MAX_TAG_CHARACTERS} characters together. Remove some",
                code=ErrorCode.REQUEST_TOO_LARGE,
            )


async def _find_named(tx: Transaction, graph: Graph, names: Sequence[str], *, exactly: bool) -> dict[str, NodeRef]:
    if exactly:
        return await naming.find_named_exactly(tx, graph, names)
    return await naming.find_named(GraphView(tx, graph), names)


async def _require_free_names(
    tx: Transaction,
    revision: Revision,
    names: Sequence[str],
    *,
    placeholders: bool = False,
    exactly: bool = False,
    own: Container[tuple[str, UUID]] = (),
) -> dict[str, NodeRef]:
    """Raise Conflict for a name that is taken or given twice; return the nodes whose names count as free.

    `placeholders`: a name that only a placeholder has is free. `own`: names with the nodes that get them, which may
    have another form of them already. `exactly`: another form of a name is another name.
    """
    if not names:
        return {}
    await release_names(tx, revision, names)
    found = await _find_named(tx, revision.graph, names, exactly=exactly)
    if own:  # What a name means is then its own node, perhaps in another form, while another node has exactly the name.
        found |= await naming.find_named_exactly(tx, revision.graph, names)
    taken = {n for n, node in found.items() if (n, node.id) not in own and not (placeholders and node.placeholder)}
    counts = Counter(names if exactly else map(name_key, names))
    for name in names:
        if name in taken or counts[name if exactly else name_key(name)] > 1:
            raise Conflict(f"There is already a node named {name!r}.", code=ErrorCode.NAME_TAKEN)
    return found


def _renamed(fields: NodeFields, stored: Mapping[str, NodeRef]) -> NodeFields:
    """The fields with the form of their name that a stored node has."""
    node = stored.get(fields.name or "")
    return fields if node is None or node.name == fields.name else replace(fields, name=node.name)


def _counts(fields: Iterable[NodeFields]) -> dict[str, int]:
    listed = list(fields)
    placeholders = sum(node.placeholder for node in listed)
    facts = sum(node.name is None for node in listed)
    return {"entities": len(listed) - placeholders - facts, "facts": facts, "placeholders": placeholders}


def _with_time_said(fact: NewFact, revision: Revision) -> NewFact:
    """The fact with the time when it was said and the offset of its clock: by default now, in the graph's zone."""
    said_at = fact.said_at or revision.at
    offset = revision.offset_at(said_at) if fact.said_offset is None else fact.said_offset
    return replace(fact, said_at=said_at, said_offset=offset)
