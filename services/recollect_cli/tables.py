"""Output of answers: a table or records on a terminal, tab-separated lines in a pipe, or JSON.

Control characters are escaped. Nothing is cut: what does not fit the width of a terminal as a table is printed as
records, a line for each field, so that ids can be copied. What a command did, if it prints no answer, is said on
standard error: standard output is for answers alone.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from recollect.text.control_characters import printable, printable_json

AsJson = Annotated[bool, Parameter(name="--json", help="Print the answer of the gateway as JSON.")]

Cell = str | int
"""A number is printed in full in a pipe, and short on a terminal."""

T = TypeVar("T")

_WIDEST = 100_000
"""Columns of a terminal on which any table is measured in its own width."""

_UNITS = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


def show(columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, empty: str | None = None) -> None:
    """Print rows under their columns; without any, say `empty`."""
    if not rows and empty is not None:
        echo(empty)
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(printable(str(cell)) for cell in row))
    elif rows:
        _show_on_terminal(columns, [[printable(_cell_text(cell)) for cell in row] for row in rows])


class _ItemPage(msgspec.Struct, Generic[T], frozen=True):
    items: list[T]


def show_items(
    answer: bytes,
    kind: type[T],
    columns: Sequence[str],
    row: Callable[[T], Sequence[Cell]],
    *,
    json: bool,
    empty: str,
) -> None:
    """Print a page of items of that kind, a row each; with `json`, the gateway's answer itself."""
    if json:
        show_json(answer)
        return
    page = msgspec.json.decode(answer, type=_ItemPage[kind])  # type: ignore[valid-type]
    show(columns, [row(item) for item in page.items], empty=empty)


def show_record(fields: dict[str, str]) -> None:
    """Print the fields of one object, a line each."""
    if sys.stdout.isatty():
        _show_records(list(fields), [[printable(value) for value in fields.values()]])
    else:
        for field in fields.items():
            print("\t".join(map(printable, field)))


def show_json(answer: bytes) -> None:
    """Print JSON, indented."""
    print(printable_json(msgspec.json.format(answer, indent=2).decode()))


def echo(message: str) -> None:
    """Say what a command did."""
    print(printable(message), file=sys.stderr)


def short_number(number: int) -> str:
    """The number in few characters, where they say exactly the same: 10k, 2.5M; others with commas."""
    for unit, letter in _UNITS:
        if abs(number) >= unit and number * 10 % unit == 0:
            return f"{number / unit:g}{letter}"
    return f"{number:,}"


def _cell_text(cell: Cell) -> str:
    return short_number(cell) if isinstance(cell, int) else cell


def _show_on_terminal(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    console, table = Console(), Table(*columns)
    for row in rows:
        table.add_row(*map(Text, row))  # As Text, so that rich reads no markup in it.
    unbounded = console.options.update(max_width=_WIDEST)
    if Measurement.get(console, unbounded, table).maximum <= console.width:
        console.print(table)
    else:
        _show_records(columns, rows)


def _show_records(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    width = max(map(len, columns))
    for number, row in enumerate(rows):
        if number:
            print()
        for column, cell in zip(columns, row, strict=True):
            print(f"{column:{width}}  {cell}".rstrip())
