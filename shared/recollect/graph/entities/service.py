"""Use cases of entities: create them with their observations, open and list them, merge some into another."""

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from itertools import islice
from uuid import UUID

from recollect.fairness.computing import collect_yielding, sized_batches
from recollect.graph.aliases import service as aliases
from recollect.graph.aliases.model import NamedEntity
from recollect.graph.entities import store
from recollect.graph.entities.model import (
    Entity,
    ListedObservations,
    NewEntity,
    SimilarName,
    UpsertResult,
    fair_share,
    merged_fields,
    newest_within,
)
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.json_values import encoded_sizes
from recollect.graph.nodes import indexing
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, NodeHead, Rewrite, name_key, unique, unique_by
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import (
    MeasuredObservation,
    NewObservation,
    Observation,
    count_active,
    own_texts,
)
from recollect.graph.passages import service as passages
from recollect.graph.passages.model import IndexedText, Source
from recollect.ids import new_id
from recollect.postgres.transactions import Transaction

OBSERVATIONS_SHARE = Fraction(3, 4)
"""The part of a reply that observations may fill: names, texts, metadata and relations need the rest."""
ESCAPED = 6
"""The most bytes of a character in JSON: one that is escaped."""
READ_NONE = -1
"""The bound on bytes with which a query reads entities without observations."""
MAX_READ_BYTES = 100_000_000
"""Bytes of observations that are read for a write, which has no bound, after newer ones."""
MAX_SIMILAR_NAMES = 3
"""The maximum number of entities with a similar name that are reported for a new one."""


async def create_entities(
    tx: Transaction,
    revision: Revision,
    entities: Sequence[NewEntity],
    *,
    paths: Sequence[str] = (),
    bring_back: bool = True,
) -> list[tuple[UUID, NewEntity]]:
    """Create entities with their observations, unless their names are taken; return the new ones with ids, in order.

    A name is also taken if an entity, or an earlier one of the call, has another form of it (`name_key`).

    `bring_back`: an outdated or archived entity counts as new: it gets these fields, under its id, and its former
    observations become outdated. Raises InvalidInput for a new entity of a kind that is not on the graph's whitelist;
    `paths`: for each entity, the argument that holds its kind (default: `entities.0.entityType` and so on).
    """
    distinct = unique_by(lambda entity: name_key(entity.name), entities)
    await nodes.release_names(tx, revision, [entity.name for entity in distinct])
    inserted = await store.insert_entities(tx, revision, distinct)
    made = [(inserted[entity.name].id, entity) for entity in distinct if entity.name in inserted]
    taken = [entity.name for entity in distinct if entity.name not in inserted]
    hidden = await nodes.hidden_heads(tx, revision.graph, taken) if bring_back else {}
    _require_kinds(revision.graph, entities, {*inserted, *hidden}, paths)
    if made:
        promoted = sum(node.promoted for node in inserted.values())
        node_ids = [node_id for node_id, _ in made]
        revision.touch("entities_added", node_ids, entities=len(made), placeholders=-promoted)
        await nodes.append_versions(tx, revision, node_ids)
        # Only entities without observations are indexed by name: the others are found by their observations.
        names = [
            IndexedText(i, i, Source.NAME, inserted[entity.name].name, revision.actor)
            for i, entity in made
            if not entity.observations
        ]
        await passages.index_memories(tx, revision, names)
        first, known_as = _first_observations(made, revision), None if promoted else _known_as(tx, made)
        await observations.attach(tx, revision, first, across_threads=True, known_as=known_as)
        await indexing.reindex(tx, revision, [i for i, entity in made if entity.content])
    if not hidden:
        return made
    ids = {name: head.id for name, head in hidden.items()} | {entity.name: i for i, entity in made}
    await _bring_back(tx, revision, hidden, [entity for entity in distinct if entity.name in hidden])
    return [(ids[entity.name], entity) for entity in distinct if entity.name in ids]


async def _bring_back(
    tx: Transaction, revision: Revision, hidden: Mapping[str, NodeHead], entities: Sequence[NewEntity]
) -> None:
    """Give outdated and archived entities, by name, the fields and observations of new ones of these names."""
    fields = {hidden[entity.name].id: _renewed(hidden[entity.name], entity) for entity in entities}
    await observations.bring_back(tx, revision, list(fields), fields=fields)
    new_observations = (NewObservation(entity.name, content) for entity in entities for content in entity.observations)
    await observations.add_observations(tx, revision, new_observations)


def _renewed(head: NodeHead, entity: NewEntity) -> NodeFields:
    """The fields of an entity that is created again: those of the call, and its former parent."""
    return NodeFields(
        name=head.name,
        kind=entity.kind,
        content=entity.content,
        tags=entity.tags,
        importance=entity.importance,
        metadata=entity.metadata,
        parent_id=head.parent_id,
        source=entity.source,
    )


async def upsert_entities(tx: Transaction, revision: Revision, entities: Sequence[NewEntity]) -> list[UpsertResult]:
    """Create entities, or give those that exist the observations that they lack; return the outcomes in order.

    An entity that exists keeps its kind, regardless of the whitelist. An outdated or archived one becomes active, and
    its former observations outdated. Raises InvalidInput for a new entity of a kind that is not on the graph's
    whitelist.
    """
    created = await create_entities(tx, revision, entities, bring_back=False)
    made = {entity.name: entity for _, entity in created}
    ids = {entity.name: node_id for node_id, entity in created}
    known = [entity for entity in entities if made.get(entity.name) is not entity]
    without_observations = [entity.name for entity in known if not entity.observations]
    hidden = await nodes.hidden_heads(tx, revision.graph, without_observations)
    await observations.bring_back(tx, revision, [head.id for head in hidden.values()])
    to_add = (NewObservation(entity.name, content) for entity in known for content in entity.observations)
    is_more = any(entity.observations for entity in known)
    added = await observations.add_observations(tx, revision, to_add) if is_more else []
    new = {(o.entity, o.content) for o in added}
    return [
        _upsert_result(entity, ids[entity.name] if made.get(entity.name) is entity else None, new)
        for entity in entities
    ]


async def find_similar_names(
    tx: Transaction, graph: Graph, created: Sequence[tuple[UUID, str]]
) -> dict[UUID, list[SimilarName]]:
    """Entities whose names look like those of new ones (id and name); up to MAX_SIMILAR_NAMES for each, by its id.

    They may be meant, or others: a name in another case (`May`, `may`) may be another thing.
    """
    return await store.find_similar_names(tx, graph, created, limit=MAX_SIMILAR_NAMES) if created else {}


async def open_entities(view: GraphView, names: Sequence[str], *, skipped: int = 0) -> list[Entity]:
    """Entities by name, each once, in the order of `names`; names that no entity has are left out.

    Where their observations are larger than a reply may hold, the newest of each come; `skipped`: how many newer ones
    of each entity have been read before.
    """
    max_bytes = _max_bytes(view, skipped)
    found, are_whole = await store.open_entities(view, unique(names), max_bytes=max_bytes)
    return await _within_reply(view, unique_by(lambda entity: entity.id, found), are_whole=are_whole, skipped=skipped)


async def entities_by_id(view: GraphView, node_ids: Sequence[UUID], *, repeats: int = 1) -> list[Entity]:
    """Live entities in the order of `node_ids`, with their newest observations where all exceed a reply.

    `repeats`: how many times the reply says each observation.
    """
    found, are_whole = await store.entities_by_id(view, node_ids, max_bytes=_max_bytes(view, repeats=repeats))
    return await _within_reply(view, found, are_whole=are_whole, repeats=repeats)


async def observations_of(
    view: GraphView, node_ids: Sequence[UUID], *, skipped: int = 0
) -> dict[UUID, ListedObservations]:
    """The texts of the active observations of these nodes, by node; only live entities have an entry.

    `skipped`: as for `open_entities`.
    """
    found, are_whole = await store.entities_by_id(view, node_ids, max_bytes=_max_bytes(view, skipped))
    fitting = await _within_reply(view, found, are_whole=are_whole, skipped=skipped)
    return {entity.id: ListedObservations(entity.observations, entity.omitted) for entity in fitting}


async def list_entities(
    view: GraphView, *, kind: str | None = None, offset: int = 0, limit: int | None = None, archived: bool = True
) -> list[Entity]:
    """Entities in order of creation (`archived`: archived ones, too)."""
    ids = await store.list_entity_ids(view, kind=kind, offset=offset, limit=limit, archived=archived)
    return await entities_by_id(view, ids)


def _max_bytes(view: GraphView, skipped: int = 0, *, repeats: int = 1) -> int | None:
    """The bytes of observations that may be read at first: none where some are skipped; None is no bound."""
    return READ_NONE if skipped else _available(view, repeats)


def _available(view: GraphView, repeats: int = 1) -> int | None:
    """How many bytes of a reply its observations may take; None is no bound."""
    return None if view.tx.reply_bytes is None else int(view.tx.reply_bytes * OBSERVATIONS_SHARE) // repeats


async def _within_reply(
    view: GraphView, found: list[Entity], *, are_whole: bool, skipped: int = 0, repeats: int = 1
) -> list[Entity]:
    """The entities, of whose observations only the newest remain where all of them do not fit the reply.

    The largest entities are cut to the same size, and the others stay whole.
    """
    available = _available(view, repeats)
    if not are_whole:
        found = await _with_newest(view, found, skipped, available or MAX_READ_BYTES)
    if available is None or ESCAPED * sum(len(o) + 3 for entity in found for o in entity.observations) <= available:
        return found
    texts = [o for entity in found for o in entity.observations]
    sizes = iter(await encoded_sizes(texts))
    sizes_by_entity = [[size + 1 for size in islice(sizes, len(entity.observations))] for entity in found]
    share = fair_share(map(sum, sizes_by_entity), available)
    return [newest_within(entity, sizes, share) for entity, sizes in zip(found, sizes_by_entity, strict=True)]


async def _with_newest(view: GraphView, found: Sequence[Entity], skipped: int, available: int) -> list[Entity]:
    """Entities that were read without observations, with the newest of each, as far as all of them fit."""
    ids = [entity.id for entity in found]
    sizes = await store.measure_observations(view, ids)
    share = fair_share((size.bytes for size in sizes.values()), available)
    newest = await store.newest_observations(view, ids, skipped=skipped, max_bytes=share)
    omitted = {i: max(size.count - skipped - len(newest[i]), 0) for i, size in sizes.items()}
    return [replace(entity, observations=newest[entity.id], omitted=omitted[entity.id]) for entity in found]


async def count_kinds(view: GraphView, *, limit: int = 1000) -> list[tuple[str, int]]:
    """How many live entities of each kind a graph has, most frequent first, ties by name."""
    return await store.count_kinds(view, limit=limit)


async def merge_fields(
    tx: Transaction, revision: Revision, target: NodeHead, sources: Sequence[NodeHead], *, parent_id: UUID | None
) -> tuple[int, int]:
    """Merge entities into the target: observations, tags, importance, age, names (as aliases), and children.

    `parent_id`: the target's parent afterwards. Returns how many active observations the sources had, and how many of
    them the target lacked.
    """
    ids = [source.id for source in sources]
    fields = merged_fields(target, sources, parent_id=parent_id)
    counts = await _merge_observations(tx, revision, target, sources, fields)
    await store.backdate_node(tx, target.id, min(source.created_at for source in sources))
    await nodes.rewrite(tx, revision, [Rewrite(target, fields)])
    await aliases.inherit_names(tx, revision, target.id, ids)
    await indexing.reindex(tx, revision, [target.id])
    children = [child for child in await children_of(tx, ids) if child not in (target.id, *ids)]
    for page in await nodes.pages_of(tx, revision.graph, children):
        heads = await nodes.read_heads(tx, revision.graph, page)
        await nodes.rewrite(tx, revision, [Rewrite(h, replace(h.fields, parent_id=target.id)) for h in heads.values()])
    return counts


async def children_of(tx: Transaction, node_ids: Sequence[UUID], *, limit: int | None = None) -> list[UUID]:
    """The ids of live nodes whose parent is one of these."""
    return await store.find_children_of(tx, node_ids, limit=limit)


async def _merge_observations(
    tx: Transaction, revision: Revision, target: NodeHead, sources: Sequence[NodeHead], fields: NodeFields
) -> tuple[int, int]:
    """Move the sources' observations to the target, which gets these fields; return the counts of `merge_fields`.

    Each observation expires when it would have, at the latest with its old entity, and gains the attributes of others
    with the same text. Those of an outdated or archived entity become outdated, where the target has another status
    afterwards.
    """
    hidden = {head.id: head.reason for head in (target, *sources) if head.status not in ("active", fields.status)}
    ends = {head.id: head.expires_at for head in (target, *sources)}
    stored = await observations.measure_of_nodes(tx, [source.id for source in sources])
    texts = [_outdated_if_hidden(o, hidden) for o in own_texts(sources, fields.content, revision.at)]
    own = await _detach_changing(tx, revision, target, fields, hidden)

    def end_of(o: Observation | MeasuredObservation) -> datetime | None:
        return min((end for end in (o.expires_at, ends[o.node_id]) if end is not None), default=None)

    def moved_to_target(o: Observation) -> Observation:
        name = target.fields.name or ""
        moved = _outdated_if_hidden(o, hidden)
        return replace(moved, id=new_id(), first_revision=None, node_id=target.id, entity=name, expires_at=end_of(o))

    # Of several with the same text, the first is attached: the one that lasts longest comes first.
    given: list[Observation | MeasuredObservation] = [*own, *stored, *texts]
    lasting = await collect_yielding(end.timestamp() if (end := end_of(o)) else math.inf for o in given)
    moving = [given[index] for index in sorted(range(len(given)), key=lasting.__getitem__, reverse=True)]
    known, added = {o.content for o in own if o.is_active and target.id not in hidden}, 0
    for page in sized_batches(moving, _size, max_items=observations.PAGE_OBSERVATIONS, max_size=nodes.PAGE_BYTES):
        moved = await collect_yielding(map(moved_to_target, await _read(tx, revision, page)))
        new = await observations.attach(tx, revision, moved, across_threads=True)
        new_ids = {o.id for o in new}
        await observations.enrich(tx, revision, [o for o in moved if o.id not in new_ids])
        added += sum(o.is_active and o.content not in known for o in new)
    active = sum(o.status == "active" and o.node_id not in hidden for o in stored)
    return active + count_active(texts), added


def _size(o: Observation | MeasuredObservation) -> int:
    """The bytes that it takes to read an observation: none where that was done."""
    return o.bytes if isinstance(o, MeasuredObservation) else 0


async def _read(
    tx: Transaction, revision: Revision, page: Sequence[Observation | MeasuredObservation]
) -> list[Observation]:
    """The observations of a page in order, those that are stored as they are."""
    stored = await observations.observations_by_id(
        tx, revision.graph, [o.id for o in page if isinstance(o, MeasuredObservation)]
    )
    found = (stored.get(o.id) if isinstance(o, MeasuredObservation) else o for o in page)
    return [o for o in found if o is not None]


async def mark_compared(tx: Transaction, revision: Revision, node_ids: Sequence[UUID], at: datetime) -> None:
    """Record up to when entities were compared with all others, under the graph's lock; this is no change of it."""
    if node_ids:
        await store.mark_compared(tx, revision.graph, node_ids, at)


async def _detach_changing(
    tx: Transaction, revision: Revision, target: NodeHead, fields: NodeFields, hidden: Mapping[UUID, str | None]
) -> list[Observation]:
    """The target's observations that must be attached anew with an earlier expiry, and the text that it loses.

    Where the merge lets the target expire later, observations that would have expired with it are removed, to be
    attached with its old expiry. The others become outdated where the target is among the `hidden`.
    """
    end = None if target.expires_at == fields.expires_at else target.expires_at
    if end is None and target.id not in hidden:
        return []
    current = await observations.list_observations(tx, [target.id])
    ending = [o for o in current if end is not None and (o.expires_at is None or o.expires_at > end)]
    removed = set(await observations.remove_observations_by_id(tx, revision, [o.id for o in ending]))
    left = [o for o in current if o.id not in removed]
    await observations.rewrite(tx, revision, left, (_outdated_if_hidden(o, hidden) for o in left))
    return [*ending, *own_texts([target], fields.content, revision.at)]


def _outdated_if_hidden(o: Observation, hidden: Mapping[UUID, str | None]) -> Observation:
    """The observation, outdated where its entity is among the `hidden`, for that entity's reason."""
    return o.as_outdated(hidden[o.node_id]) if o.node_id in hidden else o


def _require_kinds(graph: Graph, entities: Sequence[NewEntity], new: Container[str], paths: Sequence[str]) -> None:
    seen: set[str] = set()
    for index, entity in enumerate(entities):
        if entity.name in new and entity.name not in seen:
            graph.require_kind(entity.kind, paths[index] if paths else f"entities.{index}.entityType")
        seen.add(entity.name)


def _first_observations(made: Sequence[tuple[UUID, NewEntity]], revision: Revision) -> Iterator[Observation]:
    return (
        NewObservation(entity.name, content).attach_to(node_id, revision)
        for node_id, entity in made
        for content in entity.observations
    )


def _known_as(tx: Transaction, made: Sequence[tuple[UUID, NewEntity]]) -> dict[UUID, NamedEntity]:
    """The names of new entities, by id; new entities have no aliases."""
    return {i: NamedEntity(i, entity.name, tx.caller.subject, expires_at=None, aliases=None) for i, entity in made}


def _upsert_result(entity: NewEntity, created: UUID | None, new: set[tuple[str, str]]) -> UpsertResult:
    """The outcome for one entity. A new observation that several items name counts for the first of them."""
    if created is not None:
        return UpsertResult(entity.name, True, tuple(unique(entity.observations)), created)
    added = [content for content in unique(entity.observations) if (entity.name, content) in new]
    new.difference_update((entity.name, content) for content in added)
    return UpsertResult(entity.name, False, tuple(added))
