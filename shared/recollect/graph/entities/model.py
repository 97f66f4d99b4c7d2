"""Nodes with a name, and what they are made of."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.graph.nodes.model import NodeFields, NodeHead, unique_by


@dataclass(frozen=True, slots=True)
class NewEntity:
    """What a new entity is made of. Tags match without regard to case and are kept as given."""

    name: str
    kind: str | None = None
    observations: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    importance: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    content: str | None = None


@dataclass(frozen=True, slots=True)
class Entity:
    """A live entity with its observations, oldest first, and the text of its own that it may have (`content`)."""

    id: UUID
    name: str
    kind: str | None
    content: str | None
    observations: tuple[str, ...]
    tags: tuple[str, ...]
    importance: float | None
    created_at: datetime
    updated_at: datetime
    parent: str | None
    status: str = "active"


@dataclass(frozen=True, slots=True)
class UpsertResult:
    """What an upsert did to one entity: whether it made it, and the observations that it did not have."""

    name: str
    created: bool
    added: tuple[str, ...]


def merged_fields(target: NodeHead, sources: Sequence[NodeHead], *, parent_id: UUID | None) -> NodeFields:
    """The target's fields with what the others add.

    All tags and metadata, the greatest importance, and a kind, a text and a summary where it has none. It lasts as long
    as the one that lasts longest, and is active where any of them is. Text and summary are of one that has its status.
    """
    everyone = [target, *sources]
    current = next((head for head in everyone if head.status == "active"), target)
    alike = [head for head in everyone if head.status == current.status]
    longest = max(everyone, key=lambda head: (head.expires_at is None, head.expires_at or target.updated_at))
    # A text that ends before that is no text of the one that is left, but a statement that ends.
    texts = [head.content for head in alike if head.expires_at in (None, longest.expires_at)]
    tags = unique_by(str.lower, (tag for head in everyone for tag in head.fields.tags))
    importances = [head.fields.importance for head in everyone if head.fields.importance is not None]
    return replace(
        target.fields,
        kind=next((head.kind for head in everyone if head.kind), target.kind),
        content=next((text for text in texts if text), None),
        summary=next((head.summary for head in alike if head.summary), None),
        metadata={key: value for head in reversed(everyone) for key, value in head.metadata.items()},
        tags=tuple(tags),
        importance=max(importances, default=None),
        parent_id=parent_id,
        status=current.status,
        reason=current.reason,
        ttl_days=longest.ttl_days,
        expires_at=longest.expires_at,
    )
