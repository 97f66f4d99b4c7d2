"""How many tenants and credentials are remembered by their cell, and by what; tenants between two cells."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

REMEMBERED = 100_000
"""Tenants, and credentials, whose cell a process remembers."""

ELSEWHERE_SECONDS = 2.0
"""How long a person waits for what is done in other cells, best effort."""


@dataclass(frozen=True, slots=True)
class Departure:
    """A tenant that departed from a cell: where to, and the secret by which it may be there."""

    tenant_id: UUID
    target: str
    secret: UUID


@dataclass(frozen=True, slots=True)
class OpenSwitch:
    """A tenant whose move was about to switch: from which cell it was to depart, whether or not it did."""

    tenant_id: UUID
    source: str


def memory_key(by: str, person_id: UUID | None) -> bytes:
    """By what the cell of a secret or a name is remembered, which somebody asks for: not the secret itself."""
    return hashlib.sha256(f"{person_id}:{by}".encode()).digest()


def tenant_of(found: object) -> UUID | None:
    """Whose tenant's it is that was found: it says so, or is confined to it."""
    if isinstance(found, UUID):
        return found
    return getattr(found, "tenant_id", None) or getattr(found, "confined_to", None)


def served_in_both(before: Mapping[str, list[str]], after: Mapping[str, list[str]]) -> bool:
    """Whether one cell said before and after that it serves a tenant: what it did not find meanwhile is not there.

    Each by the cell: what it says of the tenant. Where none did, the tenant moved from one to another.
    """
    return bool(_serving(before) & _serving(after))


def _serving(places: Mapping[str, list[str]]) -> set[str]:
    return {cell for cell, said in places.items() if {"here", "leaving"} & set(said)}
