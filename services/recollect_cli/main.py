"""The `recollect` command's root: every subcommand, and how errors are told."""

import sys

from cyclopts import App
from rich.console import Console

from recollect import __version__
from recollect.errors import RecollectError
from recollect_cli import jobs, keys, local, migrate, tenants, transfer
from recollect_cli.reference.settings import settings_page
from recollect_cli.reference.tools import tools_page

app = App(name="recollect", help="Hosted memory for AI agents.", version=__version__)
app.command(local.local)
app.command(migrate.migrate)
app.command(tenants.app)
app.command(keys.app)
app.command(jobs.app)
app.command(transfer.import_file, name="import")
app.command(transfer.export_file, name="export")
app.command(
    "recollect_cli.stdio:stdio", name="stdio", help="Bridge a local MCP client to a gateway."
)  # loaded when used


reference = App(name="reference", help="Print pages of the documentation that are made from the code.")
app.command(reference)


@reference.command
def settings() -> None:
    """Every setting: docs/settings.md."""
    print(settings_page(), end="")


@reference.command
def tools() -> None:
    """Every tool: docs/tools.md."""
    print(tools_page(), end="")


def main() -> None:
    """Run one command; an error is one plain sentence and exit code 1."""
    try:
        app()
    except RecollectError as error:
        Console(stderr=True).print(f"recollect: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
