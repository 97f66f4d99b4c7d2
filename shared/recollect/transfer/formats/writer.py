"""The interface of the writers of formats, and what they are given."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from recollect.transfer.records import EntityRecord, FactRecord, RelationRecord


class Stage(StrEnum):
    """The parts of a file, in their order."""

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

    But for `marks`, how drawings mean nodes: Numbers serve a file that is made whole in one go.
    `holds_facts`: nodes without a name, and their relations. `holds_placeholders`: names that only relations know.
    `is_one_list`: nothing parts its stages, so that its `first` item is that of the file.
    """

    holds_facts = False
    holds_placeholders = False
    is_one_list = False

    def __init__(self, marks: Callable[[UUID], str] | None = None) -> None:
        self.mark = marks or mark

    def opening(self, stage: Stage) -> str:
        """What stands before a stage."""
        return ""

    @abstractmethod
    def nodes(self, nodes: Sequence[ExportedNode], *, first: bool) -> str:
        """A page of entities or facts; `first`: of its stage, or of the file where it is one list."""

    @abstractmethod
    def edges(self, edges: Sequence[ExportedEdge], *, first: bool) -> str:
        """A page of relations."""

    def closing(self, stage: Stage) -> str:
        """What stands after a stage."""
        return ""


class Numbers:
    """How the mcp-memory crate's drawings mean nodes: n0, n1, … in the order in which they come."""

    def __init__(self) -> None:
        self._numbers: dict[UUID, str] = {}

    def __call__(self, node_id: UUID) -> str:
        """The node's number as a word."""
        return self._numbers.setdefault(node_id, f"n{len(self._numbers)}")


def mark(node_id: UUID) -> str:
    """How drawings mean a node: by its id, which needs nothing kept, as a word that begins with a letter."""
    return f"n{node_id.hex}"
