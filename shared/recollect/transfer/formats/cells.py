"""Records as texts by name, for formats in which every field is text: columns of CSV and keys of GraphML."""

from typing import Any

from recollect.transfer.formats.decoding import ParsedRecord, json_cell, json_text, list_cell, number_cell
from recollect.transfer.formats.writer import Stage
from recollect.transfer.model import ImportProblem, UnreadableLine
from recollect.transfer.records import AnyRecord, EntityRecord, FactRecord, RelationRecord, parsed_leniently

_COMMON_COLUMNS = (
    "summary",
    "status",
    "metadata",
    "source",
    "thread",
    "at",
    "freshnessAt",
    "ttlDays",
    "expiresAt",
    "reason",
)

COLUMNS: dict[Stage, tuple[str, ...]] = {
    Stage.ENTITIES: (
        *("name", "entityType", "observations", "createdAt", "lastModified", "tags", "importance"),
        *("parentId", "aliases", "said", "text", *_COMMON_COLUMNS, "differentFrom"),
    ),
    Stage.FACTS: ("text", "kind", "createdAt", "lastModified", "tags", "importance", *_COMMON_COLUMNS),
    Stage.RELATIONS: (
        *("from", "relationType", "to", "createdAt", "lastModified", "metadata", "ordinal"),
        *("fromFact", "toFact"),
    ),
}
"""The columns of each table. Those of the enhanced memory server come first."""

TYPES: dict[Stage, type[AnyRecord]] = {
    Stage.ENTITIES: EntityRecord,
    Stage.FACTS: FactRecord,
    Stage.RELATIONS: RelationRecord,
}

LISTS = frozenset({"observations", "tags", "aliases", "said", "differentFrom"})
_JSON = frozenset({"metadata", "fromFact", "toFact"})
NUMBERS = frozenset({"importance", "ttlDays", "ordinal"})
_DEFAULTS = {Stage.ENTITIES: {"entityType": "", "observations": []}, Stage.FACTS: {}, Stage.RELATIONS: {}}


def as_cell(value: Any) -> str:
    """The value of a field as text: a list or an object as JSON, None as the empty text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json_text(value)


def read_cells(stage: Stage, cells: dict[str, str], where: str) -> list[ParsedRecord | ImportProblem]:
    """The record of these texts, without the empty ones; before it the problems of parts that it cannot hold."""
    try:
        record, problems = parsed_leniently(TYPES[stage], _fields(stage, cells), where)
    except UnreadableLine as error:
        return [ImportProblem(where, error.reason)]
    return [*problems, ParsedRecord(where, record)]


def _fields(stage: Stage, cells: dict[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = dict(_DEFAULTS[stage])
    for column, cell in cells.items():
        if cell:
            fields[column] = _read(column, cell)
    if stage is Stage.RELATIONS:
        for end in ("from", "to"):
            if f"{end}Fact" in fields:
                if end in fields:
                    raise UnreadableLine(f"{end}Fact: the row has a value for {end}, too; give one of them")
                fields[end] = fields.pop(f"{end}Fact")
    return fields


def _read(column: str, cell: str) -> Any:
    try:
        if column in LISTS:
            return list_cell(cell)
        if column in _JSON:
            return json_cell(cell)
        if column in NUMBERS:
            number = number_cell(cell)
            return int(number) if column == "ordinal" and number.is_integer() else number
    except UnreadableLine as error:
        raise UnreadableLine(f"{column}: {error.reason}") from error
    return cell
