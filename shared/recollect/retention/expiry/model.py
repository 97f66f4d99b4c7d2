"""Expiry: what has expired is archived, and later deleted."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class ExpiryStep:
    """What one step did: nodes archived or purged, observations removed. `more`: another step may find more."""

    nodes: int
    observations: int
    more: bool


@dataclass(frozen=True, slots=True)
class ExpiringMemory:
    """A memory that expires soon: an observation of a node or, where both ids are the same, the node itself."""

    memory_id: UUID
    node_id: UUID
    name: str | None
    text: str
    expires_at: datetime
