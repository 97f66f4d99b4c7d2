"""Use cases for programs that write many nodes or relations in one revision, each with its own outcome."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from recollect.errors import InvalidInput, RecollectError
from recollect.fairness.computing import collect_yielding
from recollect.graph.graphs.model import Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Draft, PutOutcome, not_found
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import ACTIVE, NodeFields, NodeHead, name_key, unique
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation, each_tag_once
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import EdgeUpsert, NewEdge
from recollect.memory.model import MemoryRef, expiry, reason_of
from recollect.postgres.transactions import Transaction


@dataclass(frozen=True, slots=True)
class NodeWrite:
    """A node to write: the one with this id, else the entity of this name, else a new fact.

    None leaves a field of a known node as it is. `observations`: what is said of an entity, as far as it is not known.
    `based_on`: the version that the writer had read. `ttl_days` counts from the write; 0: it never expires.
    """

    id: UUID | None = None
    name: str | None = None
    kind: str | None = None
    content: str | None = None
    observations: tuple[str, ...] = ()
    tags: tuple[str, ...] | None = None
    importance: float | None = None
    metadata: dict[str, Any] | None = None
    source: str | None = None
    thread: str | None = None
    said_at: datetime | None = None
    said_offset: int | None = None
    ttl_days: float | None = None
    reason: str | None = None
    based_on: int | None = None


class WriteOutcome(StrEnum):
    """What became of a node: it is new, it was updated, it was known already with the same content, or in conflict.

    In a conflict nothing was written, since there was a newer version than the one that the writer had read; in a graph
    with the policy `manual`, it was written beside that.
    """

    NEW = "new"
    UPDATED = "updated"
    KNOWN = "known"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class WrittenNode:
    """What became of a node; `version` is its newest. `observations_added`: those that it lacked."""

    id: UUID
    version: int
    outcome: WriteOutcome
    observations_added: int = 0


@dataclass(frozen=True, slots=True)
class RelationWrite:
    """A relation to write. Each end is a node's id or a name, which need not exist yet. `metadata` None: it stays."""

    source: MemoryRef
    type: str
    target: MemoryRef
    metadata: dict[str, Any] | None = None


NODE_FIELDS = ("kind", "content", "importance", "metadata", "source")
FACT_FIELDS = ("thread", "said_at", "said_offset")
"""The fields that a write sets if they are given: those of every node, and those of facts only."""

Prepared = Draft | WrittenNode | RecollectError
"""The draft of a node's version, the outcome of a node that needs no version, or its error."""


async def write_nodes(
    tx: Transaction, revision: Revision, writes: Sequence[NodeWrite]
) -> list[WrittenNode | RecollectError]:
    """Write nodes, best effort: return, for each in order, its outcome or the error that prevented the write.

    An outdated or archived entity is active again, and what was known of it is outdated; so is a fact that gets a new
    content. Errors are those of `lineages.put_nodes`, and InvalidInput for two items that write the same node, for what
    a fact cannot have, and for a new fact without content.
    """
    heads = await _heads(tx, revision, writes)
    prepared = await _prepared(revision, writes, heads)
    outcomes = iter(await lineages.put_nodes(tx, revision, [step for step in prepared if isinstance(step, Draft)]))
    written = [_written(next(outcomes)) if isinstance(step, Draft) else step for step in prepared]
    brought_back = [
        head
        for head, step, outcome in zip(heads, prepared, written, strict=True)
        if head is not None and head.is_hidden and isinstance(step, Draft) and isinstance(outcome, WrittenNode)
        if step.fields.status == ACTIVE
    ]
    await observations.outdate_former(tx, revision, brought_back)
    return await _attach_observations(tx, revision, writes, heads, written)


async def write_relations(
    tx: Transaction, revision: Revision, writes: Sequence[RelationWrite]
) -> list[EdgeUpsert | RecollectError]:
    """Write relations, best effort: for each, in order, its outcome, or NotFound for an id that no node has.

    A name that no node has gets a placeholder. A relation says something of its source, which it brings back where that
    is named.
    """
    ids = unique(end.id for write in writes for end in (write.source, write.target) if end.id is not None)
    homes = await nodes.find_homes(tx, ids) if ids else {}
    faults = [_missing_end(write, homes, revision.graph.id) for write in writes]
    valid = [write for write, fault in zip(writes, faults, strict=True) if fault is None]
    names = unique(end.name for write in valid for end in (write.source, write.target) if end.name is not None)
    named = await nodes.ensure_named(tx, revision, names) if names else {}
    sources = unique(named[write.source.name] for write in valid if write.source.name is not None)
    await observations.bring_back(tx, revision, [source.id for source in sources if source.status != ACTIVE])
    ends = {name: node.id for name, node in named.items()}
    edges = [
        NewEdge(_end(write.source, ends), _end(write.target, ends), write.type, metadata=write.metadata)
        for write in valid
    ]
    upserts = iter(await relations.upsert_edges(tx, revision, edges))
    return [next(upserts) if fault is None else fault for fault in faults]


async def _heads(tx: Transaction, revision: Revision, writes: Sequence[NodeWrite]) -> list[NodeHead | None]:
    """The node that each item writes, as it is now; None where there is none yet."""
    names = unique(write.name for write in writes if write.id is None and write.name is not None)
    named = await naming.find_named(GraphView(tx, revision.graph), names)
    ids = [write.id or (named[write.name].id if write.name in named else None) for write in writes]
    known = [id_ for id_ in ids if id_ is not None]
    await nodes.require_readable(tx, revision.graph, known)
    found = await nodes.read_heads(tx, revision.graph, known)
    heads = [None if id_ is None else found.get(id_) for id_ in ids]
    return [None if head is None or head.placeholder else head for head in heads]


async def _prepared(
    revision: Revision, writes: Sequence[NodeWrite], heads: Sequence[NodeHead | None]
) -> list[Prepared]:
    seen = set[UUID | str]()

    def prepare(item: tuple[NodeWrite, NodeHead | None]) -> Prepared:
        write, head = item
        key = head.id if head is not None else None if write.name is None else name_key(write.name)
        try:
            if key in seen:
                raise InvalidInput("Another item of this request writes the same node", path=_named_by(write))
            return _draft(revision, write, head)
        except RecollectError as error:
            return error
        finally:
            if key is not None:
                seen.add(key)

    return await collect_yielding(map(prepare, zip(writes, heads, strict=True)))


def _draft(revision: Revision, write: NodeWrite, head: NodeHead | None) -> Draft | WrittenNode:
    """The version to write, or the outcome of a write that is based on an older version than the newest."""
    if head is None:
        return Draft(_new_fields(write, revision.at))
    if head.name is None:
        _require_fact(write)
    fields = _changed_fields(write, head.fields, revision.at)
    is_overtaken = write.based_on is not None and write.based_on < head.version
    if is_overtaken and revision.graph.conflict_policy != "manual" and not fields.is_same_as(head.fields):
        return WrittenNode(head.id, head.version, WriteOutcome.CONFLICT)
    return Draft(fields, head.id, based_on=write.based_on)


def _new_fields(write: NodeWrite, now: datetime) -> NodeFields:
    if write.id is not None:
        raise not_found(write.id)
    if write.based_on is not None:
        raise InvalidInput("There is no such node, and so no version of it", path="based_on_version")
    if write.name is None:
        _require_fact(write)
        if write.content is None:
            raise InvalidInput("Give the content of the new fact, or the id or the name of a node", path="content")
    said_at = now if write.name is None else None
    return _changed_fields(write, NodeFields(name=write.name, said_at=said_at), now)


def _changed_fields(write: NodeWrite, before: NodeFields, now: datetime) -> NodeFields:
    """The fields of a node after the changes that an item makes.

    A fact has a thread and a time; those of an item about an entity belong to its observations.
    """
    if before.status != ACTIVE and (before.name is not None or write.content is not None):
        before = before.brought_back()
        before = before if before.name is None else replace(before, content=None, summary=None)
    names = NODE_FIELDS if before.name is not None else (*NODE_FIELDS, *FACT_FIELDS)
    given = {name: value for name in names if (value := getattr(write, name)) is not None}
    if write.tags is not None:
        given["tags"] = each_tag_once(write.tags)
    if write.ttl_days is not None:
        given |= {"ttl_days": write.ttl_days or None, "expires_at": expiry(now, write.ttl_days)}
    reason = reason_of(before.reason, write.reason, status_changes=False)
    return replace(before, **given, reason=reason)


def _require_fact(write: NodeWrite) -> None:
    """Raise InvalidInput for a name or observations, which only entities have."""
    if write.name is not None:
        raise InvalidInput("A fact has no name", path="name")
    if write.observations:
        raise InvalidInput("A fact has no observations: write another fact, or name an entity", path="observations")


def _written(outcome: PutOutcome | RecollectError) -> WrittenNode | RecollectError:
    if isinstance(outcome, RecollectError):
        return outcome
    if outcome.created:
        return WrittenNode(outcome.node_id, outcome.version, WriteOutcome.NEW)
    if outcome.unchanged:
        return WrittenNode(outcome.node_id, outcome.version, WriteOutcome.KNOWN)
    return WrittenNode(
        outcome.node_id, outcome.version, WriteOutcome.CONFLICT if outcome.conflict else WriteOutcome.UPDATED
    )


async def _attach_observations(
    tx: Transaction,
    revision: Revision,
    writes: Sequence[NodeWrite],
    heads: Sequence[NodeHead | None],
    written: Sequence[WrittenNode | RecollectError],
) -> list[WrittenNode | RecollectError]:
    """Attach the observations of the entities that were written; return the outcomes with the number of new ones."""
    said = [
        (_name_of(write, head), text, write)
        for write, head, outcome in zip(writes, heads, written, strict=True)
        if isinstance(outcome, WrittenNode) and outcome.outcome is not WriteOutcome.CONFLICT
        for text in write.observations
    ]
    added = await observations.add_observations(tx, revision, map(_observation, said)) if said else []
    counts = Counter(observation.node_id for observation in added)
    return [outcome if isinstance(outcome, RecollectError) else _with_count(outcome, counts) for outcome in written]


def _observation(said: tuple[str, str, NodeWrite]) -> NewObservation:
    """A new observation on the entity of this name, with the time and the thread of its item."""
    name, text, write = said
    return NewObservation(name, text, thread=write.thread, said_at=write.said_at, said_offset=write.said_offset)


def _with_count(written: WrittenNode, counts: Mapping[UUID, int]) -> WrittenNode:
    count = counts.get(written.id, 0)
    is_more = bool(count) and written.outcome is WriteOutcome.KNOWN
    return replace(written, outcome=WriteOutcome.UPDATED if is_more else written.outcome, observations_added=count)


def _name_of(write: NodeWrite, head: NodeHead | None) -> str:
    name = write.name if head is None else head.name
    assert name is not None, "facts have no observations"
    return name


def _named_by(write: NodeWrite) -> str:
    return "name" if write.id is None else "id"


def _missing_end(write: RelationWrite, homes: Mapping[UUID, UUID], graph_id: UUID) -> RecollectError | None:
    """NotFound for an end whose id no node of the graph has."""
    for end in (write.source, write.target):
        if end.id is not None and homes.get(end.id) != graph_id:
            return not_found(end.id)
    return None


def _end(end: MemoryRef, ids: Mapping[str, UUID]) -> UUID:
    if end.id is not None:
        return end.id
    assert end.name is not None
    return ids[end.name]
