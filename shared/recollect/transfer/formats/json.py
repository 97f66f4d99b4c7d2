"""JSON: everything that can be transferred, one item a line.

    {"entities":[
    {"name":"Ada","entityType":"person","observations":["writes notes"],"tags":["vip"],"createdAt":"…"}
    ],"facts":[
    {"text":"Bees make honey","thread":"standup"}
    ],"relations":[
    {"from":"Ada","to":"Babbage","relationType":"knows"}
    ]}

A file to be read may have the parts in any order, with `hierarchy` ({name, parentId}) beside them. Each item is decoded
when it is reached, so that the memory used is that of the largest item.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from recollect.errors import InvalidInput
from recollect.transfer.formats.decoding import ParsedRecord, Read
from recollect.transfer.formats.json_stream import JsonStream
from recollect.transfer.formats.writer import ExportedEdge, ExportedNode, Stage, Writer
from recollect.transfer.model import ImportProblem, UnreadableLine
from recollect.transfer.records import AnyRecord, EntityRecord, FactRecord, Placement, RelationRecord, parsed_leniently

PARTS: dict[str, type[AnyRecord]] = {
    "entities": EntityRecord,
    "facts": FactRecord,
    "relations": RelationRecord,
    "hierarchy": Placement,
}


class JsonWriter(Writer):
    """Writes one object with a list for each stage."""

    holds_facts = True
    holds_status = True

    def opening(self, stage: Stage) -> str:
        """Write the end of the previous part and the name of this one."""
        return f'{"{" if stage is Stage.ENTITIES else ","}"{stage}":['

    def nodes(self, nodes: Sequence[ExportedNode], *, first: bool) -> str:
        """Write each item on a line."""
        return _lines([node.record for node in nodes if node.record], first)

    def edges(self, edges: Sequence[ExportedEdge], *, first: bool) -> str:
        """Write each item on a line."""
        return _lines([edge.record for edge in edges], first)

    def closing(self, stage: Stage) -> str:
        """Write the end of the list and, after the last, the end of the object."""
        return "\n]}\n" if stage is Stage.RELATIONS else "\n]"


def read(texts: Iterator[str]) -> Read:
    """Yield the items of every part in order. Raises InvalidInput for a file that is not a JSON object of lists."""
    source = JsonStream(texts)
    for part in source.names():
        if part == "type":
            raise InvalidInput("These are JSON lines: use the format jsonl", path=source.place)
        if part not in PARTS:
            raise InvalidInput(f"Unknown part; the parts are {', '.join(PARTS)}", path=source.place)
        for number, value in enumerate(source.values()):
            where = f"{part}.{number}"
            try:
                record, problems = parsed_leniently(PARTS[part], value, where)
            except UnreadableLine as error:
                yield ImportProblem(where, error.reason)
                continue
            yield from problems
            yield ParsedRecord(where, record)
    source.end()


def _lines(records: Sequence[Any], first: bool) -> str:
    if not records:
        return ""
    return ("\n" if first else ",\n") + ",\n".join(msgspec.json.encode(record).decode() for record in records)
