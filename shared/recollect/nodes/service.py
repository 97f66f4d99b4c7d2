"""Use cases of nodes: make entities, facts and observations, open them, take them away."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from recollect.errors import ErrorCode, NotFound
from recollect.graphs.model import Graph, Revision
from recollect.ids import new_id
from recollect.nodes import store
from recollect.nodes.model import (
    Entity,
    NewEntity,
    NewFact,
    NewObservation,
    NodeRef,
    Observation,
    RememberedFact,
    unique,
    unique_by,
)
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
    inserted = {node.name: node for node in await store.insert_entities(tx, revision, wanted)}
    made = [(inserted[entity.name].id, entity) for entity in wanted if entity.name in inserted]
    if made:
        promoted = sum(node.promoted for node in inserted.values())
        node_ids = [node_id for node_id, _ in made]
        revision.touch("entities_added", node_ids, entities=len(made), placeholders=-promoted)
        await store.append_versions(tx, revision, node_ids)
        silent = [_name(node_id, entity.name) for node_id, entity in made if not entity.observations]
        await passages.index_memories(tx, revision, silent)
        await _attach(tx, revision, _first_observations(made, revision.at), across_threads=True)
    return made


async def create_facts(tx: Transaction, revision: Revision, facts: Sequence[NewFact]) -> list[RememberedFact]:
    """Make facts, in order. One that is known (same content and thread) is not doubled: its id comes back.

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
        await store.append_versions(tx, revision, node_ids)
        await passages.index_memories(tx, revision, [_fact(node_id, fact) for node_id, fact in made])
    return remembered


async def add_observations(
    tx: Transaction, revision: Revision, observations: Sequence[NewObservation], *, across_threads: bool = True
) -> list[Observation]:
    """Attach statements to entities that exist; those that they did not have yet, in order.

    `across_threads`: an entity has a statement once, whichever thread it came from; else once a thread.
    Raises NotFound naming the first entity that is not there.
    """
    entities = await require_entities(tx, revision.graph, unique(new.entity for new in observations))
    wanted = [_observation(entities[new.entity].id, new, revision.at) for new in observations]
    added = await _attach(tx, revision, wanted, across_threads=across_threads)
    if added:
        touched = unique(observation.node_id for observation in added)
        await passages.hide_names(tx, revision, touched)
        await store.touch_nodes(tx, revision, touched)
    return added


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
    if removed:
        revision.touch("observations_removed", removed, observations=-len(removed))
        await passages.forget_memories(tx, revision, removed)
        entities = {node.id: node.name for node in nodes.values() if not node.placeholder}
        await passages.show_names(tx, revision, entities)
        await store.touch_nodes(tx, revision, unique(node_id for node_id, _ in keys))
    return removed


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
    await store.append_versions(tx, revision, ids)
    await passages.forget_nodes(tx, revision, ids)


async def find_named(tx: Transaction, graph: Graph, names: Sequence[str]) -> dict[str, NodeRef]:
    """Live nodes of these names, placeholders too, by name."""
    return await store.find_named(tx, graph, names)


async def require_entities(tx: Transaction, graph: Graph, names: Sequence[str]) -> dict[str, NodeRef]:
    """Entities of these names; raises NotFound for the first name that none has."""
    found = await store.find_named(tx, graph, names)
    for name in names:
        if name not in found or found[name].placeholder:
            raise NotFound(f"Entity with name {name} not found", code=ErrorCode.ENTITY_NOT_FOUND)
    return found


async def ensure_named(tx: Transaction, revision: Revision, names: Sequence[str]) -> dict[str, NodeRef]:
    """A live node for each of these names: those that none has become placeholders."""
    found = await store.find_named(tx, revision.graph, names)
    missing = [name for name in unique(names) if name not in found]
    if missing:
        placed = await store.insert_placeholders(tx, revision, missing)
        revision.touch("placeholders_added", [node.id for node in placed], placeholders=len(placed))
        await store.append_versions(tx, revision, [node.id for node in placed])
        found |= {node.name: node for node in placed}
    return found


async def open_entities(tx: Transaction, graph: Graph, names: Sequence[str]) -> list[Entity]:
    """Entities by name, each once, in the order asked for; names that no entity has are left out."""
    return await store.open_entities(tx, graph, unique(names))


async def entities_by_id(tx: Transaction, node_ids: Sequence[UUID]) -> list[Entity]:
    """Entities by id, in the order asked for."""
    return await store.entities_by_id(tx, node_ids)


async def list_entities(
    tx: Transaction, graph: Graph, *, kind: str | None = None, offset: int = 0, limit: int | None = None
) -> list[Entity]:
    """Entities in the order in which they were made."""
    ids = await store.list_entity_ids(tx, graph, kind=kind, offset=offset, limit=limit)
    return await store.entities_by_id(tx, ids)


async def _attach(
    tx: Transaction, revision: Revision, observations: Iterable[Observation], *, across_threads: bool
) -> list[Observation]:
    wanted = unique_by(lambda o: (o.node_id, o.content, None if across_threads else o.thread), observations)
    added = await store.insert_observations(tx, revision, wanted, across_threads=across_threads) if wanted else []
    revision.touch("observations_added", [o.id for o in added], observations=len(added))
    await passages.index_memories(tx, revision, [_memory(observation) for observation in added])
    return added


def _first_observations(made: Sequence[tuple[UUID, NewEntity]], at: datetime) -> list[Observation]:
    return [
        _observation(node_id, NewObservation(entity.name, content), at)
        for node_id, entity in made
        for content in entity.observations
    ]


def _observation(node_id: UUID, new: NewObservation, at: datetime) -> Observation:
    return Observation(new_id(), node_id, new.entity, new.content, new.thread, new.said_at or at, new.expires_at)


def _memory(o: Observation) -> Memory:
    return Memory(o.id, o.node_id, Source.OBSERVATION, o.content, o.entity, o.thread, o.said_at, o.expires_at)


def _name(node_id: UUID, name: str) -> Memory:
    return Memory(node_id, node_id, Source.NAME, name)


def _fact(node_id: UUID, fact: NewFact) -> Memory:
    return Memory(node_id, node_id, Source.FACT, fact.content, None, fact.thread, fact.said_at, fact.expires_at)
