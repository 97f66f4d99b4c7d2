"""Counts of edges that a process caches, so that they are not counted again until the graph is written."""

from uuid import UUID

from cachetools import LRUCache

from recollect.graph.graphs.model import Graph, GraphHead

REMEMBERED_COUNTS = 2_000
"""Graphs whose counts a process caches, of all tenants."""


class EdgeCounts:
    """How many edges each graph has between its own nodes with names, at one revision.

    The count depends on the revision alone, not on the clock or on other graphs. A revision is identified by its number
    and its time: a restored database may write the same number again.
    """

    def __init__(self) -> None:
        self._counted: LRUCache[tuple[UUID, UUID], tuple[object, int]] = LRUCache(REMEMBERED_COUNTS)

    def find(self, tenant_id: UUID, graph: Graph, head: GraphHead) -> int | None:
        """The count at this revision, if it is cached."""
        state, count = self._counted.get((tenant_id, graph.id), (None, None))
        return count if state == (head.revision, head.at) else None

    def note(self, tenant_id: UUID, graph: Graph, head: GraphHead, count: int) -> None:
        """Cache the count at this revision."""
        self._counted[tenant_id, graph.id] = (head.revision, head.at), count
