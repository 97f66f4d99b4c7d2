"""Pairs of entities that were marked as different."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

MAX_DISMISSALS = 10_000
"""Most dismissed pairs of a graph: each search for duplicates reads them all."""

Pair = tuple[UUID, UUID]
"""The ids of two entities, the lesser first."""

Dismissed = Mapping[UUID, AbstractSet[UUID]]
"""For each entity of a dismissed pair, those from which it is different."""

NONE_DISMISSED: Dismissed = {}


@dataclass(frozen=True, slots=True)
class Dismissal:
    """A dismissed pair: who said it (a subject) and when, and the names that the two entities have or had."""

    node_id: UUID
    other_id: UUID
    name: str | None
    other: str | None
    dismissed_by: str
    dismissed_at: datetime
