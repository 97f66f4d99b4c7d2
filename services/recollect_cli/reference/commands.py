"""`recollect reference …`: pages of the documentation that are made from the code."""

from cyclopts import App

from recollect_cli.reference.settings import settings_page
from recollect_cli.reference.tools import tools_page

app = App(name="reference", help="Print pages of the documentation that are made from the code.")


@app.command
def settings() -> None:
    """Every setting: docs/settings.md."""
    print(settings_page(), end="")


@app.command
def tools() -> None:
    """Every tool: docs/tools.md."""
    print(tools_page(), end="")
