"""Use cases of observations: attach them to entities, find them, change them, remove them."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from uuid import UUID

from recollect.errors import ErrorCode, TooLarge
from recollect.fairness.computing import batches, collect_yielding, sized_batches
from recollect.graph.aliases import service as aliases
from recollect.graph.aliases.model import NamedEntity
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, NodeHead, Rewrite, unique, unique_by
from recollect.graph.observations import store
from recollect.graph.observations.model import (
    Key,
    MeasuredObservation,
    NewObservation,
    Observation,
    ObservationOutline,
    RemovedStatements,
    count_active,
    own_texts,
)
from recollect.graph.observations.store import RemovedObservation
from recollect.graph.passages import service as passages
from recollect.graph.passages.labels import memory_labels
from recollect.graph.passages.model import IndexedText, Source
from recollect.ids import new_id
from recollect.postgres.transactions import Transaction

PAGE_OBSERVATIONS = 1_000
"""Observations that a large write reads and changes at a time; their bytes are bounded, too (`nodes.PAGE_BYTES`)."""

MAX_BROUGHT_BACK = 5_000
"""Observations that become outdated when one write brings entities back, at most: some seconds under a graph's lock."""


async def add_observations(
    tx: Transaction,
    revision: Revision,
    observations: Iterable[NewObservation],
    *,
    named: Sequence[str] | None = None,
    across_threads: bool = True,
    brings_back: bool = True,
    exactly: bool = False,
) -> list[Observation]:
    """Attach observations to existing entities; return those that the entities did not have yet, in order.

    `named`: the entities that must exist, also those to which nothing is added (default: those of `observations`).
    `across_threads`: an entity has an observation once, whichever thread it came from; else once per thread.
    `brings_back`: an outdated or archived entity becomes active when an observation is attached to it, and its former
    observations become outdated. `exactly`: another form of a name is another name. Raises NotFound with the name of
    the first entity that does not exist, TooLarge for more than MAX_BROUGHT_BACK former observations.
    """
    observations = await collect_yielding(observations)
    required_names = unique(new.entity for new in observations) if named is None else named
    entities = await aliases.require_entities(tx, revision.graph, required_names, exactly=exactly)
    known_as = {entity.id: entity for entity in entities.values()}
    hidden = {i for i, entity in known_as.items() if entity.status != "active"} if brings_back else set[UUID]()
    if hidden:
        node_ids = unique(entities[new.entity].id for new in observations)
        await bring_back(tx, revision, [node_id for node_id in node_ids if node_id in hidden])
    attached = (new.attach_to(entities[new.entity].id, revision) for new in observations)
    added = await attach(tx, revision, attached, across_threads=across_threads, known_as=known_as)
    if added:
        touched = unique(observation.node_id for observation in added)
        found_by_name = [node_id for node_id in touched if known_as[node_id].found_by_name_only or node_id in hidden]
        await passages.hide_names(tx, revision, found_by_name)
    return added


async def attach(
    tx: Transaction,
    revision: Revision,
    observations: Iterable[Observation],
    *,
    across_threads: bool,
    known_as: Mapping[UUID, NamedEntity] | None = None,
) -> list[Observation]:
    """Attach observations to live nodes, by id; return those that the nodes did not have yet.

    An outdated observation and an active one are two, even with the same text. `across_threads`: as for
    `add_observations`. `known_as`: the names of the nodes, where the caller has read them.
    """
    given = await collect_yielding(observations)
    distinct = unique_by(lambda o: (o.node_id, o.content, None if across_threads else o.thread, o.status), given)
    added = await store.insert_observations(tx, revision, distinct, across_threads=across_threads) if distinct else []
    revision.touch("observations_added", [o.id for o in added], observations=count_active(added))
    if known_as is None:
        known_as = await aliases.names_of(tx, unique(o.node_id for o in added)) if added else {}
    known = known_as
    await passages.index_memories(tx, revision, (_memory(o, known.get(o.node_id)) for o in added))
    return added


async def put_back(tx: Transaction, revision: Revision, observations: Sequence[Observation]) -> list[Observation]:
    """Attach former observations of entities again, under their former ids; return those that the entities lacked.

    An observation whose id a live one has gets a new id.
    """
    live = await store.observations_by_id(tx, revision.graph, [observation.id for observation in observations])
    restored = [replace(o, id=new_id(), first_revision=None) if o.id in live else o for o in observations]
    return await attach(tx, revision, restored, across_threads=False)


async def rewrite(
    tx: Transaction, revision: Revision, before: Sequence[Observation], after: Iterable[Observation]
) -> list[Observation]:
    """Give live observations new versions under their ids, each once; return those that differ from the former ones.

    The former versions stay in history. `after` has the new version of each of `before`, in order, with the same
    entity. An observation that becomes outdated replaces one that already was and has the same text: an outdated text
    is stored once.
    """
    followed = await collect_yielding((old, new.following(old)) for old, new in zip(before, after, strict=True))
    differing = [(old, new) for old, new in followed if new.version != old.version]
    replaced = await _remove_replaced(tx, revision, differing)
    changed = [(old, new) for old, new in differing if new.id not in replaced]
    if changed:
        await _write(tx, revision, changed)
    return [new for _, new in differing]


async def _write(tx: Transaction, revision: Revision, changed: Sequence[tuple[Observation, Observation]]) -> None:
    """Store new versions of observations, given with the former ones, and have search find them."""
    olds, news = [old for old, _ in changed], [new for _, new in changed]
    await store.rewrite_observations(tx, revision, news)
    count_change = count_active(news) - count_active(olds)
    revision.touch("observations_rewritten", [new.id for new in news], observations=count_change)
    touched = unique(new.node_id for new in news)
    known_as = await aliases.names_of(tx, touched)
    await passages.renew_memories(tx, revision, (_memory(new, known_as.get(new.node_id)) for new in news))
    await passages.hide_names(tx, revision, touched)
    await _show_names(tx, revision, touched)
    await nodes.touch_nodes(tx, revision, touched)


async def rewrite_one(tx: Transaction, revision: Revision, old: Observation, new: Observation) -> Observation:
    """Give a live observation a new version; return the observation that then has its text.

    Where the entity has another observation with the new text already, that one stays, gains the attributes of the new
    version, and is returned: a text is not stored twice. It expires with the new version where that changed the expiry,
    else at the later time of both.
    """
    known = (await store.find_observations(tx, revision, [(new.node_id, new.content)])).get(new.key)
    if known is None or known.id == old.id or not new.is_active:
        await rewrite(tx, revision, [old], [new])
        return new.following(old)
    await remove_observations_by_id(tx, revision, [old.id])
    later = known.merged_with(new).expires_at
    expires_at = later if new.expires_at == old.expires_at else new.expires_at
    merged = replace(known.with_attributes(new.enriched(known)), expires_at=expires_at)
    await rewrite(tx, revision, [known], [merged])
    return merged.following(known)


async def enrich(tx: Transaction, revision: Revision, duplicates: Sequence[Observation]) -> list[Observation]:
    """Complete active observations by the attributes of `duplicates`, in any thread; return those that changed.

    An observation then expires with the last of its duplicates. `duplicates` have nodes and contents, and need not be
    stored.
    """
    if not duplicates:
        return []
    by_content: dict[tuple[UUID, str], list[Observation]] = {}
    for duplicate in duplicates:
        by_content.setdefault((duplicate.node_id, duplicate.content), []).append(duplicate)
    known = list((await store.find_observations(tx, revision, list(by_content))).values())
    enriched = (reduce(Observation.merged_with, _active(by_content[o.node_id, o.content]), o) for o in known)
    return await rewrite(tx, revision, known, enriched)


async def remove_observations(
    tx: Transaction, revision: Revision, statements: Sequence[tuple[str, str]]
) -> RemovedStatements:
    """Remove observations by (entity, content), skipping unknown ones; return which were there."""
    named = await naming.find_named(GraphView(tx, revision.graph), unique(entity for entity, _ in statements))
    keys = unique((named[entity].id, content) for entity, content in statements if entity in named)
    removed = await store.remove_observations(tx, revision, keys)
    await _note_removed(tx, revision, removed)
    there = {(observation.node_id, observation.content) for observation in removed}
    known = {(entity, text) for entity, text in statements if entity in named}
    return RemovedStatements({pair for pair in known if (named[pair[0]].id, pair[1]) in there}, set(named))


async def remove_observations_by_id(tx: Transaction, revision: Revision, ids: Sequence[UUID]) -> list[UUID]:
    """Remove observations by id, skipping unknown ones; return the ids of the removed ones."""
    removed = await store.remove_observations_by_id(tx, revision, ids)
    await _note_removed(tx, revision, removed)
    return [observation.id for observation in removed]


async def remove_expired(tx: Transaction, revision: Revision, *, limit: int) -> int:
    """Remove expired observations, up to `limit`; return how many."""
    expired = await store.list_expired_observations(tx, revision.graph, limit=limit)
    await remove_observations_by_id(tx, revision, expired)
    return len(expired)


async def find_observations(
    tx: Transaction, revision: Revision, keys: Sequence[tuple[UUID, str]]
) -> dict[Key, Observation]:
    """The active observations at this revision with these nodes and contents, by (node, content, thread)."""
    return await store.find_observations(tx, revision, keys)


async def observations_by_id(tx: Transaction, graph: Graph, ids: Sequence[UUID]) -> dict[UUID, Observation]:
    """Live observations of a graph by id, outdated ones too; unknown ids are left out."""
    return await store.observations_by_id(tx, graph, ids)


async def nodes_of_observations(view: GraphView, ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """The nodes of live observations, by the observation's id; unknown ids are left out."""
    if view.at is not None:
        return await store.past_nodes_of(view, ids)
    return {o.id: o.node_id for o in (await store.observations_by_id(view.tx, view.graph, ids)).values()}


async def list_observations(tx: Transaction, node_ids: Sequence[UUID]) -> list[Observation]:
    """Live observations of nodes, outdated ones too, oldest first."""
    return await store.list_observations(tx, node_ids)


async def pages_saying(tx: Transaction, keys: Sequence[tuple[UUID, str]]) -> list[list[UUID]]:
    """The ids of the live observations with these nodes and contents, outdated ones too, in pages.

    A page has PAGE_OBSERVATIONS and `nodes.PAGE_BYTES` at most, or one observation that is larger.
    """
    return _pages(await store.measure_saying(tx, unique(keys))) if keys else []


async def measure_of_nodes(
    tx: Transaction, node_ids: Sequence[UUID], *, limit: int | None = None
) -> list[MeasuredObservation]:
    """The live observations of nodes, outdated ones too, and the bytes of each, oldest first; at most `limit`."""
    return await store.measure_of_nodes(tx, node_ids, only_active=False, limit=limit) if node_ids else []


def outlines_of_nodes(tx: Transaction, node_ids: Sequence[UUID]) -> AsyncIterator[ObservationOutline]:
    """What tells the live observations of nodes apart, outdated ones too; a few are read at a time."""
    return store.outlines_of_nodes(tx, node_ids)


def _pages(sizes: Mapping[UUID, int]) -> list[list[UUID]]:
    return list(sized_batches(sizes, sizes.__getitem__, max_items=PAGE_OBSERVATIONS, max_size=nodes.PAGE_BYTES))


async def _remove_replaced(
    tx: Transaction, revision: Revision, changed: Sequence[tuple[Observation, Observation]]
) -> set[UUID]:
    """Remove outdated observations with the same key as one that a change makes outdated; return their ids."""
    newly_outdated = [new.key for old, new in changed if not new.is_active and (old.is_active or new.key != old.key)]
    removed = await store.remove_outdated(tx, revision, newly_outdated) if newly_outdated else []
    await _note_removed(tx, revision, removed)
    return {observation.id for observation in removed}


async def bring_back(
    tx: Transaction, revision: Revision, node_ids: Sequence[UUID], *, fields: Mapping[UUID, NodeFields] | None = None
) -> None:
    """Make entities active again, and what was known of them outdated, so that nothing forgotten comes back.

    `fields`: those that an entity gets; else it keeps its own, without its text (which becomes an outdated observation)
    and its summary (which has no status, and stays in history only). Raises TooLarge as `outdate_former` does.
    """
    outdated, given = 0, fields or {}
    for page in batches(node_ids, nodes.FEW_READ):
        heads = await nodes.read_heads(tx, revision.graph, page)
        outdated += await outdate_former(tx, revision, list(heads.values()), most=MAX_BROUGHT_BACK - outdated)
        own = {i: replace(h.fields.brought_back(), content=None, summary=None) for i, h in heads.items()}
        await nodes.rewrite(tx, revision, [Rewrite(head, given.get(i, own[i])) for i, head in heads.items()])


async def outdate_former(
    tx: Transaction, revision: Revision, heads: Sequence[NodeHead], *, most: int = MAX_BROUGHT_BACK
) -> int:
    """Make all that is known of these entities outdated, for the reason of each: the caller makes them active.

    The text of an entity becomes an outdated observation; the caller replaces it. Facts are left out. Returns how many
    observations were active. Raises TooLarge for more than `most`: the graph's lock is held meanwhile.
    """
    reasons = {head.id: head.reason for head in heads if head.name is not None}
    if not reasons:
        return 0
    former = await store.measure_of_nodes(tx, list(reasons), only_active=True, limit=most + 1)
    if len(former) > most:
        raise TooLarge(
            f"The outdated or archived entities have more than {MAX_BROUGHT_BACK} observations, each of which would "
            "have to be marked as outdated. Make such an entity active first (revise, status), or name another one.",
            code=ErrorCode.REQUEST_TOO_LARGE,
        )
    for page in _pages({o.id: o.bytes for o in former}):
        active = list((await store.observations_by_id(tx, revision.graph, page)).values())
        await rewrite(tx, revision, active, (o.as_outdated(reasons[o.node_id]) for o in active))
    texts = own_texts([head for head in heads if head.id in reasons], None, revision.at)
    outdated_texts = [replace(text, id=new_id()).as_outdated(reasons[text.node_id]) for text in texts]
    await attach(tx, revision, outdated_texts, across_threads=False)
    return len(former)


async def _note_removed(tx: Transaction, revision: Revision, removed: Sequence[RemovedObservation]) -> None:
    """Record removed observations in the revision, take them out of search, and index bare entities by their names."""
    if removed:
        active = sum(observation.status == "active" for observation in removed)
        ids, touched = [o.id for o in removed], unique(o.node_id for o in removed)
        revision.touch("observations_removed", ids, observations=-active)
        await passages.forget_memories(tx, revision, ids)
        await nodes.touch_nodes(tx, revision, touched)
        await _show_names(tx, revision, touched)


async def _show_names(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Index entities by their names where no lasting text is left by which search could find them."""
    if node_ids:
        named = await aliases.names_of(tx, node_ids)
        await passages.show_names(tx, revision, [_name(entity) for entity in named.values()])


def _memory(o: Observation, entity: NamedEntity | None) -> IndexedText:
    about = " ".join(name for name in (entity.name, entity.aliases) if name) if entity else None
    return IndexedText(
        o.id,
        o.node_id,
        Source.OBSERVATION,
        o.content,
        o.created_by,
        about,
        o.thread,
        o.said_at,
        o.expires_at,
        o.kind,
        list(o.tags) or None,
        o.importance,
        outdated=not o.is_active,
        said_offset=o.said_offset,
        name=entity.name if entity else None,
        labels=memory_labels(o.kind, o.tags, o.source, o.metadata),
    )


def _active(observations: Iterable[Observation]) -> list[Observation]:
    return [observation for observation in observations if observation.is_active]


def _name(entity: NamedEntity) -> IndexedText:
    return IndexedText(
        entity.id, entity.id, Source.NAME, entity.name, entity.created_by, entity.aliases, expires_at=entity.expires_at
    )
