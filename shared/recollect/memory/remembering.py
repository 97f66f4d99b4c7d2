"""The use case of remembering: keep what was told, once, and say what is close to it already."""

from collections.abc import Sequence
from datetime import datetime

from recollect.entities import service as entities
from recollect.entities.model import NewEntity
from recollect.graphs.model import Revision
from recollect.memory.model import Item, Remembered, expiry
from recollect.nodes import service as nodes
from recollect.nodes.model import NewFact, NodeRef, unique
from recollect.observations import service as observations
from recollect.observations.model import NewObservation
from recollect.platform.db import Transaction
from recollect.recall import service as recall
from recollect.recall.model import Close, Question


async def remember(
    tx: Transaction, revision: Revision, items: Sequence[Item], questions: Sequence[Question]
) -> list[Remembered]:
    """Keep items, in order. `questions` are their texts with vectors, for finding what is close to them already.

    The same memory (content, entity and thread) is known, not doubled. Raises InvalidInput for a kind that the graph's
    whitelist leaves out.
    """
    named = await _ensure_entities(tx, revision, items)
    firsts = [named[item.about[0]].id if item.about else None for item in items]
    close = await recall.find_close(tx, revision.graph, questions, firsts)
    facts = await _remember_facts(tx, revision, items, close)
    statements = await _remember_observations(tx, revision, items, named, close)
    return [facts.get(place) or statements[place] for place in range(len(items))]


async def _ensure_entities(tx: Transaction, revision: Revision, items: Sequence[Item]) -> dict[str, NodeRef]:
    wanted = [
        NewEntity(name, item.kind, (), item.tags, item.importance, item.metadata, item.source)
        for item in items
        for name in item.about
    ]
    if not wanted:
        return {}
    names = unique(entity.name for entity in wanted)
    found = await nodes.find_named(tx, revision.graph, names)
    missing = [entity for entity in wanted if entity.name not in found or found[entity.name].placeholder]
    if missing:
        await entities.create_entities(tx, revision, missing)
        found = await nodes.find_named(tx, revision.graph, names)
    return found


async def _remember_facts(
    tx: Transaction, revision: Revision, items: Sequence[Item], close: Sequence[list[Close]]
) -> dict[int, Remembered]:
    places: dict[tuple[str, str | None], list[int]] = {}
    for place, item in enumerate(items):
        if not item.about:
            places.setdefault((item.text, item.thread), []).append(place)
    if not places:
        return {}
    firsts = [items[group[0]] for group in places.values()]
    kept = await nodes.create_facts(tx, revision, [_fact(item, revision.at) for item in firsts])
    return {
        place: Remembered(fact.id, fact.id, fact.known or nth > 0, close[place])
        for fact, group in zip(kept, places.values(), strict=True)
        for nth, place in enumerate(group)
    }


async def _remember_observations(
    tx: Transaction,
    revision: Revision,
    items: Sequence[Item],
    named: dict[str, NodeRef],
    close: Sequence[list[Close]],
) -> dict[int, Remembered]:
    wanted = [_observation(item, name, revision.at) for item in items for name in item.about]
    if not wanted:
        return {}
    added = await observations.add_observations(tx, revision, wanted, across_threads=False)
    new = {(o.node_id, o.content, o.thread): o.id for o in added}
    stored = await observations.find_observations(tx, revision, [(named[o.entity].id, o.content) for o in wanted]) | new
    remembered = {}
    for place, item in enumerate(items):
        if item.about:
            keys = [(named[name].id, item.text, item.thread) for name in item.about]
            fresh = [new.pop(key, None) for key in keys]
            remembered[place] = Remembered(stored[keys[0]], keys[0][0], not any(fresh), close[place])
    return remembered


def _fact(item: Item, at: datetime) -> NewFact:
    return NewFact(
        item.text,
        kind=item.kind,
        tags=item.tags,
        importance=item.importance,
        metadata=item.metadata,
        source=item.source,
        thread=item.thread,
        said_at=item.at,
        ttl_days=item.ttl_days,
        expires_at=expiry(at, item.ttl_days),
    )


def _observation(item: Item, entity: str, at: datetime) -> NewObservation:
    return NewObservation(entity, item.text, item.thread, item.at, expiry(at, item.ttl_days))
