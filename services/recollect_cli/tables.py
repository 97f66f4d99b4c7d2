"""How lists are shown: a table on a terminal, tab-separated lines in a pipe. What a cell holds steers neither."""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from recollect.printable import printable


def show(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their columns."""
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(map(printable, row)))
        return
    table = Table(*columns)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))  # A text, and no markup.
    Console().print(table)
