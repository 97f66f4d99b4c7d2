"""Use cases of making nodes: facts and entities, and whole subgraphs of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from recollect.errors import InvalidInput, RecollectError
from recollect.graph.graphs.model import Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import PutOutcome, Version
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import ACTIVE, NewFact, NodeFields, unique
from recollect.graph.observations import service as observations
from recollect.graph.relations import service as relations
from recollect.memory import links
from recollect.memory.links import RequestedLink
from recollect.memory.model import (
    EdgeSpec,
    NodeSpec,
    WrittenSubgraph,
    expiry,
    require_short_name,
)
from recollect.memory.reading import newest_version
from recollect.memory.relating import connect
from recollect.memory.revising import NodePatch, rewrite_node
from recollect.postgres.transactions import Transaction

SUMMARIZES = "SUMMARIZES"
"""The type of a relation from a fact to one that it sums up."""


@dataclass(frozen=True, slots=True)
class StoredNode:
    """A node that a call created or found; `updated`: it was known, and the call gave it a new version."""

    node: Version
    updated: bool


async def create_fact(
    tx: Transaction,
    revision: Revision,
    fact: NewFact,
    requested_links: Sequence[RequestedLink] = (),
    *,
    patch: NodePatch | None = None,
    auto_link: bool = True,
    threshold: float | None = None,
) -> StoredNode:
    """Create a fact with its links. `auto_link` relates it to the entities that it names, and to similar entities.

    The latter happens once the worker has embedded the fact; `threshold` is the least cosine
    (`links.MIN_LINK_SIMILARITY` where it is None).

    A known fact (same content, thread and status) gets the links that it lacks, and a new version with the changes of
    `patch`, where anything differs. Raises NotFound for a link's target, InvalidInput where the graph's whitelist
    allows no fact.
    """
    fact = replace(fact, expires_at=expiry(revision.at, fact.ttl_days, fact.expires_at))
    (stored,) = await nodes.create_facts(tx, revision, [fact])
    updated = stored.known and patch is not None and await rewrite_node(tx, revision, stored.id, patch)
    await links.link(tx, revision, stored.id, requested_links)
    if auto_link:
        await links.link_mentions(tx, revision, stored.id, fact.content)
        await links.link_when_embedded(tx, revision, stored.id, threshold)
    return StoredNode(await newest_version(tx, revision.graph, stored.id), updated)


async def create_entity(
    tx: Transaction,
    revision: Revision,
    name: str,
    fields: NodeFields,
    requested_links: Sequence[RequestedLink] = (),
    *,
    patch: NodePatch | None = None,
) -> StoredNode:
    """Create an entity with its links; a placeholder of that name becomes the entity.

    A known entity gets the links that it lacks, and a new version with the changes of `patch`, where anything
    differs; one that was outdated or archived is active again, and what was known of it is outdated. Raises NotFound
    for a link's target, InvalidInput for a kind that the whitelist leaves out.
    """
    expires_at = expiry(revision.at, fields.ttl_days, fields.expires_at)
    known = (await naming.find_named(GraphView(tx, revision.graph), [name])).get(name)
    if known is None or known.placeholder:
        fields = replace(fields, name=name, expires_at=expires_at)
        node_id, updated = await _make_entity(tx, revision, name, fields), False
    else:
        node_id = known.id
        await observations.bring_back(tx, revision, [node_id] if known.status != ACTIVE else [])
        updated = patch is not None and await rewrite_node(tx, revision, node_id, patch)
    await links.link(tx, revision, node_id, requested_links)
    return StoredNode(await newest_version(tx, revision.graph, node_id), updated)


async def summarize(tx: Transaction, revision: Revision, fact_ids: Sequence[UUID], fact: NewFact) -> Version:
    """Create a fact that sums up others. Raises NotFound for the first of them that does not exist."""
    requested_links = [RequestedLink(fact_id, SUMMARIZES, named=False) for fact_id in unique(fact_ids)]
    return (await create_fact(tx, revision, fact, requested_links)).node


async def put_subgraph(
    tx: Transaction, revision: Revision, specs: Sequence[NodeSpec], edges: Sequence[EdgeSpec]
) -> WrittenSubgraph:
    """Write nodes and the edges among them, best effort: for each, in order, its outcome or its error.

    An edge names each end by the ref of a node of this call or by a lineage. An edge to a node that failed fails, too.
    """
    outcomes = await _put_all(tx, revision, specs)
    refs = {
        spec.ref: outcome.node_id
        for spec, outcome in zip(specs, outcomes, strict=True)
        if spec.ref is not None and isinstance(outcome, PutOutcome)
    }
    return WrittenSubgraph(outcomes, await connect(tx, revision, edges, refs))


async def delete_entities(tx: Transaction, revision: Revision, names: Sequence[str]) -> dict[str, list[str]]:
    """Delete entities, or placeholders, with all that belongs to them; return the names that were there.

    Each comes with the forms of it that were deleted: all there were, so that to delete it again does nothing.
    """
    found = await naming.find_forms(tx, revision.graph, unique(names))
    if found:
        await relations.delete_nodes(tx, revision, unique(node.id for forms in found.values() for node in forms))
    return {name: [node.name for node in forms] for name, forms in found.items()}


async def _make_entity(tx: Transaction, revision: Revision, name: str, fields: NodeFields) -> UUID:
    revision.graph.require_kind(fields.kind, "entity_type")
    require_short_name(name)
    (made,) = await nodes.create_nodes(tx, revision, [fields])
    return made


async def _put_all(tx: Transaction, revision: Revision, specs: Sequence[NodeSpec]) -> list[PutOutcome | RecollectError]:
    """The outcome of each spec; a spec whose ref an earlier one has is not written."""
    refs: dict[str | None, int] = {}
    repeated = {index for index, spec in enumerate(specs) if refs.setdefault(spec.ref, index) != index and spec.ref}
    drafts = [spec.draft for index, spec in enumerate(specs) if index not in repeated]
    written = iter(await lineages.put_nodes(tx, revision, drafts))
    return [
        InvalidInput(f"This call has another node with the ref {spec.ref!r}", path="ref")
        if index in repeated
        else next(written)
        for index, spec in enumerate(specs)
    ]
