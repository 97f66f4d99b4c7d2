"""Random histories: every kind of write, on few names, so that writes affect each other."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from recollect.curation.duplicates import service as duplicates
from recollect.curation.duplicates import store as profiles_of
from recollect.curation.labels import service as labels
from recollect.curation.labels.model import TagChange
from recollect.curation.merging import service as merging
from recollect.errors import NotFound, RecollectError
from recollect.fairness.computing import finish
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs.model import Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.hierarchy import service as hierarchy
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Draft
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, Rewrite, unique
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import NewRelation
from recollect.memory import remembering, revising, writing
from recollect.memory.model import MemoryPatch, MemoryRef, NewMemory
from recollect.postgres.sql import Query
from recollect.postgres.transactions import Transaction
from recollect.retrieval.recall.model import Question
from recollect.transfer.entities import import_entities
from recollect.transfer.formats.decoding import ParsedRecord as Brought
from recollect.transfer.model import Strategy
from recollect.transfer.records import EntityRecord
from tests.support.memories import Agent, Triple

NAMED = ("Ada", "Babbage", "Grace", "Ωmega")
NAMES = st.sampled_from(NAMED)
TEXTS = st.sampled_from(["likes tea", "likes coffee", "writes programs"])
THREADS = st.sampled_from([None, "monday"])
KINDS = st.sampled_from(["person", "cat", None])
TAGS = st.lists(st.sampled_from(["New", "new", "old"]), max_size=2).map(tuple)
IMPORTANCES = st.sampled_from([None, 1.0, 7.5])
HOURS = st.sampled_from([None, None, None, 1, -1])
"""Hours until something expires; negative ones mean that it has expired before it is written."""
PLACES = st.integers(0, 5)
"""Positions in a list, counted from the newest, and modulo its length."""

TRIPLES = st.lists(st.tuples(NAMES, NAMES, st.sampled_from(["knows", "admires"])), max_size=4)
METADATA = st.sampled_from([None, {}, {"since": 1815}, {"since": 1852}])
ENTITIES = st.builds(
    NewEntity,
    name=NAMES,
    kind=KINDS,
    observations=st.lists(TEXTS, max_size=4).map(tuple),
    tags=TAGS,
    importance=IMPORTANCES,
)
ITEMS = st.builds(
    NewMemory,
    text=TEXTS,
    about=st.lists(NAMES, max_size=2, unique=True).map(tuple),
    thread=THREADS,
    ttl_days=st.sampled_from([None, None, 0, 1.0]),
    tags=TAGS,
    importance=IMPORTANCES,
)
FIELDS = st.builds(
    NodeFields,
    name=st.one_of(st.none(), NAMES),
    kind=KINDS,
    content=st.one_of(st.none(), TEXTS),
    summary=st.sampled_from([None, "in short"]),
    tags=TAGS,
    importance=IMPORTANCES,
    thread=THREADS,
)
AMENDMENTS = st.builds(
    MemoryPatch,
    text=st.one_of(st.none(), TEXTS),
    tags=st.one_of(st.none(), TAGS),
    importance=IMPORTANCES,
    status=st.sampled_from([None, "active", "outdated"]),
    ttl_days=st.sampled_from([None, None, 0, 1.0]),
    reason=st.sampled_from([None, "was wrong"]),
    based_on=st.sampled_from([None, None, 1, 2]),
)


@dataclass(frozen=True)
class Known:
    """The ids of current objects, oldest first, to choose from."""

    memories: Sequence[Any]
    nodes: Sequence[Any]


Write = Callable[[Transaction, Revision, Known], Awaitable[object]]


def create(wanted: Sequence[NewEntity]) -> Write:
    return lambda tx, revision, _: entities.create_entities(tx, revision, wanted)


def observe(name: str, texts: Sequence[str], hours: int | None) -> Write:
    async def write(tx: Transaction, revision: Revision, _: Known) -> None:
        expires_at = None if hours is None else revision.at + timedelta(hours=hours)
        said = [NewObservation(name, text, expires_at=expires_at) for text in texts]
        await observations.add_observations(tx, revision, said)

    return write


def unobserve(statements: Sequence[tuple[str, str]]) -> Write:
    return lambda tx, revision, _: observations.remove_observations(tx, revision, statements)


def relate(triples: Sequence[Triple]) -> Write:
    wanted = [NewRelation(*triple) for triple in triples]
    return lambda tx, revision, _: relations.create_relations(tx, revision, wanted)


def put_edges(triples: Sequence[Triple], metadata: dict[str, Any] | None) -> Write:
    wanted = [NewRelation(*triple, metadata=metadata) for triple in triples]
    return lambda tx, revision, _: relations.upsert_relations(tx, revision, wanted)


def unrelate(triples: Sequence[Triple]) -> Write:
    return lambda tx, revision, _: relations.delete_relations(tx, revision, triples)


def delete(names: Sequence[str]) -> Write:
    return lambda tx, revision, _: writing.delete_entities(tx, revision, names)


def remember(items: Sequence[NewMemory]) -> Write:
    unasked = [Question(item.text, None, "none") for item in items]
    return lambda tx, revision, _: remembering.remember(tx, revision, items, unasked)


def put(fields: NodeFields, place: int | None, based_on: int | None, hours: int | None) -> Write:
    async def write(tx: Transaction, revision: Revision, known: Known) -> None:
        expires_at = None if hours is None else revision.at + timedelta(hours=hours)
        node_id = _chosen(known.nodes, place) if place is not None else None
        draft = Draft(replace(fields, expires_at=expires_at), node_id, based_on if node_id else None)
        await lineages.put_node(tx, revision, draft)

    return write


def rename(place: int, name: str) -> Write:
    async def write(tx: Transaction, revision: Revision, known: Known) -> None:
        head = await lineages.require_head(tx, revision.graph, _chosen(known.nodes, place))
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, name=name))])

    return write


def set_parent(name: str, parent: str | None) -> Write:
    return lambda tx, revision, _: hierarchy.set_parent(tx, revision, name, parent)


def merge(names: Sequence[str], target: str | None) -> Write:
    return lambda tx, revision, _: merging.merge_entities(tx, revision, names, target)


def revise(place: int, name: str | None, amendment: MemoryPatch) -> Write:
    async def write(tx: Transaction, revision: Revision, known: Known) -> None:
        target = MemoryRef(name=name) if name else MemoryRef(id=_chosen([*known.memories, *known.nodes], place))
        await revising.revise(tx, revision, target, amendment)

    return write


def forget(places: Sequence[int], names: Sequence[str], whole: bool) -> Write:
    async def write(tx: Transaction, revision: Revision, known: Known) -> None:
        ids = [_chosen([*known.nodes, *known.memories], place) for place in places]
        targets = [*(MemoryRef(id=i) for i in ids), *(MemoryRef(name=name) for name in names)]
        await revising.forget(tx, revision, targets, reason="was wrong", delete=whole)

    return write


def retag(names: Sequence[str], add: Sequence[str], remove: Sequence[str]) -> Write:
    wanted = [TagChange(name, tuple(add), tuple(remove)) for name in unique(names)]
    return lambda tx, revision, _: labels.retag(tx, revision, wanted)


def change(place: int, text: str | None, status: str | None, days: float | None) -> Write:
    async def write(tx: Transaction, revision: Revision, known: Known) -> None:
        wanted = revising.NodePatch(text=text, status=status, ttl_days=days)
        await revising.change(tx, revision, _chosen(known.nodes, place), wanted)

    return write


def compress(threshold: float) -> Write:
    async def write(tx: Transaction, revision: Revision, _: Known) -> None:
        profiles = await profiles_of.list_profiles(GraphView(tx, revision.graph))
        await duplicates.merge_groups(tx, revision, finish(duplicates.group_similar(profiles, threshold)), threshold)

    return write


def bring(records: Sequence[EntityRecord], strategy: Strategy) -> Write:
    items = [Brought(f"entities.{place}", record) for place, record in enumerate(records)]
    return lambda tx, revision, _: import_entities(tx, revision, items, strategy)


def _chosen(ids: Sequence[Any], place: int) -> Any:
    if not ids:
        raise NotFound("nothing lives yet")
    return ids[-1 - place % len(ids)]


def _step(write: Callable[..., Write], *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(st.just(write), st.tuples(*arguments))


PUTS = _step(put, FIELDS, st.one_of(st.none(), PLACES), st.sampled_from([None, None, 1, 2, 3]), HOURS)
STEPS = st.one_of(
    _step(create, st.lists(ENTITIES, min_size=1, max_size=3)),
    _step(create, st.lists(ENTITIES, min_size=1, max_size=3)),
    _step(observe, NAMES, st.lists(TEXTS, min_size=1, max_size=3), HOURS),
    _step(unobserve, st.lists(st.tuples(NAMES, TEXTS), max_size=3)),
    _step(relate, TRIPLES),
    _step(relate, TRIPLES),
    _step(put_edges, TRIPLES, METADATA),
    _step(unrelate, TRIPLES),
    _step(delete, st.lists(NAMES, max_size=2)),
    _step(remember, st.lists(ITEMS, max_size=3)),
    PUTS,
    _step(rename, PLACES, NAMES),
    _step(set_parent, NAMES, st.one_of(st.none(), NAMES)),
    _step(set_parent, NAMES, NAMES),
    _step(merge, st.lists(NAMES, min_size=2, max_size=3, unique=True), st.one_of(st.none(), NAMES)),
    _step(merge, st.lists(NAMES, min_size=1, max_size=3), NAMES),
    _step(revise, PLACES, st.one_of(st.none(), NAMES), AMENDMENTS),
    _step(forget, st.lists(PLACES, max_size=2), st.lists(NAMES, max_size=1), st.booleans()),
)
"""A write: its kind and its arguments."""

RECORDS = st.builds(
    EntityRecord,
    name=NAMES,
    entity_type=KINDS.map(lambda kind: kind or ""),
    observations=st.lists(TEXTS, max_size=2, unique=True),
    tags=TAGS.map(list),
    aliases=st.lists(NAMES, max_size=1),
    parent_id=st.one_of(st.none(), NAMES),
    text=st.one_of(st.none(), TEXTS),
)
CURATED = st.one_of(
    _step(retag, st.lists(NAMES, min_size=1, max_size=2), TAGS, TAGS),
    _step(
        change, PLACES, st.one_of(st.none(), NAMES), st.sampled_from([None, "archived"]), st.sampled_from([None, 1.0])
    ),
    _step(compress, st.sampled_from([0.3, 0.5, 0.8])),
    _step(bring, st.lists(RECORDS, min_size=1, max_size=3), st.sampled_from(list(Strategy))),
)
"""Writes that change many things at once."""

SETTLED = _step(create, st.lists(ENTITIES, min_size=3, max_size=4, unique_by=lambda entity: entity.name))
HISTORIES = st.builds(lambda first, steps: [first, *steps], SETTLED, st.lists(STEPS, min_size=3, max_size=12))


async def written(agent: Agent, step: tuple[Callable[..., Write], tuple[Any, ...]]) -> bool:
    """Do one step of a history, and return whether it was accepted. A refused step changes nothing."""
    write, arguments = step
    known = await _known(agent)
    try:
        async with agent.writing() as (tx, revision):
            await write(*arguments)(tx, revision, known)
    except RecollectError:
        return False
    return True


async def _known(agent: Agent) -> Known:
    live = (
        "graph_id = (SELECT id FROM graphs WHERE tenant_id = :tenant_id AND name = :graph) AND removed_revision IS NULL"
    )
    graph = agent.graph or agent.caller.default_graph
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        memories = await tx.fetch(Query.compile(f"SELECT id FROM observations WHERE {live} ORDER BY id"), graph=graph)
        heads = await tx.fetch(Query.compile(f"SELECT id FROM nodes WHERE {live} ORDER BY id"), graph=graph)
    return Known([row["id"] for row in memories], [row["id"] for row in heads])
