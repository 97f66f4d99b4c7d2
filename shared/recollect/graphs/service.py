"""Use cases of graphs: open one to read, write one revision of it, create and list them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

from recollect.errors import Conflict, ErrorCode, InvalidInput, NotFound
from recollect.graphs import store
from recollect.graphs.model import Graph, GraphHead, Moment, NewGraph, Revision, graph_name, parse_as_of
from recollect.platform.db import Transaction

MAX_GRAPHS = 1_000
"""Graphs of a tenant that one call looks at, at most."""


async def open_graph(tx: Transaction, name: str | None) -> Graph | None:
    """The graph to read: the named one, else the credential's default. None where there is none: it reads as empty.

    Raises Forbidden where the credential's allow-list leaves it out, whether or not it exists.
    """
    graph = await store.find_graph(tx, graph_name(name or tx.caller.default_graph))
    tx.caller.require_graph(graph.id if graph else None)
    return graph


async def get_graph(tx: Transaction, name: str) -> Graph:
    """The graph of that name; raises NotFound or Forbidden."""
    graph = await open_graph(tx, name)
    if graph is None:
        raise NotFound(f"There is no graph named {name!r}.", code=ErrorCode.GRAPH_NOT_FOUND)
    return graph


async def list_graphs(tx: Transaction, *, after: str = "", limit: int = 100) -> list[Graph]:
    """Graphs that the caller may use, by name, after the name `after`."""
    return await store.list_graphs(tx, after=after, limit=limit)


async def create_graph(tx: Transaction, new: NewGraph) -> Graph:
    """Make a graph; raises Conflict if the name is taken, Forbidden under an allow-list."""
    graph_name(new.name)
    tx.caller.require_graph(None)
    graph = await store.insert_graph(tx, new)
    if graph is None:
        raise Conflict(f"There is a graph named {new.name!r} already.", code=ErrorCode.GRAPH_EXISTS)
    return graph


async def head_of(tx: Transaction, graph: Graph) -> GraphHead:
    """The newest revision of a graph and exact counts of what is live."""
    return await store.find_head(tx, graph.id)


async def moment(tx: Transaction, graph: Graph, as_of: str | None) -> Moment | None:
    """The past state that `as_of` (a revision or a time) names; None for now. Raises InvalidInput."""
    if as_of is None:
        return None
    wanted = parse_as_of(as_of)
    if isinstance(wanted, datetime):
        return await moment_of(tx, graph, wanted)
    at = graph.created_at if wanted == 0 else await store.find_change(tx, graph, wanted)
    if at is None:
        newest = (await store.find_head(tx, graph.id)).revision
        raise InvalidInput(f"The graph's newest revision is {newest}", path="as_of")
    return Moment(wanted, at)


async def moment_of(tx: Transaction, graph: Graph, at: datetime) -> Moment:
    """The state of a graph at a time."""
    return Moment(await store.find_revision_at(tx, graph, at), at)


async def graph_ids(tx: Transaction, names: Sequence[str]) -> dict[str, UUID]:
    """The ids of these graphs by name; raises NotFound for the first that is not there."""
    found = await store.find_graph_ids(tx, names)
    for name in names:
        if name not in found:
            raise NotFound(f"There is no graph named {name!r}.", code=ErrorCode.GRAPH_NOT_FOUND)
    return found


@asynccontextmanager
async def write_graph(tx: Transaction, name: str | None, operation: str) -> AsyncIterator[Revision]:
    """Write one revision: take the graph's lock, let the body write, then move the head and append the change.

    The first write to a graph creates it. A body that touches nothing makes no revision. Raises Forbidden.
    """
    revision = await _locked(tx, graph_name(name or tx.caller.default_graph), operation)
    yield revision
    if not revision.is_empty:
        await store.record_revision(tx, revision)


async def _locked(tx: Transaction, name: str, operation: str) -> Revision:
    revision = await store.lock_graph(tx, name, operation)
    tx.caller.require_graph(revision.graph.id if revision else None)
    if revision is None:
        await store.insert_graph(tx, NewGraph(name))
        revision = await store.lock_graph(tx, name, operation)
    assert revision is not None, "graphs are never taken away under a write"
    return revision


async def raise_index_epoch(tx: Transaction, graph_ids: Sequence[UUID]) -> None:
    """Make every cached search of these graphs unreachable: their vectors or statistics changed."""
    await store.raise_index_epoch(tx, graph_ids)
