"""Observations: short statements about entities."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from dataclasses import fields as dataclass_fields
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.graph.graphs.model import Revision
from recollect.graph.json_values import same_json
from recollect.graph.nodes.labelling import fitting_tags, united_metadata
from recollect.graph.nodes.model import NodeHead, unique_by
from recollect.ids import new_id


def each_tag_once(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags in order, without those that differ from an earlier one by case alone."""
    return tuple(unique_by(str.lower, tags))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """The attributes of a memory beside its text; where one is not set, its entity's holds."""

    kind: str | None = None
    tags: tuple[str, ...] = ()
    importance: float | None = None
    source: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def attributes(self) -> "Attributes":
        """The attributes alone, without the fields of a subclass."""
        return Attributes(**{name: getattr(self, name) for name in ATTRIBUTES})

    def given_attributes(self) -> dict[str, Any]:
        """The attributes that have a value, by name."""
        attributes = {name: getattr(self, name) for name in ATTRIBUTES} | {"tags": each_tag_once(self.tags)}
        return {name: value for name, value in attributes.items() if value not in (None, (), {})}

    def enriched(self, other: "Attributes") -> "Attributes":
        """These attributes, completed by another's: tags and metadata add up as far as one memory may have them, and
        the greater importance holds."""
        importances = [i for i in (self.importance, other.importance) if i is not None]
        return Attributes(
            kind=self.kind or other.kind,
            tags=fitting_tags(each_tag_once((*self.tags, *other.tags))),
            importance=max(importances, default=None),
            source=self.source or other.source,
            metadata=united_metadata(self.metadata, [other.metadata]),
        )


ATTRIBUTES = tuple(field.name for field in dataclass_fields(Attributes))


@dataclass(frozen=True, slots=True)
class NewObservation(Attributes):
    """An observation to attach to the entity of that name. `said_offset`: as in Observation."""

    entity: str
    content: str
    thread: str | None = None
    said_at: datetime | None = None
    expires_at: datetime | None = None
    status: str = "active"
    reason: str | None = None
    said_offset: int | None = None

    def attach_to(self, node_id: UUID, revision: Revision) -> "Observation":
        """The observation on this node, with a new id, by the revision's author.

        Unless `said_at` and `said_offset` are set, it was said now and by the clock of the graph.
        """
        said_at = self.said_at or revision.at
        return Observation(
            new_id(),
            node_id,
            self.entity,
            self.content,
            self.thread,
            said_at,
            self.expires_at,
            revision.actor,
            self.status,
            self.reason,
            said_offset=revision.offset_at(said_at) if self.said_offset is None else self.said_offset,
            **{name: getattr(self, name) for name in ATTRIBUTES} | {"tags": each_tag_once(self.tags)},
        )


@dataclass(frozen=True, slots=True)
class MeasuredObservation:
    """A stored observation of a node, and the bytes of its text, tags and metadata."""

    id: UUID
    node_id: UUID
    status: str
    expires_at: datetime | None
    bytes: int


@dataclass(frozen=True, slots=True)
class ObservationOutline:
    """What tells an observation of an entity apart from the others."""

    id: UUID
    node_id: UUID
    content: str
    thread: str | None
    status: str
    said_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Observation(Attributes):
    """An observation as it is now, with the name of the entity that it is about.

    `created_by`: its first author, also where another caller attached it again. `reason`: why it was last changed, if
    stated. `first_revision`: the revision of its first version, which orders it among its entity's; None: it is new.
    `version`: the number of this version; two that differ in it alone say the same. `said_offset`: the minutes by which
    the clock of who said it was ahead of UTC; None: not known, or UTC.
    """

    id: UUID
    node_id: UUID
    entity: str
    content: str
    thread: str | None
    said_at: datetime
    expires_at: datetime | None
    created_by: str
    status: str = "active"
    reason: str | None = None
    first_revision: int | None = None
    version: int = field(default=1, compare=False)
    said_offset: int | None = None

    @property
    def is_active(self) -> bool:
        """Whether it is listed and counted with its entity; an outdated observation is stored, but neither."""
        return self.status == "active"

    def is_same_as(self, other: "Observation") -> bool:
        """Whether a version like this and one like `other` are the same, so that none need be written."""
        return self == other and same_json(self.metadata, other.metadata)

    def as_outdated(self, reason: str | None) -> "Observation":
        """The observation as outdated, for this reason; one that is outdated already stays as it is."""
        return replace(self, status="outdated", reason=reason) if self.is_active else self

    def following(self, before: "Observation") -> "Observation":
        """This as the version that comes after `before`; the same version where it says the same."""
        return replace(self, version=before.version + (0 if self.is_same_as(before) else 1))

    @property
    def key(self) -> "Key":
        """The key of the observation: two with the same key and the same status are the same."""
        return self.node_id, self.content, self.thread

    def merged_with(self, other: "Observation") -> "Observation":
        """The observation, completed by another with the same text: its attributes, and the later expiry."""
        ends = (self.expires_at, other.expires_at)
        later = None if None in ends else max(end for end in ends if end is not None)
        return replace(self.with_attributes(self.enriched(other)), expires_at=later)

    def with_attributes(self, attributes: Attributes) -> "Observation":
        """The observation with these attributes in place of all its own."""
        return replace(self, **{name: getattr(attributes, name) for name in ATTRIBUTES})


@dataclass(frozen=True, slots=True)
class RemovedStatements:
    """Which of the (entity, content) that were to be removed were there, and which of the entities exist."""

    removed: set[tuple[str, str]]
    entities: set[str]


def own_texts(heads: Iterable[NodeHead], known: str | None, at: datetime) -> list[Observation]:
    """The own texts (`content`) of entities as observations under the entities' ids, without the text `known`.

    `at`: when a text without a time was said.
    """
    return [
        Observation(
            h.id,
            h.id,
            h.name or "",
            h.content,
            h.thread,
            h.said_at or at,
            h.expires_at,
            h.created_by,
            said_offset=h.said_offset,
        )
        for h in heads
        if h.content and h.content != known
    ]


Key = tuple[UUID, str, str | None]
"""The node, the content and the thread of an observation."""


def count_active(observations: Iterable[Observation]) -> int:
    """How many of these are active."""
    return sum(observation.is_active for observation in observations)
