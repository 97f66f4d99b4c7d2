"""Use cases of observations: attach statements to entities, find them, take them away."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from recollect.aliases import service as aliases
from recollect.aliases.model import KnownAs
from recollect.graphs.model import Graph, Moment, Revision
from recollect.ids import new_id
from recollect.nodes import service as nodes
from recollect.nodes.model import unique, unique_by
from recollect.observations import store
from recollect.observations.model import NewObservation, Observation
from recollect.passages import service as passages
from recollect.passages.model import Memory, Source
from recollect.platform.db import Transaction


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
    entities = await nodes.require_entities(tx, revision.graph, wanted_names)
    wanted = [new.on(entities[new.entity].id, revision) for new in observations]
    added = await attach(tx, revision, wanted, across_threads=across_threads)
    if added:
        touched = unique(observation.node_id for observation in added)
        await passages.hide_names(tx, revision, touched)
        await nodes.touch_nodes(tx, revision, touched)
    return added


async def attach(
    tx: Transaction, revision: Revision, observations: Iterable[Observation], *, across_threads: bool
) -> list[Observation]:
    """Attach statements to live nodes, by id; those that they did not have yet. The nodes are the caller's to touch.

    `across_threads`: as of `add_observations`.
    """
    wanted = unique_by(lambda o: (o.node_id, o.content, None if across_threads else o.thread), observations)
    added = await store.insert_observations(tx, revision, wanted, across_threads=across_threads) if wanted else []
    revision.touch("observations_added", [o.id for o in added], observations=len(added))
    known_as = await aliases.names_of(tx, unique(o.node_id for o in added)) if added else {}
    await passages.index_memories(tx, revision, [_memory(o, known_as.get(o.node_id)) for o in added])
    return added


async def put_back(tx: Transaction, revision: Revision, observations: Sequence[Observation]) -> list[Observation]:
    """Attach statements again that their entities had; those that they do not have, under new ids, by who said them."""
    again = [replace(observation, id=new_id()) for observation in observations]
    added = await attach(tx, revision, again, across_threads=False)
    if added:
        await nodes.touch_nodes(tx, revision, unique(observation.node_id for observation in added))
    return added


async def replace_observation(tx: Transaction, revision: Revision, old: Observation, content: str) -> Observation:
    """Put another statement in the place of one; the one that the entity then has, with an id of its own."""
    if content == old.content:
        return old
    await _take_away(tx, revision, [old.id])
    new = replace(old, id=new_id(), content=content, created_by=revision.actor)
    added = await attach(tx, revision, [new], across_threads=False)
    if added:
        return new
    await _show_names(tx, revision, [old.node_id])  # What the entity has said already may not last.
    known = await store.find_observations(tx, revision, [(old.node_id, content)])
    return replace(new, id=known[(old.node_id, content, old.thread)])


async def remove_observations(tx: Transaction, revision: Revision, statements: Sequence[tuple[str, str]]) -> list[UUID]:
    """Take (entity, content) statements away; what is not there is passed over. The ids of those that were."""
    about = await nodes.find_named(tx, revision.graph, unique(entity for entity, _ in statements))
    keys = unique((about[entity].id, content) for entity, content in statements if entity in about)
    removed = await store.remove_observations(tx, revision, keys)
    await _note_removed(tx, revision, removed)
    await _show_names(tx, revision, unique(removed.values()))
    return list(removed)


async def remove_observations_by_id(tx: Transaction, revision: Revision, ids: Sequence[UUID]) -> list[UUID]:
    """Take observations away, by id; what is not there is passed over. The ids of those that were."""
    removed = await _take_away(tx, revision, ids)
    await _show_names(tx, revision, unique(removed.values()))
    return list(removed)


async def remove_expired(tx: Transaction, revision: Revision, *, limit: int) -> int:
    """Take observations away whose time has come, up to `limit`; how many."""
    ended = await store.list_expired_observations(tx, revision.graph, limit=limit)
    await remove_observations_by_id(tx, revision, ended)
    return len(ended)


async def find_observations(
    tx: Transaction, revision: Revision, keys: Sequence[tuple[UUID, str]]
) -> dict[tuple[UUID, str, str | None], UUID]:
    """Observations live at this revision by (node, content, thread), for these nodes and contents."""
    return await store.find_observations(tx, revision, keys)


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


async def list_observations(tx: Transaction, node_ids: Sequence[UUID]) -> list[Observation]:
    """Live observations of nodes, oldest first."""
    return await store.list_observations(tx, node_ids)


async def _take_away(tx: Transaction, revision: Revision, ids: Sequence[UUID]) -> dict[UUID, UUID]:
    removed = await store.remove_observations_by_id(tx, revision, ids)
    await _note_removed(tx, revision, removed)
    return removed


async def _note_removed(tx: Transaction, revision: Revision, removed: Mapping[UUID, UUID]) -> None:
    """Observations, by their nodes, leave search with this revision."""
    if removed:
        revision.touch("observations_removed", removed, observations=-len(removed))
        await passages.forget_memories(tx, revision, list(removed))
        await nodes.touch_nodes(tx, revision, unique(removed.values()))


async def _show_names(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Let entities be found by their names where nothing that lasts is left to find them by."""
    if node_ids:
        found = await aliases.names_of(tx, node_ids)
        await passages.show_names(tx, revision, [_name(known) for known in found.values()])


def _memory(o: Observation, known: KnownAs | None) -> Memory:
    about = " ".join(name for name in (known.name, known.aliases) if name) if known else None
    return Memory(
        o.id, o.node_id, Source.OBSERVATION, o.content, o.created_by, about, o.thread, o.said_at, o.expires_at
    )


def _name(known: KnownAs) -> Memory:
    return Memory(
        known.id, known.id, Source.NAME, known.name, known.created_by, known.aliases, expires_at=known.expires_at
    )
