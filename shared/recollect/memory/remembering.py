"""The use case of remembering: store each memory once, and report older ones that are close to it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs.model import Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NewFact, NodeFields, NodeRef, Rewrite, unique
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import Key, NewObservation, Observation
from recollect.memory.model import NewMemory, Remembered, RememberOutcome, expiry
from recollect.platform.computing import each
from recollect.platform.transactions import Transaction
from recollect.retrieval.recall import service as recall
from recollect.retrieval.recall.model import NearDuplicate, Question


async def remember(
    tx: Transaction, revision: Revision, items: Sequence[NewMemory], questions: Sequence[Question]
) -> list[Remembered]:
    """Keep items, in order. `questions` are their texts with vectors, for finding what is close to them already.

    The same memory (content, entity and thread) is not doubled: what an item says beside its text becomes the known
    memory's, and what it says nothing of stays. Raises InvalidInput for a kind that the graph's whitelist leaves out.
    """
    for place, item in enumerate(items):
        if item.kind is not None:
            revision.graph.require_kind(item.kind, f"items.{place}.kind")
    named = await _ensure_entities(tx, revision, items)
    firsts = [named[item.about[0]].id if item.about else None for item in items]
    close = await recall.find_near_duplicates(tx, revision.graph, questions, firsts)
    facts = await _remember_facts(tx, revision, items, close)
    statements = await _remember_observations(tx, revision, items, named, close)
    return [facts.get(place) or statements[place] for place in range(len(items))]


async def _ensure_entities(tx: Transaction, revision: Revision, items: Sequence[NewMemory]) -> dict[str, NodeRef]:
    """The entities that items are about, made where they are new: of the item's kind, and no more than that."""
    wanted = [NewEntity(name, item.kind) for item in items for name in item.about]
    paths = [f"items.{place}.kind" for place, item in enumerate(items) for _ in item.about]
    if not wanted:
        return {}
    names = unique(entity.name for entity in wanted)
    found = await nodes.find_named(GraphView(tx, revision.graph), names)
    if any(name not in found or found[name].placeholder for name in names):
        missing = [
            (entity, path)
            for entity, path in zip(wanted, paths, strict=True)
            if entity.name not in found or found[entity.name].placeholder
        ]
        await entities.create_entities(
            tx, revision, [entity for entity, _ in missing], paths=[path for _, path in missing]
        )
        found = await nodes.find_named(GraphView(tx, revision.graph), names)
    return found


async def _remember_facts(
    tx: Transaction, revision: Revision, items: Sequence[NewMemory], close: Sequence[list[NearDuplicate]]
) -> dict[int, Remembered]:
    places: dict[tuple[str, str | None], list[int]] = {}
    for place, item in enumerate(items):
        if not item.about:
            places.setdefault((item.text, item.thread), []).append(place)
    if not places:
        return {}
    told = await each(places.values(), lambda group: _together(items[place] for place in group))
    paths = [f"items.{group[0]}.kind" for group in places.values()]
    kept = await nodes.create_facts(tx, revision, await each(told, lambda item: _fact(item, revision.at)), paths=paths)
    heads = await nodes.read_heads(tx, revision.graph, [fact.id for fact in kept if fact.known])
    fields = {
        fact.id: _updated(heads[fact.id].fields, item, revision.at)
        for fact, item in zip(kept, told, strict=True)
        if fact.id in heads
    }
    changed = {node_id for node_id, wanted in fields.items() if not wanted.says(heads[node_id].fields)}
    await nodes.rewrite(tx, revision, [Rewrite(heads[node_id], fields[node_id]) for node_id in changed])
    return {
        place: Remembered(fact.id, fact.id, _fate(not fact.known, fact.id in changed, nth), close[place])
        for fact, group in zip(kept, places.values(), strict=True)
        for nth, place in enumerate(group)
    }


async def _remember_observations(
    tx: Transaction,
    revision: Revision,
    items: Sequence[NewMemory],
    named: dict[str, NodeRef],
    close: Sequence[list[NearDuplicate]],
) -> dict[int, Remembered]:
    groups: dict[Key, list[int]] = {}
    for place, item in enumerate(items):
        for name in item.about:
            groups.setdefault((named[name].id, item.text, item.thread), []).append(place)
    if not groups:
        return {}
    told = dict(zip(groups, await each(groups.values(), lambda g: _together(items[place] for place in g)), strict=True))
    names = {node.id: name for name, node in named.items()}
    wanted = await each(told, lambda key: _observation(told[key], names[key[0]], revision.at))
    added = {o.key: o for o in await observations.add_observations(tx, revision, wanted, across_threads=False)}
    known = await _update(tx, revision, {key: item for key, item in told.items() if key not in added})
    fates = {key: (RememberOutcome.NEW if key in added else known[key][1]) for key in groups}
    ids = {key: (added[key] if key in added else known[key][0]).id for key in groups}
    return {
        place: Remembered(ids[keys[0]], keys[0][0], _foremost(keys, fates, groups, place), close[place])
        for place, item in enumerate(items)
        if (keys := [(named[name].id, item.text, item.thread) for name in item.about])
    }


async def _update(
    tx: Transaction, revision: Revision, told: dict[Key, NewMemory]
) -> dict[Key, tuple[Observation, RememberOutcome]]:
    """Update known observations with what the call says of them."""
    stored = await observations.find_observations(tx, revision, [key[:2] for key in told])
    before = {key: stored[key] for key in told}
    retold = await each(before, lambda key: _retold(before[key], told[key], revision.at))
    after = dict(zip(before, retold, strict=True))
    await observations.rewrite(tx, revision, list(before.values()), list(after.values()))
    return {
        key: (after[key], RememberOutcome.KNOWN if after[key].says(before[key]) else RememberOutcome.UPDATED)
        for key in told
    }


def _fate(is_new: bool, is_changed: bool, nth: int) -> RememberOutcome:
    """What became of the nth item that tells one memory: what is new or changed is told of the first."""
    if nth > 0 or not (is_new or is_changed):
        return RememberOutcome.KNOWN
    return RememberOutcome.NEW if is_new else RememberOutcome.UPDATED


def _foremost(
    keys: Sequence[Key], fates: dict[Key, RememberOutcome], groups: dict[Key, list[int]], place: int
) -> RememberOutcome:
    """What became of an item about several entities: new where it is of any of them, else updated where it is."""
    own = {fates[key] for key in keys if groups[key][0] == place}
    return next(
        (outcome for outcome in (RememberOutcome.NEW, RememberOutcome.UPDATED) if outcome in own), RememberOutcome.KNOWN
    )


def _together(items: Iterable[NewMemory]) -> NewMemory:
    """Items that tell the same memory as one: what a later one says beside the text holds."""
    first, *others = items
    for other in others:
        times = {name: value for name in ("at", "ttl_days") if (value := getattr(other, name)) is not None}
        first = replace(first, **other.given(), **times)
    return first


def _updated(fields: NodeFields, item: NewMemory, now: datetime) -> NodeFields:
    """A known fact with what the call says of it."""
    given = item.given()
    if item.at is not None:
        given["said_at"] = item.at
    if item.ttl_days is not None:
        given |= {"ttl_days": item.ttl_days or None, "expires_at": expiry(now, item.ttl_days)}
    return replace(fields, **given)


def _retold(observation: Observation, item: NewMemory, now: datetime) -> Observation:
    """A known observation with what the call says of it."""
    given = item.given()
    if item.at is not None:
        given["said_at"] = item.at
    if item.ttl_days is not None:
        given["expires_at"] = expiry(now, item.ttl_days)
    return replace(observation, **given)


def _fact(item: NewMemory, at: datetime) -> NewFact:
    return NewFact(
        item.text,
        thread=item.thread,
        said_at=item.at,
        ttl_days=item.ttl_days or None,
        expires_at=expiry(at, item.ttl_days),
        **item.given(),
    )


def _observation(item: NewMemory, entity: str, at: datetime) -> NewObservation:
    expires_at = expiry(at, item.ttl_days)
    return NewObservation(entity, item.text, item.thread, item.at, expires_at, **item.given())
