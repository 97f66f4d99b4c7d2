"""Import entities: create them, or change those that are there as the strategy says."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from recollect.graph.aliases import service as aliases
from recollect.graph.graphs.model import Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.hierarchy import service as hierarchy
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, NodeHead, NodeRef, Rewrite, unique
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation, Observation
from recollect.platform.computing import map_yielding
from recollect.platform.transactions import Transaction
from recollect.transfer.expired import hangs_on_expired
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.merged_records import (
    MergedRecord,
    enriched,
    fields_of,
    merge_entity_records,
    name_taken,
    observation_records,
)
from recollect.transfer.model import CYCLE, ImportProblem, ImportResult, Strategy
from recollect.transfer.records import ACTIVE, EntityRecord, Placement

NO_SUCH_PARENT = "no entity has this name"


@dataclass(frozen=True, slots=True)
class _ExistingEntity:
    """An entity that is there, its record in the file, and the fields that it gets."""

    head: NodeHead
    record: EntityRecord
    fields: NodeFields


async def import_entities(
    tx: Transaction, revision: Revision, items: Sequence[ParsedRecord], strategy: Strategy
) -> tuple[ImportResult, set[str]]:
    """Write the entities among some items; return the counts, and the names of entities that were left unchanged.

    Raises Conflict under FAIL for a name that an entity has, or that comes twice.
    """
    wanted = merge_entity_records(items, strategy)
    parents = [w.record.parent_id for w in wanted.values() if w.record.parent_id]
    found = await nodes.find_named(GraphView(tx, revision.graph), unique([*wanted, *parents]))
    there = {name for name in wanted if name in found and not found[name].placeholder}
    if strategy is Strategy.FAIL and there:
        name = next(name for name in wanted if name in there)
        raise name_taken(name, wanted[name].where)
    fresh = {name: w.record for name, w in wanted.items() if name not in there}
    known = await _known(tx, revision, {name: wanted[name].record for name in there}, found, strategy)
    ids = await _create(tx, revision, fresh, found) | {name: one.head.id for name, one in known.items()}
    changed = await _rewrite(tx, revision, ids, fresh, known, strategy)
    touched, added = await _observe(tx, revision, fresh, known, strategy)
    placed, problems = await _place(tx, revision, wanted, ids, found, known, strategy)
    updated = changed | touched | placed
    left = there if strategy in (Strategy.SKIP, Strategy.FAIL) else set()
    return _counted(wanted, set(fresh), updated, added, problems), left


async def import_placements(
    tx: Transaction, revision: Revision, items: Sequence[ParsedRecord], strategy: Strategy, *, left: set[str]
) -> ImportResult:
    """Put entities under their parents, except those in `left`. Only REPLACE takes an entity from another parent.

    What has expired since has no place.
    """
    links = [(i.where, i.record) for i in items if isinstance(i.record, Placement) and i.record.name not in left]
    expired = {i.where for i in items if hangs_on_expired(i.until, revision.at)}
    found = await nodes.find_named(
        GraphView(tx, revision.graph), unique(n for _, p in links for n in (p.name, p.parent_id))
    )
    ids = {name: node.id for name, node in found.items() if not node.placeholder}
    lost = [where for where, p in links if not {p.name, p.parent_id} <= ids.keys() and where not in expired]
    problems = [ImportProblem(where, NO_SUCH_PARENT) for where in lost]
    parents = {ids[p.name]: ids[p.parent_id] for _, p in links if {p.name, p.parent_id} <= ids.keys()}
    heads = await nodes.read_heads(tx, revision.graph, list(parents))
    moving = {
        i: parent
        for i, parent in parents.items()
        if i in heads and (strategy is Strategy.REPLACE or heads[i].fields.parent_id is None)
    }
    moved = await hierarchy.set_parents(tx, revision, moving)
    refused = {i for i in moving if i not in moved and heads[i].fields.parent_id != moving[i]}
    problems += [ImportProblem(where, CYCLE) for where, p in links if ids.get(p.name) in refused]
    return ImportResult(problems=tuple(problems))


async def _known(
    tx: Transaction,
    revision: Revision,
    records: Mapping[str, EntityRecord],
    found: Mapping[str, NodeRef],
    strategy: Strategy,
) -> dict[str, _ExistingEntity]:
    """The entities that are there and that the strategy changes."""
    if strategy in (Strategy.SKIP, Strategy.FAIL) or not records:
        return {}
    heads = await nodes.read_heads(tx, revision.graph, [found[name].id for name in records])
    known = {}
    for name, record in records.items():
        head = heads.get(found[name].id)
        if head is None:  # It has just expired.
            continue
        fields = fields_of(record, head.fields.parent_id)
        if strategy is Strategy.MERGE:
            fields = enriched(head.fields, fields)
        known[name] = _ExistingEntity(head, record, replace(fields, last_dedup_at=head.fields.last_dedup_at))
    return known


async def _create(
    tx: Transaction, revision: Revision, fresh: Mapping[str, EntityRecord], found: Mapping[str, NodeRef]
) -> dict[str, UUID]:
    """Create entities, under parents that are there already; return their ids by name."""
    parents = {name: node.id for name, node in found.items() if not node.placeholder}
    wanted = [fields_of(record, parents.get(record.parent_id or "")) for record in fresh.values()]
    began = [record.created_at for record in fresh.values()]
    observed = {name for name, record in fresh.items() if _lasts(record)}
    ids = await nodes.create_nodes(tx, revision, wanted, began=began, names_with_observations=observed)
    return dict(zip(fresh, ids, strict=True))


def _lasts(record: EntityRecord) -> bool:
    """Whether something of what a record tells of its entity is sure to last."""
    said = observation_records(record)
    return any(one.status == ACTIVE for one in said) and all(one.expires_at is None for one in said)


async def _rewrite(
    tx: Transaction,
    revision: Revision,
    ids: Mapping[str, UUID],
    fresh: Mapping[str, EntityRecord],
    known: Mapping[str, _ExistingEntity],
    strategy: Strategy,
) -> set[str]:
    """Give entities their fields and aliases; return the names of those existing ones that changed."""
    records = {**fresh, **{name: one.record for name, one in known.items()}}
    others = {ids[name]: [a for a in record.aliases if a != name] for name, record in records.items()}
    bare = [one.head.id for one in known.values()] if strategy is Strategy.REPLACE else []
    renamed: set[UUID] = set()
    if bare or any(others.values()):
        renamed = await aliases.alias(tx, revision, others, replaced=bare)
    changed = {
        n: one for n, one in known.items() if not one.fields.is_same_as(one.head.fields) or one.head.id in renamed
    }
    await nodes.rewrite(tx, revision, [Rewrite(one.head, one.fields) for one in changed.values()])
    return set(changed)


async def _observe(
    tx: Transaction,
    revision: Revision,
    fresh: Mapping[str, EntityRecord],
    known: Mapping[str, _ExistingEntity],
    strategy: Strategy,
) -> tuple[set[str], list[Observation]]:
    """Add observations and, under REPLACE, remove others; return the names of changed entities, and what is new."""
    changed = await _rewrite_observations(tx, revision, known, strategy)
    removed = await _remove_observations(tx, revision, known) if strategy is Strategy.REPLACE else set()
    records = [*fresh.values(), *(one.record for one in known.values())]
    added: list[Observation] = []
    for told in (True, False):  # A file without threads has an observation once, whatever thread it is from.
        of_records = await map_yielding(
            [r for r in records if bool(r.said) is told], lambda record: list(_statements(record))
        )
        new = [said for statements in of_records for said in statements]
        if new:
            added += await observations.add_observations(
                tx,
                revision,
                new,
                across_threads=not told,
                revive=False,  # The strategy says which status each gets.
            )
    return changed | removed | {observation.entity for observation in added}, added


async def _rewrite_observations(
    tx: Transaction, revision: Revision, known: Mapping[str, _ExistingEntity], strategy: Strategy
) -> set[str]:
    """Give existing observations the attributes that the file says; return the names of their entities.

    Under REPLACE they get exactly these; else they gain those that they lack. A file without `said` changes nothing.
    """
    told = {
        (one.head.id, s.content, s.thread, s.status): s
        for one in known.values()
        if one.record.said
        for s in _statements(one.record)
    }
    stored = await observations.list_observations(tx, [one.head.id for one in known.values()]) if told else []
    before = [o for o in stored if (*o.key, o.status) in told]
    after = [_rewritten(o, told[*o.key, o.status], strategy) for o in before]
    await observations.rewrite(tx, revision, before, after)
    return {new.entity for old, new in zip(before, after, strict=True) if not new.is_same_as(old)}


def _rewritten(observation: Observation, told: NewObservation, strategy: Strategy) -> Observation:
    if strategy is not Strategy.REPLACE:
        return observation.with_attributes(observation.enriched(told))
    return replace(observation.with_attributes(told), reason=told.reason)


async def _remove_observations(tx: Transaction, revision: Revision, known: Mapping[str, _ExistingEntity]) -> set[str]:
    """Remove the observations of existing entities that the file does not have; return the names of the entities."""
    kept = {one.head.id: _observation_key(one.record) for one in known.values()}
    stored = await observations.list_observations(tx, list(kept))
    gone = [observation for observation in stored if kept[observation.node_id].isdisjoint(_forms(observation))]
    if gone:
        await observations.remove_observations_by_id(tx, revision, [observation.id for observation in gone])
    return {observation.entity for observation in gone}


def _observation_key(record: EntityRecord) -> set[tuple[Any, ...]]:
    """The keys of the observations of a record: text, and thread, status and times where the file tells them."""
    if not record.said:
        return {(content,) for content in record.observations}
    said = zip(record.observations, record.said, strict=True)
    return {(content, one.thread, one.status, one.at, one.expires_at) for content, one in said}


def _forms(observation: Observation) -> Iterable[tuple[Any, ...]]:
    """The keys (`_observation_key`) that a file may have for an observation: its text, or all but or with its time."""
    said = observation.content, observation.thread, observation.status
    expires_at = observation.expires_at
    return ((observation.content,), (*said, None, expires_at), (*said, observation.said_at, expires_at))


def _statements(record: EntityRecord) -> Iterable[NewObservation]:
    for content, said in zip(record.observations, observation_records(record), strict=True):
        yield NewObservation(
            record.name,
            content,
            said.thread,
            said.at,
            said.expires_at,
            said.status,
            said.reason,
            kind=said.kind,
            tags=tuple(said.tags),
            importance=said.importance,
            source=said.source,
            metadata=said.metadata,
        )


async def _place(
    tx: Transaction,
    revision: Revision,
    wanted: Mapping[str, MergedRecord],
    ids: Mapping[str, UUID],
    found: Mapping[str, NodeRef],
    known: Mapping[str, _ExistingEntity],
    strategy: Strategy,
) -> tuple[set[str], list[ImportProblem]]:
    """Put entities under their parents; return the names of existing ones that moved, and the problems."""
    live = {name: node.id for name, node in found.items() if not node.placeholder} | dict(ids)
    links: dict[UUID, UUID | None] = {}
    problems = []
    for name, node_id in ids.items():
        parent, head = wanted[name].record.parent_id, known[name].head if name in known else None
        if parent and parent not in live:
            if not hangs_on_expired(wanted[name].until, revision.at):
                problems.append(ImportProblem(f"{wanted[name].where}.parentId", NO_SUCH_PARENT))
        elif head is None and parent and (parent not in found or found[parent].placeholder):
            links[node_id] = live[parent]
        elif head and (strategy is Strategy.REPLACE or (parent and head.fields.parent_id is None)):
            links[node_id] = live[parent] if parent else None
    moved = await hierarchy.set_parents(tx, revision, links) if links else set()
    names = {node_id: name for name, node_id in ids.items()}
    for node_id in links.keys() - moved:
        before = known[names[node_id]].head.fields.parent_id if names[node_id] in known else None
        if before != links[node_id]:
            problems.append(ImportProblem(f"{wanted[names[node_id]].where}.parentId", CYCLE))
    return {names[node_id] for node_id in moved if names[node_id] in known}, problems


def _counted(
    wanted: Mapping[str, MergedRecord],
    fresh: set[str],
    updated: set[str],
    added: list[Observation],
    problems: list[ImportProblem],
) -> ImportResult:
    """Count what happened to each record. A later record of a name counts as a change if it added an observation."""
    brought = {(observation.entity, observation.content) for observation in added}
    created, changed, skipped = len(fresh), 0, 0
    for name, one in wanted.items():
        for place, record in enumerate(one.given):
            new = {(name, content) for content in record.observations} & brought
            brought -= new
            if place == 0 and name in fresh:
                continue
            if new or (place == 0 and name in updated):
                changed += 1
            else:
                skipped += 1
    return ImportResult(created, changed, skipped, len(added), problems=tuple(problems))
