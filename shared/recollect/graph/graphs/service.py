"""Use cases of graphs: open one to read, write one revision of it, create and list them.

Every use case takes a graph's name or its id. A name goes before an id: graphs that were named like ids, before such
names were refused, are still found. An allow-list is checked against the id of the graph that was found, so that
neither form of address leads around it.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.accounts.identity import service as identity
from recollect.accounts.quotas import service as quotas
from recollect.accounts.quotas.model import ROW_BYTES, TenantTotals
from recollect.caller import Check, unconditional
from recollect.errors import Conflict, ErrorCode, NotFound, Unavailable
from recollect.graph.graphs import moments, store
from recollect.graph.graphs.model import (
    Change,
    Graph,
    GraphHead,
    GraphPatch,
    KnownGraph,
    NewGraph,
    Revision,
    graph_name,
    new_graph_name,
    spelled_id,
)
from recollect.graph.graphs.view import GraphView
from recollect.postgres.transactions import Transaction
from recollect.times import require_zone

MAX_GRAPHS = 1_000
"""Graphs of a tenant that one call looks at, at most."""

MAX_IDS = 100
"""Ids of a change that are returned, at most."""

DELETED_AT_ONCE = 2_000
"""Nodes that one statement deletes, at most, with all that belongs to them."""

NIL = UUID(int=0)
"""An id that sorts before every other."""


async def open_graph(tx: Transaction, name: str | None) -> Graph | None:
    """The graph to read: that of this name or id, else the credential's default. None: no such graph; reads as empty.

    Raises Forbidden where the credential's allow-list leaves it out, whether or not it exists.
    """
    known = await find_known(tx, name)
    return known.graph if known else None


async def find_known(tx: Transaction, name: str | None) -> KnownGraph | None:
    """The graph that `open_graph` opens, with its fingerprint; raises Forbidden as `open_graph` does."""
    known = await store.find_graph(tx, graph_name(name or tx.caller.default_graph))
    tx.caller.require_graph(known.graph.id if known else None, by_default=not name)
    return known


async def view(tx: Transaction, name: str | None, as_of: str | datetime | None = None) -> GraphView:
    """A graph to read, as it is or (`as_of`, a revision or a time) as it was; an empty view where it does not exist.

    Raises Forbidden as `open_graph` does, and InvalidInput as `find_moment` does.
    """
    return await view_of(tx, await find_known(tx, name), name, as_of)


async def view_of(
    tx: Transaction, known: KnownGraph | None, name: str | None, as_of: str | datetime | None
) -> GraphView:
    """The view of a graph that this transaction found or expects (None: it does not exist); otherwise as `view`."""
    if known is None:
        return GraphView(tx, Graph.absent(name or tx.caller.default_graph))
    tx.caller.require_graph(known.graph.id, by_default=not name)
    return GraphView(tx, known.graph, await moments.find_moment(tx, known.graph, as_of))


def require_there(view: GraphView) -> None:
    """Raise NotFound where there is no such graph."""
    if not view.is_there:
        raise _no_graph(view.graph.name)


async def get_graph(tx: Transaction, name: str) -> Graph:
    """The graph of that name or id; raises NotFound or Forbidden."""
    graph = await open_graph(tx, name)
    if graph is None:
        raise _no_graph(name)
    return graph


async def name_of(tx: Transaction, name: str | None) -> str:
    """The name of the graph with this name or id; the argument itself where there is no such graph."""
    name_or_id = name or tx.caller.default_graph
    graph = await open_graph(tx, name_or_id) if spelled_id(name_or_id) else None
    return graph.name if graph else name_or_id


async def graph_of(tx: Transaction, graph_id: UUID) -> Graph:
    """The graph that has this id, for work that outlives its name; raises NotFound or Forbidden."""
    name = await store.find_graph_name(tx, graph_id)
    graph = await open_graph(tx, name) if name is not None else None
    if graph is None or graph.id != graph_id:
        raise NotFound("This graph was deleted.", code=ErrorCode.GRAPH_NOT_FOUND)
    return graph


async def time_zone_of(tx: Transaction, name: str | None) -> str | None:
    """The time zone by which days of a graph are meant: its own, else that of the tenant; None: UTC.

    The own zone of a graph that the caller may not use is not looked at.
    """
    wanted = name or tx.caller.default_graph
    known = await store.find_graph(tx, wanted) if tx.caller.graphs is not None else None
    is_hidden = known is not None and not tx.caller.may_use_graph(known.graph.id)
    return await store.find_time_zone(tx, "" if is_hidden else wanted)


async def list_graphs(tx: Transaction, *, after: str = "", limit: int = 100) -> list[Graph]:
    """Graphs that the caller may use, by name, after the name `after`."""
    return await store.list_graphs(tx, after=after, limit=limit)


async def create_graph(tx: Transaction, new: NewGraph) -> Graph:
    """Make a graph; raises Conflict if the name is taken, Forbidden under an allow-list, QuotaExceeded."""
    new_graph_name(new.name, path="name")
    if new.time_zone is not None:
        require_zone(new.time_zone, "time_zone")
    tx.caller.require_graph(None)
    graph = await store.insert_graph(tx, new)
    if graph is None:
        raise Conflict(f"There is already a graph named {new.name!r}.", code=ErrorCode.GRAPH_EXISTS)
    await quotas.require_room_for_graph(tx)
    await audit.record(tx, Action.GRAPH_CREATED, named("graph", graph.id))
    tx.announce(graph.id)
    return graph


async def ensure_graph(tx: Transaction, new: NewGraph) -> tuple[Graph, bool]:
    """Create a graph, or find the existing one with the same configuration; return it and whether it is new.

    Raises Conflict if the existing one has another configuration, Forbidden under an allow-list.
    """
    graph = await open_graph(tx, new.name)
    if graph is None or graph.name != new.name:
        return await create_graph(tx, new), True
    requested = replace(
        graph,
        conflict_policy=new.conflict_policy,
        kind_whitelist=new.kind_whitelist,
        metadata=new.metadata or {},
        time_zone=new.time_zone,
    )
    if not requested.is_same_as(graph):
        raise Conflict(
            f"There is already a graph named {new.name!r}, with another configuration.", code=ErrorCode.GRAPH_EXISTS
        )
    return graph, False


async def provide_graph(tx: Transaction, name: str) -> Graph:
    """The graph of that name, created where it does not exist; raises Forbidden, QuotaExceeded or Unavailable."""
    revision, is_new = await _locked(tx, graph_name(name), "")
    if is_new:
        await quotas.require_room_for_graph(tx)
        tx.announce(revision.graph.id)
    return revision.graph


async def configure_graph(
    tx: Transaction, name: str, patch: GraphPatch, operation: str, *, check: Check[Graph] = unconditional
) -> Graph:
    """Change a graph's configuration, as one revision of it; no revision where nothing differs.

    Raises NotFound, Conflict for a name that is taken, Forbidden under an allow-list; and as `check` does.
    """
    graph = await get_graph(tx, name)
    if patch.name not in (None, graph.name):
        new_graph_name(patch.name, path="name")
    if patch.time_zone:
        require_zone(patch.time_zone, "time_zone")
    tx.caller.require_unconfined(" and cannot create, configure or delete any")
    async with write_graph(tx, name, operation) as revision:
        check(revision.graph)
        graph = patch.applied_to(revision.graph)
        if not graph.is_same_as(revision.graph):
            if not await store.update_graph(tx, graph):
                raise Conflict(f"There is already a graph named {graph.name!r}.", code=ErrorCode.GRAPH_EXISTS)
            # Writers that wait for the lock have read the old configuration: a new head makes them start over.
            await store.renew_head(tx, graph)
            revision.touch("graphs_configured", [graph.id])
            await audit.record(tx, Action.GRAPH_CONFIGURED, named("graph", graph.id))
    return graph


async def delete_graph(tx: Transaction, name: str, operation: str, *, check: Check[Graph] = unconditional) -> bool:
    """Delete a graph with its nodes and its history, which frees its name; return whether it existed.

    Edges from other graphs stay and dangle. Raises Forbidden under an allow-list, Conflict while it is the default
    graph of a valid key: that key would silently write elsewhere; and as `check` does.
    """
    graph = await open_graph(tx, name)
    tx.caller.require_unconfined(" and cannot create, configure or delete any")
    if graph is None or await store.lock_graph(tx, name, operation) is None:
        return False
    check(await get_graph(tx, name))
    if await identity.is_default_graph(tx, graph.id):
        raise Conflict("Keys have this graph as their default. Revoke them first.", code=ErrorCode.GRAPH_IN_USE)
    await tx.check_foreign_keys_at_once()
    last: UUID | None = NIL
    while last is not None:
        last = await store.delete_nodes(tx, graph, after=last, limit=DELETED_AT_ONCE)
    await store.delete_graph(tx, graph)
    tx.announce(graph.id)
    tx.change_callers()  # It may have been the graph that a caller used by default.
    return True


async def head_of(view: GraphView) -> GraphHead:
    """The newest revision of a graph and exact counts of live items."""
    if not view.is_there:
        return GraphHead.absent()
    if view.at is not None:
        return await store.find_head_at(view.tx, view.graph.id, view.at)
    return await store.find_live_head(view.tx, view.graph.id)


async def last_written_at(tx: Transaction, graph: Graph) -> datetime:
    """When the newest revision of a graph was written; every later revision has a later time."""
    return (await store.find_head(tx, graph.id)).at


async def newest_revision(tx: Transaction, graph: Graph) -> int:
    """The revision of a graph that was written last."""
    return (await store.find_head(tx, graph.id)).revision


async def lock_graph_by_id(tx: Transaction, graph_id: UUID) -> Revision:
    """Take a graph's write lock to rebuild derived rows as of its newest revision, without writing a new one.

    Raises NotFound, Forbidden, or Unavailable where the graph was configured while this call waited for the lock.
    """
    revision = await _locked_by_id(tx, graph_id, "")
    return replace(revision, number=revision.number - 1)


async def recent_changes(tx: Transaction, name: str | None, *, since: int, limit: int) -> tuple[list[Change], bool]:
    """The changes of a graph after a revision, oldest first, and whether more follow."""
    graph = await open_graph(tx, name)
    if graph is None:
        return [], False
    found = await store.list_changes(tx, graph.id, since=since, ids=MAX_IDS, limit=limit + 1)
    return found[:limit], len(found) > limit


async def changes_of(tx: Transaction, graph_id: UUID, *, since: int, limit: int) -> list[Change]:
    """The changes of the graph that has this id after a revision, oldest first; raises Forbidden."""
    tx.caller.require_graph(graph_id)
    return await store.list_changes(tx, graph_id, since=since, ids=MAX_IDS, limit=limit)


async def graph_ids(tx: Transaction, names: Sequence[str]) -> dict[str, UUID]:
    """The ids of these graphs, by the name or id in `names`; raises NotFound for the first that does not exist.

    Under an allow-list, raises Forbidden for the first that it leaves out, whether or not that one exists.
    """
    found = await store.find_graph_ids(tx, names)
    for name in names:
        tx.caller.require_graph(found.get(name))
        if name not in found:
            raise _no_graph(name)
    return found


async def find_graph_ids(tx: Transaction, names: Sequence[str]) -> dict[str, UUID]:
    """The ids of these graphs, by the name or id in `names`, as far as they exist and the caller may use them."""
    found = await store.find_graph_ids(tx, names)
    return {name: graph_id for name, graph_id in found.items() if tx.caller.may_use_graph(graph_id)}


@asynccontextmanager
async def write_graph(tx: Transaction, name: str | None, operation: str) -> AsyncIterator[Revision]:
    """Write one revision: take the graph's lock, let the body write, then move the head and append the change.

    The first write to a name creates a graph; an id that no graph has raises NotFound. A body that touches nothing,
    such as the deletion of unknown nodes, makes no revision, and no graph. Raises Forbidden, and QuotaExceeded at its
    end.
    """
    revision, is_new = await _locked(tx, name, operation)
    yield revision
    if not revision.is_empty:
        await _record(tx, revision, is_new=is_new)
    elif is_new:
        await store.delete_graph(tx, revision.graph)


@asynccontextmanager
async def write_graph_of(tx: Transaction, graph_id: UUID, operation: str) -> AsyncIterator[Revision]:
    """Write one revision of the graph that has this id, for work that outlives its name. Never makes a graph.

    Raises NotFound, Forbidden, Unavailable where the graph was configured while this call waited for the lock, and
    QuotaExceeded at its end.
    """
    revision = await _locked_by_id(tx, graph_id, operation)
    yield revision
    if not revision.is_empty:
        await _record(tx, revision)


async def _record(tx: Transaction, revision: Revision, *, is_new: bool = False) -> None:
    """Move the graph's head to a revision, and append its change to the log; `is_new`: the revision created the graph.

    Raises QuotaExceeded where the plan does not allow it.
    """
    written = await store.record_revision(tx, revision)
    tx.announce(revision.graph.id)
    quotas.require_nodes(tx, written.quotas, nodes=written.nodes, added=revision.nodes_added)
    stored = written.stored_bytes - revision.stored_bytes
    if revision.removes or stored <= ROW_BYTES["changes"]:  # It adds at most its row in the log.
        stored = 0
    await quotas.require_room(tx, written.quotas, TenantTotals(int(is_new), revision.deltas["observations"], stored))


async def _locked_by_id(tx: Transaction, graph_id: UUID, operation: str) -> Revision:
    tx.caller.require_graph(graph_id)
    name = await store.find_graph_name(tx, graph_id)
    if name is None:
        raise NotFound("This graph was deleted.", code=ErrorCode.GRAPH_NOT_FOUND)
    revision = await store.lock_graph(tx, name, operation)
    if revision is None or revision.graph.id != graph_id:
        raise Unavailable("The graph is being changed. Try again.", code=ErrorCode.BUSY)
    return revision


async def _locked(tx: Transaction, named: str | None, operation: str) -> tuple[Revision, bool]:
    """The next revision of a graph, under its lock, and whether this call created the graph."""
    name, is_new = graph_name(named or tx.caller.default_graph), False
    revision = await store.lock_graph(tx, name, operation)
    if revision is None:  # Not there, or deleted or configured while this call waited for its lock.
        if await store.find_graph(tx, name) is None:
            tx.caller.require_graph(None, by_default=not named)
            if spelled_id(name) is not None:
                raise _no_graph(name)
            is_new = await store.insert_graph(tx, NewGraph(name)) is not None
        revision = await store.lock_graph(tx, name, operation)
    if revision is None:
        raise Unavailable("The graph is being changed. Try again.", code=ErrorCode.BUSY)
    tx.caller.require_graph(revision.graph.id, by_default=not named)
    return revision, is_new


def _no_graph(name: str) -> NotFound:
    description = f"named {name!r}" if spelled_id(name) is None else f"with the id {name}"
    return NotFound(f"There is no graph {description}.", code=ErrorCode.GRAPH_NOT_FOUND)
