"""Records as named texts, for formats whose fields are all text: CSV's columns and GraphML's keys."""

from typing import Any

from recollect.transfer.formats.reading import json_cell, json_text, list_cell, number_cell
from recollect.transfer.formats.writer import Stage
from recollect.transfer.model import Unreadable
from recollect.transfer.records import AnyRecord, EntityRecord, FactRecord, RelationRecord, parsed

_OF_ANY_NODE = ("summary", "status", "metadata", "source", "thread", "at", "freshnessAt", "ttlDays", "expiresAt")

COLUMNS: dict[Stage, tuple[str, ...]] = {
    Stage.ENTITIES: (
        *("name", "entityType", "observations", "createdAt", "lastModified", "tags", "importance"),
        *("parentId", "aliases", "said", "text", *_OF_ANY_NODE),
    ),
    Stage.FACTS: ("text", "kind", "createdAt", "lastModified", "tags", "importance", *_OF_ANY_NODE),
    Stage.RELATIONS: ("from", "relationType", "to", "createdAt", "metadata", "ordinal", "fromFact", "toFact"),
}
"""By table. The enhanced memory server's columns come first."""

TYPES: dict[Stage, type[AnyRecord]] = {
    Stage.ENTITIES: EntityRecord,
    Stage.FACTS: FactRecord,
    Stage.RELATIONS: RelationRecord,
}

LISTS = frozenset({"observations", "tags", "aliases", "said"})
_JSON = frozenset({"metadata", "fromFact", "toFact"})
NUMBERS = frozenset({"importance", "ttlDays", "ordinal"})
_NEEDED = {Stage.ENTITIES: {"entityType": "", "observations": []}, Stage.FACTS: {}, Stage.RELATIONS: {}}


def as_cell(value: Any) -> str:
    """A field's value as text: a list or an object as JSON, nothing as the empty text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json_text(value)


def read_cells(stage: Stage, cells: dict[str, str]) -> AnyRecord:
    """The record of such texts, the empty ones left out; raises Unreadable."""
    fields: dict[str, Any] = dict(_NEEDED[stage])
    for column, cell in cells.items():
        if cell:
            fields[column] = _read(column, cell)
    if stage is Stage.RELATIONS:
        fields.pop("lastModified", None)
        for end in ("from", "to"):
            if f"{end}Fact" in fields:
                if end in fields:
                    raise Unreadable(f"{end}Fact: there is a {end} already")
                fields[end] = fields.pop(f"{end}Fact")
    return parsed(TYPES[stage], fields)


def _read(column: str, cell: str) -> Any:
    try:
        if column in LISTS:
            return list_cell(cell)
        if column in _JSON:
            return json_cell(cell)
        if column in NUMBERS:
            number = number_cell(cell)
            return int(number) if column == "ordinal" and number.is_integer() else number
    except Unreadable as error:
        raise Unreadable(f"{column}: {error.reason}") from error
    return cell
