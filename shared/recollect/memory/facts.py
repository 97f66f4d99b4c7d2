"""Use cases of single nodes by id: make facts and entities, read, change and delete them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.errors import InvalidInput
from recollect.graph.entities import service as entities
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, GraphHead, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Version, not_found
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NewFact, NodeFields, Rewrite, unique
from recollect.graph.passages import service as passages
from recollect.graph.relations import service as relations
from recollect.memory import links
from recollect.memory.links import RequestedLink
from recollect.memory.model import expiry, reason_of
from recollect.platform.db import Transaction

SUMMARIZES = "SUMMARIZES"
"""The type of a relation from a fact to one that it sums up."""

MAX_NAME = 512
"""Characters of an entity's name, at most."""


@dataclass(frozen=True, slots=True)
class NodePatch:
    """What to change of a node; None leaves it as it is. `text`: an entity's name, a fact's content.

    `kind` is an entity's, `fact_kind` a fact's. `expires_at` wins over `ttl_days`, which counts from the change;
    `never_expires` over both. `reason`: why, kept with the version.
    """

    text: str | None = None
    kind: str | None = None
    fact_kind: str | None = None
    metadata: dict[str, Any] | None = None
    status: str | None = None
    source: str | None = None
    ttl_days: float | None = None
    expires_at: datetime | None = None
    never_expires: bool = False
    reason: str | None = None
    thread: str | None = None
    said_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StoredNode:
    """A node that a call made, or found; `updated`: it was known, and the call gave it a new version."""

    node: Version
    updated: bool


@dataclass(frozen=True, slots=True)
class GraphStatistics:
    """What a graph holds: exact counts, kinds of entities and types of relations, most first, passages that wait.

    `refused`: passages that the embedder does not take.
    """

    head: GraphHead | None
    kinds: list[tuple[str, int]]
    types: list[tuple[str, int]]
    waiting: int
    refused: int


async def create_fact(
    tx: Transaction,
    revision: Revision,
    fact: NewFact,
    given: Sequence[RequestedLink] = (),
    *,
    restated: NodePatch | None = None,
    auto_link: bool = True,
    threshold: float | None = None,
) -> StoredNode:
    """Make a fact with its links; `auto_link` relates it to the entities that it names, and to those that it is like.

    To the latter once the worker has embedded it; `threshold` is the least cosine, `links.LIKE` where it is None.

    One that is known (same content, thread and status) gets the links that it lacks, and what `restated` says of it in
    a new version, where that differs. Raises NotFound for a link's target, InvalidInput where the graph's whitelist
    allows no fact.
    """
    fact = replace(fact, expires_at=expiry(revision.at, fact.ttl_days, fact.expires_at))
    (kept,) = await nodes.create_facts(tx, revision, [fact])
    updated = kept.known and restated is not None and await _rewrite(tx, revision, kept.id, restated)
    await links.link(tx, revision, kept.id, given)
    if auto_link:
        await links.link_mentions(tx, revision, kept.id, fact.content)
        await links.link_when_embedded(tx, revision, kept.id, threshold)
    return StoredNode(await _newest(tx, revision.graph, kept.id), updated)


async def create_entity(
    tx: Transaction,
    revision: Revision,
    name: str,
    fields: NodeFields,
    given: Sequence[RequestedLink] = (),
    *,
    restated: NodePatch | None = None,
) -> StoredNode:
    """Make an entity with its links; a placeholder of that name becomes it.

    One that is known gets the links that it lacks, and what `restated` says of it in a new version, where that differs.
    Raises NotFound for a link's target, InvalidInput for a kind that the whitelist leaves out.
    """
    expires_at = expiry(revision.at, fields.ttl_days, fields.expires_at)
    known = (await nodes.find_named(GraphView(tx, revision.graph), [name])).get(name)
    if known is None or known.placeholder:
        fields = replace(fields, name=name, expires_at=expires_at)
        node_id, updated = await _make_entity(tx, revision, name, fields), False
    else:
        node_id = known.id
        updated = restated is not None and await _rewrite(tx, revision, node_id, restated)
    await links.link(tx, revision, node_id, given)
    return StoredNode(await _newest(tx, revision.graph, node_id), updated)


async def change(tx: Transaction, revision: Revision, node_id: UUID, wanted: NodePatch) -> Version:
    """Change a node; what it was stays in history, and no version is made where nothing differs.

    Raises NotFound, Conflict for a name that is taken, InvalidInput for a fact's kind.
    """
    await _rewrite(tx, revision, node_id, wanted)
    return await _newest(tx, revision.graph, node_id)


async def delete(tx: Transaction, revision: Revision, node_id: UUID) -> None:
    """Delete a node with all that belongs to it; raises NotFound."""
    head = await lineages.require_head(tx, revision.graph, node_id)
    await relations.delete_nodes(tx, revision, [head.id])


async def get_node(view: GraphView, node_id: UUID) -> tuple[Version, tuple[str, ...]]:
    """A live node, and the observations of an entity, oldest first; raises NotFound."""
    found = await lineages.get_nodes(view, [node_id])
    if not found:
        raise not_found(node_id)
    said = await entities.observations_of(view, [node_id])
    return found[0], said.get(node_id, ())


async def history(
    tx: Transaction, graph_name: str | None, node_id: UUID, *, offset: int, limit: int
) -> tuple[list[Version], bool]:
    """Versions of a node, newest first, of a deleted one too, and whether more follow; raises NotFound."""
    graph = await graph_of(tx, graph_name, node_id)
    found = await lineages.history(tx, graph, node_id, offset=offset, limit=limit + 1)
    return found[:limit], len(found) > limit


async def summarize(tx: Transaction, revision: Revision, fact_ids: Sequence[UUID], fact: NewFact) -> Version:
    """Make a fact that sums up others. Raises NotFound for the first of them that is not there."""
    given = [RequestedLink(fact_id, SUMMARIZES, named=False) for fact_id in unique(fact_ids)]
    return (await create_fact(tx, revision, fact, given)).node


async def graph_stats(view: GraphView) -> GraphStatistics:
    """What a graph holds; one that is not there holds nothing."""
    if not view.is_there:
        return GraphStatistics(None, [], [], 0, 0)
    return GraphStatistics(
        await graphs.head_of(view),
        await entities.count_kinds(view),
        await relations.count_types(view),
        await passages.count_waiting(view.tx, view.graph.id),
        await passages.count_refused(view.tx, view.graph.id),
    )


async def require_nodes(view: GraphView, node_ids: Sequence[UUID]) -> None:
    """Raise NotFound for the first of these nodes that is not there."""
    found = await lineages.get_nodes(view, node_ids)
    there = {node.node_id for node in found}
    for node_id in node_ids:
        if node_id not in there:
            raise not_found(node_id)


async def graph_of(tx: Transaction, graph_name: str | None, node_id: UUID) -> Graph:
    """The graph in which a node is sought; raises NotFound for the node where there is none."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        raise not_found(node_id)
    return graph


async def _newest(tx: Transaction, graph: Graph, node_id: UUID) -> Version:
    """The newest version of a node that this call writes, whether or not its time has come."""
    return (await lineages.history(tx, graph, node_id, limit=1))[0]


async def _make_entity(tx: Transaction, revision: Revision, name: str, fields: NodeFields) -> UUID:
    revision.graph.require_kind(fields.kind, "entity_type")
    _require_short(name)
    (made,) = await nodes.create_nodes(tx, revision, [fields])
    return made


async def _rewrite(tx: Transaction, revision: Revision, node_id: UUID, wanted: NodePatch) -> bool:
    """Give a node a new version with what is to change; whether anything differed."""
    head = await lineages.require_head(tx, revision.graph, node_id)
    fields = _changed(head.fields, wanted, revision.at)
    if fields.kind != head.fields.kind:
        revision.graph.require_kind(fields.kind, "kind" if fields.name is None else "entity_type")
    if fields == head.fields:
        return False
    await nodes.rewrite(tx, revision, [Rewrite(head, fields)])
    return True


def _changed(fields: NodeFields, wanted: NodePatch, now: datetime) -> NodeFields:
    if wanted.kind is not None and fields.name is None:
        raise InvalidInput("A fact has no entity type", path="entity_type")
    if wanted.fact_kind is not None and fields.name is not None:
        raise InvalidInput("An entity's kind is its entity_type", path="kind")
    if wanted.text is not None and fields.name is not None:
        _require_short(wanted.text)
    status = wanted.status or fields.status
    ttl_days = fields.ttl_days if wanted.ttl_days is None else wanted.ttl_days
    expires_at = expiry(now, wanted.ttl_days, wanted.expires_at) or fields.expires_at
    return replace(
        fields,
        name=fields.name if wanted.text is None or fields.name is None else wanted.text,
        content=fields.content if wanted.text is None or fields.name is not None else wanted.text,
        kind=wanted.kind or wanted.fact_kind or fields.kind,
        metadata=fields.metadata if wanted.metadata is None else wanted.metadata,
        status=status,
        source=fields.source if wanted.source is None else wanted.source,
        ttl_days=None if wanted.never_expires else ttl_days,
        expires_at=None if wanted.never_expires else expires_at,
        reason=reason_of(fields.reason, wanted.reason, status_changes=status != fields.status),
        thread=fields.thread if wanted.thread is None else wanted.thread,
        said_at=fields.said_at if wanted.said_at is None else wanted.said_at,
    )


def _require_short(name: str) -> None:
    if len(name) > MAX_NAME:
        raise InvalidInput(f"An entity's name is too long (max {MAX_NAME} chars)", path="text")
