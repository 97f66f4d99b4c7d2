"""The official memory server's `memory.jsonl`, as any other format: names, types, observations and relations.

The lines themselves, and how a chunk of them is read, are those of `recollect.transfer.jsonl`.
"""

from collections.abc import Iterator, Sequence

from recollect.entities.model import NewEntity
from recollect.nodes.model import unique
from recollect.relations.model import NewRelation
from recollect.transfer.formats.lines import whole_lines
from recollect.transfer.formats.reading import Item, Read
from recollect.transfer.formats.writer import ExportedEdge, ExportedNode, Writer
from recollect.transfer.jsonl import read_line, write_line
from recollect.transfer.model import Item as Said
from recollect.transfer.model import Problem, Unreadable
from recollect.transfer.records import AnyRecord, EntityRecord, RelationRecord


class JsonlWriter(Writer):
    """Writes an item a line, as the official server does."""

    def nodes(self, nodes: Sequence[ExportedNode], *, first: bool) -> str:
        """Entities. A statement that came from two threads is given once."""
        entities = [node.record for node in nodes if isinstance(node.record, EntityRecord)]
        said = [NewEntity(e.name, e.entity_type, tuple(unique(e.observations))) for e in entities]
        return b"".join(map(write_line, said)).decode()

    def edges(self, edges: Sequence[ExportedEdge], *, first: bool) -> str:
        """Relations."""
        relations = [edge.record for edge in edges]
        said = [NewRelation(str(r.from_), str(r.to), r.relation_type) for r in relations]
        return b"".join(map(write_line, said)).decode()


def read(texts: Iterator[str]) -> Read:
    """What each line says; empty ones say nothing."""
    for number, line in enumerate(whole_lines(texts), 1):
        where = f"line {number}"
        try:
            if line.strip():
                yield Item(where, record_of(read_line(line.encode())))
        except Unreadable as error:
            yield Problem(where, error.reason)


def record_of(said: Said) -> AnyRecord:
    """What a line said, as a record."""
    if isinstance(said, NewRelation):
        return RelationRecord(from_=said.source, to=said.target, relation_type=said.type)
    return EntityRecord(name=said.name, entity_type=said.kind or "", observations=list(said.observations))
