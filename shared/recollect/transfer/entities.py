"""Import entities: create them, or change existing ones as the strategy says."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from recollect.fairness.computing import batches
from recollect.graph.aliases import service as aliases
from recollect.graph.graphs.model import Revision
from recollect.graph.hierarchy import service as hierarchy
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, NodeHead, NodeRef, Rewrite, unique
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation, Observation, ObservationOutline
from recollect.graph.observations.service import MAX_BROUGHT_BACK
from recollect.postgres.transactions import Transaction
from recollect.times import offset_minutes
from recollect.transfer import store
from recollect.transfer.expired import refers_to_expired
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.merged_records import (
    MergedRecord,
    enriched,
    fields_of,
    merge_entity_records,
    name_taken,
    observation_records,
)
from recollect.transfer.model import CYCLE, NO_SUCH_PARENT, ImportProblem, ImportResult, Strategy
from recollect.transfer.records import ACTIVE, EntityRecord


@dataclass(frozen=True, slots=True)
class _ExistingEntity:
    """An existing entity, its record in the file, and the fields that it gets."""

    head: NodeHead
    record: EntityRecord
    fields: NodeFields

    def comes_back(self, strategy: Strategy) -> bool:
        """Whether it was hidden, and the file says that it holds, so that what was known of it is outdated.

        REPLACE removes that instead.
        """
        return strategy is not Strategy.REPLACE and is_brought_back(self.head, self.record)


@dataclass(frozen=True, slots=True)
class _Page:
    """Entities that are written together: the records of new ones by name, existing ones, and the ids of all names."""

    fresh: Mapping[str, EntityRecord]
    known: Mapping[str, _ExistingEntity]
    live: Mapping[str, UUID]

    @property
    def ids(self) -> dict[str, UUID]:
        """The ids of its entities, by name."""
        return {name: self.live[name] for name in (*self.fresh, *self.known)}


@dataclass(slots=True)
class _Written:
    """What pages changed: the names of existing entities, the new observations, and the problems."""

    updated: set[str] = field(default_factory=set)
    added: list[Observation] = field(default_factory=list)
    problems: list[ImportProblem] = field(default_factory=list)


async def import_entities(
    tx: Transaction, revision: Revision, items: Sequence[ParsedRecord], strategy: Strategy, *, is_call: bool = False
) -> tuple[ImportResult, set[str]]:
    """Write the entities among some items; return the counts, and the names of entities that were left unchanged.

    Existing ones are read and changed in pages of bounded size (`nodes.pages_of`). Raises Conflict under FAIL for a
    name that an entity already has, or that comes twice; TooLarge, where `is_call`, for existing ones that are too
    large together.
    """
    merged = merge_entity_records(items, strategy)
    parents = [m.record.parent_id for m in merged.values() if m.record.parent_id]
    found = await naming.find_named_exactly(tx, revision.graph, unique([*merged, *parents]))
    existing_names = {name for name in merged if name in found and not found[name].placeholder}
    if strategy is Strategy.FAIL and existing_names:
        name = next(name for name in merged if name in existing_names)
        raise name_taken(name, merged[name].where)
    if is_call and strategy is not Strategy.FAIL:
        await nodes.require_readable(tx, revision.graph, [found[name].id for name in existing_names])
    fresh = {name: m.record for name, m in merged.items() if name not in existing_names}
    created = await _create(tx, revision, fresh, found)
    live = {name: node.id for name, node in found.items() if not node.placeholder} | created
    changing = {
        n: merged[n].record for n in merged if n in existing_names and _may_change(found[n], merged[n], strategy)
    }
    outdated, known_names, written = 0, set[str](), _Written()
    for number, records in enumerate(await _pages(tx, revision, changing, found)):
        known = await _read_existing(tx, revision, records, found, strategy)
        back = [entity.head for entity in known.values() if entity.comes_back(strategy)]
        outdated += await observations.outdate_former(tx, revision, back, most=MAX_BROUGHT_BACK - outdated)
        page = _Page({} if number else fresh, known, live)
        await _write_page(tx, revision, page, merged, found, strategy, written)
        known_names |= known.keys()
    unchanged = existing_names - known_names if strategy in (Strategy.SKIP, Strategy.FAIL) else set()
    return _count(merged, set(fresh), written), unchanged


async def import_later_parts(
    tx: Transaction, revision: Revision, items: Sequence[ParsedRecord], strategy: Strategy, *, begun: int
) -> ImportResult:
    """Add the aliases and observations of later parts of entities, whose first parts this import has read before.

    An entity that the strategy left as it was, or that is gone, gets none: but for MERGE, it must be one that this
    import has written since the revision `begun`.
    """
    records = {name: m.record for name, m in merge_entity_records(items, Strategy.MERGE).items()}
    found = await naming.find_named_exactly(tx, revision.graph, list(records))
    there = [(found[name].id, record) for name, record in records.items() if name in found]
    heads = await nodes.read_heads(tx, revision.graph, [node_id for node_id, _ in there])
    created, written = await store.written_since(tx, list(heads), begun)
    changed = heads.keys() if strategy is Strategy.MERGE else created | written
    theirs = [(heads[i], record) for i, record in there if i in changed and not heads[i].placeholder]
    fresh = {record.name: record for head, record in theirs if head.id in created}
    known = {r.name: _ExistingEntity(head, r, head.fields) for head, r in theirs if head.id not in created}
    named = {head.id: [a for a in record.aliases if a != record.name] for head, record in theirs if record.aliases}
    renamed = await aliases.alias(tx, revision, named) if named else set[UUID]()
    await nodes.rewrite(tx, revision, [Rewrite(heads[node_id], heads[node_id].fields) for node_id in renamed])
    _, added = await _observe(tx, revision, fresh, known, Strategy.MERGE)
    return ImportResult(observations_added=len(added))


async def _pages(
    tx: Transaction, revision: Revision, records: Mapping[str, EntityRecord], found: Mapping[str, NodeRef]
) -> list[dict[str, EntityRecord]]:
    """The records of existing entities in the pages in which these are changed; an empty one where there are none."""
    names = {found[name].id: name for name in records}
    pages = await nodes.pages_of(tx, revision.graph, list(names))
    return [{names[node_id]: records[names[node_id]] for node_id in page} for page in pages] or [{}]


def _may_change(node: NodeRef, merged: MergedRecord, strategy: Strategy) -> bool:
    """Whether the strategy may change an existing entity: SKIP only brings back what is hidden."""
    if strategy is Strategy.SKIP:
        return node.status != ACTIVE and merged.record.status == ACTIVE
    return strategy is not Strategy.FAIL


async def _write_page(
    tx: Transaction,
    revision: Revision,
    page: _Page,
    merged: Mapping[str, MergedRecord],
    found: Mapping[str, NodeRef],
    strategy: Strategy,
    written: _Written,
) -> None:
    """Give the entities of a page what the file says of them, and note in `written` what changed."""
    changed = await _rewrite(tx, revision, page, strategy)
    touched, added = await _observe(tx, revision, page.fresh, page.known, strategy)
    moved, problems = await _set_parents(tx, revision, page, merged, found, strategy)
    written.updated |= changed | touched | moved
    written.added += added
    written.problems += problems


async def _read_existing(
    tx: Transaction,
    revision: Revision,
    records: Mapping[str, EntityRecord],
    found: Mapping[str, NodeRef],
    strategy: Strategy,
) -> dict[str, _ExistingEntity]:
    """The existing entities that the strategy changes.

    SKIP leaves what is there, but takes an outdated or archived entity that the file has as active for a new one.
    """
    heads = await nodes.read_heads(tx, revision.graph, [found[name].id for name in records])
    known = {}
    for name, record in records.items():
        head = heads.get(found[name].id)
        if head is None or (strategy is Strategy.SKIP and not is_brought_back(head, record)):
            continue  # A head that is None has just expired.
        fields = fields_of(record, head.fields.parent_id)
        if strategy is Strategy.MERGE:
            fields = enriched(_stored_fields(head, record), fields)
        known[name] = _ExistingEntity(head, record, replace(fields, last_dedup_at=head.fields.last_dedup_at))
    return known


def is_brought_back(head: NodeHead, record: EntityRecord) -> bool:
    """Whether an outdated or archived entity is active in a file."""
    return head.is_hidden and record.status == ACTIVE


def _stored_fields(head: NodeHead, record: EntityRecord) -> NodeFields:
    """What an existing entity keeps under MERGE: all, but neither text nor summary where it is brought back."""
    if not is_brought_back(head, record):
        return head.fields
    return replace(head.fields.brought_back(), content=None, summary=None)


async def _create(
    tx: Transaction, revision: Revision, fresh: Mapping[str, EntityRecord], found: Mapping[str, NodeRef]
) -> dict[str, UUID]:
    """Create entities, under parents that exist already; return their ids by name."""
    parents = {name: node.id for name, node in found.items() if not node.placeholder}
    fields = [fields_of(record, parents.get(record.parent_id or "")) for record in fresh.values()]
    began = [record.created_at for record in fresh.values()]
    lasting = {name for name, record in fresh.items() if _has_lasting_text(record)}
    ids = await nodes.create_nodes(tx, revision, fields, began=began, names_with_observations=lasting, exactly=True)
    return dict(zip(fresh, ids, strict=True))


def _has_lasting_text(record: EntityRecord) -> bool:
    """Whether a record has an active observation, and no observation that expires."""
    attributes = observation_records(record)
    return any(a.status == ACTIVE for a in attributes) and all(a.expires_at is None for a in attributes)


async def _rewrite(tx: Transaction, revision: Revision, page: _Page, strategy: Strategy) -> set[str]:
    """Give entities their fields and aliases; return the names of those existing ones that changed."""
    known, ids = page.known, page.ids
    records = {**page.fresh, **{name: entity.record for name, entity in known.items()}}
    aliases_by_id = {ids[name]: [a for a in record.aliases if a != name] for name, record in records.items()}
    replaced = [entity.head.id for entity in known.values()] if strategy is Strategy.REPLACE else []
    renamed: set[UUID] = set()
    if replaced or any(aliases_by_id.values()):
        renamed = await aliases.alias(tx, revision, aliases_by_id, replaced=replaced)

    given = (Rewrite(entity.head, entity.fields) for entity in known.values())
    changed = await nodes.differing(given, always=renamed)
    await nodes.rewrite(tx, revision, changed)
    changed_ids = {rewrite.head.id for rewrite in changed}
    return {name for name, entity in known.items() if entity.head.id in changed_ids}


async def _observe(
    tx: Transaction,
    revision: Revision,
    fresh: Mapping[str, EntityRecord],
    known: Mapping[str, _ExistingEntity],
    strategy: Strategy,
) -> tuple[set[str], list[Observation]]:
    """Add observations and, under REPLACE, remove others; return the names of changed entities, and the new ones."""
    changed = await _rewrite_observations(tx, revision, known, strategy)
    removed = await _remove_observations(tx, revision, known) if strategy is Strategy.REPLACE else set()
    records = [*fresh.values(), *(entity.record for entity in known.values())]
    added: list[Observation] = []
    for has_attributes in (True, False):  # Without attributes, an observation is there once, whatever its thread.
        of_kind = [record for record in records if bool(record.said) is has_attributes]
        if any(record.observations for record in of_kind):
            added += await observations.add_observations(
                tx,
                revision,
                (statement for record in of_kind for statement in _statements(record)),
                across_threads=not has_attributes,
                brings_back=False,  # The strategy decides the status of each.
                exactly=True,
            )
    return changed | removed | {observation.entity for observation in added}, added


async def _rewrite_observations(
    tx: Transaction, revision: Revision, known: Mapping[str, _ExistingEntity], strategy: Strategy
) -> set[str]:
    """Give existing observations the attributes that the file has; return the names of their entities.

    Under REPLACE they get exactly these; else they gain those that they lack. A file without `said` changes nothing.
    """
    in_file = {
        (entity.head.id, s.content, s.thread, s.status): s
        for entity in known.values()
        if entity.record.said
        for s in _statements(entity.record)
    }
    changed = set[str]()
    for page in await observations.pages_saying(tx, [(node_id, content) for node_id, content, *_ in in_file]):
        stored = (await observations.observations_by_id(tx, revision.graph, page)).values()
        before = [o for o in stored if (*o.key, o.status) in in_file]
        after = (_rewritten(o, in_file[*o.key, o.status], strategy) for o in before)
        changed |= {o.entity for o in await observations.rewrite(tx, revision, before, after)}
    return changed


def _rewritten(observation: Observation, new: NewObservation, strategy: Strategy) -> Observation:
    if strategy is not Strategy.REPLACE:
        return observation.with_attributes(observation.enriched(new))
    return replace(observation.with_attributes(new), reason=new.reason)


async def _remove_observations(tx: Transaction, revision: Revision, known: Mapping[str, _ExistingEntity]) -> set[str]:
    """Remove the observations of existing entities that the file does not have; return the names of the entities."""
    if not known:
        return set()
    names = {entity.head.id: name for name, entity in known.items()}
    wanted = {entity.head.id: _observation_keys(entity.record) for entity in known.values()}
    removed, others = set[str](), list[UUID]()
    async for observation in observations.outlines_of_nodes(tx, list(wanted)):
        if wanted[observation.node_id].isdisjoint(_possible_keys(observation)):
            others.append(observation.id)
            removed.add(names[observation.node_id])
    for page in batches(others, observations.PAGE_OBSERVATIONS):
        await observations.remove_observations_by_id(tx, revision, page)
    return removed


def _observation_keys(record: EntityRecord) -> set[tuple[Any, ...]]:
    """The keys of the observations of a record: text, and thread, status and times if the file has them."""
    if not record.said:
        return {(content,) for content in record.observations}
    pairs = zip(record.observations, record.said, strict=True)
    return {(content, a.thread, a.status, a.at, a.expires_at) for content, a in pairs}


def _possible_keys(observation: ObservationOutline) -> Iterable[tuple[Any, ...]]:
    """The `_observation_keys` that a file may have for an observation: its text, or all, with or without its time."""
    key = observation.content, observation.thread, observation.status
    expires_at = observation.expires_at
    return ((observation.content,), (*key, None, expires_at), (*key, observation.said_at, expires_at))


def _statements(record: EntityRecord) -> Iterable[NewObservation]:
    for content, attributes in zip(record.observations, observation_records(record), strict=True):
        yield NewObservation(
            record.name,
            content,
            attributes.thread,
            attributes.at,
            attributes.expires_at,
            attributes.status,
            attributes.reason,
            None if attributes.at is None else offset_minutes(attributes.at),
            kind=attributes.kind,
            tags=tuple(attributes.tags),
            importance=attributes.importance,
            source=attributes.source,
            metadata=attributes.metadata,
        )


async def _set_parents(
    tx: Transaction,
    revision: Revision,
    page: _Page,
    merged: Mapping[str, MergedRecord],
    found: Mapping[str, NodeRef],
    strategy: Strategy,
) -> tuple[set[str], list[ImportProblem]]:
    """Put entities under their parents; return the names of existing ones that moved, and the problems."""
    ids, known, live = page.ids, page.known, page.live
    links: dict[UUID, UUID | None] = {}
    problems = []
    for name, node_id in ids.items():
        parent, head = merged[name].record.parent_id, known[name].head if name in known else None
        if parent and parent not in live:
            if not refers_to_expired(merged[name].until, revision.at):
                problems.append(ImportProblem(f"{merged[name].where}.parentId", NO_SUCH_PARENT))
        elif head is None and parent and (parent not in found or found[parent].placeholder):
            links[node_id] = live[parent]
        elif head and (strategy is Strategy.REPLACE or (parent and head.fields.parent_id is None)):
            links[node_id] = live[parent] if parent else None
    moved = await hierarchy.set_parents(tx, revision, links) if links else set()
    names = {node_id: name for name, node_id in ids.items()}
    for node_id in links.keys() - moved:
        before = known[names[node_id]].head.fields.parent_id if names[node_id] in known else None
        if before != links[node_id]:
            problems.append(ImportProblem(f"{merged[names[node_id]].where}.parentId", CYCLE))
    return {names[node_id] for node_id in moved if names[node_id] in known}, problems


def _count(
    merged: Mapping[str, MergedRecord],
    fresh: set[str],
    written: _Written,
) -> ImportResult:
    """Count what happened to each record. A later record of a name counts as a change if it added an observation."""
    added_keys = {(observation.entity, observation.content) for observation in written.added}
    created, changed, skipped = len(fresh), 0, 0
    for name, entity in merged.items():
        for index, record in enumerate(entity.records):
            new = {(name, content) for content in record.observations} & added_keys
            added_keys -= new
            if index == 0 and name in fresh:
                continue
            if new or (index == 0 and name in written.updated):
                changed += 1
            else:
                skipped += 1
    return ImportResult(created, changed, skipped, len(written.added), problems=tuple(written.problems))
