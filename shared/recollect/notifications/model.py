"""What listeners wish to hear of, and what they have heard."""

from dataclasses import dataclass
from uuid import UUID

from recollect.graph.graphs.model import Change

MAX_JUDGED_IDS = 1_000
"""Ids of one change that are held against a filter. A change of more passes it: rather too much than too little."""

MAX_JUDGED_CHANGES = 200
"""Changes that are held against a filter at a time. What was changed more often since one looked counts as touched."""


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes are wanted: of nodes that have one of these kinds, one of these tags, and these ids; empty: of any.

    What an observation says of itself counts like what its entity says. A relation is of both of its ends.
    """

    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    nodes: tuple[UUID, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether every change is wanted."""
        return not (self.kinds or self.tags or self.nodes)


@dataclass(frozen=True, slots=True)
class FoundChanges:
    """Changes that are wanted, oldest first. `reached`: the last revision that was looked at; `more` come after it."""

    changes: tuple[Change, ...]
    reached: int
    more: bool


@dataclass(frozen=True, slots=True)
class Watched:
    """A part of a graph that somebody listens to: all of it, one node (by name or id), or what has a kind or a tag.

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
class Seen:
    """How far a listener has looked at what it watches: a graph (None: there was none), a revision, a node."""

    graph_id: UUID | None
    revision: int = 0
    node_id: UUID | None = None

    @property
    def nodes(self) -> tuple[UUID, ...]:
        """The node, if there was one."""
        return () if self.node_id is None else (self.node_id,)
