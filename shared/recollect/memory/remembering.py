"""The use case of remembering: stores each memory once, and reports older memories that are near duplicates of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity, SimilarName
from recollect.graph.graphs.model import Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NewFact, NodeFields, NodeRef, Rewrite, unique
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import Key, NewObservation, Observation
from recollect.memory.model import NewMemory, Remembered, RememberOutcome, expiry, require_lifetime
from recollect.memory.superseding import outdate_superseded
from recollect.postgres.transactions import Transaction
from recollect.retrieval.recall.model import Question
from recollect.retrieval.similarity import service as similarity
from recollect.retrieval.similarity.model import NearDuplicate


async def remember(
    tx: Transaction, revision: Revision, items: Sequence[NewMemory], questions: Sequence[Question]
) -> list[Remembered]:
    """Store items; return their outcomes in order. `questions` are their texts with vectors, to find near duplicates.

    A known memory (same content, entity and thread) is not stored twice: it gets the attributes that the item has, and
    keeps those that the item leaves out. Memories that items supersede become outdated. Raises InvalidInput for a kind
    that is not on the graph's whitelist, and for a lifetime that is too short, and as `outdate_superseded` does.
    """
    for index, item in enumerate(items):
        require_lifetime(item.ttl_days, f"items.{index}.ttl_days")
        if item.kind is not None:
            revision.graph.require_kind(item.kind, f"items.{index}.kind")
    named, similar_names = await _ensure_entities(tx, revision, items)
    entity_ids = [named[item.about[0]].id if item.about else None for item in items]
    near = await similarity.find_near_duplicates(tx, revision.graph, questions, entity_ids)
    close = [
        [*_close(item, memories), *_names_like(unique(named[name].id for name in item.about), similar_names)]
        for item, memories in zip(items, near, strict=True)
    ]
    fact_outcomes = await _remember_facts(tx, revision, items, close)
    observation_outcomes = await _remember_observations(tx, revision, items, named, close)
    remembered = [fact_outcomes.get(index) or observation_outcomes[index] for index in range(len(items))]
    await outdate_superseded(tx, revision, items, named, remembered)
    return remembered


async def remember_turns(tx: Transaction, revision: Revision, turns: Sequence[NewMemory]) -> list[Remembered]:
    """Store the turns of a conversation as facts; return their outcomes in order.

    They are not compared with older memories, since a turn replaces nothing that was said before.
    """
    outcomes = await _remember_facts(tx, revision, turns, [[] for _ in turns])
    return [outcomes[index] for index in range(len(turns))]


def _close(item: NewMemory, near: Sequence[NearDuplicate]) -> list[NearDuplicate]:
    """The near duplicates of an item, except those that it names in `supersedes`.

    An item in a thread marks none as superseded, since it replaces nothing that was said before.
    """
    others = (older for older in near if older.memory_id not in item.supersedes)
    return [replace(older, superseded=older.superseded and item.thread is None) for older in others]


async def _ensure_entities(
    tx: Transaction, revision: Revision, items: Sequence[NewMemory]
) -> tuple[dict[str, NodeRef], dict[UUID, list[SimilarName]]]:
    """The entities that items are about, by name. Missing ones are created, with the item's kind and nothing else.

    Also returns, by the id of each new entity, the older entities whose names look like its name.
    """
    subjects = [NewEntity(name, item.kind) for item in items for name in item.about]
    paths = [f"items.{index}.kind" for index, item in enumerate(items) for _ in item.about]
    if not subjects:
        return {}, {}
    similar_names: dict[UUID, list[SimilarName]] = {}
    names = unique(entity.name for entity in subjects)
    found = await naming.find_named(GraphView(tx, revision.graph), names)
    if any(name not in found or found[name].placeholder for name in names):
        missing = [
            (entity, path)
            for entity, path in zip(subjects, paths, strict=True)
            if entity.name not in found or found[entity.name].placeholder
        ]
        created = await entities.create_entities(
            tx, revision, [entity for entity, _ in missing], paths=[path for _, path in missing]
        )
        new = [(node_id, entity.name) for node_id, entity in created]
        similar_names = await entities.find_similar_names(tx, revision.graph, new)
        found = await naming.find_named(GraphView(tx, revision.graph), names)
    return found, similar_names


def _names_like(entity_ids: Iterable[UUID], similar_names: Mapping[UUID, list[SimilarName]]) -> list[NearDuplicate]:
    """The older entities whose names look like those of new ones, such as in another case, as near duplicates."""
    found = (other for entity_id in entity_ids for other in similar_names.get(entity_id, ()))
    return [NearDuplicate(other.id, other.name, 1.0) for other in found]


async def _remember_facts(
    tx: Transaction, revision: Revision, items: Sequence[NewMemory], close: Sequence[list[NearDuplicate]]
) -> dict[int, Remembered]:
    indexes: dict[tuple[str, str | None], list[int]] = {}
    for index, item in enumerate(items):
        if not item.about:
            indexes.setdefault((item.text, item.thread), []).append(index)
    if not indexes:
        return {}
    groups = [[items[index] for index in group] for group in indexes.values()]
    paths = [f"items.{group[0]}.kind" for group in indexes.values()]
    facts = await nodes.create_facts(
        tx, revision, (_fact(_merged(group), revision.at) for group in groups), paths=paths
    )
    known = [fact.id for fact in facts if fact.known]
    await nodes.require_readable(tx, revision.graph, known)
    heads = await nodes.read_heads(tx, revision.graph, known)
    rewrites = await nodes.differing(
        Rewrite(heads[fact.id], _updated_fields(heads[fact.id].fields, _merged(group), revision.at))
        for fact, group in zip(facts, groups, strict=True)
        if fact.id in heads
    )
    changed = {rewrite.head.id for rewrite in rewrites}
    await nodes.rewrite(tx, revision, rewrites)
    return {
        index: Remembered(fact.id, fact.id, _outcome(not fact.known, fact.id in changed, nth), close[index])
        for fact, group in zip(facts, indexes.values(), strict=True)
        for nth, index in enumerate(group)
    }


async def _remember_observations(
    tx: Transaction,
    revision: Revision,
    items: Sequence[NewMemory],
    named: dict[str, NodeRef],
    close: Sequence[list[NearDuplicate]],
) -> dict[int, Remembered]:
    groups: dict[Key, list[int]] = {}
    for index, item in enumerate(items):
        for name in item.about:
            groups.setdefault((named[name].id, item.text, item.thread), []).append(index)
    if not groups:
        return {}
    names = {node.id: name for name, node in named.items()}
    memories = {key: [items[index] for index in group] for key, group in groups.items()}
    new = (_observation(_merged(group), names[key[0]], revision.at) for key, group in memories.items())
    added = {o.key: o.id for o in await observations.add_observations(tx, revision, new, across_threads=False)}
    known = await _update(tx, revision, {key: group for key, group in memories.items() if key not in added})
    outcomes = {key: (RememberOutcome.NEW if key in added else known[key][1]) for key in groups}
    ids = {key: (added[key] if key in added else known[key][0]) for key in groups}
    return {
        index: Remembered(ids[keys[0]], keys[0][0], _combined_outcome(keys, outcomes, groups, index), close[index])
        for index, item in enumerate(items)
        if (keys := [(named[name].id, item.text, item.thread) for name in item.about])
    }


async def _update(
    tx: Transaction, revision: Revision, groups: dict[Key, list[NewMemory]]
) -> dict[Key, tuple[UUID, RememberOutcome]]:
    """Update known observations with the attributes of these items; return their ids, and what became of them."""
    stored = await observations.find_observations(tx, revision, [key[:2] for key in groups])
    before = [stored[key] for key in groups]
    after = (_updated_observation(stored[key], _merged(group), revision.at) for key, group in groups.items())
    updated = {o.id for o in await observations.rewrite(tx, revision, before, after)}
    return {o.key: (o.id, RememberOutcome.UPDATED if o.id in updated else RememberOutcome.KNOWN) for o in before}


def _outcome(is_new: bool, is_changed: bool, nth: int) -> RememberOutcome:
    """The outcome of the nth item (from 0) with the same memory: only the first one counts as new or updated."""
    if nth > 0 or not (is_new or is_changed):
        return RememberOutcome.KNOWN
    return RememberOutcome.NEW if is_new else RememberOutcome.UPDATED


def _combined_outcome(
    keys: Sequence[Key], outcomes: dict[Key, RememberOutcome], groups: dict[Key, list[int]], index: int
) -> RememberOutcome:
    """The outcome of an item about several entities: new if it is new for any of them, or else updated if for any."""
    own = {outcomes[key] for key in keys if groups[key][0] == index}
    return next(
        (outcome for outcome in (RememberOutcome.NEW, RememberOutcome.UPDATED) if outcome in own), RememberOutcome.KNOWN
    )


def _merged(items: Iterable[NewMemory]) -> NewMemory:
    """Merge items with the same memory into one, which has the last given value of each attribute."""
    merged, *later_items = items
    for item in later_items:
        times = {
            name: value for name in ("at", "said_offset", "ttl_days") if (value := getattr(item, name)) is not None
        }
        merged = replace(merged, **item.given_attributes(), **times)
    return merged


def _updated_fields(fields: NodeFields, item: NewMemory, now: datetime) -> NodeFields:
    """The fields of a known fact with the attributes of the item."""
    changes = item.given_attributes()
    if item.at is not None:
        changes |= {"said_at": item.at, "said_offset": item.said_offset}
    if item.ttl_days is not None:
        changes |= {"ttl_days": item.ttl_days or None, "expires_at": expiry(now, item.ttl_days)}
    return replace(fields, **changes)


def _updated_observation(observation: Observation, item: NewMemory, now: datetime) -> Observation:
    """A known observation with the attributes of the item."""
    changes = item.given_attributes()
    if item.at is not None:
        changes |= {"said_at": item.at, "said_offset": item.said_offset}
    if item.ttl_days is not None:
        changes["expires_at"] = expiry(now, item.ttl_days)
    return replace(observation, **changes)


def _fact(item: NewMemory, at: datetime) -> NewFact:
    return NewFact(
        item.text,
        thread=item.thread,
        said_at=item.at,
        said_offset=item.said_offset,
        ttl_days=item.ttl_days or None,
        expires_at=expiry(at, item.ttl_days),
        **item.given_attributes(),
    )


def _observation(item: NewMemory, entity: str, at: datetime) -> NewObservation:
    expires_at = expiry(at, item.ttl_days)
    return NewObservation(
        entity,
        item.text,
        item.thread,
        item.at,
        expires_at,
        said_offset=item.said_offset,
        **item.given_attributes(),
    )
