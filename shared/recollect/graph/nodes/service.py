"""Use cases of nodes: make facts and nodes of any sort, give them versions, find them, take them away."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from recollect.errors import Conflict, ErrorCode
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import store
from recollect.graph.nodes.model import (
    EntityNotFound,
    NewFact,
    NodeFields,
    NodeHead,
    NodeRef,
    RememberedFact,
    RestoredNode,
    Rewrite,
    unique,
)
from recollect.graph.nodes.store import AppendedVersion
from recollect.graph.passages import service as passages
from recollect.graph.passages.model import IndexedText, Source
from recollect.platform.db import Transaction


async def create_facts(
    tx: Transaction, revision: Revision, facts: Sequence[NewFact], *, paths: Sequence[str] = ()
) -> list[RememberedFact]:
    """Make facts, in order. One that is known (same content, thread, status) is not doubled: its id comes back.

    Facts of one call must differ. Raises InvalidInput for a new one of a kind that the graph's whitelist leaves out;
    `paths`: where the caller was given each one's kind.
    """
    facts = [replace(fact, said_at=fact.said_at or revision.at) for fact in facts]
    remembered = await store.insert_facts(tx, revision, facts)
    made = [(node.id, fact) for node, fact in zip(remembered, facts, strict=True) if not node.known]
    for place, node in enumerate(remembered):
        if not node.known:
            revision.graph.require_kind(facts[place].kind, paths[place] if paths else "kind")
    if made:
        node_ids = [node_id for node_id, _ in made]
        revision.touch("facts_added", node_ids, facts=len(made))
        await append_versions(tx, revision, node_ids)
        await passages.index_memories(tx, revision, [_fact(node_id, fact, revision.actor) for node_id, fact in made])
    return remembered


async def remove_nodes(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Delete live nodes with their observations and passages. Their relations are the caller's to take away first."""
    removed = await store.remove_nodes(tx, revision, node_ids)
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
) -> list[UUID]:
    """Make nodes with every field given; their ids, in order. `actors`: who is to be noted instead of the caller.

    `began`: since when they are told to be, where that is before now: nodes that were elsewhere before.
    A placeholder of a node's name becomes that node. Raises InvalidInput for a kind that the whitelist leaves out,
    Conflict for a name that is taken.
    """
    if not nodes:
        return []
    _require_kinds(revision.graph, nodes)
    names = [node.name for node in nodes if node.name is not None]
    await _require_free_names(tx, revision, names, placeholders=True)
    noted, since = list(actors) or [None] * len(nodes), list(began) or [None] * len(nodes)
    made = await store.insert_nodes(tx, revision, list(zip(nodes, noted, since, strict=True)))
    ids, counts = [node.id for node in made], _counts(nodes)
    counts["placeholders"] -= sum(node.version > 1 for node in made)
    revision.touch("nodes_added", ids, **counts)
    await store.append_versions(
        tx, revision, [AppendedVersion(i, actor=actor) for i, actor in zip(ids, noted, strict=True)]
    )
    await passages.index_memories(tx, revision, await store.memories_of_nodes(tx, ids))
    await passages.hide_names(tx, revision, ids)
    return ids


async def reindex_page(tx: Transaction, revision: Revision, *, after: UUID, limit: int) -> list[UUID]:
    """Make the passages of the next nodes after an id anew from what is stored; those nodes, by id.

    `revision` is the graph's newest, held: what is remembered does not change.
    """
    node_ids = await store.list_node_ids(tx, revision.graph, after=after, limit=limit)
    if node_ids:
        await passages.rebuild(tx, revision, node_ids, await store.memories_of_nodes(tx, node_ids))
    return node_ids


async def read_heads(tx: Transaction, graph: Graph, node_ids: Sequence[UUID]) -> dict[UUID, NodeHead]:
    """Live nodes of a graph as they are now, by id; those that are not there are left out."""
    return await store.read_heads(tx, graph, unique(node_ids))


async def require_entity_heads(tx: Transaction, graph: Graph, names: Sequence[str]) -> dict[str, NodeHead]:
    """The heads of entities by their names. Raises NotFound for the first name that no entity has."""
    named = await require_entities(tx, graph, names)
    heads = await read_heads(tx, graph, [named[name].id for name in names])
    return {name: heads[named[name].id] for name in names}


async def rewrite(tx: Transaction, revision: Revision, rewrites: Sequence[Rewrite]) -> None:
    """Give nodes new versions, each node once.

    Raises InvalidInput for a kind that the whitelist leaves out, Conflict for a name that another node has.
    """
    if not rewrites:
        return
    _require_kinds(revision.graph, [r.fields for r in rewrites if r.fields.kind != r.head.fields.kind])
    renamed = [r.fields.name for r in rewrites if r.fields.name is not None and r.fields.name != r.head.fields.name]
    await _require_free_names(tx, revision, renamed)
    before, after = _counts(r.head.fields for r in rewrites), _counts(r.fields for r in rewrites)
    ids = [r.head.id for r in rewrites]
    revision.touch("nodes_rewritten", ids, **{counter: after[counter] - before[counter] for counter in after})
    await store.rewrite_heads(tx, revision, rewrites)
    divided = await store.append_versions(tx, revision, [_appended(r) for r in rewrites])
    changed = [r.head.id for r in rewrites if r.head.id in divided or _text(r.fields) != _text(r.head.fields)]
    await reindex(tx, revision, changed)


async def archive_expired(tx: Transaction, revision: Revision, *, limit: int) -> int:
    """Archive nodes whose time has come, up to `limit`; how many."""
    heads = await store.list_expired(tx, revision.graph, limit=limit)
    await rewrite(tx, revision, [Rewrite(head, replace(head.fields, status="archived", reason=None)) for head in heads])
    return len(heads)


async def find_named(view: GraphView, names: Sequence[str]) -> dict[str, NodeRef]:
    """Live nodes of these names, placeholders too, by name."""
    return await store.find_named(view, names)


async def require_entities(tx: Transaction, graph: Graph, names: Sequence[str]) -> dict[str, NodeRef]:
    """Entities of these names; raises NotFound for the first name that none has."""
    found = await store.find_named(GraphView(tx, graph), names)
    for name in names:
        if name not in found or found[name].placeholder:
            raise EntityNotFound(name)
    return found


async def ensure_named(tx: Transaction, revision: Revision, names: Sequence[str]) -> dict[str, NodeRef]:
    """A live node for each of these names: those that none has become placeholders."""
    found = await store.find_named(GraphView(tx, revision.graph), names)
    missing = [name for name in unique(names) if name not in found]
    if missing:
        await release_names(tx, revision, missing)
        placed = await store.insert_placeholders(tx, revision, missing)
        revision.touch("placeholders_added", [node.id for node in placed], placeholders=len(placed))
        await append_versions(tx, revision, [node.id for node in placed])
        found |= {node.name: node for node in placed}
    return found


async def restore(tx: Transaction, revision: Revision, restored: Sequence[RestoredNode]) -> None:
    """Let lineages, deleted ones too, be what they were, by new versions; their names are free, or theirs.

    `reindex` is due when all that belongs to them is there again.
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


async def reindex(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Make the passages of live nodes anew: every passage is matched by its node's name too."""
    if node_ids:
        ids = unique(node_ids)
        await passages.forget_nodes(tx, revision, ids)
        await passages.index_memories(tx, revision, await store.memories_of_nodes(tx, ids))
        await passages.hide_names(tx, revision, ids)


async def append_versions(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Keep nodes as they are now, as versions that follow those before."""
    await store.append_versions(tx, revision, [AppendedVersion(node_id) for node_id in node_ids])


async def touch_nodes(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Note that what belongs to nodes changed."""
    await store.touch_nodes(tx, revision, node_ids)


async def release_names(tx: Transaction, revision: Revision, names: Sequence[str]) -> None:
    """Archive expired nodes without their names: nobody sees them, and others may want to be called so."""
    expired = await store.expired_heads(tx, revision.graph, names) if names else []
    archived = [Rewrite(h, replace(h.fields, name=None, status="archived", reason=None)) for h in expired]
    await rewrite(tx, revision, archived)


async def labels_of(view: GraphView, node_ids: Sequence[UUID]) -> dict[UUID, str]:
    """What each of these nodes is called in paths and relations: its name, a placeholder's too; or its id.

    This is the one rule for it: a fact, which has no name, is called by its id, by which every tool takes it.
    """
    names = await names_of(view, node_ids)
    return {node_id: names.get(node_id, str(node_id)) for node_id in node_ids}


async def names_of(view: GraphView, node_ids: Sequence[UUID]) -> dict[UUID, str]:
    """The names of those of these nodes that have one, placeholders too."""
    return await store.names_of(view, node_ids)


async def find_homes(tx: Transaction, node_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """The graph that each of these nodes lives in, whichever of the tenant's; those that live in none are left out."""
    return await store.find_homes(tx, unique(node_ids))


def _require_kinds(graph: Graph, fields: Iterable[NodeFields]) -> None:
    for node in fields:  # Callers who were given the kind check it before, and tell where.
        graph.require_kind(node.kind, None)


async def _require_free_names(
    tx: Transaction, revision: Revision, names: Sequence[str], *, placeholders: bool = False
) -> None:
    """Raise Conflict for a name that a node has (`placeholders`: but a placeholder may give its name away)."""
    await release_names(tx, revision, names)
    found = await store.find_named(GraphView(tx, revision.graph), names)
    taken = {name for name, node in found.items() if not (placeholders and node.placeholder)}
    for name, count in Counter(names).items():
        if name in taken or count > 1:
            raise Conflict(f"There is a node named {name!r} already.", code=ErrorCode.NAME_TAKEN)


def _counts(fields: Iterable[NodeFields]) -> dict[str, int]:
    listed = list(fields)
    placeholders = sum(node.placeholder for node in listed)
    facts = sum(node.name is None for node in listed)
    return {"entities": len(listed) - placeholders - facts, "facts": facts, "placeholders": placeholders}


def _appended(rewrite: Rewrite) -> AppendedVersion:
    return AppendedVersion(rewrite.head.id, rewrite.based_on, rewrite.beside_heads, rewrite.actor)


def _text(fields: NodeFields) -> tuple[object, ...]:
    """What a node's passages are made from."""
    return fields.name, fields.content, fields.expires_at, fields.thread, fields.said_at, fields.placeholder


def _fact(node_id: UUID, fact: NewFact, author: str) -> IndexedText:
    return IndexedText(
        node_id, node_id, Source.FACT, fact.content, author, None, fact.thread, fact.said_at, fact.expires_at
    )
