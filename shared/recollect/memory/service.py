"""Use cases that span capabilities: remember, read and open a graph, delete with all that belongs."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from recollect.errors import TooLarge
from recollect.graphs import service as graphs
from recollect.graphs.model import Revision
from recollect.memory.model import Item, Remembered
from recollect.nodes import service as nodes
from recollect.nodes.model import NewEntity, NewFact, NewObservation, NodeRef, unique
from recollect.platform.db import Transaction
from recollect.relations import service as relations
from recollect.relations.model import Subgraph
from recollect.search import service as search
from recollect.search.model import Close, Question


async def remember(
    tx: Transaction, revision: Revision, items: Sequence[Item], questions: Sequence[Question]
) -> list[Remembered]:
    """Keep items, in order. `questions` are their texts with vectors, for finding what is close to them already.

    The same memory (content, entity and thread) is known, not doubled. Raises InvalidInput for a kind that the graph's
    whitelist leaves out.
    """
    entities = await _ensure_entities(tx, revision, items)
    firsts = [entities[item.about[0]].id if item.about else None for item in items]
    close = await search.find_close(tx, revision.graph, questions, firsts)
    facts = await _remember_facts(tx, revision, items, close)
    observations = await _remember_observations(tx, revision, items, entities, close)
    return [facts.get(place) or observations[place] for place in range(len(items))]


async def delete_entities(tx: Transaction, revision: Revision, names: Sequence[str]) -> None:
    """Delete entities, or placeholders, with all that belongs to them; what is not there is passed over."""
    found = await nodes.find_named(tx, revision.graph, unique(names))
    if found:
        await relations.delete_nodes(tx, revision, [node.id for node in found.values()])


async def open_nodes(tx: Transaction, graph_name: str | None, names: Sequence[str]) -> Subgraph:
    """Entities by name, in the order asked for, with every relation that touches one of them."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return Subgraph([], [])
    return await relations.subgraph_of(tx, await nodes.open_entities(tx, graph, names))


async def read_graph(
    tx: Transaction, graph_name: str | None, *, kind: str | None, offset: int, limit: int | None, max_items: int
) -> Subgraph:
    """A graph, or a page of its entities, oldest first.

    A page carries the relations that touch it; a page of one kind only those with both ends in it. Without a limit the
    whole graph comes back, or TooLarge where it has more than `max_items` entities, observations and relations.
    """
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return Subgraph([], [])
    head = await graphs.head_of(tx, graph)
    if limit is None and head.entities + head.observations + head.relations > max_items:
        raise TooLarge(
            f"The graph holds {head.entities} entities, {head.observations} observations and {head.relations} "
            f"relations, more than one reply may ({max_items}). Read it in pages: limit=100, offset=0, then 100 …",
            path="limit",
        )
    page = await nodes.list_entities(tx, graph, kind=kind, offset=offset, limit=None if limit is None else limit + 1)
    entities = page if limit is None else page[:limit]
    next_offset = None if limit is None or len(page) <= limit else offset + limit
    if kind is not None:
        return await relations.subgraph_within(tx, entities, next_offset=next_offset)
    if limit is None and offset == 0:
        return Subgraph(entities, await relations.list_relations(tx, graph))
    return await relations.subgraph_of(tx, entities, next_offset=next_offset)


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
        await nodes.create_entities(tx, revision, missing)
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
    entities: dict[str, NodeRef],
    close: Sequence[list[Close]],
) -> dict[int, Remembered]:
    wanted = [_observation(item, name, revision.at) for item in items for name in item.about]
    if not wanted:
        return {}
    added = await nodes.add_observations(tx, revision, wanted, across_threads=False)
    new = {(o.node_id, o.content, o.thread): o.id for o in added}
    stored = await nodes.find_observations(tx, revision, [(entities[o.entity].id, o.content) for o in wanted]) | new
    remembered = {}
    for place, item in enumerate(items):
        if item.about:
            keys = [(entities[name].id, item.text, item.thread) for name in item.about]
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
        expires_at=_expiry(item, at),
    )


def _observation(item: Item, entity: str, at: datetime) -> NewObservation:
    return NewObservation(entity, item.text, item.thread, item.at, _expiry(item, at))


def _expiry(item: Item, at: datetime) -> datetime | None:
    return None if item.ttl_days is None else at + timedelta(days=item.ttl_days)
