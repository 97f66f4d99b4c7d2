"""What is told of cells, and of the tenants that the directory names."""

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """A tenant in the directory, and its cell. `is_new`: within the last minute, so that it may be about to be made."""

    id: UUID
    cell: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class CellSize:
    """How much is in a cell: tenants that are served there, and bytes of its database."""

    tenants: int
    bytes: int
