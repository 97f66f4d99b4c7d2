"""Use cases of undoing: take back the changes since a revision, of one actor or of all."""

from collections.abc import Sequence
from itertools import groupby
from uuid import UUID

from recollect.curation.undo import store
from recollect.curation.undo.model import (
    ChangeRange,
    Reason,
    Skipped,
    TouchedState,
    UndoContext,
    UndoPlan,
    ends_to_restore,
    names_to_restore,
    parents_to_restore,
)
from recollect.curation.undo.plan import plan_undo
from recollect.errors import InvalidInput, TooLarge
from recollect.fairness.computing import interleave
from recollect.graph.aliases import service as aliases
from recollect.graph.graphs import moments
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import ARCHIVE_EXPIRED, Graph, Revision
from recollect.graph.nodes import indexing
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import unique
from recollect.graph.observations import service as observations
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import Edge, NewEdge
from recollect.postgres.transactions import Transaction

MAX_UNDONE = 10_000
"""Nodes, observations and relations that one call undoes, at most; each counts as often as it was touched.

Observations that were removed with their entities have the same bound, and so have versions in conflict.
"""

MAX_UNDONE_METADATA = 8_000_000
"""Bytes of metadata of what one call undoes. It is read as it is and as it was; numbers take 9 times that in memory."""


async def undo_changes(
    tx: Transaction, graph_name: str | None, operation: str, span: ChangeRange, *, dry_run: bool
) -> UndoPlan:
    """Undo the changes of a span by one new revision. Return the plan, which also says what was skipped and why.

    An item is skipped if another actor changed it later, if it would get a name that another node has now or become its
    own ancestor, or if it was erased or compacted; so is the graph's configuration, which has no history. A dry run
    writes nothing. Raises InvalidInput for a span that begins before the compacted past ends or after the newest
    revision, and for an actor that never changed anything; TooLarge past MAX_UNDONE.
    """
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        _require_within(span, newest=0)
        return UndoPlan()
    if dry_run:
        return await _plan(tx, graph, span)
    async with graphs.write_graph_of(tx, graph.id, operation) as revision:
        plan = await _plan(tx, revision.graph, span)
        await _undo(tx, revision, plan)
    return plan


async def _plan(tx: Transaction, graph: Graph, span: ChangeRange) -> UndoPlan:
    await moments.require_not_compacted(tx, graph, span.since, path="since_revision")
    _require_within(span, newest=await graphs.newest_revision(tx, graph))
    count = await store.count_touched(tx, graph, span)
    if count > MAX_UNDONE:
        raise _too_large(f"{count} ids")
    if span.actor is not None and count == 0 and not await store.has_changed(tx, graph, span.actor):
        raise _unknown(span.actor)
    revisions, ids = await store.find_touched(tx, graph, span)
    metadata = await store.count_metadata(tx, graph, ids)
    if metadata > MAX_UNDONE_METADATA:
        raise _too_large(f"{metadata} bytes of metadata", f"{MAX_UNDONE_METADATA} bytes")
    state = await _read_touched(tx, graph, ids, revisions)
    owners = await store.owners_of_names(tx, graph, unique(names_to_restore(state)))
    named = [*owners.values(), *(before.node_id for before in state.before.values() if before.name is not None)]
    context = UndoContext(
        owners=owners,
        former_names=await store.names_at(tx, graph, unique(named), span.since),
        living=await store.find_living(tx, unique(ends_to_restore(state))),
        parents=await store.list_ancestor_parents(tx, unique(parents_to_restore(state))),
    )
    plan = await interleave(plan_undo(graph, state, context))
    if graph.id in ids:
        plan.skipped.append(Skipped(graph.id, Reason.CONFIGURATION))
    return plan


async def _read_touched(tx: Transaction, graph: Graph, ids: Sequence[UUID], revisions: Sequence[int]) -> TouchedState:
    before = await store.lineages_before(tx, graph, ids, revisions)
    # The log has the id of a deleted entity, but not the ids of the observations that were removed with it.
    statements = await store.touched_observations(tx, graph, ids, revisions, limit=MAX_UNDONE + 1)
    if len(statements) > MAX_UNDONE:
        raise _too_large(f"more than {MAX_UNDONE} observations")
    siblings = await store.sibling_heads(tx, graph, ids, revisions, limit=MAX_UNDONE + 1)
    if len(siblings) > MAX_UNDONE:
        raise _too_large(f"more than {MAX_UNDONE} concurrent versions")
    return TouchedState(
        ids=frozenset(ids) - {graph.id},  # The graph's id stands for its configuration, which is not undone.
        touched=tuple(await store.touched_lineages(tx, graph, ids, revisions, archived_by=ARCHIVE_EXPIRED)),
        before={lineage.node_id: lineage for lineage in before},
        siblings={node_id: tuple(group) for node_id, group in groupby(siblings, key=lambda sibling: sibling.node_id)},
        statements=tuple(statements),
        relations=tuple(await store.touched_relations(tx, graph, ids, revisions)),
        aliases=tuple(await store.touched_aliases(tx, graph, revisions)),
    )


async def _undo(tx: Transaction, revision: Revision, plan: UndoPlan) -> None:
    """Remove first, so that names and relations are free for restored items; remove orphaned placeholders last."""
    ends = await relations.remove_edges(tx, revision, plan.removed_relations)
    await observations.remove_observations_by_id(tx, revision, plan.removed_observations)
    await nodes.remove_nodes(tx, revision, plan.deleted)
    await nodes.restore(tx, revision, plan.restored)
    await aliases.rename_aliases(
        tx,
        revision,
        remove=[(alias.node_id, alias.name) for alias in plan.removed_aliases],
        add=[(alias.node_id, alias.name) for alias in plan.restored_aliases],
    )
    await observations.put_back(tx, revision, plan.restored_observations)
    await relations.put_edges(tx, revision, [_new_edge(edge) for edge in plan.restored_relations])
    await relations.rewrite_edges(tx, revision, [(edge, _new_edge(edge)) for edge in plan.rewritten_relations])
    restored = [node.id for node in plan.restored]
    with_aliases = [alias.node_id for alias in (*plan.removed_aliases, *plan.restored_aliases)]
    with_observations = [observation.node_id for observation in plan.restored_observations]
    await indexing.reindex(tx, revision, [*restored, *with_aliases, *with_observations])
    await relations.drop_orphaned_placeholders(tx, revision, ends.union(restored) - set(plan.deleted))


def _require_within(span: ChangeRange, *, newest: int) -> None:
    """Raise InvalidInput for a span that begins after the newest revision, or an actor of an empty graph."""
    if span.since > newest:
        raise InvalidInput(f"The graph's newest revision is {newest}", path="since_revision")
    if newest == 0 and span.actor is not None:
        raise _unknown(span.actor)


def _unknown(actor: str) -> InvalidInput:
    return InvalidInput(
        f"{actor!r} has changed nothing in this graph; `recent_changes` lists the actors that have, such as key:…",
        path="actor",
    )


def _too_large(touched: str, bound: str = str(MAX_UNDONE)) -> TooLarge:
    return TooLarge(
        f"These changes touched {touched}, but one call can undo at most {bound}. Undo the newest first, with a "
        "later since_revision, then the older ones. To undo a single change that is larger, export the graph as_of "
        "the revision before it, and import this export",
        path="since_revision",
    )


def _new_edge(edge: Edge) -> NewEdge:
    return NewEdge(
        edge.from_node,
        edge.to_node,
        edge.type,
        to_graph=edge.to_graph,
        metadata=edge.metadata,
        ordinal=edge.ordinal,
        actor=edge.created_by,
        created_at=edge.created_at,
    )
