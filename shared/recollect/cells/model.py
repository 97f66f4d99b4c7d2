"""What a process remembers about the cells of tenants and credentials; tenants between two cells."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

REMEMBERED = 100_000
"""How many tenants, and how many credentials, have their cell remembered by a process."""

OTHER_CELLS_SECONDS = 2.0
"""How long a person waits for changes in other cells, best effort."""


@dataclass(frozen=True, slots=True)
class TenantDeparture:
    """A tenant that departed from a cell: the target, and the secret by which the target accepts it."""

    tenant_id: UUID
    target: str
    secret: UUID


@dataclass(frozen=True, slots=True)
class OpenSwitch:
    """A tenant whose move was about to switch, and the cell that it was to leave, whether or not it did."""

    tenant_id: UUID
    source: str


def memory_key(by: str, person_id: UUID | None) -> bytes:
    """The key under which the cell of a secret or a name is remembered, for this person: a hash, not the secret."""
    return hashlib.sha256(f"{person_id}:{by}".encode()).digest()


def tenant_of(found: object) -> UUID | None:
    """The tenant to which a found value belongs, or is confined; the value itself where it is an id."""
    if isinstance(found, UUID):
        return found
    return getattr(found, "tenant_id", None) or getattr(found, "confined_to", None)


def served_in_both(before: Mapping[str, list[str]], after: Mapping[str, list[str]]) -> bool:
    """Whether one cell served the tenant before and after a look-up: a value that it did not find does not exist.

    Both map cells to the states that they have for the tenant. If no cell did, the tenant moved in between.
    """
    return bool(_serving(before) & _serving(after))


def _serving(states_by_cell: Mapping[str, list[str]]) -> set[str]:
    return {cell for cell, states in states_by_cell.items() if {"here", "leaving"} & set(states)}
