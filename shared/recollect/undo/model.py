"""What changes left, as the revisions tell it, which undoing them has to go by; and what undoing them does."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from recollect.nodes.model import FIELD_NAMES, NodeFields, Restored
from recollect.observations.model import Observation
from recollect.relations.model import Edge


@dataclass(frozen=True, slots=True)
class Span:
    """Changes of a graph: after a revision; up to another, and by one actor, where these are given."""

    since: int
    until: int | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Before(NodeFields):
    """A lineage as it was before the changes; `deleted`: it did not live; `expired`: by now nobody would see it."""

    node_id: UUID
    deleted: bool
    expired: bool
    began_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched(NodeFields):
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


def fields_of(node: Before | Touched) -> NodeFields:
    """What a version holds."""
    return NodeFields(**{name: getattr(node, name) for name in FIELD_NAMES})


@dataclass(frozen=True, slots=True)
class Statement:
    """An observation that the changes added or took away; `lives`: it is there now; `expired`: nobody would see it."""

    observation: Observation
    added: bool
    lives: bool
    expired: bool


@dataclass(frozen=True, slots=True)
class Tie:
    """A relation that the changes added or took away; `lives`: it is there now."""

    edge: Edge
    added: bool
    lives: bool


@dataclass(frozen=True, slots=True)
class Alias:
    """A name that the changes gave a node to be found by, or took from it."""

    node_id: UUID
    name: str
    added: bool


@dataclass(frozen=True, slots=True)
class Footprint:
    """All that changes left. `ids`: what the log says that they touched."""

    ids: frozenset[UUID]
    touched: tuple[Touched, ...]
    before: Mapping[UUID, Before]
    statements: tuple[Statement, ...]
    ties: tuple[Tie, ...]
    aliases: tuple[Alias, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the changes did not touch but undoing them meets.

    Who has the names that come back; which nodes at the ends of what comes back live; the parents of nodes.
    """

    owners: Mapping[str, UUID]
    living: Collection[UUID]
    parents: Mapping[UUID, UUID | None]


def wanted_names(footprint: Footprint) -> list[str]:
    """Names that lineages had before the changes."""
    return [before.name for before in footprint.before.values() if before.name is not None and not before.deleted]


def wanted_ends(footprint: Footprint) -> list[UUID]:
    """Nodes at which observations, relations and aliases would come back."""
    ends = [statement.observation.node_id for statement in footprint.statements]
    ends += [end for tie in footprint.ties for end in (tie.edge.from_node, tie.edge.to_node)]
    return ends + [alias.node_id for alias in footprint.aliases]


def wanted_parents(footprint: Footprint) -> list[UUID]:
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


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that is not undone, by its id: a node, an observation or a relation."""

    id: UUID
    reason: Reason


@dataclass(frozen=True, slots=True)
class Undoing:
    """What undoing does: nodes to delete and to bring back as they were, and what else leaves or comes back."""

    deleted: list[UUID] = field(default_factory=list)
    restored: list[Restored] = field(default_factory=list)
    unsaid: list[UUID] = field(default_factory=list)
    said: list[Observation] = field(default_factory=list)
    unrelated: list[UUID] = field(default_factory=list)
    related: list[Edge] = field(default_factory=list)
    unnamed: list[Alias] = field(default_factory=list)
    named: list[Alias] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
