"""Graphs that a process knows from earlier calls, so that a call that reads need not ask for its graph.

What is known is never taken on trust: the transaction that goes by it has the database confirm it where it begins.
"""

from uuid import UUID

from cachetools import LRUCache

from recollect.graph.graphs.model import KnownGraph

KNOWN_GRAPHS = 2_000
"""Graphs that a process knows, of all tenants."""


class KnownGraphs:
    """What is known of graphs, by their tenant and by the name or id by which they were asked for."""

    def __init__(self) -> None:
        self._known: LRUCache[tuple[UUID, str], KnownGraph] = LRUCache(KNOWN_GRAPHS)

    def find(self, tenant_id: UUID, name: str) -> KnownGraph | None:
        """What was known of a graph when it was read last."""
        return self._known.get((tenant_id, name))

    def note(self, tenant_id: UUID, name: str, known: KnownGraph | None) -> None:
        """What was read now; None: it is not there, or not what was known."""
        if known is None:
            self._known.pop((tenant_id, name), None)
        else:
            self._known[tenant_id, name] = known
