"""Use cases of entities: make them with their observations, open and list them, let one take over others."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from recollect.errors import TooLarge
from recollect.graph.aliases import service as aliases
from recollect.graph.aliases.model import NamedEntity
from recollect.graph.entities import store
from recollect.graph.entities.model import Entity, NewEntity, UpsertResult, merged_fields
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, NodeHead, Rewrite, unique, unique_by
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation, Observation, count_active, own_texts
from recollect.graph.passages import service as passages
from recollect.graph.passages.model import IndexedText, Source
from recollect.ids import new_id
from recollect.platform.computing import each
from recollect.platform.transactions import Transaction


async def create_entities(
    tx: Transaction, revision: Revision, entities: Sequence[NewEntity], *, paths: Sequence[str] = ()
) -> list[tuple[UUID, NewEntity]]:
    """Make entities with their observations; names that are taken are left out. What is new, in order, with its id.

    Raises InvalidInput for a new one of a kind that the graph's whitelist leaves out; `paths`: where the caller was
    given each one's kind, `entities.0.entityType` and so on where nothing else is said.
    """
    wanted = unique_by(lambda entity: entity.name, entities)
    await nodes.release_names(tx, revision, [entity.name for entity in wanted])
    inserted = {node.name: node for node in await store.insert_entities(tx, revision, wanted)}
    made = [(inserted[entity.name].id, entity) for entity in wanted if entity.name in inserted]
    _require_kinds(revision.graph, entities, inserted, paths)
    if made:
        promoted = sum(node.promoted for node in inserted.values())
        node_ids = [node_id for node_id, _ in made]
        revision.touch("entities_added", node_ids, entities=len(made), placeholders=-promoted)
        await nodes.append_versions(tx, revision, node_ids)
        silent = [
            IndexedText(i, i, Source.NAME, entity.name, revision.actor) for i, entity in made if not entity.observations
        ]
        await passages.index_memories(tx, revision, silent)
        first, known_as = _first_observations(made, revision), None if promoted else _known_as(tx, made)
        await observations.attach(tx, revision, first, across_threads=True, known_as=known_as)
        await nodes.reindex(tx, revision, [i for i, entity in made if entity.content])
    return made


async def upsert_entities(tx: Transaction, revision: Revision, entities: Sequence[NewEntity]) -> list[UpsertResult]:
    """Make entities, or give those that exist the observations that they lack; what became of each, in order.

    An entity that exists keeps its kind, which no whitelist forbids. Raises InvalidInput for a new one's kind that the
    graph's whitelist leaves out.
    """
    made = {entity.name: entity for _, entity in await create_entities(tx, revision, entities)}
    known = [entity for entity in entities if made.get(entity.name) is not entity]
    wanted = [NewObservation(entity.name, content) for entity in known for content in entity.observations]
    added = await observations.add_observations(tx, revision, wanted) if wanted else []
    new = {(o.entity, o.content) for o in added}
    return [_upserted(entity, made.get(entity.name) is entity, new) for entity in entities]


async def open_entities(view: GraphView, names: Sequence[str]) -> list[Entity]:
    """Entities by name, each once, in the order asked for; names that none has are left out.

    Raises TooLarge where they say more than one reply may hold.
    """
    await view.tx.look_up()
    most = view.tx.reply_bytes
    found = await store.open_entities(view, unique(names), reply_bytes=most)
    if not found and names and most is not None:
        _require_readable(await store.count_bytes_of_names(view, names), most)
    return found


async def entities_by_id(view: GraphView, node_ids: Sequence[UUID]) -> list[Entity]:
    """Live entities by id, in the order asked for. Raises TooLarge where they say more than one reply may hold."""
    await view.tx.look_up()
    most = view.tx.reply_bytes
    found = await store.entities_by_id(view, node_ids, reply_bytes=most)
    if not found and node_ids and most is not None:
        _require_readable(await store.count_bytes(view, node_ids), most)
    return found


async def observations_of(view: GraphView, node_ids: Sequence[UUID]) -> dict[UUID, tuple[str, ...]]:
    """What is said of those of these nodes that are live entities, oldest first."""
    found = await store.entities_by_id(view, node_ids, reply_bytes=None)
    return {entity.id: entity.observations for entity in found}


async def list_entities(
    view: GraphView, *, kind: str | None = None, offset: int = 0, limit: int | None = None, archived: bool = True
) -> list[Entity]:
    """Entities (`archived`: those too) in the order in which they were made."""
    ids = await store.list_entity_ids(view, kind=kind, offset=offset, limit=limit, archived=archived)
    return await entities_by_id(view, ids)


def _require_readable(bytes_: int, most: int) -> None:
    """Raise TooLarge for entities that say more than one reply may hold: the reason why none of them was read."""
    if bytes_ > most:
        raise TooLarge(f"What these entities say takes more bytes than one reply may ({most}). Ask for less: limit")


async def count_kinds(view: GraphView, *, limit: int = 1000) -> list[tuple[str, int]]:
    """How many live entities of each kind a graph has, most first, ties by name."""
    return await store.count_kinds(view, limit=limit)


async def merge_fields(
    tx: Transaction, revision: Revision, target: NodeHead, sources: Sequence[NodeHead], *, parent_id: UUID | None
) -> tuple[int, int]:
    """Let an entity take over what others are: observations, tags, importance, age, names as aliases, and children.

    `parent_id` is what the entity stands under then. Answers how many active observations the others had, and how many
    of them the target lacked.
    """
    ids = [source.id for source in sources]
    fields = merged_fields(target, sources, parent_id=parent_id)
    counts = await _merge_observations(tx, revision, target, sources, fields)
    await store.backdate_node(tx, target.id, min(source.created_at for source in sources))
    await nodes.rewrite(tx, revision, [Rewrite(target, fields)])
    await aliases.inherit_names(tx, revision, target.id, ids)
    await nodes.reindex(tx, revision, [target.id])
    children = await store.find_children_of(tx, ids)
    heads = await nodes.read_heads(tx, revision.graph, [i for i in children if i != target.id and i not in ids])
    await nodes.rewrite(tx, revision, [Rewrite(h, replace(h.fields, parent_id=target.id)) for h in heads.values()])
    return counts


async def _merge_observations(
    tx: Transaction, revision: Revision, target: NodeHead, sources: Sequence[NodeHead], fields: NodeFields
) -> tuple[int, int]:
    """Attach to an entity, which gets these fields, what others say; the counts that `merge_fields` answers.

    What any of them said ends when it would have, and gains what others say beside the same text. What an outdated or
    archived one said is outdated, where the entity has another status then.
    """
    lapsed = {head.id: head.reason for head in (target, *sources) if head.status not in ("active", fields.status)}
    said = [
        *await observations.list_observations(tx, [source.id for source in sources]),
        *own_texts(sources, fields.content, revision.at),
    ]
    theirs = await each(said, lambda o: _still(o, lapsed))
    own = await each(await _take_what_changes(tx, revision, target, fields, lapsed), lambda o: _still(o, lapsed))
    ends = {head.id: head.expires_at for head in (target, *sources)}

    def moved_to_target(o: Observation) -> Observation:
        return replace(
            o,
            id=new_id(),
            first_revision=None,
            node_id=target.id,
            entity=target.fields.name or "",
            expires_at=min((end for end in (o.expires_at, ends[o.node_id]) if end is not None), default=None),
        )

    moved = await each([*own, *theirs], moved_to_target)
    # What several of them say lasts as long as it does by any: the first of them is attached.
    moved.sort(key=lambda o: (o.expires_at is None, o.expires_at or revision.at), reverse=True)
    added = await observations.attach(tx, revision, moved, across_threads=True)
    new = {o.id for o in added}
    await observations.enrich(tx, revision, [o for o in moved if o.id not in new])
    known = {o.content for o in own if o.is_active}
    return count_active(theirs), sum(o.is_active and o.content not in known for o in added)


async def mark_compared(tx: Transaction, revision: Revision, node_ids: Sequence[UUID], at: datetime) -> None:
    """Note on entities up to when they were compared with all others; under the graph's lock, but no change of it."""
    if node_ids:
        await store.mark_compared(tx, revision.graph, node_ids, at)


async def _take_what_changes(
    tx: Transaction, revision: Revision, target: NodeHead, fields: NodeFields, lapsed: Mapping[UUID, str | None]
) -> list[Observation]:
    """What an entity said that ends with it, taken from it where it will outlast itself, and the text that it loses.

    What else it said is outdated from then on where the entity is among the `lapsed`.
    """
    end = None if target.expires_at == fields.expires_at else target.expires_at
    if end is None and target.id not in lapsed:
        return []
    said = await observations.list_observations(tx, [target.id])
    ending = [o for o in said if end is not None and (o.expires_at is None or o.expires_at > end)]
    gone = set(await observations.remove_observations_by_id(tx, revision, [o.id for o in ending]))
    left = [o for o in said if o.id not in gone]
    await observations.rewrite(tx, revision, left, await each(left, lambda o: _still(o, lapsed)))
    return [*ending, *own_texts([target], fields.content, revision.at)]


def _still(o: Observation, lapsed: Mapping[UUID, str | None]) -> Observation:
    """What is said of an entity: outdated where this one is among the `lapsed`, for its reason."""
    return o.as_outdated(lapsed[o.node_id]) if o.node_id in lapsed else o


def _require_kinds(graph: Graph, entities: Sequence[NewEntity], new: Container[str], paths: Sequence[str]) -> None:
    seen: set[str] = set()
    for place, entity in enumerate(entities):
        if entity.name in new and entity.name not in seen:
            graph.require_kind(entity.kind, paths[place] if paths else f"entities.{place}.entityType")
        seen.add(entity.name)


def _first_observations(made: Sequence[tuple[UUID, NewEntity]], revision: Revision) -> list[Observation]:
    return [
        NewObservation(entity.name, content).on(node_id, revision)
        for node_id, entity in made
        for content in entity.observations
    ]


def _known_as(tx: Transaction, made: Sequence[tuple[UUID, NewEntity]]) -> dict[UUID, NamedEntity]:
    """How entities are known that are all new, so that none has another name."""
    return {i: NamedEntity(i, entity.name, tx.caller.subject, expires_at=None, aliases=None) for i, entity in made}


def _upserted(entity: NewEntity, created: bool, new: set[tuple[str, str]]) -> UpsertResult:
    """What is new is told of the first of several that name it."""
    if created:
        return UpsertResult(entity.name, True, tuple(unique(entity.observations)))
    added = [content for content in unique(entity.observations) if (entity.name, content) in new]
    new.difference_update((entity.name, content) for content in added)
    return UpsertResult(entity.name, False, tuple(added))
