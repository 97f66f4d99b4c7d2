"""What every writer of a format is asked for, and what it is handed."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from recollect.transfer.records import EntityRecord, FactRecord, RelationRecord


class Stage(StrEnum):
    """The parts of a file, in this order."""

    ENTITIES = "entities"
    FACTS = "facts"
    RELATIONS = "relations"


@dataclass(frozen=True, slots=True)
class ExportedNode:
    """A node with its lineage's id. `record` None: a placeholder, of which there is but the name."""

    id: UUID
    name: str | None
    record: EntityRecord | FactRecord | None


@dataclass(frozen=True, slots=True)
class ExportedEdge:
    """A relation with its id and those of the lineages at its ends."""

    id: UUID
    from_node: UUID
    to_node: UUID
    record: RelationRecord


class Writer(ABC):
    """A format, a piece at a time. It keeps nothing between pieces, so that an export may go on in another process.

    `holds_facts`: nodes without a name, and their relations. `holds_placeholders`: names that only relations know.
    """

    holds_facts = False
    holds_placeholders = False

    def opening(self, stage: Stage) -> str:
        """What stands before a stage."""
        return ""

    @abstractmethod
    def nodes(self, nodes: Sequence[ExportedNode], *, first: bool) -> str:
        """A page of entities or facts; `first`: of its stage."""

    @abstractmethod
    def edges(self, edges: Sequence[ExportedEdge], *, first: bool) -> str:
        """A page of relations."""

    def closing(self, stage: Stage) -> str:
        """What stands after a stage."""
        return ""


def mark(node_id: UUID) -> str:
    """How drawings mean a node: by its id, which needs nothing kept, as a word that begins with a letter."""
    return f"n{node_id.hex}"
