"""The filters and the positions of listeners."""

from dataclasses import dataclass
from uuid import UUID

from recollect.graph.graphs.model import Change

MAX_JUDGED_IDS = 1_000
"""Ids of one change that are compared with a filter. A change with more ids passes: one change too many is better than
one too few."""

MAX_JUDGED_CHANGES = 200
"""Changes that are compared with a filter at a time. A watched part counts as changed if there are more since the last
look."""


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """A filter for changes of nodes with one of these kinds, one of these tags, and one of these ids; empty: any.

    The kind and tags of an observation count like those of its entity. A relation belongs to both of its ends.
    """

    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    nodes: tuple[UUID, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether every change passes."""
        return not (self.kinds or self.tags or self.nodes)


@dataclass(frozen=True, slots=True)
class FoundChanges:
    """Changes that pass a filter, oldest first. `reached`: the last revision that was read; `more`: others follow."""

    changes: tuple[Change, ...]
    reached: int
    more: bool


@dataclass(frozen=True, slots=True)
class Watched:
    """A watched part of a graph: all of it, one node (by name or id), or the nodes that have a kind or a tag.

    `graph` is a name or an id.
    """

    graph: str
    node: str | None = None
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether any change of the graph counts."""
        return self.node is None and not self.kinds and not self.tags


@dataclass(frozen=True, slots=True)
class WatchState:
    """The state that a listener last saw of a watched part: a graph (None: it did not exist), a revision, a node."""

    graph_id: UUID | None
    revision: int = 0
    node_id: UUID | None = None

    @property
    def nodes(self) -> tuple[UUID, ...]:
        """The node, if there was one."""
        return () if self.node_id is None else (self.node_id,)
