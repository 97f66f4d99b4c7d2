"""Use cases of observations: attach statements to entities, find them, take them away."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from uuid import UUID

from recollect.errors import ErrorCode, TooLarge
from recollect.graph.aliases import service as aliases
from recollect.graph.aliases.model import NamedEntity
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import Rewrite, unique, unique_by
from recollect.graph.observations import store
from recollect.graph.observations.model import Key, NewObservation, Observation, count_active, own_texts
from recollect.graph.observations.store import RemovedObservation
from recollect.graph.passages import service as passages
from recollect.graph.passages.model import IndexedText, Source
from recollect.ids import new_id
from recollect.platform.computing import each
from recollect.platform.transactions import Transaction

MAX_REVIVED = 5_000
"""Statements that one write outdates at most, of entities which it revives: some seconds under a graph's lock."""


async def add_observations(
    tx: Transaction,
    revision: Revision,
    observations: Sequence[NewObservation],
    *,
    named: Sequence[str] | None = None,
    across_threads: bool = True,
    revive: bool = True,
) -> list[Observation]:
    """Attach statements to entities that exist; those that they did not have yet, in order.

    `named`: the entities that must exist, those to which nothing is added too (default: those of `observations`).
    `across_threads`: an entity has a statement once, whichever thread it came from; else once a thread.
    `revive`: an outdated or archived entity is active again where something is told of it, and what it said before is
    outdated. Raises NotFound naming the first entity that is not there, TooLarge for more than MAX_REVIVED of these.
    """
    wanted_names = unique(new.entity for new in observations) if named is None else named
    entities = await aliases.require_entities(tx, revision.graph, wanted_names)
    wanted = await each(observations, lambda new: new.on(entities[new.entity].id, revision))
    known_as = {entity.id: entity for entity in entities.values()}
    lapsed = {i for i, entity in known_as.items() if entity.status != "active"} if revive else set[UUID]()
    if lapsed:
        await _revive(tx, revision, unique(o.node_id for o in wanted if o.node_id in lapsed))
    added = await attach(tx, revision, wanted, across_threads=across_threads, known_as=known_as)
    if added:
        touched = unique(observation.node_id for observation in added)
        named_alone = [node_id for node_id in touched if known_as[node_id].silent or node_id in lapsed]
        await passages.hide_names(tx, revision, named_alone)
    return added


async def attach(
    tx: Transaction,
    revision: Revision,
    observations: Iterable[Observation],
    *,
    across_threads: bool,
    known_as: Mapping[UUID, NamedEntity] | None = None,
) -> list[Observation]:
    """Attach statements to live nodes, by id; those that they did not have yet.

    One that is outdated is another than one that is told. `across_threads`: as of `add_observations`. `known_as`: how
    the nodes are known, where the caller knows it.
    """
    wanted = unique_by(lambda o: (o.node_id, o.content, None if across_threads else o.thread, o.status), observations)
    added = await store.insert_observations(tx, revision, wanted, across_threads=across_threads) if wanted else []
    revision.touch("observations_added", [o.id for o in added], observations=count_active(added))
    if known_as is None:
        known_as = await aliases.names_of(tx, unique(o.node_id for o in added)) if added else {}
    known = known_as
    await passages.index_memories(tx, revision, await each(added, lambda o: _memory(o, known.get(o.node_id))))
    return added


async def put_back(tx: Transaction, revision: Revision, observations: Sequence[Observation]) -> list[Observation]:
    """Attach statements again that their entities had; those that they do not have, as they were, under their ids.

    Under new ones where these are taken by what lives.
    """
    live = await store.observations_by_id(tx, revision.graph, [observation.id for observation in observations])
    again = [replace(o, id=new_id(), first_revision=None) if o.id in live else o for o in observations]
    return await attach(tx, revision, again, across_threads=False)


async def rewrite(
    tx: Transaction, revision: Revision, before: Sequence[Observation], after: Sequence[Observation]
) -> None:
    """Give live observations new versions under their ids, each once; what they were stays in history.

    `after` are those of `before`, in order, as they become: of the same entities. One that becomes outdated takes the
    place of one that was and says the same: a statement is kept once.
    """
    changed = [(old, new) for old, new in zip(before, after, strict=True) if not new.says(old)]
    replaced = await _remove_replaced(tx, revision, changed)
    changed = [(old, new) for old, new in changed if new.id not in replaced]
    if not changed:
        return
    olds, news = [old for old, _ in changed], [new for _, new in changed]
    await store.rewrite_observations(tx, revision, news)
    told = count_active(news) - count_active(olds)
    revision.touch("observations_rewritten", [new.id for new in news], observations=told)
    touched = unique(new.node_id for new in news)
    known_as = await aliases.names_of(tx, touched)
    await passages.renew_memories(tx, revision, await each(news, lambda new: _memory(new, known_as.get(new.node_id))))
    await passages.hide_names(tx, revision, touched)
    await _show_names(tx, revision, touched)
    await nodes.touch_nodes(tx, revision, touched)


async def rewrite_one(tx: Transaction, revision: Revision, old: Observation, new: Observation) -> Observation:
    """Give a live observation a new version; what it then is.

    Where its entity says just that already, that one stays, gains what the new version says of itself beside its text,
    and is answered: a statement is not told twice. It ends with the new version where that has another end than before,
    else with the one of both that lasts longer.
    """
    known = (await store.find_observations(tx, revision, [(new.node_id, new.content)])).get(new.key)
    if known is None or known.id == old.id or not new.is_active:
        await rewrite(tx, revision, [old], [new])
        return new
    await remove_observations_by_id(tx, revision, [old.id])
    longer = known.united(new).expires_at
    ends = longer if new.expires_at == old.expires_at else new.expires_at
    gained = replace(known.with_attributes(new.enriched(known)), expires_at=ends)
    await rewrite(tx, revision, [known], [gained])
    return gained


async def enrich(tx: Transaction, revision: Revision, told: Sequence[Observation]) -> list[Observation]:
    """Give active statements what others that say the same, in whichever thread, say beside it; those that changed.

    They last as long as the one that lasts longest. `told` have nodes and contents, and need not be stored.
    """
    if not told:
        return []
    saying: dict[tuple[UUID, str], list[Observation]] = {}
    for observation in told:
        saying.setdefault((observation.node_id, observation.content), []).append(observation)
    known = list((await store.find_observations(tx, revision, list(saying))).values())
    richer = await each(known, lambda one: reduce(Observation.united, _active(saying[one.node_id, one.content]), one))
    await rewrite(tx, revision, known, richer)
    return [new for old, new in zip(known, richer, strict=True) if not new.says(old)]


async def remove_observations(tx: Transaction, revision: Revision, statements: Sequence[tuple[str, str]]) -> list[UUID]:
    """Take (entity, content) statements away; what is not there is passed over. The ids of those that were."""
    about = await nodes.find_named(GraphView(tx, revision.graph), unique(entity for entity, _ in statements))
    keys = unique((about[entity].id, content) for entity, content in statements if entity in about)
    removed = await store.remove_observations(tx, revision, keys)
    await _note_removed(tx, revision, removed)
    return [observation.id for observation in removed]


async def remove_observations_by_id(tx: Transaction, revision: Revision, ids: Sequence[UUID]) -> list[UUID]:
    """Take observations away, by id; what is not there is passed over. The ids of those that were."""
    removed = await store.remove_observations_by_id(tx, revision, ids)
    await _note_removed(tx, revision, removed)
    return [observation.id for observation in removed]


async def remove_expired(tx: Transaction, revision: Revision, *, limit: int) -> int:
    """Take observations away whose time has come, up to `limit`; how many."""
    ended = await store.list_expired_observations(tx, revision.graph, limit=limit)
    await remove_observations_by_id(tx, revision, ended)
    return len(ended)


async def find_observations(
    tx: Transaction, revision: Revision, keys: Sequence[tuple[UUID, str]]
) -> dict[Key, Observation]:
    """What is told at this revision by (node, content, thread), for these nodes and contents; outdated ones are not."""
    return await store.find_observations(tx, revision, keys)


async def observations_by_id(tx: Transaction, graph: Graph, ids: Sequence[UUID]) -> dict[UUID, Observation]:
    """Live observations of a graph by id, outdated ones too; those that are not there are left out."""
    return await store.observations_by_id(tx, graph, ids)


async def nodes_of_observations(view: GraphView, ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """What live observations are about; those that are not there are left out."""
    if view.at is not None:
        return await store.past_nodes_of(view, ids)
    return {o.id: o.node_id for o in (await store.observations_by_id(view.tx, view.graph, ids)).values()}


async def list_observations(tx: Transaction, node_ids: Sequence[UUID]) -> list[Observation]:
    """Live observations of nodes, outdated ones too, oldest first."""
    return await store.list_observations(tx, node_ids)


async def _remove_replaced(
    tx: Transaction, revision: Revision, changed: Sequence[tuple[Observation, Observation]]
) -> set[UUID]:
    """Take away what was outdated before and says what one of the changed becomes as outdated; the ids."""
    becoming = [new.key for old, new in changed if not new.is_active and (old.is_active or new.key != old.key)]
    removed = await store.remove_outdated(tx, revision, becoming) if becoming else []
    await _note_removed(tx, revision, removed)
    return {observation.id for observation in removed}


async def _revive(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Let entities be active again; what they said before is outdated, so that nothing forgotten comes back with them.

    A text of its own becomes an outdated statement, and a summary, which has no status, stays in history. Raises
    TooLarge for entities that say very much: the graph's lock is held meanwhile.
    """
    heads = await nodes.read_heads(tx, revision.graph, node_ids)
    said = [o for o in await store.list_observations(tx, list(heads)) if o.is_active]
    if len(said) > MAX_REVIVED:
        raise TooLarge(
            f"What was outdated or archived says more than {MAX_REVIVED} things, each of which would be outdated by "
            "itself. Make the entity active first (revise, status), or tell it of another one.",
            code=ErrorCode.REQUEST_TOO_LARGE,
        )
    await rewrite(tx, revision, said, await each(said, lambda o: o.as_outdated(heads[o.node_id].reason)))
    texts = own_texts(heads.values(), None, revision.at)
    active = [
        Rewrite(h, replace(h.fields, status="active", reason=None, content=None, summary=None)) for h in heads.values()
    ]
    await nodes.rewrite(tx, revision, active)
    past = [replace(text, id=new_id()).as_outdated(heads[text.node_id].reason) for text in texts]
    await attach(tx, revision, past, across_threads=False)


async def _note_removed(tx: Transaction, revision: Revision, removed: Sequence[RemovedObservation]) -> None:
    """Observations leave search with this revision; where nothing else is told of them, their entities' names stay."""
    if removed:
        told = sum(observation.status == "active" for observation in removed)
        ids, touched = [o.id for o in removed], unique(o.node_id for o in removed)
        revision.touch("observations_removed", ids, observations=-told)
        await passages.forget_memories(tx, revision, ids)
        await nodes.touch_nodes(tx, revision, touched)
        await _show_names(tx, revision, touched)


async def _show_names(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Let entities be found by their names where nothing that lasts is left to find them by."""
    if node_ids:
        found = await aliases.names_of(tx, node_ids)
        await passages.show_names(tx, revision, [_name(known) for known in found.values()])


def _memory(o: Observation, known: NamedEntity | None) -> IndexedText:
    about = " ".join(name for name in (known.name, known.aliases) if name) if known else None
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
    )


def _active(told: Iterable[Observation]) -> list[Observation]:
    return [observation for observation in told if observation.is_active]


def _name(known: NamedEntity) -> IndexedText:
    return IndexedText(
        known.id, known.id, Source.NAME, known.name, known.created_by, known.aliases, expires_at=known.expires_at
    )
