"""Use cases of undoing: take back what somebody changed since a revision."""

from collections.abc import Sequence
from uuid import UUID

from recollect.aliases import service as aliases
from recollect.curation.expiry import ARCHIVE
from recollect.errors import TooLarge
from recollect.graphs import service as graphs
from recollect.graphs.model import Graph, Revision
from recollect.nodes import service as nodes
from recollect.nodes.model import unique
from recollect.observations import service as observations
from recollect.platform.db import Transaction
from recollect.relations import service as relations
from recollect.relations.model import Edge, NewEdge
from recollect.undo import store
from recollect.undo.model import Footprint, Span, Surroundings, Undoing, wanted_ends, wanted_names, wanted_parents
from recollect.undo.plan import plan_undo

MAX_UNDONE = 10_000
"""Nodes, observations and relations that one call undoes, at most, each as often as it was touched.

Observations that went with their entities count by themselves, to as many.
"""


async def undo_changes(
    tx: Transaction, graph_name: str | None, operation: str, span: Span, *, dry_run: bool
) -> Undoing:
    """Bring back what was before the changes of a span, as one revision, and tell what was left alone and why.

    What others changed later is left alone, and so is what would take a name that another has now, stand below itself,
    or was erased. A dry run writes nothing. Raises InvalidInput for a span that begins before what compaction left,
    TooLarge past MAX_UNDONE.
    """
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return Undoing()
    if dry_run:
        return await _plan(tx, graph, span)
    async with graphs.write_graph_of(tx, graph.id, operation) as revision:
        undoing = await _plan(tx, revision.graph, span)
        await _undo(tx, revision, undoing)
    return undoing


async def _plan(tx: Transaction, graph: Graph, span: Span) -> Undoing:
    await graphs.require_kept(tx, graph, span.since, path="since_revision")
    count = await store.count_touched(tx, graph, span)
    if count > MAX_UNDONE:
        raise _too_large(f"{count} ids")
    revisions, ids = await store.find_touched(tx, graph, span)
    footprint = await _footprint(tx, graph, ids, revisions)
    around = Surroundings(
        owners=await store.owners_of_names(tx, graph, unique(wanted_names(footprint))),
        living=await store.living_among(tx, unique(wanted_ends(footprint))),
        parents=await store.lines_above(tx, unique(wanted_parents(footprint))),
    )
    return plan_undo(graph, footprint, around)


async def _footprint(tx: Transaction, graph: Graph, ids: Sequence[UUID], revisions: Sequence[int]) -> Footprint:
    before = await store.lineages_before(tx, graph, ids, revisions)
    # Of an entity that went, the log has the id, and not those of all that was said of it.
    statements = await store.touched_observations(tx, graph, ids, revisions, limit=MAX_UNDONE + 1)
    if len(statements) > MAX_UNDONE:
        raise _too_large(f"more than {MAX_UNDONE} observations")
    return Footprint(
        ids=frozenset(ids) - {graph.id},  # Its configuration is no part of what it holds.
        touched=tuple(await store.touched_lineages(tx, graph, ids, revisions, archived_by=ARCHIVE)),
        before={lineage.node_id: lineage for lineage in before},
        statements=tuple(statements),
        ties=tuple(await store.touched_relations(tx, graph, ids, revisions)),
        aliases=tuple(await store.touched_aliases(tx, graph, ids, revisions)),
    )


async def _undo(tx: Transaction, revision: Revision, undoing: Undoing) -> None:
    """What leaves goes first, so that names and relations are free; placeholders that are lonely then go last."""
    ends = await relations.take_away(tx, revision, undoing.unrelated)
    await observations.remove_observations_by_id(tx, revision, undoing.unsaid)
    await nodes.remove_nodes(tx, revision, undoing.deleted)
    await nodes.restore(tx, revision, undoing.restored)
    await aliases.rename_aliases(
        tx,
        revision,
        remove=[(alias.node_id, alias.name) for alias in undoing.unnamed],
        add=[(alias.node_id, alias.name) for alias in undoing.named],
    )
    await observations.put_back(tx, revision, undoing.said)
    await relations.put_edges(tx, revision, [_again(edge) for edge in undoing.related])
    restored = [one.id for one in undoing.restored]
    renamed = [alias.node_id for alias in (*undoing.unnamed, *undoing.named)]
    spoken = [observation.node_id for observation in undoing.said]
    await nodes.reindex(tx, revision, [*restored, *renamed, *spoken])
    await relations.drop_lonely(tx, revision, ends.union(restored) - set(undoing.deleted))


def _too_large(touched: str) -> TooLarge:
    return TooLarge(
        f"These changes touched {touched}; one call undoes {MAX_UNDONE} at most. Undo the newest first, with a later "
        "since_revision, then the older ones. A single change that is larger: export the graph as_of the revision "
        "before it, and import that",
        path="since_revision",
    )


def _again(edge: Edge) -> NewEdge:
    return NewEdge(
        edge.from_node,
        edge.to_node,
        edge.type,
        to_graph=edge.to_graph,
        metadata=edge.metadata,
        ordinal=edge.ordinal,
        actor=edge.created_by,
    )
