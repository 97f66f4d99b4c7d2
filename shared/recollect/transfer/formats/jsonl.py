"""The official memory server's `memory.jsonl`: one JSON object a line, entities and relations.

    {"type":"entity","name":"Ada","entityType":"person","observations":["writes notes"]}
    {"type":"relation","from":"Ada","to":"Babbage","relationType":"knows"}

As https://github.com/modelcontextprotocol/servers (src/memory) writes it; other fields are passed over, as there.
An entity without a kind has the entityType "". A line is read by itself, its bytes too: one that is broken leaves the
others sound.
"""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct, field

from recollect.entities.model import NewEntity
from recollect.nodes.model import unique
from recollect.relations.model import NewRelation
from recollect.transfer.formats.lines import whole_lines
from recollect.transfer.formats.reading import BROKEN_BYTES, Item, Read
from recollect.transfer.formats.writer import ExportedEdge, ExportedNode, Writer
from recollect.transfer.model import Problem, Unreadable
from recollect.transfer.records import AnyRecord, EntityRecord, Kind, Name, RelationRecord, RelationType, Text

MEDIA_TYPE = "application/x-ndjson"

Said = NewEntity | NewRelation
"""What one line says."""


class EntityLine(Struct, tag_field="type", tag="entity", rename="camel", frozen=True):
    """A line that says what an entity is."""

    name: Name
    entity_type: Kind
    observations: list[Text]


class RelationLine(Struct, tag_field="type", tag="relation", rename="camel", frozen=True):
    """A line that says how two entities are related; either may be missing from the file."""

    from_: Name = field(name="from")
    to: Name
    relation_type: RelationType


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
        where, raw = f"line {number}", line.encode(errors=BROKEN_BYTES).strip()
        try:
            if raw:
                yield Item(where, record_of(read_line(raw)))
        except Unreadable as error:
            yield Problem(where, error.reason)


def read_line(raw: bytes) -> Said:
    """What a line says; raises Unreadable."""
    try:
        line = msgspec.json.decode(raw, type=EntityLine | RelationLine)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(_reason(error)) from error
    if isinstance(line, RelationLine):
        _refuse_nul({"from": line.from_, "to": line.to, "relationType": line.relation_type})
        return NewRelation(line.from_, line.to, line.relation_type)
    texts = {f"observations[{place}]": text for place, text in enumerate(line.observations)}
    _refuse_nul({"name": line.name, "entityType": line.entity_type, **texts})
    return NewEntity(line.name, line.entity_type or None, tuple(unique(line.observations)))


def write_line(item: Said) -> bytes:
    """The item's line, with its end. `read_line` gives the same item back."""
    line = (
        RelationLine(item.source, item.target, item.type)
        if isinstance(item, NewRelation)
        else EntityLine(item.name, item.kind or "", list(item.observations))
    )
    return msgspec.json.encode(line) + b"\n"


def record_of(said: Said) -> AnyRecord:
    """What a line said, as a record."""
    if isinstance(said, NewRelation):
        return RelationRecord(from_=said.source, to=said.target, relation_type=said.type)
    return EntityRecord(name=said.name, entity_type=said.kind or "", observations=list(said.observations))


def _refuse_nul(texts: dict[str, str]) -> None:
    for place, text in texts.items():
        if "\0" in text:
            raise Unreadable(f"{place}: holds the character NUL, which cannot be stored")


def _reason(error: Exception) -> str:
    """Why a line cannot be read, without any of its text: a terminal may show it."""
    match error:
        case UnicodeDecodeError():
            return "not UTF-8"
        case RecursionError():
            return "nested too deep"
        case msgspec.ValidationError():
            if str(error).endswith(" - at `$.type`"):  # it repeats what stands there
                return "type: neither `entity` nor `relation`"
            said, _, place = str(error).partition(" - at `$.")
            return f"{place.rstrip('`')}: {said}" if place else said
    return f"not JSON: {str(error).removeprefix('JSON is malformed: ')}"
