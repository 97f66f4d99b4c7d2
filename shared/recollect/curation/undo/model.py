"""What changes left, as the revisions tell it, which undoing them has to go by; and what undoing them does."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from recollect.graph.nodes.model import FIELD_NAMES, NodeFields, RestoredNode
from recollect.graph.observations.model import Observation
from recollect.graph.relations.model import Edge


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """Changes of a graph: after a revision; up to another, and by one actor, where these are given."""

    since: int
    until: int | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBefore(NodeFields):
    """A lineage as it was before the changes; `deleted`: it did not live; `expired`: by now nobody would see it.

    `based_on`: the version that it was based on.
    """

    node_id: UUID
    deleted: bool
    expired: bool
    began_at: datetime
    based_on: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling(NodeFields):
    """A version that was or is a head below the highest of its lineage; `id` is its own, `node_id` the lineage's.

    `stood`: it was one before the changes; `stands`: it is one now.
    """

    id: UUID
    node_id: UUID
    stood: bool
    stands: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchedNode(NodeFields):
    """A lineage that the changes touched, as it is now.

    `expired`: nobody sees it; `existed`: it had a version before them; `placed`: they left it a placeholder;
    `changed_later`: somebody else wrote a version since; `said`, `related`, `above`: it has live observations,
    relations, children that they did not make.
    """

    id: UUID
    lives: bool
    expired: bool
    created_at: datetime
    existed: bool
    placed: bool
    changed_later: bool
    said: bool
    related: bool
    above: bool


def fields_of(node: NodeBefore | TouchedNode | Sibling) -> NodeFields:
    """What a version holds."""
    return NodeFields(**{name: getattr(node, name) for name in FIELD_NAMES})


@dataclass(frozen=True, slots=True)
class ObservationVersion:
    """A version of an observation that the changes added or took away.

    `lives`: it is there now; `expired`: nobody would see it; `changed_later`: somebody else wrote or took away a later
    version.
    """

    observation: Observation
    added: bool
    lives: bool
    expired: bool
    changed_later: bool = False


@dataclass(frozen=True, slots=True)
class RelationVersion:
    """A version of a relation; `added`, `removed`: by the changes; `lives`: it is there now."""

    edge: Edge
    added: bool
    removed: bool
    lives: bool


@dataclass(frozen=True, slots=True)
class AliasChange:
    """A name that the changes gave a node to be found by, or took from it."""

    node_id: UUID
    name: str
    added: bool


@dataclass(frozen=True, slots=True)
class TouchedState:
    """All that the changes touched. `ids`: as the log says; `relations`: by relation, in order of versions.

    `siblings`: by lineage, where one had or has several heads, those below the highest, in order of versions.
    """

    ids: frozenset[UUID]
    touched: tuple[TouchedNode, ...]
    before: Mapping[UUID, NodeBefore]
    siblings: Mapping[UUID, Sequence[Sibling]]
    statements: tuple[ObservationVersion, ...]
    relations: tuple[RelationVersion, ...]
    aliases: tuple[AliasChange, ...]


@dataclass(frozen=True, slots=True)
class UndoContext:
    """What the changes did not touch but undoing them meets.

    Who has the names that come back; which nodes at the ends of what comes back live; the parents of nodes.
    """

    owners: Mapping[str, UUID]
    living: Collection[UUID]
    parents: Mapping[UUID, UUID | None]


def names_to_restore(footprint: TouchedState) -> list[str]:
    """Names that lineages had before the changes."""
    return [before.name for before in footprint.before.values() if before.name is not None and not before.deleted]


def ends_to_restore(footprint: TouchedState) -> list[UUID]:
    """Nodes at which observations, relations and aliases would come back."""
    ends = [statement.observation.node_id for statement in footprint.statements]
    ends += [end for version in footprint.relations for end in (version.edge.from_node, version.edge.to_node)]
    return ends + [alias.node_id for alias in footprint.aliases]


def parents_to_restore(footprint: TouchedState) -> list[UUID]:
    """Nodes below which lineages stood before the changes."""
    return [before.parent_id for before in footprint.before.values() if before.parent_id is not None]


class Reason(StrEnum):
    """Why something is not undone."""

    CHANGED_LATER = "changed_later"
    NAME_TAKEN = "name_taken"
    COMPACTED = "compacted"
    GONE = "gone"
    KIND_NOT_ALLOWED = "kind_not_allowed"
    CYCLE = "cycle"
    CONFIGURATION = "configuration"


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that is not undone, by its id: a node, an observation, a relation, or a graph's configuration."""

    id: UUID
    reason: Reason


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """What undoing does: nodes to delete and to bring back as they were, and what else leaves or comes back.

    `rewritten_relations`: relations that stay, with the properties that they had before.
    """

    deleted: list[UUID] = field(default_factory=list)
    restored: list[RestoredNode] = field(default_factory=list)
    removed_observations: list[UUID] = field(default_factory=list)
    restored_observations: list[Observation] = field(default_factory=list)
    removed_relations: list[UUID] = field(default_factory=list)
    restored_relations: list[Edge] = field(default_factory=list)
    rewritten_relations: list[Edge] = field(default_factory=list)
    removed_aliases: list[AliasChange] = field(default_factory=list)
    restored_aliases: list[AliasChange] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
