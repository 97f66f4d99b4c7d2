"""A cache of graphs by name, so that a call that reads need not look its graph up.

An entry is never trusted: the transaction that uses it has the database confirm it at its start.
"""

from uuid import UUID

from cachetools import LRUCache

from recollect.graph.graphs.model import KnownGraph

MAX_CACHED_GRAPHS = 2_000
"""Graphs that a process caches, of all tenants."""


class GraphCache:
    """Graphs by tenant and by the name or id with which they were looked up."""

    def __init__(self) -> None:
        self._known: LRUCache[tuple[UUID, str], KnownGraph] = LRUCache(MAX_CACHED_GRAPHS)

    def find(self, tenant_id: UUID, name: str) -> KnownGraph | None:
        """The graph as it was last read; None: it is not known."""
        return self._known.get((tenant_id, name))

    def note(self, tenant_id: UUID, name: str, known: KnownGraph | None) -> None:
        """Store the graph as it was just read; None: it does not exist, or is not the known one any more."""
        if known is None:
            self._known.pop((tenant_id, name), None)
        else:
            self._known[tenant_id, name] = known
