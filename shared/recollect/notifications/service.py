"""Use cases of notifications: the changes since a caller last looked, as far as it may see them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from recollect.errors import Forbidden, InvalidInput
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import spelled_id
from recollect.graph.nodes import naming
from recollect.notifications import store
from recollect.notifications.model import MAX_JUDGED_CHANGES, ChangeFilter, FoundChanges, Watched, WatchState
from recollect.postgres.transactions import Transaction


async def changes_after(
    tx: Transaction, graph_id: UUID, filters: ChangeFilter, *, since: int, limit: int
) -> FoundChanges:
    """The changes that pass a filter among the next `limit` changes of a graph after a revision; raises Forbidden."""
    if filters.is_empty:
        found = await graphs.changes_of(tx, graph_id, since=since, limit=limit + 1)
        changes = [(change, True) for change in found]
    else:
        tx.caller.require_graph(graph_id)
        changes = await store.list_filtered_changes(
            tx, graph_id, filters, since=since, ids=graphs.MAX_IDS, limit=limit + 1
        )
    page = changes[:limit]
    reached = page[-1][0].revision if page else since
    return FoundChanges(tuple(change for change, passes in page if passes), reached, len(changes) > limit)


async def read_states(tx: Transaction, watched: Sequence[Watched]) -> list[WatchState | None]:
    """The present state of each; None for a graph that the caller may not use, or could not use if it existed.

    Each graph is read once, and so are the names of all its watched nodes.
    """
    names: dict[str, list[str]] = {part.graph: [] for part in watched}
    for part in watched:
        names[part.graph] += [] if part.node is None else [part.node]
    states = {graph: await _state(tx, graph, node_names) for graph, node_names in names.items()}
    return [_seen(part, states[part.graph]) for part in watched]


async def has_changed(tx: Transaction, watched: Watched, before: WatchState, now: WatchState) -> bool:
    """Whether the watched part was written between two looks; True if finding that out would cost too much."""
    if now.graph_id is None or before.graph_id != now.graph_id or now.revision < before.revision:
        return now.graph_id != before.graph_id or now.revision != before.revision
    if watched.is_whole or now.revision == before.revision:
        return now.revision != before.revision
    if now.revision - before.revision > MAX_JUDGED_CHANGES or (watched.node and before.node_id != now.node_id):
        return True
    if watched.node is not None and now.node_id is None:
        return False
    filters = ChangeFilter(watched.kinds, watched.tags, now.nodes)
    page = await changes_after(tx, now.graph_id, filters, since=before.revision, limit=MAX_JUDGED_CHANGES)
    return bool(page.changes)


async def graph_names(tx: Transaction) -> frozenset[tuple[UUID, str]]:
    """The graphs that the caller may use, each by its id and name."""
    return frozenset((graph.id, graph.name) for graph in await graphs.list_graphs(tx, limit=graphs.MAX_GRAPHS))


@dataclass(frozen=True, slots=True)
class _GraphState:
    """A graph (None: it does not exist), its newest revision, and the watched nodes by name."""

    graph_id: UUID | None
    revision: int = 0
    nodes: Mapping[str, UUID] = field(default_factory=dict)


async def _state(tx: Transaction, graph: str, names: Sequence[str]) -> _GraphState | None:
    try:
        view = await graphs.view(tx, graph)
    except (Forbidden, InvalidInput):
        return None
    if not view.is_there:
        return _GraphState(None)
    found = await naming.find_named(view, names) if names else {}
    revision = await graphs.newest_revision(tx, view.graph)
    return _GraphState(view.graph.id, revision, {name: node.id for name, node in found.items()})


def _seen(watched: Watched, state: _GraphState | None) -> WatchState | None:
    if state is None:
        return None
    if state.graph_id is None or watched.node is None:
        return WatchState(state.graph_id, state.revision)
    return WatchState(state.graph_id, state.revision, state.nodes.get(watched.node) or spelled_id(watched.node))
