"""The official memory server's `memory.jsonl`: one JSON object a line, entities and relations.

    {"type":"entity","name":"Ada","entityType":"person","observations":["writes notes"]}
    {"type":"relation","from":"Ada","to":"Babbage","relationType":"knows"}

As https://github.com/modelcontextprotocol/servers (src/memory) writes it; other fields are passed over, as there.
An entity without a kind has the entityType "".
"""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct, field

from recollect.entities.model import NewEntity
from recollect.errors import ErrorCode, TooLarge
from recollect.nodes.model import unique
from recollect.relations.model import NewRelation
from recollect.transfer.model import (
    MAX_KIND,
    MAX_LINES,
    MAX_NAME,
    MAX_OBSERVATIONS,
    MAX_RELATION_TYPE,
    MAX_TEXT,
    BrokenLine,
    Chunk,
    Item,
    Line,
    Unreadable,
)

MEDIA_TYPE = "application/x-ndjson"
REVISION_HEADER = "Recollect-Revision"
FACTS_HEADER = "Recollect-Facts-Left-Out"
"""What an answer over HTTP says beside the lines: the revision that they show, and how many facts they leave out."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]


class EntityLine(Struct, tag_field="type", tag="entity", rename="camel", frozen=True):
    """A line that says what an entity is."""

    name: Name
    entity_type: Annotated[str, Meta(max_length=MAX_KIND)]
    observations: list[Annotated[str, Meta(max_length=MAX_TEXT)]]


class RelationLine(Struct, tag_field="type", tag="relation", rename="camel", frozen=True):
    """A line that says how two entities are related; either may be missing from the file."""

    from_: Name = field(name="from")
    to: Name
    relation_type: Annotated[str, Meta(min_length=1, max_length=MAX_RELATION_TYPE)]


def read_chunk(body: bytes) -> Chunk:
    """The lines of a request's body; empty ones count but say nothing. Raises TooLarge past the bounds of a chunk."""
    raw_lines = body.removeprefix(BYTE_ORDER_MARK).split(b"\n")
    if len(raw_lines) - (not raw_lines[-1]) > MAX_LINES:
        raise TooLarge(f"More than {MAX_LINES} lines; send fewer a request.", code=ErrorCode.REQUEST_TOO_LARGE)
    lines, broken = [], []
    for number, raw in enumerate(raw_lines, 1):
        try:
            if raw.strip():
                lines.append(Line(number, read_line(raw)))
        except Unreadable as error:
            broken.append(BrokenLine(number, error.reason))
    _require_few([line.item for line in lines])
    return Chunk(tuple(lines), tuple(broken))


def read_line(raw: bytes) -> Item:
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


def write_line(item: Item) -> bytes:
    """The item's line, with its end. `read_line` gives the same item back."""
    line = (
        RelationLine(item.source, item.target, item.type)
        if isinstance(item, NewRelation)
        else EntityLine(item.name, item.kind or "", list(item.observations))
    )
    return msgspec.json.encode(line) + b"\n"


def _require_few(items: list[Item]) -> None:
    if sum(len(item.observations) for item in items if isinstance(item, NewEntity)) > MAX_OBSERVATIONS:
        raise TooLarge(
            f"More than {MAX_OBSERVATIONS} observations; send fewer a request, an entity in several lines if need be.",
            code=ErrorCode.REQUEST_TOO_LARGE,
        )


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
