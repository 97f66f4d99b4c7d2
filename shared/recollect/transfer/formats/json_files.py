"""JSON: everything that can be transferred, one item a line.

    {"entities":[
    {"name":"Ada","entityType":"person","observations":["writes notes"],"tags":["vip"],"createdAt":"…"}
    ],"facts":[
    {"text":"Bees make honey","thread":"standup"}
    ],"relations":[
    {"from":"Ada","to":"Babbage","relationType":"knows"}
    ]}

A file to be read may have the parts in any order, with `hierarchy` ({name, parentId}) beside them. It may also be a
saved answer of `read_graph`, of this server or the official one, or one list of entities and relations. Each item is
decoded when it is reached, so that the memory used is that of the largest item, which may have MAX_CELL characters.
"""

import re
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


PARTS_OF_ANSWERS = frozenset({"nextOffset", "cut"})
"""Parts that answers of `read_graph` may have, and that say nothing of the graph."""

_TYPES = {EntityRecord: "entity", RelationRecord: "relation"}
"""What the field `type` of an item says, where it has one, as in the official server's lines and answers."""

_BEGINNING = re.compile(rf"""\s*(\[\s*(\{{|\])|\{{\s*"({"|".join(PARTS)})"\s*:)""")


def begins_document(head: str) -> bool:
    """Whether a text with this beginning is one JSON document that `read` reads, and no lines."""
    return _BEGINNING.match(head) is not None


class JsonWriter(Writer):
    """Writes one object with a list for each stage."""

    writes_facts = True
    writes_status = True

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
    """Yield the items of every part in order, or of the one list.

    Raises InvalidInput for a file that is neither a JSON object of lists nor a list.
    """
    source = JsonStream(texts)
    if source.begins_list():
        for number, value in enumerate(source.values()):
            yield from _item(_type_of(value), value, str(number))
    else:
        for part in source.names():
            yield from _part(source, part)
    source.end()


def _part(source: JsonStream, part: str) -> Read:
    """The items of a part of the object."""
    if part == "type":
        raise InvalidInput("These are JSON lines: use the format jsonl", path=source.location)
    if part in PARTS_OF_ANSWERS:
        source.skip()
        return
    if part not in PARTS:
        raise InvalidInput(f"Unknown part; the parts are {', '.join(PARTS)}", path=source.location)
    for number, value in enumerate(source.values()):
        yield from _item(PARTS[part], value, f"{part}.{number}")


def _item(type_: type[AnyRecord], value: Any, where: str) -> Read:
    """An item as a record, after the problems of observations that cannot be stored; or the problem of the item."""
    try:
        record, problems = parsed_leniently(type_, _as_exported(type_, value), where)
    except UnreadableLine as error:
        yield ImportProblem(where, error.reason)
        return
    yield from problems
    yield ParsedRecord(where, record)


def _type_of(value: Any) -> type[AnyRecord]:
    """The type of an item of a list: what it says itself, else an entity unless it has the fields of another type."""
    item = value if isinstance(value, dict) else {}
    if item.get("type") == "relation" or "relationType" in item:
        return RelationRecord
    return FactRecord if "text" in item and "name" not in item else EntityRecord


def _as_exported(type_: type[AnyRecord], value: Any) -> Any:
    """An item of an answer as an export has it: without its type, and with its own text as `text`."""
    if not isinstance(value, dict):
        return value
    if "type" in value and value["type"] == _TYPES.get(type_):
        value = {name: part for name, part in value.items() if name != "type"}
    if type_ is EntityRecord and "content" in value and "text" not in value:
        value = {"text" if name == "content" else name: part for name, part in value.items()}
    return value


def _lines(records: Sequence[Any], first: bool) -> str:
    if not records:
        return ""
    return ("\n" if first else ",\n") + ",\n".join(msgspec.json.encode(record).decode() for record in records)
