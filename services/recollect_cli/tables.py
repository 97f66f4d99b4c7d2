"""How lists are shown: a table on a terminal, tab-separated lines in a pipe."""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table


def show(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their columns."""
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(row))
        return
    table = Table(*columns)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
