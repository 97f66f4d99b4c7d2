"""Entities, which are nodes with a name, and the arguments and results of writing them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate
from typing import Any
from uuid import UUID

from recollect.graph.nodes.labelling import fitting_tags, united_metadata
from recollect.graph.nodes.model import NodeFields, NodeHead, unique_by


@dataclass(frozen=True, slots=True)
class NewEntity:
    """The fields of a new entity. Tags match without regard to case and are stored as written."""

    name: str
    kind: str | None = None
    observations: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    importance: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    content: str | None = None

    @property
    def memories(self) -> list[tuple[str | None, str]]:
        """The texts by which search finds it, each with the name with which it is embedded."""
        texts = [*self.observations, *([self.content] if self.content else [])]
        return [(self.name, text) for text in texts] or [(None, self.name)]


@dataclass(frozen=True, slots=True)
class Entity:
    """A live entity with its observations, oldest first. `content`: a text of its own, if it has one.

    `omitted`: how many older observations are left out, since all of them would not fit a reply.
    """

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
    omitted: int = 0


@dataclass(frozen=True, slots=True)
class ListedObservations:
    """Texts of the active observations of a node, oldest first; `omitted`: how many older ones are left out."""

    texts: tuple[str, ...] = ()
    omitted: int = 0


@dataclass(frozen=True, slots=True)
class ObservationsSize:
    """How many active observations a node has, and their bytes as JSON where nothing in them is escaped."""

    count: int = 0
    bytes: int = 0


def fair_share(sizes: Iterable[int], available: int) -> int:
    """The largest size to which all can be cut so that their sum fits what is available; smaller ones stay whole."""
    ascending = sorted(sizes)
    for smaller, size in enumerate(ascending):
        share = max(available, 0) // (len(ascending) - smaller)
        if size > share:
            return share
        available -= size
    return ascending[-1] if ascending else 0


def newest_within(entity: Entity, sizes: Sequence[int], max_bytes: int) -> Entity:
    """The entity with its newest observations, as far as their sizes, in order, fit."""
    if sum(sizes) <= max_bytes:
        return entity
    count = sum(total <= max_bytes for total in accumulate(reversed(sizes)))
    left_out = len(sizes) - count
    return replace(entity, observations=entity.observations[left_out:], omitted=entity.omitted + left_out)


@dataclass(frozen=True, slots=True)
class SimilarName:
    """An entity whose name differs from another's in case, in width and the like only."""

    id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class UpsertResult:
    """The outcome of an upsert for one entity: whether it was created, and which observations were new to it.

    `id`: of an entity that was created.
    """

    name: str
    created: bool
    added: tuple[str, ...]
    id: UUID | None = None


def merged_fields(target: NodeHead, sources: Sequence[NodeHead], *, parent_id: UUID | None) -> NodeFields:
    """The target's fields after a merge of the sources into it.

    It has all tags and metadata, as far as one node may have them, the target's first; the greatest importance, and a
    source's kind, text and summary where it has none. It expires when the last of all heads expires, and is active
    where any of them is. Its text and its summary come from a head that has the merged status.
    """
    heads = [target, *sources]
    current = next((head for head in heads if head.status == "active"), target)
    same_status = [head for head in heads if head.status == current.status]
    longest = max(heads, key=lambda head: (head.expires_at is None, head.expires_at or target.updated_at))
    # A text that expires before the merged entity does becomes an observation, which can expire by itself.
    texts = [head.content for head in same_status if head.expires_at in (None, longest.expires_at)]
    tags = unique_by(str.lower, (tag for head in heads for tag in head.fields.tags))
    importances = [head.fields.importance for head in heads if head.fields.importance is not None]
    return replace(
        target.fields,
        kind=next((head.kind for head in heads if head.kind), target.kind),
        content=next((text for text in texts if text), None),
        summary=next((head.summary for head in same_status if head.summary), None),
        metadata=united_metadata(target.metadata, [source.metadata for source in sources]),
        tags=fitting_tags(tags),
        importance=max(importances, default=None),
        parent_id=parent_id,
        status=current.status,
        reason=current.reason,
        ttl_days=longest.ttl_days,
        expires_at=longest.expires_at,
    )
