"""Short statements about entities."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from dataclasses import fields as dataclass_fields
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.graph.graphs.model import Revision
from recollect.graph.nodes.model import NodeHead, unique_by
from recollect.ids import new_id
from recollect.json_values import same_json


def each_tag_once(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags in order, without those that differ from an earlier one by case alone."""
    return tuple(unique_by(str.lower, tags))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """What a memory says of itself beside its text; where it says nothing, its entity's hold."""

    kind: str | None = None
    tags: tuple[str, ...] = ()
    importance: float | None = None
    source: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def attributes(self) -> "Attributes":
        """These alone."""
        return Attributes(**{name: getattr(self, name) for name in ATTRIBUTES})

    def given(self) -> dict[str, Any]:
        """Those that are said, by name."""
        told = {name: getattr(self, name) for name in ATTRIBUTES} | {"tags": each_tag_once(self.tags)}
        return {name: value for name, value in told.items() if value not in (None, (), {})}

    def enriched(self, other: "Attributes") -> "Attributes":
        """These with what they lack of another's: tags and metadata add up, and the greater importance holds."""
        importances = [i for i in (self.importance, other.importance) if i is not None]
        return Attributes(
            kind=self.kind or other.kind,
            tags=each_tag_once((*self.tags, *other.tags)),
            importance=max(importances, default=None),
            source=self.source or other.source,
            metadata={**other.metadata, **self.metadata},
        )


ATTRIBUTES = tuple(field.name for field in dataclass_fields(Attributes))


@dataclass(frozen=True, slots=True)
class NewObservation(Attributes):
    """One statement to attach to the entity of that name."""

    entity: str
    content: str
    thread: str | None = None
    said_at: datetime | None = None
    expires_at: datetime | None = None
    status: str = "active"
    reason: str | None = None

    def on(self, node_id: UUID, revision: Revision) -> "Observation":
        """The statement on this node, with an id of its own, by who writes; said now where nothing else is told."""
        return Observation(
            new_id(),
            node_id,
            self.entity,
            self.content,
            self.thread,
            self.said_at or revision.at,
            self.expires_at,
            revision.actor,
            self.status,
            self.reason,
            **{name: getattr(self, name) for name in ATTRIBUTES} | {"tags": each_tag_once(self.tags)},
        )


@dataclass(frozen=True, slots=True)
class Observation(Attributes):
    """An observation as it is now, with the name of the entity that it is about.

    `created_by`: who said it first, whoever attaches it again. `reason`: why it was last changed, where that was told.
    `first_revision`: of its first version, which gives it its place among what its entity says; None: it is new.
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

    @property
    def is_active(self) -> bool:
        """Whether it is told, and counted, among what its entity says; an outdated one is kept."""
        return self.status == "active"

    def says(self, other: "Observation") -> bool:
        """Whether a version like this would say what one like `other` says: then it need not be written."""
        return self == other and same_json(self.metadata, other.metadata)

    def as_outdated(self, reason: str | None) -> "Observation":
        """The statement as one that no longer holds, for this reason; one that is outdated already stays as it is."""
        return replace(self, status="outdated", reason=reason) if self.is_active else self

    @property
    def key(self) -> "Key":
        """What makes it the same as another of the same status."""
        return self.node_id, self.content, self.thread

    def united(self, other: "Observation") -> "Observation":
        """The statement with what it lacks of another that says the same: attributes, and the time that it lasts."""
        ends = (self.expires_at, other.expires_at)
        later = None if None in ends else max(end for end in ends if end is not None)
        return replace(self.with_attributes(self.enriched(other)), expires_at=later)

    def with_attributes(self, attributes: Attributes) -> "Observation":
        """The statement with these attributes, all of them."""
        return replace(self, **{name: getattr(attributes, name) for name in ATTRIBUTES})


def own_texts(heads: Iterable[NodeHead], known: str | None, at: datetime) -> list[Observation]:
    """The texts that entities have of their own, but one that is `known`, as statements about them under their ids.

    `at`: when one was said of which nobody told that.
    """
    return [
        Observation(h.id, h.id, h.name or "", h.content, h.thread, h.said_at or at, h.expires_at, h.created_by)
        for h in heads
        if h.content and h.content != known
    ]


Key = tuple[UUID, str, str | None]
"""A node, what is said of it, and in which thread."""


def count_active(observations: Iterable[Observation]) -> int:
    """How many of these are told and counted."""
    return sum(observation.is_active for observation in observations)
