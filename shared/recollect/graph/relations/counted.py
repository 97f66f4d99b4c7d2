"""Counts of edges that a process remembers, so that they are not counted again until the graph is written."""

from uuid import UUID

from cachetools import LRUCache

from recollect.graph.graphs.model import Graph, GraphHead

REMEMBERED_COUNTS = 2_000
"""Graphs of which a process remembers a count, of all tenants."""


class EdgeCounts:
    """How many edges graphs have between their own nodes with names: of each, as it was at one revision.

    That count is the revision's alone: what the clock or another graph decides is not in it. A revision is told by its
    number and its time, so that one that a restored database wrote anew is another.
    """

    def __init__(self) -> None:
        self._counted: LRUCache[tuple[UUID, UUID], tuple[object, int]] = LRUCache(REMEMBERED_COUNTS)

    def find(self, tenant_id: UUID, graph: Graph, head: GraphHead) -> int | None:
        """The count at this revision, where it is remembered."""
        state, count = self._counted.get((tenant_id, graph.id), (None, None))
        return count if state == (head.revision, head.at) else None

    def note(self, tenant_id: UUID, graph: Graph, head: GraphHead, count: int) -> None:
        """What was counted at this revision."""
        self._counted[tenant_id, graph.id] = (head.revision, head.at), count
