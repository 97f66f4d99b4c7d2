"""The changes to undo, as the revisions recorded them, and the plan for undoing them."""

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
    """The changes of a graph after the revision `since`, up to `until` (None: the newest), by one actor (None: any)."""

    since: int
    until: int | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBefore(NodeFields):
    """A lineage as it was before the changes. `deleted`: it was deleted then. `expired`: it would have expired by now.

    `based_on`: the number of the version that this one was based on.
    """

    node_id: UUID
    deleted: bool
    expired: bool
    began_at: datetime
    based_on: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling(NodeFields):
    """A version that is, or was, a head of its lineage, but not the highest. `id` is the version's own.

    `stood`: it was such a head before the changes. `stands`: it is one now.
    """

    id: UUID
    node_id: UUID
    stood: bool
    stands: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchedNode(NodeFields):
    """A lineage that the changes touched, as it is now.

    `existed`: it had a version before the changes. `placed`: the changes left it as a placeholder. `changed_later`:
    another actor has written a version since. `observed`, `related`, `above`: it has live observations, relations or
    children that the changes did not make.
    """

    id: UUID
    lives: bool
    expired: bool
    created_at: datetime
    existed: bool
    placed: bool
    changed_later: bool
    observed: bool
    related: bool
    above: bool


def fields_of(node: NodeBefore | TouchedNode | Sibling) -> NodeFields:
    """The fields of a version."""
    return NodeFields(**{name: getattr(node, name) for name in FIELD_NAMES})


@dataclass(frozen=True, slots=True)
class ObservationVersion:
    """A version of an observation that the changes added or (not `added`) removed.

    `lives`: it is live now. `expired`: it would be live, but has expired. `changed_later`: another actor wrote or
    removed a later version.
    """

    observation: Observation
    added: bool
    lives: bool
    expired: bool
    changed_later: bool = False


@dataclass(frozen=True, slots=True)
class RelationVersion:
    """A version of a relation. `added`, `removed`: by the changes. `lives`: it is live now."""

    edge: Edge
    added: bool
    removed: bool
    lives: bool


@dataclass(frozen=True, slots=True)
class AliasChange:
    """An alias that the changes gave to a node or (not `added`) took from it."""

    node_id: UUID
    name: str
    added: bool


@dataclass(frozen=True, slots=True)
class TouchedState:
    """All that the changes touched. `ids`: those in the log. `relations`: the versions of each relation, in order.

    `siblings`: for each lineage that has or had several heads, all of them but the highest, in order of versions.
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
    """State that the changes did not touch, but on which their undo depends.

    `owners`: the nodes that have the names to restore, or other forms of them. `former_names`: the names that these
    nodes, and those to restore, had when the undone changes began. `living`: the live nodes among those to which
    observations, relations and aliases are restored. `parents`: the parent of each node that may become an ancestor
    again.
    """

    owners: Mapping[str, UUID]
    former_names: Mapping[UUID, str]
    living: Collection[UUID]
    parents: Mapping[UUID, UUID | None]


def names_to_restore(state: TouchedState) -> list[str]:
    """The names that lineages had before the changes."""
    return [before.name for before in state.before.values() if before.name is not None and not before.deleted]


def ends_to_restore(state: TouchedState) -> list[UUID]:
    """The nodes to which observations, relations and aliases may be restored."""
    ends = [statement.observation.node_id for statement in state.statements]
    ends += [end for version in state.relations for end in (version.edge.from_node, version.edge.to_node)]
    return ends + [alias.node_id for alias in state.aliases]


def parents_to_restore(state: TouchedState) -> list[UUID]:
    """The parents that lineages had before the changes."""
    return [before.parent_id for before in state.before.values() if before.parent_id is not None]


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
    """An item that is not undone: the id of a node, an observation or a relation, or of the graph (configuration)."""

    id: UUID
    reason: Reason


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """What an undo removes, what it restores, and what it skips.

    `rewritten_relations`: relations that stay, with the properties that they get back.
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
