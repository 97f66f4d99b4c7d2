"""JSON: everything that a transfer knows, one item a line.

    {"entities":[
    {"name":"Ada","entityType":"person","observations":["writes notes"],"tags":["vip"],"createdAt":"…"}
    ],"facts":[
    {"text":"Bees make honey","thread":"standup"}
    ],"relations":[
    {"from":"Ada","to":"Babbage","relationType":"knows"}
    ]}

The parts may stand in any order when it is read, with `hierarchy` ({name, parentId}) beside them. Each item is decoded
when it is reached, so that the memory used is that of the largest item.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import msgspec

from recollect.errors import InvalidInput
from recollect.transfer.formats.decoding import MAX_CELL, ParsedRecord, Read
from recollect.transfer.formats.writer import ExportedEdge, ExportedNode, Stage, Writer
from recollect.transfer.model import ImportProblem, UnreadableLine
from recollect.transfer.records import AnyRecord, EntityRecord, FactRecord, Placement, RelationRecord, kept

PARTS: dict[str, type[AnyRecord]] = {
    "entities": EntityRecord,
    "facts": FactRecord,
    "relations": RelationRecord,
    "hierarchy": Placement,
}


class JsonWriter(Writer):
    """Writes one object with a list for each stage."""

    holds_facts = True

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
    source = _JsonStream(texts)
    for part in source.names():
        if part == "type":
            raise InvalidInput("These are JSON lines, the format jsonl", path=source.place)
        if part not in PARTS:
            raise InvalidInput(f"Unknown part; there are {', '.join(PARTS)}", path=source.place)
        for number, value in enumerate(source.values()):
            where = f"{part}.{number}"
            try:
                record, problems = kept(PARTS[part], value, where)
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


class _JsonStream:
    """JSON text that arrives in pieces, read item by item with the standard library's decoder."""

    _BLANK = re.compile(r"[ \t\r\n]*")

    def __init__(self, texts: Iterator[str]) -> None:
        self._texts = texts
        self._text, self._at, self._line = "", 0, 1
        self._decoder = json.JSONDecoder(parse_constant=self._refuse)

    @property
    def place(self) -> str:
        """The current line, for the path of an error."""
        return f"line {self._line + self._text.count(chr(10), 0, self._at)}"

    def names(self) -> Iterator[str]:
        """Yield the names in the object. The caller reads each list before it asks for the next name."""
        self._take("{")
        if self._peek() == "}":
            self._at += 1
            return
        while True:
            key = self._value()
            if not isinstance(key, str):
                self._refuse()
            self._take(":")
            yield key
            if self._take(",}") == "}":
                return

    def values(self) -> Iterator[Any]:
        """Yield the items of a list."""
        self._take("[")
        if self._peek() == "]":
            self._at += 1
            return
        while True:
            yield self._value()
            if self._take(",]") == "]":
                return

    def end(self) -> None:
        """Raise InvalidInput for text after the object."""
        if self._peek():
            self._refuse()

    def _peek(self) -> str:
        while True:
            blank = self._BLANK.match(self._text, self._at)
            assert blank is not None
            self._at = blank.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _take(self, wanted: str) -> str:
        found = self._peek()
        if not found or found not in wanted:
            self._refuse()
        self._at += 1
        return found

    def _value(self) -> Any:
        if self._peek() not in ("{", "[", '"'):  # numbers and words may go on in the next piece; no item is one
            self._refuse()
        while True:
            try:
                value, self._at = self._decoder.raw_decode(self._text, self._at)
                return value
            except RecursionError:
                raise InvalidInput("Nested too deep", path=self.place) from None
            except ValueError as error:
                # What is broken in the middle stays so; what is broken at the end may only not have arrived.
                if not self._may_be_cut(error) or not self._more(double=True):
                    self._refuse()

    def _may_be_cut(self, error: ValueError) -> bool:
        if not isinstance(error, json.JSONDecodeError):
            return False
        return error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - 16

    def _more(self, *, double: bool = False) -> bool:
        """Double the buffer, up to its bound, so that a long item is not decoded again for each piece."""
        rest = self._text[self._at :]
        self._line += self._text.count("\n", 0, self._at)
        if len(rest) > MAX_CELL:
            raise InvalidInput(f"An item of more than {MAX_CELL} characters", path=self.place)
        pieces, wanted = [rest], min(len(rest), MAX_CELL - len(rest) + 1) if double else 1
        while wanted > 0 and (piece := next(self._texts, None)) is not None:
            pieces.append(piece)
            wanted -= len(piece)
        self._text, self._at = "".join(pieces), 0
        return len(self._text) > len(rest)

    def _refuse(self, _: str = "") -> NoReturn:
        raise InvalidInput("Not a JSON object of lists", path=self.place) from None
