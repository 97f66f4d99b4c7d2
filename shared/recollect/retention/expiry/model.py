"""Expiry: what has expired is archived, and later deleted."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExpiryStep:
    """What one step did: nodes archived or purged, observations removed. `more`: another step may find more."""

    nodes: int
    observations: int
    more: bool
