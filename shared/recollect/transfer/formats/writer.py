"""The interface of the writers of formats, and the values that they write."""

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
    """A node and the id of its lineage. `record` None: a placeholder, which has only a name."""

    id: UUID
    name: str | None
    record: EntityRecord | FactRecord | None


@dataclass(frozen=True, slots=True)
class ExportedEdge:
    """A relation, its id, and the ids of the lineages at its ends."""

    id: UUID
    from_node: UUID
    to_node: UUID
    record: RelationRecord


class Writer(ABC):
    """Writes a format piece by piece. It keeps no state between pieces, so that another process may continue an export.

    The exception is `marks`, which names nodes in drawings: use Numbers only for a file that is written in one go.
    `writes_facts`: the format has facts and their relations. `writes_placeholders`: it has names that only relations
    use. `writes_status`: it marks what is outdated or archived; a format that does not leaves that out, with its
    relations. `is_one_list`: nothing separates the stages, so that `first` is true once for the file and not once for
    each stage.
    """

    writes_facts = False
    writes_placeholders = False
    writes_status = False
    is_one_list = False

    def __init__(self, marks: Callable[[UUID], str] | None = None) -> None:
        self.mark = marks or mark

    def opening(self, stage: Stage) -> str:
        """Write the text before a stage."""
        return ""

    @abstractmethod
    def nodes(self, nodes: Sequence[ExportedNode], *, first: bool) -> str:
        """Write a page of entities or facts. `first`: it is the first of its stage, or of a file that is one list."""

    @abstractmethod
    def edges(self, edges: Sequence[ExportedEdge], *, first: bool) -> str:
        """Write a page of relations. `first` as in `nodes`."""

    def closing(self, stage: Stage) -> str:
        """Write the text after a stage."""
        return ""


class Numbers:
    """Names nodes as the mcp-memory crate does in drawings: n0, n1, … in order of appearance."""

    def __init__(self) -> None:
        self._numbers: dict[UUID, str] = {}

    def __call__(self, node_id: UUID) -> str:
        """Return the name of a node, such as `n3`."""
        return self._numbers.setdefault(node_id, f"n{len(self._numbers)}")


def mark(node_id: UUID) -> str:
    """The name of a node in drawings, made of its id alone: a word that begins with a letter."""
    return f"n{node_id.hex}"
