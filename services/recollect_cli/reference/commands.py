"""`recollect reference …`: pages of the documentation that are generated from the code."""

from cyclopts import App

from recollect.errors import InvalidInput
from recollect_cli.reference.settings import settings_page
from recollect_cli.reference.tools import PAGES, tools_page, toolset_page

app = App(name="reference", help="Print the pages of the documentation that are generated from the code.")


@app.command
def settings() -> None:
    """Print docs/settings.md, the list of all settings."""
    print(settings_page(), end="")


@app.command
def tools() -> None:
    """Print docs/tools.md, what holds of every tool."""
    print(tools_page(), end="")


@app.command
def toolset(name: str, /) -> None:
    """Print docs/tools/NAME.md, the tools of a toolset.

    Parameters
    ----------
    name
        Toolset, such as agent.
    """
    if name not in PAGES:
        raise InvalidInput(f"No such toolset; there are {', '.join(PAGES)}")
    print(toolset_page(name), end="")
