"""Graphs that a process knows from earlier calls, so that a call that reads need not look its graph up.

A known graph is never trusted: the transaction that uses it has the database confirm it at its start.
"""

from uuid import UUID

from cachetools import LRUCache

from recollect.graph.graphs.model import KnownGraph

KNOWN_GRAPHS = 2_000
"""Graphs that a process knows, of all tenants."""


class KnownGraphs:
    """The known graphs, by their tenant and by the name or id with which they were looked up."""

    def __init__(self) -> None:
        self._known: LRUCache[tuple[UUID, str], KnownGraph] = LRUCache(KNOWN_GRAPHS)

    def find(self, tenant_id: UUID, name: str) -> KnownGraph | None:
        """The graph as it was last read; None: it is not known."""
        return self._known.get((tenant_id, name))

    def note(self, tenant_id: UUID, name: str, known: KnownGraph | None) -> None:
        """Store the graph as it was just read; None: it does not exist, or is not the known one any more."""
        if known is None:
            self._known.pop((tenant_id, name), None)
        else:
            self._known[tenant_id, name] = known
