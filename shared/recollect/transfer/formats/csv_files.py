"""CSV: entities, facts and relations as three tables in one file, each after a line that names it.

    # ENTITIES
    name,entityType,observations,createdAt,lastModified,tags,importance,…
    Ada,person,"[""writes notes""]",…
    # RELATIONS
    from,relationType,to,createdAt,lastModified,metadata,…

The first columns are the enhanced memory server's. A list is a JSON array in its cell (`a; b`, as that server writes
it, is read too).

A cell that a spreadsheet would take for a formula is written with ' before it; the reader removes it. Which cells there
are depends on the spreadsheet: in much of Europe it separates them at semicolons, on pasting at tabs. It then takes the
quotes inside of a line for text, and begins a cell, or with a line break a row, in the middle of ours. So a formula
after such a character has ' before it, too.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from recollect.errors import InvalidInput
from recollect.transfer.formats.cells import COLUMNS, as_cell, read_cells
from recollect.transfer.formats.decoding import MAX_CELL, ParsedRecord, Read
from recollect.transfer.formats.lines import whole_lines
from recollect.transfer.formats.writer import ExportedEdge, ExportedNode, Stage, Writer
from recollect.transfer.model import ImportProblem
from recollect.transfer.records import AnyRecord

MARKS = {f"# {stage.upper()}": stage for stage in Stage}

_SEPARATORS = r";|\t\r\n"
"""What ends a cell for some spreadsheet, as a class of characters; a comma ends ours."""

_BLANKS = rf'(?:"|[^\S{_SEPARATORS}])*+'
"""What may come before a formula and be dropped: white space, and a quotation mark that is closed at once."""

_FORMULA = rf"'*+{_BLANKS}[=+\-@＝＋－＠]"
"""A formula, also with the quotes that an export put before it."""

_AT_BEGINNING = re.compile(rf"{_FORMULA}|'*+{_BLANKS}[\t\r\n]")
_AFTER_SEPARATOR = re.compile(rf"(?<=[{_SEPARATORS}])(?={_FORMULA})")
_GUARDED_AFTER_SEPARATOR = re.compile(rf"(?<=[{_SEPARATORS}])'(?={_FORMULA})")

_QUOTED = re.compile(rf'[,"{_SEPARATORS}]')


class CsvWriter(Writer):
    """Writes a table for each stage."""

    writes_facts = True
    writes_status = True

    def opening(self, stage: Stage) -> str:
        """Write the name of the table and its columns."""
        return f"# {stage.upper()}\r\n" + _rows([COLUMNS[stage]])

    def nodes(self, nodes: Sequence[ExportedNode], *, first: bool) -> str:
        """Write a row for each node."""
        return _rows([_cells(node.record) for node in nodes if node.record])

    def edges(self, edges: Sequence[ExportedEdge], *, first: bool) -> str:
        """Write a row for each relation."""
        return _rows([_cells(edge.record) for edge in edges])


def guarded(cell: str) -> str:
    """The cell in a form that every spreadsheet takes as text. `unguarded` restores it."""
    cell = _AFTER_SEPARATOR.sub("'", cell)
    return f"'{cell}" if _AT_BEGINNING.match(cell) else cell


def unguarded(cell: str) -> str:
    """The cell as it was before `guarded`."""
    cell = _GUARDED_AFTER_SEPARATOR.sub("", cell)
    return cell[1:] if cell.startswith("'") and _AT_BEGINNING.match(cell) else cell


def read(texts: Iterator[str]) -> Read:
    """The rows of every table. Raises InvalidInput for columns that are unknown, come twice or are missing."""
    csv.field_size_limit(MAX_CELL)  # the module's own bound, a setting of the process: 131,072 characters
    lines = _RowLines(whole_lines(texts))
    reader = csv.reader(lines, strict=True)
    stage: Stage | None = None
    columns: Sequence[str] = ()
    for cells in _parsed_rows(lines, reader):
        where = f"line {reader.line_num}"
        if not any(cells):
            continue
        if len(cells) == 1 and cells[0] in MARKS:
            stage, columns = MARKS[cells[0]], ()
        elif not columns:
            stage = stage or _stage_of(cells)
            columns = _header(stage, cells, where)
        else:
            assert stage is not None
            yield from _read_row(stage, columns, cells, where)


class _RowLines:
    """Yields lines and bounds the characters of one row: a quoted cell may span many lines, which the parser keeps."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._number = self.size = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._number += 1
        self.size += len(line)
        if self.size > MAX_CELL:
            raise InvalidInput(f"A row has more than {MAX_CELL} characters", path=f"line {self._number}")
        return line


def _parsed_rows(lines: _RowLines, reader: Any) -> Iterator[list[str]]:
    try:
        for cells in reader:
            lines.size = 0
            yield cells
    except csv.Error as error:
        raise InvalidInput(f"Not CSV: {error}", path=f"line {reader.line_num}") from None


def _stage_of(cells: Sequence[str]) -> Stage:
    """The stage of a file that does not name its only table."""
    if "from" in cells or "fromFact" in cells:
        return Stage.RELATIONS
    return Stage.ENTITIES if "name" in cells else Stage.FACTS


def _header(stage: Stage, cells: Sequence[str], where: str) -> Sequence[str]:
    for number, column in enumerate(cells, 1):
        location = f"{where}.column {number}"
        if column not in COLUMNS[stage]:
            raise InvalidInput(f"Unknown column; the columns are {', '.join(COLUMNS[stage])}", path=location)
        if column in cells[: number - 1]:
            raise InvalidInput("This column occurs twice", path=location)
    return tuple(cells)


def _read_row(
    stage: Stage, columns: Sequence[str], cells: Sequence[str], where: str
) -> Sequence[ParsedRecord | ImportProblem]:
    if len(cells) != len(columns):
        return [ImportProblem(where, f"{len(cells)} cells instead of {len(columns)}")]
    return read_cells(stage, dict(zip(columns, map(unguarded, cells), strict=True)), where)


def _cells(record: AnyRecord) -> list[str]:
    fields: dict[str, Any] = msgspec.to_builtins(record)
    stage = next(stage for stage in Stage if fields.keys() & {_KEYS[stage]})
    for end in ("from", "to"):
        if isinstance(fields.get(end), dict):
            fields[f"{end}Fact"] = fields.pop(end)
    return [guarded(as_cell(fields.get(column))) for column in COLUMNS[stage]]


_KEYS = {Stage.ENTITIES: "name", Stage.FACTS: "text", Stage.RELATIONS: "relationType"}


def _rows(rows: Sequence[Sequence[str]]) -> str:
    """Rows of RFC 4180, where a cell that any spreadsheet would cut in two is quoted, too."""
    return "".join(f"{','.join(map(_quoted, row))}\r\n" for row in rows)


def _quoted(cell: str) -> str:
    return '"{}"'.format(cell.replace('"', '""')) if _QUOTED.search(cell) else cell
