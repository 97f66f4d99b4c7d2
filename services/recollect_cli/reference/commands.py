"""`recollect reference …`: pages of the documentation that are generated from the code."""

from cyclopts import App

from recollect_cli.reference.settings import settings_page
from recollect_cli.reference.tools import tools_page

app = App(name="reference", help="Print the pages of the documentation that are generated from the code.")


@app.command
def settings() -> None:
    """Print docs/settings.md, the list of all settings."""
    print(settings_page(), end="")


@app.command
def tools() -> None:
    """Print docs/tools.md, the list of all tools."""
    print(tools_page(), end="")
