"""Output of answers: a table on a terminal, tab-separated lines in a pipe, or JSON. Control characters are escaped."""

import sys
from collections.abc import Sequence
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from recollect.printable import printable, printable_json

AsJson = Annotated[bool, Parameter(name="--json", help="Print the answer of the gateway as JSON.")]


def show(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their columns."""
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(map(printable, row)))
        return
    table = Table(*columns)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))  # As Text, so that rich reads no markup in it.
    Console().print(table)


def show_json(answer: bytes) -> None:
    """Print JSON, indented."""
    print(printable_json(msgspec.json.format(answer, indent=2).decode()))
