"""Entries of the directory, and sizes of cells."""

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """A tenant in the directory, and its cell. `is_new`: entered within the last minute, perhaps not created yet."""

    id: UUID
    cell: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class CellSize:
    """The size of a cell: tenants that are served there, and bytes of its database."""

    tenants: int
    bytes: int
