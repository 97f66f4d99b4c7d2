"""Use cases of nodes: make entities, facts and observations, open them, take them away."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from recollect.errors import Conflict, ErrorCode
from recollect.graphs.model import Graph, Moment, Revision
from recollect.ids import new_id
from recollect.nodes import store
from recollect.nodes.model import (
    Entity,
    EntityNotFound,
    NewEntity,
    NewFact,
    NewObservation,
    NodeFields,
    NodeHead,
    NodeRef,
    Observation,
    RememberedFact,
    Rewrite,
    Upserted,
    merged_fields,
    unique,
    unique_by,
)
from recollect.nodes.store import Appended, KnownAs
from recollect.passages import service as passages
from recollect.passages.model import Memory, Source
from recollect.platform.db import Transaction


async def create_entities(
    tx: Transaction, revision: Revision, entities: Sequence[NewEntity]
) -> list[tuple[UUID, NewEntity]]:
    """Make entities with their observations; names that are taken are left out. What is new, in order, with its id.

    Raises InvalidInput for a kind that the graph's whitelist leaves out.
    """
    for place, entity in enumerate(entities):
        revision.graph.require_kind(entity.kind, f"entities.{place}.kind")
    wanted = unique_by(lambda entity: entity.name, entities)
    await _release_names(tx, revision, [entity.name for entity in wanted])
    inserted = {node.name: node for node in await store.insert_entities(tx, revision, wanted)}
    made = [(inserted[entity.name].id, entity) for entity in wanted if entity.name in inserted]
    if made:
        promoted = sum(node.promoted for node in inserted.values())
        node_ids = [node_id for node_id, _ in made]
        revision.touch("entities_added", node_ids, entities=len(made), placeholders=-promoted)
        await _append(tx, revision, node_ids)
        silent = [Memory(i, i, Source.NAME, entity.name) for i, entity in made if not entity.observations]
        await passages.index_memories(tx, revision, silent)
        await _attach(tx, revision, _first_observations(made, revision.at), across_threads=True)
    return made


async def create_facts(tx: Transaction, revision: Revision, facts: Sequence[NewFact]) -> list[RememberedFact]:
    """Make facts, in order. One that is known (same content, thread, status) is not doubled: its id comes back.

    Facts of one call must differ. Raises InvalidInput for a kind that the graph's whitelist leaves out.
    """
    for place, fact in enumerate(facts):
        revision.graph.require_kind(fact.kind, f"items.{place}.kind")
    facts = [replace(fact, said_at=fact.said_at or revision.at) for fact in facts]
    remembered = await store.insert_facts(tx, revision, facts)
    made = [(node.id, fact) for node, fact in zip(remembered, facts, strict=True) if not node.known]
    if made:
        node_ids = [node_id for node_id, _ in made]
        revision.touch("facts_added", node_ids, facts=len(made))
        await _append(tx, revision, node_ids)
        await passages.index_memories(tx, revision, [_fact(node_id, fact) for node_id, fact in made])
    return remembered


async def add_observations(
    tx: Transaction,
    revision: Revision,
    observations: Sequence[NewObservation],
    *,
    named: Sequence[str] | None = None,
    across_threads: bool = True,
) -> list[Observation]:
    """Attach statements to entities that exist; those that they did not have yet, in order.

    `named`: the entities that must exist, those to which nothing is added too (default: those of `observations`).
    `across_threads`: an entity has a statement once, whichever thread it came from; else once a thread.
    Raises NotFound naming the first entity that is not there.
    """
    wanted_names = unique(new.entity for new in observations) if named is None else named
    entities = await require_entities(tx, revision.graph, wanted_names)
    wanted = [_observation(entities[new.entity].id, new, revision.at) for new in observations]
    added = await _attach(tx, revision, wanted, across_threads=across_threads)
    if added:
        touched = unique(observation.node_id for observation in added)
        await passages.hide_names(tx, revision, touched)
        await store.touch_nodes(tx, revision, touched)
    return added


async def upsert_entities(tx: Transaction, revision: Revision, entities: Sequence[NewEntity]) -> list[Upserted]:
    """Make entities, or give those that exist the observations that they lack; what became of each, in order.

    An entity that exists keeps its kind. Raises InvalidInput for a kind that the graph's whitelist leaves out.
    """
    made = {entity.name: entity for _, entity in await create_entities(tx, revision, entities)}
    known = [entity for entity in entities if made.get(entity.name) is not entity]
    wanted = [NewObservation(entity.name, content) for entity in known for content in entity.observations]
    new = {(o.entity, o.content) for o in await add_observations(tx, revision, wanted)} if wanted else set()
    return [_upserted(entity, made.get(entity.name) is entity, new) for entity in entities]


async def find_observations(
    tx: Transaction, revision: Revision, keys: Sequence[tuple[UUID, str]]
) -> dict[tuple[UUID, str, str | None], UUID]:
    """Observations live at this revision by (node, content, thread), for these nodes and contents."""
    return await store.find_observations(tx, revision, keys)


async def remove_observations(tx: Transaction, revision: Revision, statements: Sequence[tuple[str, str]]) -> list[UUID]:
    """Take (entity, content) statements away; what is not there is passed over. The ids of those that were."""
    nodes = await store.find_named(tx, revision.graph, unique(entity for entity, _ in statements))
    keys = unique((nodes[entity].id, content) for entity, content in statements if entity in nodes)
    removed = await store.remove_observations(tx, revision, keys)
    await _note_removed(tx, revision, removed)
    await _show_names(tx, revision, unique(removed.values()))
    return list(removed)


async def observations_by_id(tx: Transaction, graph: Graph, ids: Sequence[UUID]) -> dict[UUID, Observation]:
    """Live observations of a graph by id; those that are not there are left out."""
    return await store.observations_by_id(tx, graph, ids)


async def nodes_of_observations(
    tx: Transaction, graph: Graph, ids: Sequence[UUID], *, at: Moment | None = None
) -> dict[UUID, UUID]:
    """What live observations are (`at`: were) about; those that are not there are left out."""
    if at is not None:
        return await store.nodes_of_observations_at(tx, graph, ids, at)
    return {o.id: o.node_id for o in (await store.observations_by_id(tx, graph, ids)).values()}


async def remove_observations_by_id(tx: Transaction, revision: Revision, ids: Sequence[UUID]) -> list[UUID]:
    """Take observations away, by id; what is not there is passed over. The ids of those that were."""
    removed = await _take_away(tx, revision, ids)
    await _show_names(tx, revision, unique(removed.values()))
    return list(removed)


async def replace_observation(tx: Transaction, revision: Revision, old: Observation, content: str) -> Observation:
    """Put another statement in the place of one; the one that the entity then has, with an id of its own."""
    if content == old.content:
        return old
    await _take_away(tx, revision, [old.id])
    new = replace(old, id=new_id(), content=content)
    added = await _attach(tx, revision, [new], across_threads=False)
    if added:
        return new
    await _show_names(tx, revision, [old.node_id])  # What the entity has said already may not last.
    known = await store.find_observations(tx, revision, [(old.node_id, content)])
    return replace(new, id=known[(old.node_id, content, old.thread)])


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
    await _append(tx, revision, ids)
    await passages.forget_nodes(tx, revision, ids)


async def create_nodes(
    tx: Transaction, revision: Revision, nodes: Sequence[NodeFields], *, actors: Sequence[str | None] = ()
) -> list[UUID]:
    """Make nodes with every field given; their ids, in order. `actors`: who is to be noted instead of the caller.

    A placeholder of a node's name becomes that node. Raises InvalidInput for a kind that the whitelist leaves out,
    Conflict for a name that is taken.
    """
    if not nodes:
        return []
    _require_kinds(revision.graph, nodes)
    names = [node.name for node in nodes if node.name is not None]
    await _require_free_names(tx, revision, names, placeholders=True)
    noted = list(actors) or [None] * len(nodes)
    made = await store.insert_nodes(tx, revision, list(zip(nodes, noted, strict=True)))
    ids, counts = [node.id for node in made], _counts(nodes)
    counts["placeholders"] -= sum(node.version > 1 for node in made)
    revision.touch("nodes_added", ids, **counts)
    await store.append_versions(tx, revision, [Appended(i, actor=actor) for i, actor in zip(ids, noted, strict=True)])
    await passages.index_memories(tx, revision, await store.memories_of_nodes(tx, ids))
    await passages.hide_names(tx, revision, ids)
    return ids


async def read_heads(tx: Transaction, graph: Graph, node_ids: Sequence[UUID]) -> dict[UUID, NodeHead]:
    """Live nodes of a graph as they are now, by id; those that are not there are left out."""
    return await store.read_heads(tx, graph, unique(node_ids))


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
    await store.append_versions(tx, revision, [_appended(r) for r in rewrites])
    await _reindex(tx, revision, [r.head.id for r in rewrites if _text(r.fields) != _text(r.head.fields)])


async def find_named(
    tx: Transaction, graph: Graph, names: Sequence[str], *, at: Moment | None = None
) -> dict[str, NodeRef]:
    """Live nodes of these names (`at`: as they were), placeholders too, by name."""
    if at is not None:
        return await store.find_named_at(tx, graph, names, at)
    return await store.find_named(tx, graph, names)


async def require_entities(tx: Transaction, graph: Graph, names: Sequence[str]) -> dict[str, NodeRef]:
    """Entities of these names; raises NotFound for the first name that none has."""
    found = await store.find_named(tx, graph, names)
    for name in names:
        if name not in found or found[name].placeholder:
            raise EntityNotFound(name)
    return found


async def ensure_named(tx: Transaction, revision: Revision, names: Sequence[str]) -> dict[str, NodeRef]:
    """A live node for each of these names: those that none has become placeholders."""
    found = await store.find_named(tx, revision.graph, names)
    missing = [name for name in unique(names) if name not in found]
    if missing:
        await _release_names(tx, revision, missing)
        placed = await store.insert_placeholders(tx, revision, missing)
        revision.touch("placeholders_added", [node.id for node in placed], placeholders=len(placed))
        await _append(tx, revision, [node.id for node in placed])
        found |= {node.name: node for node in placed}
    return found


async def open_entities(
    tx: Transaction, graph: Graph, names: Sequence[str], *, at: Moment | None = None
) -> list[Entity]:
    """Entities by name (`at`: as they were), each once, in the order asked for; names that none has are left out."""
    if at is not None:
        return await store.open_entities_at(tx, graph, unique(names), at)
    return await store.open_entities(tx, graph, unique(names))


async def entities_by_id(
    tx: Transaction, node_ids: Sequence[UUID], *, graph: Graph | None = None, at: Moment | None = None
) -> list[Entity]:
    """Live entities by id (with `graph` and `at`: as they were in that graph), in the order asked for."""
    if graph is not None and at is not None:
        return await store.entities_by_id_at(tx, graph, node_ids, at)
    return await store.entities_by_id(tx, node_ids)


async def list_entities(
    tx: Transaction,
    graph: Graph,
    *,
    kind: str | None = None,
    offset: int = 0,
    limit: int | None = None,
    at: Moment | None = None,
) -> list[Entity]:
    """Entities (`at`: as they were) in the order in which they were made."""
    if at is not None:
        return await store.list_entities_at(tx, graph, at, kind=kind, offset=offset, limit=limit)
    ids = await store.list_entity_ids(tx, graph, kind=kind, offset=offset, limit=limit)
    return await store.entities_by_id(tx, ids)


async def absorb(
    tx: Transaction, revision: Revision, target: NodeHead, sources: Sequence[NodeHead], *, parent_id: UUID | None
) -> tuple[int, int]:
    """Let an entity take over what others are: observations, tags, importance, age, names as aliases, and children.

    `parent_id` is what it stands under then. Answers how many observations the others had, and how many of them the
    target lacked.
    """
    ids = [source.id for source in sources]
    fields = merged_fields(target, sources, parent_id=parent_id)
    theirs = [*await store.list_observations(tx, ids), *_texts(sources, fields.content, revision.at)]
    moved = [replace(o, id=new_id(), node_id=target.id, entity=target.fields.name or "") for o in theirs]
    added = await _attach(tx, revision, moved, across_threads=True)
    await store.backdate_node(tx, target.id, min(source.created_at for source in sources))
    await rewrite(tx, revision, [Rewrite(target, fields)])
    await store.move_names(tx, revision, target.id, ids)
    await _reindex(tx, revision, [target.id])
    children = await store.find_children_of(tx, ids)
    heads = await store.read_heads(tx, revision.graph, [i for i in children if i != target.id and i not in ids])
    await rewrite(tx, revision, [Rewrite(h, replace(h.fields, parent_id=target.id)) for h in heads.values()])
    return len(theirs), len(added)


async def keep_name(tx: Transaction, revision: Revision, node_id: UUID) -> None:
    """Let a node that is about to be renamed be found by the name that it has."""
    await store.move_names(tx, revision, node_id, [node_id])


async def labels_of(
    tx: Transaction, graph: Graph, node_ids: Sequence[UUID], *, at: Moment | None = None
) -> dict[UUID, str]:
    """The names of nodes (`at`: as they were), placeholders too, by which their relations are told."""
    return await store.labels_of(tx, graph, node_ids, at)


async def find_homes(tx: Transaction, node_ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """The graph that each of these nodes lives in, whichever of the tenant's; those that live in none are left out."""
    return await store.find_homes(tx, unique(node_ids))


async def count_kinds(
    tx: Transaction, graph: Graph, *, limit: int = 1000, at: Moment | None = None
) -> list[tuple[str, int]]:
    """How many live entities of each kind a graph has (`at`: as it was), most first, ties by name."""
    return await store.count_kinds(tx, graph, limit=limit, at=at)


async def _take_away(tx: Transaction, revision: Revision, ids: Sequence[UUID]) -> dict[UUID, UUID]:
    removed = await store.remove_observations_by_id(tx, revision, ids)
    await _note_removed(tx, revision, removed)
    return removed


async def _note_removed(tx: Transaction, revision: Revision, removed: Mapping[UUID, UUID]) -> None:
    """Observations, by their nodes, leave search with this revision."""
    if removed:
        revision.touch("observations_removed", removed, observations=-len(removed))
        await passages.forget_memories(tx, revision, list(removed))
        await store.touch_nodes(tx, revision, unique(removed.values()))


async def _show_names(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Let entities be found by their names where nothing that lasts is left to find them by."""
    if node_ids:
        found = await store.names_of(tx, node_ids)
        await passages.show_names(tx, revision, [_name(known) for known in found.values()])


async def _append(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    await store.append_versions(tx, revision, [Appended(node_id) for node_id in node_ids])


async def _reindex(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Rebuild the passages of nodes whose own text or name changed: every passage is matched by its node's name too."""
    if node_ids:
        await passages.forget_nodes(tx, revision, node_ids)
        await passages.index_memories(tx, revision, await store.memories_of_nodes(tx, node_ids))
        await passages.hide_names(tx, revision, node_ids)


def _require_kinds(graph: Graph, fields: Iterable[NodeFields]) -> None:
    for place, node in enumerate(fields):
        graph.require_kind(node.kind, f"nodes.{place}.kind")


async def _require_free_names(
    tx: Transaction, revision: Revision, names: Sequence[str], *, placeholders: bool = False
) -> None:
    """Raise Conflict for a name that a node has (`placeholders`: but a placeholder may give its name away)."""
    await _release_names(tx, revision, names)
    found = await store.find_named(tx, revision.graph, names)
    taken = {name for name, node in found.items() if not (placeholders and node.placeholder)}
    for name, count in Counter(names).items():
        if name in taken or count > 1:
            raise Conflict(f"There is a node named {name!r} already.", code=ErrorCode.NAME_TAKEN)


async def _release_names(tx: Transaction, revision: Revision, names: Sequence[str]) -> None:
    """Archive expired nodes without their names: nobody sees them, and others may want to be called so."""
    expired = await store.expired_heads(tx, revision.graph, names) if names else []
    await rewrite(tx, revision, [Rewrite(h, replace(h.fields, name=None, status="archived")) for h in expired])


def _counts(fields: Iterable[NodeFields]) -> dict[str, int]:
    listed = list(fields)
    placeholders = sum(node.placeholder for node in listed)
    facts = sum(node.name is None for node in listed)
    return {"entities": len(listed) - placeholders - facts, "facts": facts, "placeholders": placeholders}


async def _attach(
    tx: Transaction, revision: Revision, observations: Iterable[Observation], *, across_threads: bool
) -> list[Observation]:
    wanted = unique_by(lambda o: (o.node_id, o.content, None if across_threads else o.thread), observations)
    added = await store.insert_observations(tx, revision, wanted, across_threads=across_threads) if wanted else []
    revision.touch("observations_added", [o.id for o in added], observations=len(added))
    known_as = await store.names_of(tx, unique(o.node_id for o in added)) if added else {}
    await passages.index_memories(tx, revision, [_memory(o, known_as.get(o.node_id)) for o in added])
    return added


def _appended(rewrite: Rewrite) -> Appended:
    return Appended(rewrite.head.id, rewrite.based_on, rewrite.beside_heads, rewrite.actor)


def _text(fields: NodeFields) -> tuple[object, ...]:
    """What a node's passages are made from."""
    return fields.name, fields.content, fields.expires_at, fields.thread, fields.said_at, fields.placeholder


def _first_observations(made: Sequence[tuple[UUID, NewEntity]], at: datetime) -> list[Observation]:
    return [
        _observation(node_id, NewObservation(entity.name, content), at)
        for node_id, entity in made
        for content in entity.observations
    ]


def _observation(node_id: UUID, new: NewObservation, at: datetime) -> Observation:
    return Observation(new_id(), node_id, new.entity, new.content, new.thread, new.said_at or at, new.expires_at)


def _upserted(entity: NewEntity, created: bool, new: set[tuple[str, str]]) -> Upserted:
    """What is new is told of the first of several that name it."""
    if created:
        return Upserted(entity.name, True, tuple(unique(entity.observations)))
    added = [content for content in unique(entity.observations) if (entity.name, content) in new]
    new.difference_update((entity.name, content) for content in added)
    return Upserted(entity.name, False, tuple(added))


def _memory(o: Observation, known: KnownAs | None) -> Memory:
    about = " ".join(name for name in (known.name, known.aliases) if name) if known else None
    return Memory(o.id, o.node_id, Source.OBSERVATION, o.content, about, o.thread, o.said_at, o.expires_at)


def _name(known: KnownAs) -> Memory:
    return Memory(known.id, known.id, Source.NAME, known.name, known.aliases, expires_at=known.expires_at)


def _texts(heads: Sequence[NodeHead], known: str | None, at: datetime) -> list[Observation]:
    """The texts that entities have of their own, but one that is known, as statements about them."""
    return [
        Observation(h.id, h.id, h.name or "", h.content, h.thread, h.said_at or at, h.expires_at)
        for h in heads
        if h.content and h.content != known
    ]


def _fact(node_id: UUID, fact: NewFact) -> Memory:
    return Memory(node_id, node_id, Source.FACT, fact.content, None, fact.thread, fact.said_at, fact.expires_at)
