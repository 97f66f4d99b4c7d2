"""The official memory server's `memory.jsonl`: one JSON object a line, entities and relations.

    {"type":"entity","name":"Ada","entityType":"person","observations":["writes notes"]}
    {"type":"relation","from":"Ada","to":"Babbage","relationType":"knows"}

As https://github.com/modelcontextprotocol/servers (src/memory) writes it; other fields are skipped, as there.
An entity without a kind has the entityType "". Each line is decoded and read by itself, so that a broken line
affects no other. Objects that follow each other on a line, also with commas, are read, too, and so is one JSON document
with all items (`json.py`). A line may have MAX_CELL characters, and so may an item of a document.
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec
from msgspec import Struct, field

from recollect.graph.entities.model import NewEntity
from recollect.graph.nodes.model import unique
from recollect.graph.relations.model import NewRelation
from recollect.transfer.formats.decoding import BROKEN_BYTES, ParsedRecord, Read
from recollect.transfer.formats.json_files import begins_document
from recollect.transfer.formats.json_files import read as read_document
from recollect.transfer.formats.json_stream import TOO_MANY_VALUES, has_too_many_values
from recollect.transfer.formats.lines import whole_lines
from recollect.transfer.formats.writer import ExportedEdge, ExportedNode, Writer
from recollect.transfer.model import ImportProblem, UnreadableLine
from recollect.transfer.records import (
    AnyRecord,
    EntityRecord,
    Kind,
    Name,
    RelationRecord,
    RelationType,
    Statement,
    require_visible,
    without_faults,
)

MEDIA_TYPE = "application/x-ndjson"

LineItem = NewEntity | NewRelation
"""The item of one line."""


class EntityLine(Struct, tag_field="type", tag="entity", rename="camel", frozen=True):
    """A line that describes an entity."""

    name: Name
    entity_type: Kind
    observations: list[Statement]


class RelationLine(Struct, tag_field="type", tag="relation", rename="camel", frozen=True):
    """A line that describes a relation. Either entity may be missing from the file."""

    from_: Name = field(name="from")
    to: Name
    relation_type: RelationType


class JsonlWriter(Writer):
    """Writes each item on a line, as the official server does: a newline between two items, none after the last."""

    is_one_list = True

    def nodes(self, nodes: Sequence[ExportedNode], *, first: bool) -> str:
        """Write entities. An observation from two threads is written once; outdated observations are left out."""
        entities = [node.record for node in nodes if isinstance(node.record, EntityRecord)]
        items = [NewEntity(e.name, e.entity_type, tuple(unique(e.active_observations))) for e in entities]
        return _lines(items, first)

    def edges(self, edges: Sequence[ExportedEdge], *, first: bool) -> str:
        """Write relations."""
        relations = [edge.record for edge in edges]
        items = [NewRelation(str(r.from_), str(r.to), r.relation_type) for r in relations]
        return _lines(items, first)


_FIRST_LINE = re.compile(rb"""(\xef\xbb\xbf)?\s*\{\s*"type"\s*:\s*"(entity|relation)"\s*[,}]""")


def begins_with_lines(head: bytes) -> bool:
    """Whether a file with this beginning holds JSON lines, as the official server's `memory.json` did before 2025."""
    return _FIRST_LINE.match(head) is not None


_HEAD = 1_000
"""Characters by which a document is distinguished from lines."""

_DECODER = json.JSONDecoder()


def read(texts: Iterator[str]) -> Read:
    """Yield the item of each line, or the problem of a broken line. Empty lines are skipped.

    Yields the items of a file that is one JSON document; raises InvalidInput where the rest of that cannot be read.
    """
    head, texts = _head(texts)
    if begins_document(head):
        yield from read_document(texts)
        return
    for number, line in enumerate(whole_lines(texts), 1):
        where, raw = f"line {number}", line.encode(errors=BROKEN_BYTES).strip()
        if raw:
            yield from _items(raw, line, where)


def _head(texts: Iterator[str]) -> tuple[str, Iterator[str]]:
    """The beginning of a text, and all of the text."""
    pieces: list[str] = []
    while sum(map(len, pieces)) < _HEAD and (text := next(texts, None)) is not None:
        pieces.append(text)
    return "".join(pieces)[:_HEAD], chain(pieces, texts)


def _items(raw: bytes, line: str, where: str) -> Read:
    """The item of a line, or the items of objects that follow each other in it; or the problem of the line."""
    if has_too_many_values(line):
        yield ImportProblem(where, TOO_MANY_VALUES)
        return
    found = list(_item(raw, where))
    if isinstance(found[0], ImportProblem) and not found[0].of_part:
        text = line.strip()  # A line may have many pieces: they are read twice, and not kept.
        if next(_pieces(text), text) != text and all(piece.startswith("{") for piece in _pieces(text)):
            for piece in _pieces(text):
                yield from _item(piece.encode(errors=BROKEN_BYTES), where)
            return
    yield from found


def _item(raw: bytes, where: str) -> Read:
    """The item of one object, or the problem of what is none."""
    try:
        item, problems = read_line_leniently(raw, where)
    except UnreadableLine as error:
        yield ImportProblem(where, error.reason)
        return
    yield from problems
    yield ParsedRecord(where, record_of(item))


_BLANK = re.compile(r"\s*,?\s*")
"""What stands between two objects of a line, and may stand after the last, as in a list."""


def _pieces(line: str) -> Iterator[str]:
    """The JSON objects that follow each other in a line; from the first fault on, the rest of the line in one piece."""
    at = 0
    while at < len(line):
        try:
            end = _DECODER.raw_decode(line, at)[1] if line[at] == "{" else len(line)
        except (ValueError, RecursionError):
            end = len(line)
        yield line[at:end]
        blank = _BLANK.match(line, end)
        assert blank is not None
        at = blank.end()


def read_line(raw: bytes) -> LineItem:
    """The item of a line. Raises UnreadableLine."""
    try:
        line = msgspec.json.decode(raw, type=EntityLine | RelationLine)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableLine(_reason(error)) from error
    if isinstance(line, RelationLine):
        names = {"from": line.from_, "to": line.to, "relationType": line.relation_type}
        _refuse_nul(names)
        require_visible(names)
        return NewRelation(line.from_, line.to, line.relation_type)
    texts = {f"observations[{location}]": text for location, text in enumerate(line.observations)}
    _refuse_nul({"name": line.name, "entityType": line.entity_type, **texts})
    require_visible({"name": line.name})
    return NewEntity(line.name, line.entity_type or None, tuple(unique(line.observations)))


def read_line_leniently(raw: bytes, where: str) -> tuple[LineItem, list[ImportProblem]]:
    """Return the item of a line without the observations that cannot be stored, and their problems."""
    try:
        return read_line(raw), []
    except UnreadableLine as error:
        if not error.reason.startswith("observations["):
            raise
    line, problems = without_faults(EntityRecord, msgspec.json.decode(raw), where)
    return read_line(msgspec.json.encode(line)), problems


def write_line(item: LineItem) -> bytes:
    """The item's line, with its end. `read_line` gives the same item back."""
    line = (
        RelationLine(item.source, item.target, item.type)
        if isinstance(item, NewRelation)
        else EntityLine(item.name, item.kind or "", list(item.observations))
    )
    return msgspec.json.encode(line) + b"\n"


def record_of(item: LineItem) -> AnyRecord:
    """The item of a line as a record."""
    if isinstance(item, NewRelation):
        return RelationRecord(from_=item.source, to=item.target, relation_type=item.type)
    return EntityRecord(name=item.name, entity_type=item.kind or "", observations=list(item.observations))


def _lines(items: Sequence[LineItem], first: bool) -> str:
    text = b"".join(map(write_line, items)).decode().removesuffix("\n")
    return text if first or not text else f"\n{text}"


def _refuse_nul(texts: dict[str, str]) -> None:
    for location, text in texts.items():
        if "\0" in text:
            raise UnreadableLine(f"{location}: holds the character NUL, which cannot be stored")


def _reason(error: Exception) -> str:
    """The reason why a line cannot be read, without any text of the line: the reason may be shown on a terminal."""
    match error:
        case UnicodeDecodeError():
            return "not UTF-8"
        case RecursionError():
            return "nested too deeply"
        case msgspec.ValidationError():
            if str(error).endswith(" - at `$.type`"):  # This message repeats text of the line.
                return "type: neither `entity` nor `relation`"
            message, _, location = str(error).partition(" - at `$.")
            return f"{location.rstrip('`')}: {message}" if location else message
    return f"not JSON: {str(error).removeprefix('JSON is malformed: ')}"
